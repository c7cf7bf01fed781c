/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::HeadMix. A piece, the numbers of a row or some of them, of all heads, is mixed while it is in a
 * near cache. float32 has loops of its own; other types go element by element in double. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/workspace.h"
#include "backends/shared/head_mix.h"
#include "src/base/element.h"

#include <math.h>
#include <stdlib.h>

enum { PIECE = 512 }; /* numbers of a head; with a softmax a piece is a row */

typedef struct head_mix_shape {
    grt_head_mix mix;
    int64_t piece, pieces; /* of a row, and in all of the batch */
    int32_t threads;
    size_t room; /* bytes of a thread */
} head_mix_shape;

/* A matrix over heads, [to, from]; NULL: heads stay. */
typedef struct mixture {
    const float *matrix, *bias; /* bias may be NULL */
    int64_t from, to;
} mixture;

/* y row i = bias[i] + sum over j of matrix[i, j] * x row j; n numbers of a row. */
CPU_BODY mix_heads_body(const mixture *m, const float *x, int64_t step_x, float *y, int64_t step_y, int64_t n)
{
    for (int64_t i = 0; i < m->to; i++) {
        const float *w = m->matrix + i * m->from, start = m->bias ? m->bias[i] : 0.0f;
        float *to = y + i * step_y;
        int64_t j = m->from % 4;
        for (int64_t p = 0; p < n; p++)
            to[p] = start;
        for (int64_t k = 0; k < j; k++) {
            const float *row = x + k * step_x;
#pragma omp simd
            for (int64_t p = 0; p < n; p++)
                to[p] += w[k] * row[p];
        }
        for (; j < m->from; j += 4) {
            const float *a = x + j * step_x, *b = a + step_x, *c = b + step_x, *d = c + step_x;
#pragma omp simd
            for (int64_t p = 0; p < n; p++)
                to[p] += w[j] * a[p] + w[j + 1] * b[p] + (w[j + 2] * c[p] + w[j + 3] * d[p]);
        }
    }
}
CPU_DISPATCH(mix_heads,
             (const mixture *m, const float *x, int64_t step_x, float *y, int64_t step_y, int64_t n),
             (m, x, step_x, y, step_y, n))

static void head_mix_add(const float *bias, int64_t heads, float *y, int64_t step, int64_t n)
{
    for (int64_t i = 0; bias && i < heads; i++)
        for (int64_t p = 0; p < n; p++)
            y[i * step + p] += bias[i];
}

static void softmax_heads(const float *x, int64_t step_x, float *y, int64_t step_y, int64_t heads, int64_t n)
{
    const cpu_rows *loops = cpu_rows_best();
    for (int64_t i = 0; i < heads; i++)
        loops->softmax(x + i * step_x, y + i * step_y, 1, n, false);
}

/* n neighbouring numbers of all heads; with a softmax, a row. */
static void mix_piece(const grt_run *r, const grt_head_mix *mix, const float *x, float *y, int64_t n,
                      float *room)
{
    const float *before = grt_run_data(r, GRT_HEAD_MIX_BEFORE), *after = grt_run_data(r, GRT_HEAD_MIX_AFTER),
                *bias = grt_run_data(r, GRT_HEAD_MIX_BIAS);
    const int64_t plane = mix->rows * mix->keys;
    const mixture first = {before, mix->softmax ? NULL : bias, mix->heads, mix->middle},
                  last = {after, bias, mix->middle, mix->out};
    if (!mix->softmax) {
        mix_heads(&first, x, plane, y, plane, n);
        return;
    }
    if (before)
        mix_heads(&first, x, plane, room, n, n);
    float *to = after ? room : y;
    const int64_t step = after ? n : plane;
    softmax_heads(before ? room : x, before ? n : plane, to, step, mix->middle, n);
    if (after)
        mix_heads(&last, room, n, y, plane, n);
    else
        head_mix_add(bias, mix->out, y, plane, n);
}

static void mix_floats(const grt_run *r, const head_mix_shape *s)
{
    const grt_head_mix *mix = &s->mix;
    const int64_t plane = mix->rows * mix->keys, of_row = (mix->keys + s->piece - 1) / s->piece,
                  of_batch = of_row * mix->rows;
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (int32_t t = 0; t < s->threads; t++) {
        float *room = cpu_workspace_at(r->workspace, (size_t)t * s->room);
        for (int64_t i = s->pieces * t / s->threads; i < s->pieces * (t + 1) / s->threads; i++) {
            const int64_t image = i / of_batch, from = i % of_row * s->piece, left = mix->keys - from,
                          at = i % of_batch / of_row * mix->keys + from;
            mix_piece(r, mix, (const float *)r->in[0]->data + image * mix->heads * plane + at,
                      (float *)r->out[0]->data + image * mix->out * plane + at,
                      left < s->piece ? left : s->piece, room);
        }
    }
}

