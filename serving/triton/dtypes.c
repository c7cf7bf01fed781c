/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/dtypes.h"

static const struct {
    grt_dtype ours;
    TRITONSERVER_DataType theirs;
    const char *config_name;
} rows[] = {
    {GRT_DTYPE_BOOL, TRITONSERVER_TYPE_BOOL, "TYPE_BOOL"},
    {GRT_DTYPE_UINT8, TRITONSERVER_TYPE_UINT8, "TYPE_UINT8"},
    {GRT_DTYPE_UINT16, TRITONSERVER_TYPE_UINT16, "TYPE_UINT16"},
    {GRT_DTYPE_UINT32, TRITONSERVER_TYPE_UINT32, "TYPE_UINT32"},
    {GRT_DTYPE_UINT64, TRITONSERVER_TYPE_UINT64, "TYPE_UINT64"},
    {GRT_DTYPE_INT8, TRITONSERVER_TYPE_INT8, "TYPE_INT8"},
    {GRT_DTYPE_INT16, TRITONSERVER_TYPE_INT16, "TYPE_INT16"},
    {GRT_DTYPE_INT32, TRITONSERVER_TYPE_INT32, "TYPE_INT32"},
    {GRT_DTYPE_INT64, TRITONSERVER_TYPE_INT64, "TYPE_INT64"},
    {GRT_DTYPE_FLOAT16, TRITONSERVER_TYPE_FP16, "TYPE_FP16"},
    {GRT_DTYPE_FLOAT, TRITONSERVER_TYPE_FP32, "TYPE_FP32"},
    {GRT_DTYPE_DOUBLE, TRITONSERVER_TYPE_FP64, "TYPE_FP64"},
    {GRT_DTYPE_STRING, TRITONSERVER_TYPE_BYTES, "TYPE_STRING"},
    {GRT_DTYPE_BFLOAT16, TRITONSERVER_TYPE_BF16, "TYPE_BF16"},
};

TRITONSERVER_DataType dtype_to_triton(grt_dtype dtype)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].ours == dtype)
            return rows[i].theirs;
    return TRITONSERVER_TYPE_INVALID;
}

grt_dtype dtype_from_triton(TRITONSERVER_DataType type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].theirs == type)
            return rows[i].ours;
    return GRT_DTYPE_NONE;
}

const char *dtype_config_name(grt_dtype dtype)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].ours == dtype)
            return rows[i].config_name;
    return NULL;
}
