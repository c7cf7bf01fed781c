/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: pairs of each head's leading elements are rotated by the angle of their position. */
#include "backends/cpu/cpu.h"
#include "src/base/element.h"

#include <stdlib.h>
#include <string.h>

typedef struct rotary_state {
    int64_t heads, rotated;
    bool interleaved;
} rotary_state;

typedef struct rotary_shape {
    int64_t batch, heads, length, size, half; /* half: rotated pairs per head */
    int64_t positions;                        /* rows of the caches, with position_ids */
    bool packed;                              /* [batch, length, heads * size] */
} rotary_shape;

static grt_status rotary_create(const grt_kernel_node *node, void **out_state)
{
    rotary_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->heads = grt_attr_int(node->desc, "num_heads", 0);
    state->rotated = grt_attr_int(node->desc, "rotary_embedding_dim", 0);
    state->interleaved = grt_attr_int(node->desc, "interleaved", 0) != 0;
    *out_state = state;
    return GRT_OK;
}

static bool fit(const grt_reshape *reshape, rotary_shape *shape)
{
    const rotary_state *state = reshape->state;
    const grt_tensor *x = reshape->in[0], *ids = reshape->n_in > 3 ? reshape->in[3] : NULL;
    shape->packed = x->rank == 3;
    if (x->rank != 4 && (x->rank != 3 || state->heads <= 0 || x->dims[2] % state->heads))
        return false;
    shape->batch = x->dims[0];
    shape->heads = shape->packed ? state->heads : x->dims[1];
    shape->length = x->dims[shape->packed ? 1 : 2];
    shape->size = shape->packed ? x->dims[2] / state->heads : x->dims[3];
    int64_t rotated = state->rotated ? state->rotated : shape->size;
    shape->half = rotated / 2;
    if (rotated < 0 || rotated > shape->size || rotated % 2)
        return false;
    int64_t rows[2] = {shape->batch, shape->length};
    if (ids && !grt_dims_equal(ids->dims, ids->rank, rows, 2))
        return false;
    for (int32_t i = 1; i <= 2; i++) {
        const grt_tensor *cache = reshape->in[i];
        if (cache->rank != (ids ? 2 : 3) || cache->dims[cache->rank - 1] != shape->half)
            return false;
        if (!ids && (cache->dims[0] != shape->batch || cache->dims[1] != shape->length))
            return false;
    }
    shape->positions = ids ? reshape->in[1]->dims[0] : 0;
    return !ids || reshape->in[2]->dims[0] == shape->positions;
}

static grt_status rotary_reshape(grt_reshape *reshape)
{
    rotary_shape *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    if (!fit(reshape, shape)) {
        char x[GRT_TYPE_TEXT_SIZE], cache[GRT_TYPE_TEXT_SIZE];
        free(shape);
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input %s does not fit caches of %s: they need half the rotated size as last dim, "
                           "and a row for each "
                           "position",
                           grt_tensor_text(reshape->in[0], x), grt_tensor_text(reshape->in[1], cache));
    }
    reshape->shape = shape;
    return GRT_OK;
}

/* One head at one position: element k of pair p is at first[k][p * step]. */
static void rotate_float(const float *x, const float *c, const float *s, float *y, int64_t half,
                         bool interleaved)
{
    int64_t step = interleaved ? 2 : 1, other = interleaved ? 1 : half;
    for (int64_t p = 0; p < half; p++) {
        float a = x[p * step], b = x[p * step + other];
        y[p * step] = c[p] * a - s[p] * b;
        y[p * step + other] = s[p] * a + c[p] * b;
    }
}

static void rotate(const grt_run *run, int64_t at, int64_t cache_at, int64_t half, bool interleaved)
{
    const grt_tensor *x = run->in[0];
    int64_t step = interleaved ? 2 : 1, other = interleaved ? 1 : half;
    for (int64_t p = 0; p < half; p++) {
        double a = grt_element_get(x, at + p * step), b = grt_element_get(x, at + p * step + other);
        double c = grt_element_get(run->in[1], cache_at + p), s = grt_element_get(run->in[2], cache_at + p);
        grt_element_put(run->out[0], at + p * step, c * a - s * b);
        grt_element_put(run->out[0], at + p * step + other, s * a + c * b);
    }
}

static grt_status check_positions(const grt_run *run, const rotary_shape *shape)
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

static grt_status rotary_run(const grt_run *run)
{
    const rotary_state *state = run->state;
    const rotary_shape *shape = run->shape;
    const grt_tensor *x = run->in[0], *ids = run->n_in > 3 ? run->in[3] : NULL;
    size_t element = grt_dtype_size(x->dtype);
    int64_t rows = shape->batch * shape->length * shape->heads, rest = shape->size - 2 * shape->half;
    if (ids)
        GRT_TRY(check_positions(run, shape));
#pragma omp parallel for num_threads(run->threads) if (rows * shape->size > CPU_GRAIN)
    for (int64_t row = 0; row < rows; row++) {
        /* rows are in memory order: [batch, heads, length] or [batch, length, heads] */
        int64_t batch = row / (shape->heads * shape->length);
        int64_t pos = shape->packed ? row / shape->heads % shape->length : row % shape->length;
        int64_t cache_row = batch * shape->length + pos, at = row * shape->size;
        if (ids)
            cache_row = ((const int64_t *)ids->data)[cache_row];
        if (x->dtype == GRT_DTYPE_FLOAT)
            rotate_float((const float *)x->data + at,
                         (const float *)run->in[1]->data + cache_row * shape->half,
                         (const float *)run->in[2]->data + cache_row * shape->half,
                         (float *)run->out[0]->data + at, shape->half, state->interleaved);
        else
            rotate(run, at, cache_row * shape->half, shape->half, state->interleaved);
        size_t tail = (size_t)(at + 2 * shape->half) * element;
        if (rest)
            memmove((char *)run->out[0]->data + tail, (const char *)x->data + tail, (size_t)rest * element);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "RotaryEmbedding",
     .flags = GRT_KERNEL_IN_PLACE(0),
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(INT64)},
     .create = rotary_create,
     .destroy = free,
     .reshape = rotary_reshape,
     .release_shape = free,
     .run = rotary_run},
    {.domain = "",
     .op = "RotaryEmbedding",
     .flags = GRT_KERNEL_IN_PLACE(0),
     .types = {GRT_SET_FLOATS & ~GRT_BIT(FLOAT), GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_BIT(INT64)},
     .create = rotary_create,
     .destroy = free,
     .reshape = rotary_reshape,
     .release_shape = free,
     .run = rotary_run},
};
CPU_KERNELS(rotary, rows);
