/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in double, rounded wherever the operator's definition has a value of the inputs' type.
 * Half-precision models get the numbers that the definition gives, and float64 models keep their precision.
 *
 * Some rows go together, so that keys and values are widened and rounded once for all of them. Sums are added
 * up in the order of their terms, whatever is done side by side. */
#include "backends/cpu/attention_exact.h"

#include "src/base/element.h"

#include <float.h>
#include <string.h>

static double attention_exact_round_to(grt_dtype dtype, double value)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        return (double)(float)value;
    case GRT_DTYPE_FLOAT16:
        return (double)grt_half_to_float(grt_float_to_half((float)value));
    case GRT_DTYPE_BFLOAT16:
        return (double)grt_bfloat16_to_float(grt_float_to_bfloat16((float)value));
    default:
        return value;
    }
}

/* Keys or values that are widened at once; a multiple of LANES, which are added to side by side. */
enum { TILE = 64, LANES = 8 };

static size_t padded(int64_t n)
{
    return ((size_t)n + LANES - 1) / LANES * LANES;
}

/* Workspace of a thread, in doubles. */
typedef struct exact_scratch {
    double *q;       /* [rows, size], scaled and rounded */
    double *scores;  /* [rows, total] */
    double *results; /* [rows, v_size], rows padded */
    double *tile;    /* keys, transposed: [size, TILE]; or values: [TILE, v_size], rows padded */
} exact_scratch;

static size_t attention_exact_lay_out(const attention_shape *shape, double *at, exact_scratch *out)
{
    const size_t rows = (size_t)shape->block, size = (size_t)shape->dims.size,
                 total = (size_t)shape->dims.total;
    const size_t values = padded(shape->dims.v_size), q = padded((int64_t)(rows * size)),
                 scores = padded((int64_t)(rows * total)), results = rows * values;
    *out = (exact_scratch){at, at + q, at + q + scores, at + q + scores + results};
    return q + scores + results + TILE * (size > values ? size : values);
}

size_t attention_exact_bytes(const attention_shape *shape)
{
    double nothing;
    exact_scratch unused;
    return attention_exact_lay_out(shape, &nothing, &unused) * sizeof(double);
}

/* A tile of keys, scaled and rounded; those that do not exist are zeros. */
static void widen_keys(const attention_shape *shape, grt_dtype type, double root, const attention_view *k,
                       int64_t k_at, int64_t n, double *tile)
{
    for (int64_t j = 0; j < TILE; j++)
        for (int64_t d = 0; d < shape->dims.size; d++)
            tile[d * TILE + j] =
                j < n ? attention_exact_round_to(
                            type, grt_element_load(type, k->data, k_at + j * k->row + d) * root)
                      : 0;
}

/* Products of some query rows with all keys, both scaled by the root of the scale; the keys have its sign. */
static void take_scores(const attention_shape *shape, grt_dtype type, int64_t rows, const attention_view *k,
                        int64_t k_at, const exact_scratch *s)
{
    const double root = attention_exact_round_to(type, sqrt(fabs(shape->dims.scale))),
                 of_keys = copysign(root, shape->dims.scale);
    const int64_t size = shape->dims.size, total = shape->dims.total;
    for (int64_t i = 0; i < rows * size; i++)
        s->q[i] = attention_exact_round_to(type, s->q[i] * root);
    for (int64_t from = 0; from < total; from += TILE) {
        const int64_t n = total - from < TILE ? total - from : TILE;
        widen_keys(shape, type, of_keys, k, k_at + from * k->row, n, s->tile);
        for (int64_t r = 0; r < rows; r++) {
            double sums[TILE] = {0};
            for (int64_t d = 0; d < size; d++) {
                const double q = s->q[r * size + d], *keys = s->tile + d * TILE;
#pragma omp simd
                for (int j = 0; j < TILE; j++)
                    sums[j] += q * keys[j];
            }
            for (int64_t j = 0; j < n; j++)
                s->scores[r * total + from + j] = attention_exact_round_to(type, sums[j]);
        }
    }
}

/* Values of all keys, weighted. */
static void attention_exact_add_values(const attention_shape *shape, grt_dtype type, int64_t rows,
                                       const attention_view *v, int64_t v_at, const exact_scratch *s)
{
    const int64_t total = shape->dims.total, size = shape->dims.v_size;
    const size_t stride = padded(size);
    memset(s->results, 0, (size_t)rows * stride * sizeof(double));
    for (int64_t from = 0; from < total; from += TILE) {
        const int64_t n = total - from < TILE ? total - from : TILE;
        for (int64_t j = 0; j < n; j++)
            for (size_t d = 0; d < stride; d++)
                s->tile[(size_t)j * stride + d] =
                    d < (size_t)size
                        ? grt_element_load(type, v->data, v_at + (from + j) * v->row + (int64_t)d)
                        : 0;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < n; j++) {
                const double weight = s->scores[r * total + from + j], *values = s->tile + (size_t)j * stride;
                double *sums = s->results + (size_t)r * stride;
                for (size_t d = 0; d < stride; d += LANES) {
#pragma omp simd
                    for (size_t i = d; i < d + LANES; i++)
                        sums[i] += weight * values[i];
                }
            }
    }
}

static void row_softcap(double cap, grt_dtype type, double *scores, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        scores[j] = attention_exact_round_to(
            type,
            attention_exact_round_to(type, tanh(attention_exact_round_to(type, scores[j] / cap))) * cap);
}

