/* SPDX-License-Identifier: Apache-2.0 */
/* Pad and CenterCropPad. A constant border is filled around a strided copy; the other modes walk tables of
 * source indices. */
#include "backends/cpu/move.h"
#include "backends/shared/pad.h"

#include <string.h>

/* What is around the used part, or everything where that is in small pieces. */
static void fill_border(const grt_tensor *out, const grt_padding_plan *p, const void *value, size_t size,
                        int32_t threads)
{
    enum { SMALL = 1024 };
    int32_t dim = 0, rest;
    while (dim < out->rank && p->size[dim] == out->dims[dim])
        dim++;
    for (rest = dim + 1; rest < out->rank && p->size[rest] == out->dims[rest];)
        rest++;
    const int64_t total = grt_tensor_elements(out), inner = grt_dims_product(out->dims, dim + 1, out->rank),
                  outer = grt_dims_product(out->dims, 0, dim);
    if (dim >= out->rank || rest < out->rank || (out->dims[dim] - p->size[dim]) * inner < SMALL) {
        cpu_fill(out->data, value, size, total, threads);
        return;
    }
    const int64_t step = out->dims[dim] * inner, before = p->at[dim] * inner,
                  behind = before + p->size[dim] * inner;
    for (int64_t at = 0; at < outer * step; at += step) {
        cpu_fill(cpu_at(out->data, at, size), value, size, before, threads);
        cpu_fill(cpu_at(out->data, at + behind, size), value, size, step - behind, threads);
    }
}

/* The used part of the input, surrounded by *value. */
static void pad_constant(const grt_run *run, const grt_padding_plan *p, const void *value)
{
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK], in_offset = 0, out_offset = 0;
    const int64_t total = grt_tensor_elements(out);
    cpu_move move = {.size = grt_dtype_size(in->dtype)};
    if (p->used < total)
        fill_border(out, p, value, move.size, run->threads);
    if (p->used == 0)
        return;
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    for (int32_t k = 0; k < in->rank; k++) {
        in_offset += p->first[k] * from[k];
        out_offset += p->at[k] * to[k];
        cpu_move_axis(&move, p->size[k], to[k], from[k]);
    }
    cpu_move_run(&move, cpu_at(out->data, out_offset, move.size),
                 cpu_at_const(in->data, in_offset, move.size), run->threads);
}

#define DEFINE_PICK(bits)                                                                                 \
    static void pick_##bits(void *dst, const void *src, const int64_t *table, int64_t begin, int64_t end) \
    {                                                                                                     \
        for (int64_t k = begin; k < end; k++)                                                             \
            ((cpu_bits##bits *)dst)[k] = ((const cpu_bits##bits *)src)[table[k]];                         \
    }
DEFINE_PICK(8)
DEFINE_PICK(16)
DEFINE_PICK(32)
DEFINE_PICK(64)
DEFINE_PICK(128)

static grt_status pad_tables(const grt_run *run, grt_pad_mode mode, const grt_padding_plan *p)
{
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int64_t from[GRT_MAX_RANK], *tables[GRT_MAX_RANK], *next = run->workspace,
                                                       total = grt_tensor_elements(out);
    int32_t last = in->rank - 1;
    size_t bytes = grt_dtype_size(in->dtype);
    if (total == 0)
        return GRT_OK;
    grt_dims_strides(in->dims, in->rank, from);
    for (int32_t k = 0; k <= last; k++) {
        const int64_t begin = p->at[k], end = begin + p->size[k];
        tables[k] = next;
        for (int64_t i = 0; i < out->dims[k]; i++) {
            if (i == begin && k == last) /* the middle of a row is copied */
                i = end;
            if (i < out->dims[k])
                next[i] = (p->first[k] + grt_pad_source(mode, i - begin, p->size[k])) * from[k];
        }
        next += out->dims[k];
    }
    int64_t n = last < 0 ? 1 : out->dims[last], rows = total / n;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (total > CPU_GRAIN)
    for (int64_t row = 0; row < rows; row++) {
        int64_t offset = 0, rest = row;
        for (int32_t k = last - 1; k >= 0; k--) {
            offset += tables[k][rest % out->dims[k]];
            rest /= out->dims[k];
        }
        const char *src = cpu_at_const(in->data, offset, bytes);
        char *dst = cpu_at(out->data, row * n, bytes);
        if (last < 0) {
            memcpy(dst, src, bytes);
            continue;
        }
        int64_t begin = p->at[last], end = begin + p->size[last];
        CPU_BY_SIZE(bytes, pick_, dst, src, tables[last], 0, begin);
        memcpy(dst + (size_t)begin * bytes, src + (size_t)p->first[last] * bytes,
               (size_t)(end - begin) * bytes);
        CPU_BY_SIZE(bytes, pick_, dst, src, tables[last], end, n);
    }
    return GRT_OK;
}

static grt_status reshape_pad(grt_reshape *reshape)
{
    if (*(const grt_pad_mode *)reshape->state == GRT_PAD_CONSTANT)
        return GRT_OK;
    size_t entries = 0;
    for (int32_t k = 0; k < reshape->out[0]->rank; k++)
        entries += (size_t)reshape->out[0]->dims[k];
    reshape->workspace_bytes = entries * sizeof(int64_t);
    return GRT_OK;
}

static grt_status run_pad(const grt_run *run)
{
    static const uint64_t zero[2];
    grt_pad_mode mode = *(const grt_pad_mode *)run->state;
    const grt_tensor *value = run->n_in > 2 ? run->in[2] : NULL;
    grt_padding_plan p;
    GRT_TRY(grt_pad_plan(run->desc, mode, run->in, run->n_in, run->out[0], &p));
    if (mode != GRT_PAD_CONSTANT)
        return pad_tables(run, mode, &p);
    static const grt_string empty = {"", 0};
    const void *nothing = run->in[0]->dtype == GRT_DTYPE_STRING ? (const void *)&empty : zero;
    pad_constant(run, &p, value && grt_tensor_elements(value) ? value->data : nothing);
    return GRT_OK;
}

static grt_status run_center(const grt_run *run)
{
    static const uint64_t zero[2];
    grt_padding_plan p;
    grt_center_plan(run->in[0], run->out[0], &p);
    pad_constant(run, &p, zero);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Pad",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_INDEX, CPU_MOVABLE, CPU_INDEX},
     .create = grt_pad_create,
     .destroy = free,
     .reshape = reshape_pad,
     .run = run_pad},
    {.op = "CenterCropPad", .domain = "", .types = {GRT_SET_PLAIN, CPU_INDEX}, .run = run_center},
};
CPU_KERNELS(pad, rows);
