/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention and CausalConvWithState: sequence ops that carry a state from call to call. */
#include "backends/cuda/each.cuh"

namespace
{

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA };

struct linear_state {
    int64_t q_heads, kv_heads;
    double scale; /* 0: 1 / sqrt(key size) */
};

struct linear_shape {
    int64_t batch, length, key, value; /* sizes of one head's key and value */
    int64_t decay, beta;               /* last dims of those inputs, 0 if absent */
};

grt_status misfit(const grt_reshape *r, int32_t i)
{
    char text[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "input %d, %s, does not fit the other inputs", i,
                       grt_tensor_text(r->in[i], text));
}

bool dims_are(const grt_tensor *t, int32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t want[4] = {a, b, c, d};
    return grt_dims_equal(t->dims, t->rank, want, rank);
}

const grt_tensor *optional(const grt_reshape *r, int32_t i)
{
    return i < r->n_in ? r->in[i] : NULL;
}

grt_status create_linear(const grt_kernel_node *node, void **out_state)
{
    linear_state *s;
    GRT_TRY(cuda_state(&s));
    s->q_heads = grt_attr_int(node->desc, "q_num_heads", 0);
    s->kv_heads = grt_attr_int(node->desc, "kv_num_heads", 0);
    s->scale = (double)grt_attr_float(node->desc, "scale", 0);
    *out_state = s;
    return GRT_OK;
}

grt_status cuda_recurrent_fit(const grt_reshape *r, linear_shape *sh)
{
    const linear_state *s = (const linear_state *)r->state;
    const grt_tensor *q = r->in[QUERY], *v = r->in[VALUE], *past = optional(r, PAST),
                     *decay = optional(r, DECAY), *beta = optional(r, BETA);
    if (s->q_heads <= 0 || s->kv_heads <= 0 || s->q_heads % s->kv_heads)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_MODEL,
                           "q_num_heads, %lld, must be a positive multiple of kv_num_heads, %lld",
                           (long long)s->q_heads, (long long)s->kv_heads);
    if (q->rank != 3 || q->dims[2] % s->q_heads)
        return misfit(r, QUERY);
    sh->batch = q->dims[0];
    sh->length = q->dims[1];
    sh->key = q->dims[2] / s->q_heads;
    if (!dims_are(r->in[KEY], 3, sh->batch, sh->length, s->kv_heads * sh->key, 0))
        return misfit(r, KEY);
    if (v->rank != 3 || v->dims[0] != sh->batch || v->dims[1] != sh->length || v->dims[2] % s->kv_heads)
        return misfit(r, VALUE);
    sh->value = v->dims[2] / s->kv_heads;
    if (past && !dims_are(past, 4, sh->batch, s->kv_heads, sh->key, sh->value))
        return misfit(r, PAST);
    if (decay && !dims_are(decay, 3, sh->batch, sh->length, s->kv_heads * sh->key, 0) &&
        !dims_are(decay, 3, sh->batch, sh->length, s->kv_heads, 0))
        return misfit(r, DECAY);
    if (beta && !dims_are(beta, 3, sh->batch, sh->length, s->kv_heads, 0) &&
        !dims_are(beta, 3, sh->batch, sh->length, 1, 0))
        return misfit(r, BETA);
    sh->decay = decay ? decay->dims[2] : 0;
    sh->beta = beta ? beta->dims[2] : 0;
    return GRT_OK;
}

grt_status reshape_linear(grt_reshape *r)
{
    linear_shape *sh;
    GRT_TRY(cuda_state(&sh));
    grt_status status = cuda_recurrent_fit(r, sh);
    if (status != GRT_OK) {
        free(sh);
        return status;
    }
    const linear_state *s = (const linear_state *)r->state;
    r->workspace_bytes = (size_t)(sh->batch * s->kv_heads * sh->key * sh->value) * sizeof(float);
    r->shape = sh;
    return GRT_OK;
}

/* A thread per column of a head's state: columns do not meet. state *= exp(decay); value -= state^T key,
 * times beta; state += key x value. */
