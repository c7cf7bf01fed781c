/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention and CausalConvWithState: sequence ops that carry a state from call to call. */
#include "backends/cpu/cpu.h"
#include "src/base/element.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

static grt_status recurrent_misfit(const grt_reshape *reshape, int32_t i)
{
    char text[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "input %d, %s, does not fit the other inputs", i,
                       grt_tensor_text(reshape->in[i], text));
}

static bool recurrent_dims_are(const grt_tensor *t, int32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t want[4] = {a, b, c, d};
    return grt_dims_equal(t->dims, t->rank, want, rank);
}

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA };

typedef struct linear_state {
    int64_t q_heads, kv_heads;
    double scale; /* 0: 1 / sqrt(key size) */
} linear_state;

typedef struct linear_shape {
    int64_t batch, length, key, value; /* sizes of one head's key and value */
    int64_t decay, beta;               /* last dims of those inputs, 0 if absent */
} linear_shape;

static grt_status linear_create(const grt_kernel_node *node, void **out_state)
{
    linear_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->q_heads = grt_attr_int(node->desc, "q_num_heads", 0);
    state->kv_heads = grt_attr_int(node->desc, "kv_num_heads", 0);
    state->scale = (double)grt_attr_float(node->desc, "scale", 0);
    *out_state = state;
    return GRT_OK;
}

/* Optional inputs without dims of their own: NULL if omitted. */
static const grt_tensor *recurrent_optional(const grt_tensor *const *in, int32_t n_in, int32_t i)
{
    return i < n_in ? in[i] : NULL;
}

static grt_status linear_fit(const grt_reshape *reshape, linear_shape *shape)
{
    const linear_state *state = reshape->state;
    const grt_tensor *q = reshape->in[QUERY], *k = reshape->in[KEY], *v = reshape->in[VALUE];
    const grt_tensor *past = recurrent_optional(reshape->in, reshape->n_in, PAST);
    const grt_tensor *decay = recurrent_optional(reshape->in, reshape->n_in, DECAY),
                     *beta = recurrent_optional(reshape->in, reshape->n_in, BETA);
    if (state->q_heads <= 0 || state->kv_heads <= 0 || state->q_heads % state->kv_heads)
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_MODEL,
                           "q_num_heads, %lld, must be a positive multiple of kv_num_heads, %lld",
                           (long long)state->q_heads, (long long)state->kv_heads);
    if (q->rank != 3 || q->dims[2] % state->q_heads)
        return recurrent_misfit(reshape, QUERY);
    shape->batch = q->dims[0];
    shape->length = q->dims[1];
    shape->key = q->dims[2] / state->q_heads;
    if (!recurrent_dims_are(k, 3, shape->batch, shape->length, state->kv_heads * shape->key, 0))
        return recurrent_misfit(reshape, KEY);
    if (v->rank != 3 || v->dims[0] != shape->batch || v->dims[1] != shape->length ||
        v->dims[2] % state->kv_heads)
        return recurrent_misfit(reshape, VALUE);
    shape->value = v->dims[2] / state->kv_heads;
    if (past && !recurrent_dims_are(past, 4, shape->batch, state->kv_heads, shape->key, shape->value))
        return recurrent_misfit(reshape, PAST);
    if (decay &&
        !recurrent_dims_are(decay, 3, shape->batch, shape->length, state->kv_heads * shape->key, 0) &&
        !recurrent_dims_are(decay, 3, shape->batch, shape->length, state->kv_heads, 0))
        return recurrent_misfit(reshape, DECAY);
    if (beta && !recurrent_dims_are(beta, 3, shape->batch, shape->length, state->kv_heads, 0) &&
        !recurrent_dims_are(beta, 3, shape->batch, shape->length, 1, 0))
        return recurrent_misfit(reshape, BETA);
    shape->decay = decay ? decay->dims[2] : 0;
    shape->beta = beta ? beta->dims[2] : 0;
    return GRT_OK;
}

