/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WGather: rows of weights of 4 and 8 bits; only those that are asked for are dequantised. */
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/threads.h"
#include "backends/shared/weight_rows.h"

#include "src/base/checked.h"
#include "src/base/element.h"
#include "src/base/tensor.h"

#include <stdlib.h>
#include <string.h>

enum { INDICES, W, SCALE, ZERO };

static bool wgather_supports(const grt_kernel_node *node, grt_text *why)
{
    const grt_dtype_set numbers = GRT_SET_BYTES | GRT_BIT(UINT4) | GRT_BIT(INT4) | GRT_BIT(FLOAT8E4M3FN);
    return grt_weight_rows_supported(node, numbers, GRT_BIT(FLOAT), why);
}

/* The row's numbers, and its zero points. */
static size_t room_bytes(const grt_tensor *w)
{
    return 2 * grt_align_up((size_t)w->dims[1], 64);
}

static grt_status wgather_reshape(grt_reshape *r)
{
    grt_weight_rows scales;
    GRT_TRY(grt_weight_rows_fit(r, &scales));
    return grt_mul_size(room_bytes(r->in[W]), (size_t)(r->threads > 0 ? r->threads : 1), &r->workspace_bytes)
               ? GRT_OK
               : grt_fail_memory(SIZE_MAX);
}

/* Elements [from, from + n) as bytes of their sign. */
static void load_bytes(const grt_tensor *t, int64_t from, int64_t n, uint8_t *out)
{
    if (grt_dtype_bits(t->dtype) == 8)
        memcpy(out, (const uint8_t *)t->data + from, (size_t)n);
    else
        cpu_widen(t->dtype, t->data, from, n, out);
}

static float wgather_number(const uint8_t *bytes, grt_dtype dtype, int64_t i)
{
    if (dtype == GRT_DTYPE_FLOAT8E4M3FN)
        return grt_float8_to_float(bytes[i], grt_float8_format_of(dtype));
    return grt_dtype_in(dtype, GRT_BIT(INT8) | GRT_BIT(INT4)) ? (float)((const int8_t *)bytes)[i]
                                                              : (float)bytes[i];
}

static void take_row(const grt_run *r, const grt_weight_rows *s, int64_t row, float *y, uint8_t *room)
{
    const grt_tensor *w = r->in[W], *zero = grt_run_in(r, ZERO);
    const int64_t n = w->dims[1], first = row * s->row_step, blocks = n / s->block + (n % s->block != 0);
    const bool one_zero = zero && grt_tensor_elements(zero) == 1;
    const float *scale = (const float *)r->in[SCALE]->data + first;
    uint8_t *zeros = room + room_bytes(w) / 2;
    load_bytes(w, row * n, n, room);
    if (zero)
        load_bytes(zero, one_zero ? 0 : first, one_zero ? 1 : blocks, zeros);
    for (int64_t b = 0, i = 0; b < blocks; b++) {
        const int64_t end = n - i < s->block ? n : i + s->block;
        const float off = zero ? wgather_number(zeros, w->dtype, one_zero ? 0 : b) : 0;
        for (; i < end; i++)
            y[i] = (wgather_number(room, w->dtype, i) - off) * scale[b];
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
    grt_weight_rows scales;
    grt_weight_rows_read(r->desc, w, r->in[SCALE], grt_run_in(r, ZERO), &scales);
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
                 (uint8_t *)r->workspace + (size_t)cpu_thread() * room_bytes(w));
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
