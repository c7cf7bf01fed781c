/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WGather: rows of weights of 2, 4 and 8 bits; only those that are asked for are dequantised. */
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/move.h"
#include "backends/cpu/threads.h"
#include "backends/shared/weight_rows.h"
#include "backends/shared/weights.h"

#include "src/base/checked.h"
#include "src/base/element.h"
#include "src/base/tensor.h"

#include <stdlib.h>
#include <string.h>

enum { INDICES, W, SCALE, ZERO };

static bool wgather_supports(const grt_kernel_node *node, grt_text *why)
{
    return grt_weight_rows_supported(node, GRT_WEIGHTS_INTEGERS | GRT_WEIGHTS_FLOATS,
                                     GRT_BIT(FLOAT) | GRT_BIT(FLOAT8E8M0), why);
}

/* A row's scales and zero points. */
static size_t room_bytes(const grt_tensor *w)
{
    return grt_align_up(2 * (size_t)w->dims[1] * sizeof(float), 64);
}

static grt_status wgather_reshape(grt_reshape *r)
{
    grt_weight_rows scales;
    GRT_TRY(grt_weight_rows_fit(r, &scales));
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

static void take_row(const grt_run *r, const grt_weight_rows *s, int64_t row, float *y, float *room)
{
    const grt_tensor *w = r->in[W], *zero = grt_run_in(r, ZERO);
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

static grt_status wgather_run(const grt_run *r)
{
    const grt_tensor *indices = r->in[INDICES], *w = r->in[W];
    const int64_t count = grt_tensor_elements(indices), rows = w->dims[0], n = w->dims[1];
    grt_weight_rows scales;
    grt_weight_rows_read(r->desc, w, r->in[SCALE], grt_run_in(r, ZERO), &scales);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = cpu_index(indices, i);
        if (at < -rows || at >= rows)
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "index %lld at position %lld is out of range for %lld rows", (long long)at,
                               (long long)i, (long long)rows);
    }
#pragma omp parallel for num_threads(r->threads) if (count * n > CPU_GRAIN)
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = cpu_index(indices, i);
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