grt_status run_linear(const grt_run *r)
{
    const linear_state s = *(const linear_state *)r->state;
    const linear_shape sh = *(const linear_shape *)r->shape;
    const cuda_any q = cuda_any_in(r, QUERY), k = cuda_any_in(r, KEY), v = cuda_any_in(r, VALUE),
                   past = cuda_any_in(r, PAST), decay = cuda_any_in(r, DECAY), beta = cuda_any_in(r, BETA),
                   y = cuda_any_out(r, 0), present = cuda_any_out(r, 1);
    float *states = (float *)r->workspace;
    const float scale = (float)(s.scale != 0 ? s.scale : 1 / sqrt((double)sh.key));
    return cuda_each(r, sh.batch * s.kv_heads * sh.value, [=] __device__(int64_t i) {
        int64_t m = i % sh.value, head = i / sh.value % s.kv_heads, batch = i / sh.value / s.kv_heads,
                group = s.q_heads / s.kv_heads;
        int64_t base = (batch * s.kv_heads + head) * sh.key * sh.value + m;
        for (int64_t d = 0; d < sh.key; d++)
            states[base + d * sh.value] = past ? (float)past.get(base + d * sh.value) : 0;
        for (int64_t t = 0; t < sh.length; t++) {
            int64_t step = batch * sh.length + t, key_at = (step * s.kv_heads + head) * sh.key;
            float written = (float)v.get((step * s.kv_heads + head) * sh.value + m);
            for (int64_t d = 0; sh.decay && d < sh.key; d++)
                states[base + d * sh.value] *=
                    expf((float)decay.get(sh.decay == s.kv_heads ? step * sh.decay + head : key_at + d));
            if (sh.beta) {
                for (int64_t d = 0; d < sh.key; d++)
                    written -= states[base + d * sh.value] * (float)k.get(key_at + d);
                written *= (float)beta.get(step * sh.beta + (sh.beta == 1 ? 0 : head));
            }
            for (int64_t d = 0; d < sh.key; d++)
                states[base + d * sh.value] += (float)k.get(key_at + d) * written;
            for (int64_t g = 0; y && g < group; g++) {
                int64_t at = step * s.q_heads + head * group + g;
                float sum = 0;
                for (int64_t d = 0; d < sh.key; d++)
                    sum += (float)q.get(at * sh.key + d) * states[base + d * sh.value];
                y.put(at * sh.value + m, (double)(scale * sum));
            }
        }
        for (int64_t d = 0; present && d < sh.key; d++)
            present.put(base + d * sh.value, (double)states[base + d * sh.value]);
    });
}

grt_status cuda_create_conv(const grt_kernel_node *node, void **out_state)
{
    bool *silu;
    GRT_TRY(cuda_state(&silu));
    *silu = strcmp(grt_attr_string(node->desc, "activation", "none"), "none") != 0;
    *out_state = silu;
    return GRT_OK;
}

grt_status reshape_conv(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *w = r->in[1], *bias = optional(r, 2), *past = optional(r, 3);
    if (x->rank != 3)
        return misfit(r, 0);
    if (w->rank != 3 || w->dims[0] != x->dims[1] || w->dims[1] != 1 || w->dims[2] < 1)
        return misfit(r, 1);
    if (bias && !dims_are(bias, 1, x->dims[1], 0, 0, 0))
        return misfit(r, 2);
    if (past && !dims_are(past, 3, x->dims[0], x->dims[1], w->dims[2] - 1, 0))
        return misfit(r, 3);
    return GRT_OK;
}

/* A sequence with its past in front. */
struct sequence {
    cuda_any x, past;
    int64_t length, before;

    __device__ double get(int64_t row, int64_t i) const
    {
        return i >= before ? x.get(row * length + i - before) : past ? past.get(row * before + i) : 0;
    }
};

grt_status cuda_recurrent_run_conv(const grt_run *r)
{
    const bool silu = *(const bool *)r->state;
    const grt_tensor *x = r->in[0], *w = r->in[1];
    const int64_t rows = x->dims[0] * x->dims[1], channels = x->dims[1], width = w->dims[2],
                  length = x->dims[2], before = width - 1;
    const sequence all = {cuda_any_in(r, 0), cuda_any_in(r, 3), length, before};
    const cuda_any weight = cuda_any_in(r, 1), bias = cuda_any_in(r, 2), y = cuda_any_out(r, 0),
                   present = cuda_any_out(r, 1);
    GRT_TRY(cuda_each(r, y ? rows * length : 0, [=] __device__(int64_t i) {
        int64_t row = i / length, channel = row % channels;
        double sum = bias ? bias.get(channel) : 0;
        for (int64_t k = 0; k < width; k++)
            sum += weight.get(channel * width + k) * all.get(row, i % length + k);
        y.put(i, sum);
        if (silu) {
            double v = y.get(i);
            y.put(i, v / (1 + exp(-v)));
        }
    }));
    return cuda_each(r, present ? rows * before : 0,
                     [=] __device__(int64_t i) { present.put(i, all.get(i / before, length + i % before)); });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "LinearAttention",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .create = create_linear,
     .destroy = free,
     .reshape = reshape_linear,
     .release_shape = free,
     .run = run_linear},
    {.domain = "",
     .op = "CausalConvWithState",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .create = cuda_create_conv,
     .destroy = free,
     .reshape = reshape_conv,
     .run = cuda_recurrent_run_conv},
};

} // namespace
CUDA_KERNELS(recurrent, rows);