static grt_status linear_reshape(grt_reshape *reshape)
{
    linear_shape *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    grt_status status = linear_fit(reshape, shape);
    /* Per thread: one head's state, a written value, and an output row. */
    size_t bytes = 0;
    if (status == GRT_OK &&
        (!grt_mul_size((size_t)shape->key + 2, (size_t)shape->value * sizeof(float), &bytes) ||
         !grt_mul_size(grt_align_up(bytes, 64), (size_t)reshape->threads, &reshape->workspace_bytes)))
        status = grt_fail_memory(SIZE_MAX);
    if (status != GRT_OK) {
        free(shape);
        return status;
    }
    reshape->shape = shape;
    return GRT_OK;
}

/* state *= exp(decay); value -= state^T key, times beta; state += key x value. */
static void linear_update(const grt_run *run, int64_t step, int64_t head, float *s, float *written)
{
    const linear_state *state = run->state;
    const linear_shape *shape = run->shape;
    int64_t key_at = (step * state->kv_heads + head) * shape->key,
            value_at = (step * state->kv_heads + head) * shape->value;
    for (int64_t m = 0; m < shape->value; m++)
        written[m] = (float)grt_element_get(run->in[VALUE], value_at + m);
    for (int64_t d = 0; shape->decay && d < shape->key; d++) {
        int64_t at = shape->decay == state->kv_heads ? step * shape->decay + head : key_at + d;
        float factor = expf((float)grt_element_get(run->in[DECAY], at));
        for (int64_t m = 0; m < shape->value; m++)
            s[d * shape->value + m] *= factor;
    }
    if (shape->beta) {
        float beta =
            (float)grt_element_get(run->in[BETA], step * shape->beta + (shape->beta == 1 ? 0 : head));
        for (int64_t d = 0; d < shape->key; d++) {
            float key = (float)grt_element_get(run->in[KEY], key_at + d);
            for (int64_t m = 0; m < shape->value; m++)
                written[m] -= s[d * shape->value + m] * key;
        }
        for (int64_t m = 0; m < shape->value; m++)
            written[m] *= beta;
    }
    for (int64_t d = 0; d < shape->key; d++) {
        float key = (float)grt_element_get(run->in[KEY], key_at + d);
        for (int64_t m = 0; m < shape->value; m++)
            s[d * shape->value + m] += key * written[m];
    }
}

static void linear_read(const grt_run *run, int64_t step, int64_t q_head, const float *s, float *row)
{
    const linear_state *state = run->state;
    const linear_shape *shape = run->shape;
    float scale = (float)(state->scale != 0 ? state->scale : 1 / sqrt((double)shape->key));
    int64_t at = step * state->q_heads + q_head;
    if (shape->value)
        memset(row, 0, (size_t)shape->value * sizeof *row);
    for (int64_t d = 0; d < shape->key; d++) {
        float q = (float)grt_element_get(run->in[QUERY], at * shape->key + d);
        for (int64_t m = 0; m < shape->value; m++)
            row[m] += q * s[d * shape->value + m];
    }
    for (int64_t m = 0; m < shape->value; m++)
        grt_element_put(run->out[0], at * shape->value + m, (double)(scale * row[m]));
}

static grt_status linear_run(const grt_run *run)
{
    const linear_state *state = run->state;
    const linear_shape *shape = run->shape;
    const grt_tensor *past = recurrent_optional(run->in, run->n_in, PAST);
    int64_t tasks = shape->batch * state->kv_heads, size = shape->key * shape->value;
    int64_t group = state->q_heads / state->kv_heads;
    size_t bytes = grt_align_up((size_t)(size + 2 * shape->value) * sizeof(float), 64);
#pragma omp parallel for num_threads(run->threads) if (tasks * size * shape->length > CPU_GRAIN)
    for (int64_t task = 0; task < tasks; task++) {
        float *s = (float *)(void *)((char *)run->workspace + (size_t)cpu_thread() * bytes);
        int64_t batch = task / state->kv_heads, head = task % state->kv_heads;
        for (int64_t i = 0; i < size; i++)
            s[i] = past ? (float)grt_element_get(past, task * size + i) : 0;
        for (int64_t t = 0; t < shape->length; t++) {
            int64_t step = batch * shape->length + t;
            linear_update(run, step, head, s, s + size);
            for (int64_t g = 0; run->out[0] && g < group; g++)
                linear_read(run, step, head * group + g, s, s + size + shape->value);
        }
        for (int64_t i = 0; run->out[1] && i < size; i++)
            grt_element_put(run->out[1], task * size + i, (double)s[i]);
    }
    return GRT_OK;
}

