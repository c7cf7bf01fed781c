/* SPDX-License-Identifier: Apache-2.0 */
/* Types of elements: ours, the server's, and their names in model configurations. */
#ifndef GRT_SERVING_TRITON_DTYPES_H
#define GRT_SERVING_TRITON_DTYPES_H

#include "serving/triton/tritonbackend.h"

#include <graphrt/graphrt.h>

/* TRITONSERVER_TYPE_INVALID if the server has no such type. */
TRITONSERVER_DataType dtype_to_triton(grt_dtype dtype);
/* GRT_DTYPE_NONE for TRITONSERVER_TYPE_INVALID and numbers that this backend does not know. */
grt_dtype dtype_from_triton(TRITONSERVER_DataType type);
/* "TYPE_FP32", ...; NULL if the server has no such type. Static. */
const char *dtype_config_name(grt_dtype dtype);

#endif
