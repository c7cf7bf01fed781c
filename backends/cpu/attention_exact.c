/* Attention row by row in double, rounded wherever the operator's definition has a value of the inputs' type.
 * Half-precision models get the numbers that the definition gives, and float64 models keep their precision.
 */
#include "backends/cpu/attention.h"

#include "backends/cpu/element.h"

static double round_to(grt_dtype dtype, double value)
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

size_t attention_exact_bytes(const attention_shape *shape)
{
    return ((size_t)shape->dims.total + (size_t)shape->dims.size) * sizeof(double);
}

/* scores[0..total): products of one query row with all keys, both scaled by the root of the scale. */
static void row_scores(const attention_shape *shape, grt_dtype type, const char *q_row,
                       const attention_view *k, int64_t k_at, double *q, double *scores)
{
    const double root = round_to(type, sqrt(shape->dims.scale));
    for (int64_t d = 0; d < shape->dims.size; d++)
        q[d] = round_to(type, cpu_element_load(type, q_row, d) * root);
    for (int64_t j = 0; j < shape->dims.total; j++) {
        double sum = 0;
        for (int64_t d = 0; d < shape->dims.size; d++)
            sum += q[d] * round_to(type, cpu_element_load(type, k->data, k_at + j * k->row + d) * root);
        scores[j] = round_to(type, sum);
    }
}

static void row_softcap(double cap, grt_dtype type, double *scores, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        scores[j] = round_to(type, round_to(type, tanh(round_to(type, scores[j] / cap))) * cap);
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
    bool any = false;
    attention_range(run, batch, row, &lo, &hi);
    for (int64_t j = 0; j < shape->dims.total; j++) {
        double bias = j >= lo && j < hi ? 0 : -INFINITY;
        if (mask && j < shape->dims.mask_len && mask->dtype != GRT_DTYPE_BOOL)
            bias += cpu_element_get(mask, at + j);
        else if (mask && (j >= shape->dims.mask_len || !((const uint8_t *)mask->data)[at + j]))
            bias = -INFINITY;
        any |= bias != -INFINITY;
        scores[j] = round_to(type, scores[j] + bias);
    }
    return any;
}

static void row_softmax(grt_dtype type, double *scores, int64_t n, bool any)
{
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        scores[j] = round_to(type, scores[j]);
        max = scores[j] > max ? scores[j] : max;
    }
    for (int64_t j = 0; j < n; j++) {
        scores[j] = any && max != -INFINITY ? round_to(type, exp(round_to(type, scores[j] - max))) : 0;
        sum = type == GRT_DTYPE_BFLOAT16 ? round_to(type, sum + scores[j]) : sum + scores[j];
    }
    sum = round_to(type, sum);
    for (int64_t j = 0; j < n; j++)
        scores[j] = sum != 0 ? round_to(type, scores[j] / sum) : 0;
}

static void emit(const grt_run *run, int mode, int64_t at, const double *scores)
{
    const attention_shape *shape = run->shape;
    grt_tensor *out = run->n_out > 3 ? run->out[3] : NULL;
    for (int64_t j = 0; out && shape->dims.mode == mode && j < shape->dims.total; j++)
        cpu_element_put(out, at * shape->dims.total + j, scores[j]);
}

void attention_exact_row(const grt_run *run, const attention_view *q, const attention_view *k,
                         const attention_view *v, const attention_view *y, int64_t batch, int64_t head,
                         int64_t row, double *scratch)
{
    const attention_state *state = run->state;
    const attention_shape *shape = run->shape;
    grt_dtype type = run->in[0]->dtype, v_type = run->in[2]->dtype;
    int64_t kv_head = head / (shape->dims.q_heads / shape->dims.kv_heads),
            at = (batch * shape->dims.q_heads + head) * shape->dims.q_len + row;
    const char *q_row = (const char *)q->data +
                        (size_t)(batch * q->batch + head * q->head + row * q->row) * grt_dtype_size(type);
    double *scores = scratch + shape->dims.size;
    row_scores(shape, type, q_row, k, batch * k->batch + kv_head * k->head, scratch, scores);
    emit(run, 0, at, scores);
    if (shape->dims.softcap > 0)
        row_softcap(shape->dims.softcap, type, scores, shape->dims.total);
    emit(run, 1, at, scores);
    bool any = row_mask(run, type, batch, head, row, scores);
    emit(run, 2, at, scores);
    row_softmax(state->softmax ? state->softmax : type, scores, shape->dims.total, any);
    emit(run, 3, at, scores);
    int64_t v_at = batch * v->batch + kv_head * v->head,
            y_at = batch * y->batch + head * y->head + row * y->row;
    for (int64_t j = 0; j < shape->dims.total; j++)
        scores[j] = round_to(type, scores[j]);
    for (int64_t d = 0; d < shape->dims.v_size; d++) {
        double sum = 0;
        for (int64_t j = 0; j < shape->dims.total; j++)
            sum += scores[j] * cpu_element_load(v_type, v->data, v_at + j * v->row + d);
        cpu_element_put(run->out[0], y_at + d, sum);
    }
}