static grt_status conv_create(const grt_kernel_node *node, void **out_state)
{
    bool *silu = malloc(sizeof *silu);
    if (!silu)
        return grt_fail_memory(sizeof *silu);
    *silu = strcmp(grt_attr_string(node->desc, "activation", "none"), "none") != 0;
    *out_state = silu;
    return GRT_OK;
}

static grt_status recurrent_conv_reshape(grt_reshape *reshape)
{
    const grt_tensor *x = reshape->in[0], *w = reshape->in[1];
    const grt_tensor *bias = recurrent_optional(reshape->in, reshape->n_in, 2),
                     *past = recurrent_optional(reshape->in, reshape->n_in, 3);
    if (x->rank != 3)
        return recurrent_misfit(reshape, 0);
    if (w->rank != 3 || w->dims[0] != x->dims[1] || w->dims[1] != 1 || w->dims[2] < 1)
        return recurrent_misfit(reshape, 1);
    if (bias && !recurrent_dims_are(bias, 1, x->dims[1], 0, 0, 0))
        return recurrent_misfit(reshape, 2);
    if (past && !recurrent_dims_are(past, 3, x->dims[0], x->dims[1], w->dims[2] - 1, 0))
        return recurrent_misfit(reshape, 3);
    return GRT_OK;
}

/* Element i of the sequence with its past of `before` elements in front. */
static double conv_element(const grt_tensor *x, const grt_tensor *past, int64_t row, int64_t i,
                           int64_t before)
{
    if (i >= before)
        return grt_element_get(x, row * x->dims[2] + i - before);
    return past ? grt_element_get(past, row * before + i) : 0;
}

static double conv_activation(const grt_tensor *y, int64_t i)
{
    double value = grt_element_get(y, i);
    return value / (1 + exp(-value));
}

static grt_status recurrent_conv_run(const grt_run *run)
{
    const bool *silu = run->state;
    const grt_tensor *x = run->in[0], *w = run->in[1];
    const grt_tensor *bias = recurrent_optional(run->in, run->n_in, 2),
                     *past = recurrent_optional(run->in, run->n_in, 3);
    int64_t rows = x->dims[0] * x->dims[1], length = x->dims[2], width = w->dims[2], before = width - 1;
#pragma omp parallel for num_threads(run->threads) if (rows * length > CPU_GRAIN)
    for (int64_t row = 0; row < rows; row++) {
        int64_t channel = row % x->dims[1];
        for (int64_t i = 0; run->out[0] && i < length; i++) {
            double sum = bias ? grt_element_get(bias, channel) : 0;
            for (int64_t k = 0; k < width; k++)
                sum += grt_element_get(w, channel * width + k) * conv_element(x, past, row, i + k, before);
            grt_element_put(run->out[0], row * length + i, sum);
            if (*silu)
                grt_element_put(run->out[0], row * length + i,
                                conv_activation(run->out[0], row * length + i));
        }
        for (int64_t i = 0; run->out[1] && i < before; i++)
            grt_element_put(run->out[1], row * before + i, conv_element(x, past, row, length + i, before));
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "LinearAttention",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .create = linear_create,
     .destroy = free,
     .reshape = linear_reshape,
     .release_shape = free,
     .run = linear_run},
    {.domain = "",
     .op = "CausalConvWithState",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .create = conv_create,
     .destroy = free,
     .reshape = recurrent_conv_reshape,
     .run = recurrent_conv_run},
};
CPU_KERNELS(recurrent, rows);