/* x[i] = sum over j of matrix[i, j] * x[j], of n numbers each; y is room for as many. */
static void mix_exact(const grt_tensor *matrix, int64_t from, int64_t to, const double *x, double *y,
                      int64_t n)
{
    for (int64_t i = 0; i < to; i++)
        for (int64_t p = 0; p < n; p++) {
            double sum = matrix ? 0 : x[i * n + p];
            for (int64_t j = 0; matrix && j < from; j++)
                sum += grt_element_get(matrix, i * from + j) * x[j * n + p];
            y[i * n + p] = sum;
        }
}

static void softmax_exact(double *x, int64_t n)
{
    double top = -INFINITY, sum = 0;
    for (int64_t p = 0; p < n; p++)
        top = fmax(top, x[p]);
    for (int64_t p = 0; p < n; p++)
        sum += x[p] = exp(x[p] - top);
    for (int64_t p = 0; p < n; p++)
        x[p] /= sum;
}

static void mix_row_exact(const grt_run *r, const grt_head_mix *mix, int64_t image, int64_t at, int64_t n,
                          double *room)
{
    const grt_tensor *bias = grt_run_in(r, GRT_HEAD_MIX_BIAS);
    const int64_t plane = mix->rows * mix->keys;
    double *middle = room + mix->heads * n, *end = middle + mix->middle * n;
    for (int64_t j = 0; j < mix->heads; j++)
        for (int64_t p = 0; p < n; p++)
            room[j * n + p] = grt_element_get(r->in[0], (image * mix->heads + j) * plane + at + p);
    mix_exact(grt_run_in(r, GRT_HEAD_MIX_BEFORE), mix->heads, mix->middle, room, middle, n);
    for (int64_t j = 0; mix->softmax && j < mix->middle; j++)
        softmax_exact(middle + j * n, n);
    mix_exact(grt_run_in(r, GRT_HEAD_MIX_AFTER), mix->middle, mix->out, middle, end, n);
    for (int64_t i = 0; i < mix->out; i++)
        for (int64_t p = 0; p < n; p++)
            grt_element_put(r->out[0], (image * mix->out + i) * plane + at + p,
                            end[i * n + p] + (bias ? grt_element_get(bias, i) : 0));
}

static void mix_elements(const grt_run *r, const head_mix_shape *s)
{
    const grt_head_mix *mix = &s->mix;
    const int64_t of_row = (mix->keys + s->piece - 1) / s->piece, of_batch = of_row * mix->rows;
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (int32_t t = 0; t < s->threads; t++)
        for (int64_t i = s->pieces * t / s->threads; i < s->pieces * (t + 1) / s->threads; i++) {
            const int64_t from = i % of_row * s->piece, left = mix->keys - from;
            mix_row_exact(r, mix, i / of_batch, i % of_batch / of_row * mix->keys + from,
                          left < s->piece ? left : s->piece,
                          cpu_workspace_at(r->workspace, (size_t)t * s->room));
        }
}

static grt_status head_mix_reshape(grt_reshape *r)
{
    head_mix_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const grt_status status = grt_head_mix_fit(r, &s->mix);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    const grt_head_mix *mix = &s->mix;
    const bool exact = r->in[0]->dtype != GRT_DTYPE_FLOAT;
    const int64_t work = grt_tensor_elements(r->out[0]), of_room = exact ? mix->heads + mix->middle + mix->out
                                                                   : mix->softmax ? mix->middle
                                                                                  : 0;
    s->piece = mix->softmax || mix->keys < PIECE ? mix->keys : PIECE;
    s->piece = s->piece ? s->piece : 1;
    s->pieces = work ? mix->batch * mix->rows * ((mix->keys + s->piece - 1) / s->piece) : 0;
    s->threads = work * mix->heads > CPU_GRAIN && s->pieces > r->threads ? r->threads : 1;
    cpu_layout layout = {0};
    int64_t numbers = 0;
    layout.overflow = !grt_mul_i64(of_room, s->piece, &numbers);
    cpu_layout_add(&layout, layout.overflow ? 0 : numbers, exact ? sizeof(double) : sizeof(float));
    s->room = layout.bytes;
    for (int32_t t = 1; t < s->threads; t++)
        cpu_layout_add(&layout, (int64_t)s->room, 1);
    r->workspace_bytes = layout.bytes;
    r->shape = s;
    return layout.overflow ? grt_fail_memory(SIZE_MAX) : GRT_OK;
}

static grt_status head_mix_run(const grt_run *r)
{
    const head_mix_shape *s = r->shape;
    if (r->in[0]->dtype == GRT_DTYPE_FLOAT)
        mix_floats(r, s);
    else
        mix_elements(r, s);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "HeadMix",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .reshape = head_mix_reshape,
     .release_shape = free,
     .run = head_mix_run},
};
CPU_KERNELS(head_mix, rows);
