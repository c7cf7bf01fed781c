/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: pairs of each head's leading elements are rotated by the angle of their position. */
#include "backends/cpu/cpu.h"
#include "src/base/element.h"
#include "backends/shared/rotary.h"

#include <stdlib.h>
#include <string.h>

/* One head at one position, whose pairs are `half` apart or neighbours. y may be x, so that no pair depends
 * on another. */
static void rotate_float(const float *x, const float *c, const float *s, float *y, int64_t half,
                         bool interleaved)
{
    if (interleaved) {
#pragma omp simd
        for (int64_t p = 0; p < half; p++) {
            const float a = x[2 * p], b = x[2 * p + 1];
            y[2 * p] = c[p] * a - s[p] * b;
            y[2 * p + 1] = s[p] * a + c[p] * b;
        }
        return;
    }
#pragma omp simd
    for (int64_t p = 0; p < half; p++) {
        const float a = x[p], b = x[p + half];
        y[p] = c[p] * a - s[p] * b;
        y[p + half] = s[p] * a + c[p] * b;
    }
}

/* The row of the caches, or of position_ids, of a head at a position. Rows are in memory order: [batch,
 * heads, length] or, packed, [batch, length, heads]. Divisions take as long as rotating a short head. */
static int64_t rotary_cache_row(const grt_rotary_dims *shape, int64_t row)
{
    if (shape->packed)
        return row / shape->heads;
    const int64_t head = row / shape->length; /* of all batches */
    return head / shape->heads * shape->length + (row - head * shape->length);
}

static void rotary_rotate(const grt_run *run, const grt_tensor *x, grt_tensor *y, int64_t at,
                          int64_t cache_at, int64_t half, bool interleaved)
{
    int64_t step = interleaved ? 2 : 1, other = interleaved ? 1 : half;
    for (int64_t p = 0; p < half; p++) {
        double a = grt_element_get(x, at + p * step), b = grt_element_get(x, at + p * step + other);
        double c = grt_element_get(run->in[1], cache_at + p), s = grt_element_get(run->in[2], cache_at + p);
        grt_element_put(y, at + p * step, c * a - s * b);
        grt_element_put(y, at + p * step + other, s * a + c * b);
    }
}

static grt_status check_positions(const grt_run *run, const grt_rotary_dims *shape)
{
    const grt_tensor *ids = run->in[3];
    for (int64_t i = 0; i < shape->batch * shape->length; i++) {
        int64_t id = ((const int64_t *)ids->data)[i];
        if (id < 0 || id >= shape->positions)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "position_ids holds %lld at element %lld; the caches have positions 0 to %lld",
                               (long long)id, (long long)i, (long long)shape->positions - 1);
    }
    return GRT_OK;
}

/* Result `result`, whose positions were checked. */
static void rotary_rotate_rows(const grt_run *run, int32_t result)
{
    const grt_rotary *state = run->state;
    const grt_rotary_dims *shape = (const grt_rotary_dims *)run->shape + result;
    const grt_tensor *x = run->in[grt_rotary_input(result)], *ids = run->n_in > 3 ? run->in[3] : NULL;
    grt_tensor *y = run->out[result];
    size_t element = grt_dtype_size(x->dtype);
    int64_t rows = shape->batch * shape->length * shape->heads, rest = shape->size - 2 * shape->half;
    if (shape->heads < shape->all_heads && y->data != x->data)
        memcpy(y->data, x->data, grt_tensor_bytes(x));
#pragma omp parallel for num_threads(run->threads) if (rows * shape->size > CPU_GRAIN)
    for (int64_t row = 0; row < rows; row++) {
        int64_t cache_row = rotary_cache_row(shape, row), at = grt_rotary_row(shape, row) * shape->size;
        if (ids)
            cache_row = ((const int64_t *)ids->data)[cache_row];
        if (x->dtype == GRT_DTYPE_FLOAT)
            rotate_float((const float *)x->data + at,
                         (const float *)run->in[1]->data + cache_row * shape->half,
                         (const float *)run->in[2]->data + cache_row * shape->half, (float *)y->data + at,
                         shape->half, state->interleaved);
        else
            rotary_rotate(run, x, y, at, cache_row * shape->half, shape->half, state->interleaved);
        size_t tail = (size_t)(at + 2 * shape->half) * element;
        if (rest)
            memmove((char *)y->data + tail, (const char *)x->data + tail, (size_t)rest * element);
    }
}

static grt_status rotary_run(const grt_run *run)
{
    if (run->n_in > 3 && run->in[3])
        GRT_TRY(check_positions(run, run->shape));
    for (int32_t i = 0; i < ((const grt_rotary *)run->state)->n; i++)
        rotary_rotate_rows(run, i);
    return GRT_OK;
}

#define ROTARY(space, name, x, caches, positions)                                              \
    {                                                                                          \
        .domain = space, .op = name, .flags = GRT_KERNEL_IN_PLACE(0),                          \
        .types = {x, caches, caches, positions}, .create = grt_rotary_create, .destroy = free, \
        .reshape = grt_rotary_reshape, .release_shape = free, .run = rotary_run                \
    }
static const grt_kernel_row rows[] = {
    ROTARY("", "RotaryEmbedding", GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(INT64)),
    ROTARY("", "RotaryEmbedding", GRT_SET_FLOATS & ~GRT_BIT(FLOAT), GRT_SET_FLOATS, GRT_BIT(INT64)),
    ROTARY("graphrt", "RotaryEmbedding", GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_BIT(INT64)),
    ROTARY("graphrt", "RotaryEmbeddings", GRT_SET_FLOATS, GRT_SET_FLOATS, 0),
};
CPU_KERNELS(rotary, rows);
