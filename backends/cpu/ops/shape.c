/* SPDX-License-Identifier: Apache-2.0 */
/* Shape, Size, ConstantOfShape, Range, EyeLike. */
#include "backends/cpu/move.h"

#include "src/base/float.h"

#include <string.h>

static grt_status create_start(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(int64_t), out_state));
    *(int64_t *)*out_state = grt_attr_int(node->desc, "start", 0);
    return GRT_OK;
}

static grt_status run_shape(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    int64_t start = *(const int64_t *)run->state, n = run->out[0]->dims[0];
    start = start < 0 ? start + in->rank : start;
    start = start < 0 ? 0 : start;
    for (int64_t k = 0; k < n && start + k < in->rank; k++)
        ((int64_t *)run->out[0]->data)[k] = in->dims[start + k];
    return GRT_OK;
}

static grt_status run_size(const grt_run *run)
{
    *(int64_t *)run->out[0]->data = grt_tensor_elements(run->in[0]);
    return GRT_OK;
}

typedef struct element {
    char bytes[16];
} element;

static grt_status create_fill(const grt_kernel_node *node, void **out_state)
{
    const grt_tensor *value = grt_attr_tensor(node->desc, "value");
    GRT_TRY(cpu_state(sizeof(element), out_state));
    if (value)
        memcpy(*out_state, value->data, grt_tensor_bytes(value));
    return GRT_OK;
}

static grt_status run_fill(const grt_run *run)
{
    const grt_tensor *out = run->out[0];
    size_t size = grt_dtype_size(out->dtype);
    if (size) {
        cpu_fill(out->data, run->state, size, grt_tensor_elements(out), run->threads);
        return GRT_OK;
    }
    /* Sub-byte elements: the value repeated through one byte. */
    size_t bits = grt_dtype_bits(out->dtype);
    unsigned one = *(const unsigned char *)run->state & ((1u << bits) - 1), byte = 0;
    for (size_t at = 0; at < 8; at += bits)
        byte |= one << at;
    if (grt_tensor_elements(out))
        memset(out->data, (int)byte, grt_tensor_bytes(out));
    return GRT_OK;
}

static void range_ints(const grt_run *run, int64_t start, int64_t delta)
{
    grt_tensor *out = run->out[0];
    for (int64_t k = 0, n = out->dims[0]; k < n; k++) {
        uint64_t v = (uint64_t)start + (uint64_t)delta * (uint64_t)k; /* wraps where the type does */
        switch (grt_dtype_size(out->dtype)) {
        case 8:
            ((uint64_t *)out->data)[k] = v;
            break;
        case 4:
            ((uint32_t *)out->data)[k] = (uint32_t)v;
            break;
        case 2:
            ((uint16_t *)out->data)[k] = (uint16_t)v;
            break;
        default:
            ((uint8_t *)out->data)[k] = (uint8_t)v;
        }
    }
}

/* Not by instructions that multiply and add in one: the product is rounded. */
static void range_floats(float *out, int64_t n, float start, float delta)
{
    const int32_t most = n < INT32_MAX ? (int32_t)n : INT32_MAX;
#pragma omp simd
    for (int32_t k = 0; k < most; k++)
        out[k] = start + delta * (float)k;
    for (int64_t k = most; k < n; k++)
        out[k] = start + delta * (float)k;
}

static grt_status shape_run_range(const grt_run *run)
{
    grt_tensor *out = run->out[0];
    int64_t n = out->dims[0];
    if (grt_dtype_in(out->dtype, GRT_SET_INTS)) {
        range_ints(run, grt_tensor_int(run->in[0], 0), grt_tensor_int(run->in[2], 0));
        return GRT_OK;
    }
    double start = grt_tensor_double(run->in[0], 0), delta = grt_tensor_double(run->in[2], 0);
    if (out->dtype == GRT_DTYPE_FLOAT) {
        range_floats(out->data, n, (float)start, (float)delta);
        return GRT_OK;
    }
    for (int64_t k = 0; k < n; k++) {
        double v = start + delta * (double)k;
        switch (out->dtype) {
        case GRT_DTYPE_DOUBLE:
            ((double *)out->data)[k] = v;
            break;
        case GRT_DTYPE_FLOAT16:
            ((uint16_t *)out->data)[k] = grt_float_to_half((float)v);
            break;
        default:
            ((uint16_t *)out->data)[k] = grt_float_to_bfloat16((float)v);
        }
    }
    return GRT_OK;
}

/* The number 1 as a bit pattern of a dtype. */
static element shape_one_of(grt_dtype dtype)
{
    element e = {{0}};
    const float f = 1;
    const double d = 1;
    uint16_t half = dtype == GRT_DTYPE_FLOAT16 ? grt_float_to_half(1) : grt_float_to_bfloat16(1);
    if (dtype == GRT_DTYPE_FLOAT)
        memcpy(e.bytes, &f, sizeof f);
    else if (dtype == GRT_DTYPE_DOUBLE)
        memcpy(e.bytes, &d, sizeof d);
    else if (grt_dtype_in(dtype, GRT_SET_FLOATS))
        memcpy(e.bytes, &half, sizeof half);
    else
        for (size_t k = 0; k < grt_dtype_size(dtype); k++)
            e.bytes[k] = (char)((uint64_t)1 >> 8 * k & 0xff); /* low byte first, as the machines we run on */
    return e;
}

static grt_status create_eye(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(int64_t), out_state));
    *(int64_t *)*out_state = grt_attr_int(node->desc, "k", 0);
    return GRT_OK;
}

static bool supports_eye(const grt_kernel_node *node, grt_text *why)
{
    if (grt_dtype_in(node->out[0].dtype, GRT_SET_NUMBERS | GRT_BIT(BOOL)))
        return true;
    grt_text_add(why, "EyeLike makes numbers and bools, not %s", grt_dtype_name(node->out[0].dtype));
    return false;
}

static grt_status run_eye(const grt_run *run)
{
    grt_tensor *out = run->out[0];
    int64_t k = *(const int64_t *)run->state, rows = out->dims[0], cols = out->dims[1];
    size_t size = grt_dtype_size(out->dtype);
    element one = shape_one_of(out->dtype);
    const size_t bytes = grt_tensor_bytes(out);
    if (bytes)
        memset(out->data, 0, bytes);
    for (int64_t r = 0; r < rows; r++) {
        int64_t c;
        if (!__builtin_add_overflow(r, k, &c) && c >= 0 && c < cols)
            memcpy(cpu_at(out->data, r * cols + c, size), &one, size);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Shape", .domain = "", .types = {0}, .create = create_start, .destroy = free, .run = run_shape},
    {.op = "Size", .domain = "", .types = {0}, .run = run_size},
    {.op = "ConstantOfShape",
     .domain = "",
     .types = {CPU_INDEX},
     .create = create_fill,
     .destroy = free,
     .run = run_fill},
    {.op = "Range",
     .domain = "",
     .types = {GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS},
     .run = shape_run_range},
    {.op = "EyeLike",
     .domain = "",
     .types = {0},
     .supports = supports_eye,
     .create = create_eye,
     .destroy = free,
     .run = run_eye},
};
CPU_KERNELS(shape, rows);