static double lowest(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16    ? -65504
           : dtype == GRT_DTYPE_BFLOAT16 ? -0x1.fep127
           : dtype == GRT_DTYPE_FLOAT    ? -(double)FLT_MAX
                                         : -DBL_MAX;
}

/* A score and an element of a mask. A mask of a wider type may hide by finite numbers that the scores' type
 * does not have: they stay finite, so that keys of a row that is hidden altogether have equal weights. */
static double masked_score(grt_dtype type, double score, double bias, bool wide)
{
    const double sum = score + bias, rounded = attention_exact_round_to(type, sum);
    return wide && sum < 0 && isfinite(sum) && !isfinite(rounded) ? lowest(type) : rounded;
}

/* Add mask and limits. False if no key is left. */
static bool row_mask(const grt_run *run, grt_dtype type, int64_t batch, int64_t head, int64_t row,
                     double *scores)
{
    const attention_shape *shape = run->shape;
    const grt_tensor *mask = run->n_in > 3 ? run->in[3] : NULL;
    int64_t lo, hi,
        at = batch * shape->dims.mask_strides[0] + head * shape->dims.mask_strides[1] +
             row * shape->dims.mask_strides[2];
    const bool wide = mask && grt_dtype_size(mask->dtype) > grt_dtype_size(type);
    bool any = false;
    attention_range(run, batch, row, &lo, &hi);
    for (int64_t j = 0; j < shape->dims.total; j++) {
        double bias = j >= lo && j < hi ? 0 : -INFINITY;
        if (mask && j < shape->dims.mask_len && mask->dtype != GRT_DTYPE_BOOL)
            bias += grt_element_get(mask, at + j);
        else if (mask && (j >= shape->dims.mask_len || !((const uint8_t *)mask->data)[at + j]))
            bias = -INFINITY;
        any |= bias != -INFINITY;
        scores[j] = masked_score(type, scores[j], bias, wide);
    }
    return any;
}

static void row_softmax(grt_dtype type, double *scores, int64_t n, bool any)
{
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        scores[j] = attention_exact_round_to(type, scores[j]);
        max = scores[j] > max ? scores[j] : max;
    }
    for (int64_t j = 0; j < n; j++) {
        scores[j] = any && max != -INFINITY
                        ? attention_exact_round_to(type, exp(attention_exact_round_to(type, scores[j] - max)))
                        : 0;
        sum = type == GRT_DTYPE_BFLOAT16 ? attention_exact_round_to(type, sum + scores[j]) : sum + scores[j];
    }
    sum = attention_exact_round_to(type, sum);
    for (int64_t j = 0; j < n; j++)
        scores[j] = sum != 0 ? attention_exact_round_to(type, scores[j] / sum) : 0;
}

static void attention_exact_emit(const grt_run *run, int mode, int64_t at, const double *scores)
{
    const attention_shape *shape = run->shape;
    grt_tensor *out = run->n_out > 3 ? run->out[3] : NULL;
    for (int64_t j = 0; out && shape->dims.mode == mode && j < shape->dims.total; j++)
        grt_element_put(out, at * shape->dims.total + j, scores[j]);
}

/* From the scores of a row to its weights. */
static void finish_row(const grt_run *run, grt_dtype type, int64_t batch, int64_t head, int64_t row,
                       double *scores)
{
    const attention_state *state = run->state;
    const attention_shape *shape = run->shape;
    const int64_t at = (batch * shape->dims.q_heads + head) * shape->dims.q_len + row;
    attention_exact_emit(run, 0, at, scores);
    if (shape->dims.softcap > 0)
        row_softcap(shape->dims.softcap, type, scores, shape->dims.total);
    attention_exact_emit(run, 1, at, scores);
    const bool any = row_mask(run, type, batch, head, row, scores);
    attention_exact_emit(run, 2, at, scores);
    row_softmax(state->softmax ? state->softmax : type, scores, shape->dims.total, any);
    attention_exact_emit(run, 3, at, scores);
    for (int64_t j = 0; j < shape->dims.total; j++)
        scores[j] = attention_exact_round_to(type, scores[j]);
}

void attention_exact_rows(const grt_run *run, const attention_view *q, const attention_view *k,
                          const attention_view *v, const attention_view *y, int64_t batch, int64_t head,
                          int64_t row, int64_t rows, double *scratch)
{
    const attention_shape *shape = run->shape;
    const grt_dtype type = run->in[0]->dtype;
    const int64_t kv_head = head / (shape->dims.q_heads / shape->dims.kv_heads), size = shape->dims.size;
    exact_scratch s;
    (void)attention_exact_lay_out(shape, scratch, &s);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t d = 0; d < size; d++)
            s.q[r * size + d] =
                grt_element_load(type, q->data, batch * q->batch + head * q->head + (row + r) * q->row + d);
    take_scores(shape, type, rows, k, batch * k->batch + kv_head * k->head, &s);
    for (int64_t r = 0; r < rows; r++)
        finish_row(run, type, batch, head, row + r, s.scores + r * shape->dims.total);
    attention_exact_add_values(shape, run->in[shape->dims.joined ? 0 : ATTENTION_V]->dtype, rows, v,
                               batch * v->batch + kv_head * v->head, &s);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t d = 0; d < shape->dims.v_size; d++)
            grt_element_put(run->out[0], batch * y->batch + head * y->head + (row + r) * y->row + d,
                            s.results[(size_t)r * padded(shape->dims.v_size) + (size_t)d]);
}
