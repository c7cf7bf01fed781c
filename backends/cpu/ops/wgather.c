/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WGather: rows of weights of 2, 4 and 8 bits; only those that are asked for are dequantised. */
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/threads.h"
#include "backends/shared/weights.h"

#include "src/base/checked.h"
#include "src/base/element.h"
#include "src/base/tensor.h"

#include <stdlib.h>
#include <string.h>

enum { INDICES, W, SCALE, ZERO };

/* Which scale an element has: one for all, one a row, one a column, or one for a block of a row. */
typedef struct gather_scales {
    int64_t row_step, block; /* block: elements of a row that share a scale */
} gather_scales;

static bool read_scales(const grt_op_desc *desc, const grt_tensor *w, const grt_tensor *scale,
                        const grt_tensor *zero, gather_scales *out)
{
    const int64_t block = grt_attr_int(desc, "block_size", 0),
                  axis = grt_axis(grt_attr_int(desc, "axis", 1), 2), n = grt_tensor_elements(scale),
                  rows = w->dims[0], cols = w->dims[1];
    *out = (gather_scales){.block = cols > 0 ? cols : 1};
    if (w->rank != 2 || (zero && grt_tensor_elements(zero) != 1 && grt_tensor_elements(zero) != n))
        return false;
    if (block > 0) {
        const int64_t blocks = cols / block + (cols % block != 0);
        *out = (gather_scales){blocks, block};
        return axis == 1 && scale->rank == 2 && scale->dims[0] == rows && scale->dims[1] == blocks;
    }
    if (n == 1)
        return true;
    if (axis == 0)
        out->row_step = 1;
    else
        out->block = 1;
    return n == (axis == 0 ? rows : cols);
}

static bool wgather_supports(const grt_kernel_node *node, grt_text *why)
{
    const grt_tensor *zero = grt_node_has(node, ZERO) ? &node->in[ZERO] : NULL;
    gather_scales scales;
    const bool fits =
        node->n_in > SCALE && grt_dtype_in(node->in[INDICES].dtype, GRT_BIT(INT32) | GRT_BIT(INT64)) &&
        grt_dtype_in(node->in[W].dtype, GRT_WEIGHTS_INTEGERS | GRT_WEIGHTS_FLOATS) && node->in[W].rank == 2 &&
        grt_dtype_in(node->in[SCALE].dtype, GRT_BIT(FLOAT) | GRT_BIT(FLOAT8E8M0)) &&
        node->in[SCALE].rank >= 0 && (!node->out[0].dtype || node->out[0].dtype == GRT_DTYPE_FLOAT) &&
        (!zero || zero->dtype == node->in[W].dtype) &&
        read_scales(node->desc, &node->in[W], &node->in[SCALE], zero, &scales);
    if (!fits && why)
        grt_text_add(why, "a matrix of 2, 4 or 8 bits is needed, with scales of float32 or e8m0 for all, for "
                          "each row, for each "
                          "column or for blocks of a row");
    return fits;
}

/* A row's scales and zero points. */
static size_t room_bytes(const grt_tensor *w)
{
    return grt_align_up(2 * (size_t)w->dims[1] * sizeof(float), 64);
}

static grt_status wgather_reshape(grt_reshape *r)
{
    const grt_tensor *zero = r->n_in > ZERO ? r->in[ZERO] : NULL;
    gather_scales scales;
    if (!read_scales(r->desc, r->in[W], r->in[SCALE], zero, &scales))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the weights, scales and zero points do not fit");
    return grt_mul_size(room_bytes(r->in[W]), (size_t)(r->threads > 0 ? r->threads : 1), &r->workspace_bytes)
               ? GRT_OK
               : grt_fail_memory(SIZE_MAX);
}

/* Elements [from, from + n) as float32. */
static void load_floats(const grt_tensor *t, int64_t from, int64_t n, float *out)
{
    int8_t plain[CONVERT_BLOCK]; /* integers of 2 and 4 bits */
    for (int64_t i = 0, count; i < n; i += count) {
        count = n - i < CONVERT_BLOCK ? n - i : CONVERT_BLOCK;
        const grt_dtype dtype = cpu_plain_dtype(t->dtype);
        if (dtype == GRT_DTYPE_FLOAT) {
            cpu_widen(t->dtype, t->data, from + i, count, out + i);
            continue;
        }
        cpu_widen(t->dtype, t->data, from + i, count, plain);
        cpu_convert_plain(dtype, plain, GRT_DTYPE_FLOAT, out + i, count);
    }
}

static void take_row(const grt_run *r, const gather_scales *s, int64_t row, float *y, float *room)
{
    const grt_tensor *w = r->in[W], *zero = r->n_in > ZERO ? r->in[ZERO] : NULL;
    const int64_t n = w->dims[1], first = row * s->row_step, blocks = n / s->block + (n % s->block != 0);
    const bool one_zero = zero && grt_tensor_elements(zero) == 1;
    float *scales = room, *zeros = room + blocks;
    load_floats(w, row * n, n, y);
    load_floats(r->in[SCALE], first, blocks, scales);
    if (zero)
        load_floats(zero, one_zero ? 0 : first, one_zero ? 1 : blocks, zeros);
    for (int64_t b = 0, i = 0; b < blocks; b++) {
        const int64_t end = n - i < s->block ? n : i + s->block;
        const float off = zero ? zeros[one_zero ? 0 : b] : 0;
        for (; i < end; i++)
            y[i] = (y[i] - off) * scales[b];
    }
}

static int64_t wgather_index_at(const grt_tensor *t, int64_t i)
{
    return t->dtype == GRT_DTYPE_INT32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}

static grt_status wgather_run(const grt_run *r)
{
    const grt_tensor *indices = r->in[INDICES], *w = r->in[W];
    const int64_t count = grt_tensor_elements(indices), rows = w->dims[0], n = w->dims[1];
    gather_scales scales;
    read_scales(r->desc, w, r->in[SCALE], r->n_in > ZERO ? r->in[ZERO] : NULL, &scales);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = wgather_index_at(indices, i);
        if (at < -rows || at >= rows)
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "index %lld at position %lld is out of range for %lld rows", (long long)at,
                               (long long)i, (long long)rows);
    }
#pragma omp parallel for num_threads(r->threads) if (count * n > CPU_GRAIN)
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = wgather_index_at(indices, i);
        take_row(r, &scales, at < 0 ? at + rows : at, (float *)r->out[0]->data + i * n,
                 (float *)(void *)((char *)r->workspace + (size_t)cpu_thread() * room_bytes(w)));
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "WGather",
     .supports = wgather_supports,
     .reshape = wgather_reshape,
     .run = wgather_run},
};
CPU_KERNELS(wgather, rows);
