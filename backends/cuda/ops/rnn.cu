/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN. The inputs of all steps are multiplied first, one thread per gate; then a block per
 * direction and batch row goes through the steps, its threads sharing the hidden units. */
#include "backends/cuda/each.cuh"
#include "src/base/checked.h"
#include "backends/cuda/number.cuh"

namespace
{

enum kind_of_layer { LSTM, GRU, RNN };
enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };
enum act_kind {
    RELU,
    TANH,
    SIGMOID,
    LEAKY_RELU,
    HARD_SIGMOID,
    ELU,
    SOFTPLUS,
    AFFINE,
    THRESHOLDED_RELU,
    SCALED_TANH,
    SOFTSIGN
};

struct activation {
    act_kind kind;
    float a, b;
};

/* Names and the defaults of the ONNX ops; alpha and beta lists are consumed by those that have such a
 * parameter. */
const struct {
    const char *name;
    activation act;
    bool takes_a, takes_b;
} acts[] = {
    {"Relu", {RELU, 0, 0}, false, false},
    {"Tanh", {TANH, 0, 0}, false, false},
    {"Sigmoid", {SIGMOID, 0, 0}, false, false},
    {"LeakyRelu", {LEAKY_RELU, 0.01f, 0}, true, false},
    {"HardSigmoid", {HARD_SIGMOID, 0.2f, 0.5f}, true, true},
    {"Elu", {ELU, 1, 0}, true, false},
    {"Softplus", {SOFTPLUS, 0, 0}, false, false},
    {"Affine", {AFFINE, 1, 0}, true, true},
    {"ThresholdedRelu", {THRESHOLDED_RELU, 1, 0}, true, false},
    {"ScaledTanh", {SCALED_TANH, 1, 1}, true, true},
    {"Softsign", {SOFTSIGN, 0, 0}, false, false},
};

struct rnn_state {
    kind_of_layer kind;
    int32_t gates, directions;
    bool reverse, batch_first, linear_before_reset, coupled;
    float clip; /* 0: none */
    activation act[2][3];
};

struct rnn_shape {
    int64_t steps, batch, input, hidden;
};

bool same_name(const char *a, const char *b)
{
    for (; *a && (*a | 0x20) == (*b | 0x20); a++, b++)
        ;
    return *a == *b;
}

bool read_activations(const grt_op_desc *desc, rnn_state *s, grt_text *why)
{
    static const char *const defaults[] = {"Sigmoid", "Tanh", "Tanh"};
    const int32_t per = s->kind == LSTM ? 3 : s->kind == GRU ? 2 : 1;
    size_t n_names, n_alpha, n_beta, next_alpha = 0, next_beta = 0;
    const grt_string *names = grt_attr_strings(desc, "activations", &n_names);
    const float *alpha = grt_attr_floats(desc, "activation_alpha", &n_alpha);
    const float *beta = grt_attr_floats(desc, "activation_beta", &n_beta);
    for (int32_t i = 0; i < per * s->directions; i++) {
        const char *name = names && (size_t)i < n_names ? names[i].data
                           : s->kind == RNN             ? "Tanh"
                                                        : defaults[i % per];
        size_t k = 0;
        while (k < sizeof acts / sizeof *acts && !same_name(name, acts[k].name))
            k++;
        if (k == sizeof acts / sizeof *acts) {
            if (why)
                grt_text_add(why, "the activation '%s' is not one that ONNX lists", name);
            return false;
        }
        activation act = acts[k].act;
        if (acts[k].takes_a && next_alpha < n_alpha)
            act.a = alpha[next_alpha++];
        if (acts[k].takes_b && next_beta < n_beta)
            act.b = beta[next_beta++];
        s->act[i / per][i % per] = act;
    }
    return true;
}

void read_kind(const grt_op_desc *desc, rnn_state *s)
{
    const char *direction = grt_attr_string(desc, "direction", "forward");
    s->kind = !strcmp(desc->op, "LSTM") ? LSTM : !strcmp(desc->op, "GRU") ? GRU : RNN;
    s->gates = s->kind == LSTM ? 4 : s->kind == GRU ? 3 : 1;
    s->directions = !strcmp(direction, "bidirectional") ? 2 : 1;
    s->reverse = !strcmp(direction, "reverse");
    s->batch_first = grt_attr_int(desc, "layout", 0) != 0;
    s->linear_before_reset = grt_attr_int(desc, "linear_before_reset", 0) != 0;
    s->coupled = grt_attr_int(desc, "input_forget", 0) != 0;
    s->clip = grt_attr_float(desc, "clip", 0.0f);
}

bool supports(const grt_kernel_node *node, grt_text *why)
{
    rnn_state s = {};
    read_kind(node->desc, &s);
    return read_activations(node->desc, &s, why);
}

grt_status create(const grt_kernel_node *node, void **out_state)
{
    rnn_state *s;
    GRT_TRY(cuda_state(&s));
    read_kind(node->desc, s);
    read_activations(node->desc, s, NULL);
    *out_state = s;
    return GRT_OK;
}

/* Workspace, in floats: projected inputs, then per direction and row the gates, a spare row, h and c. */
int64_t per_row(const rnn_state *s, const rnn_shape *sh)
{
    return (s->gates + 3) * sh->hidden;
}

grt_status reshape(grt_reshape *r)
{
    const rnn_state *s = (const rnn_state *)r->state;
    const grt_tensor *x = r->in[X], *w = r->in[W], *rec = r->in[R];
    if (x->rank != 3 || w->rank != 3 || rec->rank != 3 || w->dims[0] != s->directions ||
        rec->dims[0] != s->directions || w->dims[2] != x->dims[2] ||
        rec->dims[1] != s->gates * rec->dims[2] || w->dims[1] != rec->dims[1])
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "X, W and R do not fit together");
    rnn_shape *sh;
    GRT_TRY(cuda_state(&sh));
    sh->steps = x->dims[s->batch_first ? 1 : 0];
    sh->batch = x->dims[s->batch_first ? 0 : 1];
    sh->input = x->dims[2];
    sh->hidden = rec->dims[2];
    int64_t rows = sh->steps * sh->batch, floats;
    if (!grt_mul_i64(rows, s->directions * s->gates * sh->hidden, &floats) ||
        !grt_add_i64(floats, s->directions * sh->batch * per_row(s, sh), &floats) ||
        floats > INT64_MAX / 16) {
        free(sh);
        return grt_fail_memory(SIZE_MAX);
    }
    r->workspace_bytes = (size_t)floats * sizeof(double);
    r->shape = sh;
    return GRT_OK;
}

template <class F> __device__ F activated(activation act, float clip, F x)
{
    const F a = (F)act.a, b = (F)act.b;
    if (clip > 0)
        x = x < -(F)clip ? -(F)clip : x > (F)clip ? (F)clip : x;
    switch (act.kind) {
    case RELU:
        return x < 0 ? (F)0 : x;
    case TANH:
        return tanh(x);
    case SIGMOID:
        return 1 / (1 + exp(-x));
    case LEAKY_RELU:
        return x < 0 ? a * x : x;
    case HARD_SIGMOID:
        x = a * x + b;
        return x < 0 ? (F)0 : x > 1 ? (F)1 : x;
    case ELU:
        return x < 0 ? a * expm1(x) : x;
    case SOFTPLUS:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case AFFINE:
        return a * x + b;
    case THRESHOLDED_RELU:
        return x >= a ? x : (F)0;
    case SCALED_TANH:
        return a * tanh(b * x);
    default:
        return x / (1 + (x < 0 ? -x : x));
    }
}

/* What the step kernel needs. F: the type that is computed in. */
template <class T, class F> struct job {
    rnn_state s;
    rnn_shape sh;
    const T *r, *bias, *h0, *c0, *peep;
    const int32_t *lengths;
    T *y, *last_h, *last_c;
    F *projected, *rows;
    int64_t room;

    /* Row b of direction d in a [directions, batch, hidden] tensor, or the batch-first form of it. */
    __device__ int64_t state_at(int64_t d, int64_t b) const
    {
        return (s.batch_first ? b * s.directions + d : d * sh.batch + b) * sh.hidden;
    }
    __device__ int64_t y_at(int64_t d, int64_t t, int64_t b) const
    {
        return (s.batch_first ? (b * sh.steps + t) * s.directions + d
                              : (t * s.directions + d) * sh.batch + b) *
               sh.hidden;
    }
    __device__ F dot(int64_t row, int64_t d, const F *v) const
    {
        const T *w = r + (d * s.gates * sh.hidden + row) * sh.hidden;
        F sum = 0;
        for (int64_t k = 0; k < sh.hidden; k++)
            sum += (F)cuda_widen(w[k]) * v[k];
        return sum;
    }
    /* New hidden (and cell) value of unit j from its gates. */
    __device__ F unit(const F *g, const activation *act, int64_t d, int64_t j, F linear, F h, F *c) const
    {
        const int64_t n = sh.hidden;
        if (s.kind == RNN)
            return activated(act[0], s.clip, g[j]);
        if (s.kind == GRU) {
            F fresh = activated(act[1], s.clip,
                                s.linear_before_reset ? g[2 * n + j] + g[n + j] * linear : g[2 * n + j]);
            return (1 - g[j]) * fresh + g[j] * h;
        }
        const T *p = peep ? peep + d * 3 * n : nullptr;
        F in = activated(act[0], s.clip, g[j] + (p ? (F)cuda_widen(p[j]) * *c : (F)0));
        F forget = s.coupled ? 1 - in
                             : activated(act[0], s.clip,
                                         g[2 * n + j] + (p ? (F)cuda_widen(p[2 * n + j]) * *c : (F)0));
        *c = forget * *c + in * activated(act[1], s.clip, g[3 * n + j]);
        F out = activated(act[0], s.clip, g[n + j] + (p ? (F)cuda_widen(p[n + j]) * *c : (F)0));
        return out * activated(act[2], s.clip, *c);
    }
    __device__ void steps(int64_t item, int thread, int threads) const
    {
        const int64_t n = sh.hidden, stacked = s.gates * n, d = item / sh.batch, b = item % sh.batch;
        const activation *act = s.act[d];
        F *g = rows + item * room, *spare = g + stacked, *h = spare + n, *c = h + n;
        int64_t length = lengths ? lengths[b] : sh.steps;
        length = length < 0 ? 0 : length > sh.steps ? sh.steps : length;
        for (int64_t j = thread; j < n; j += threads) {
            h[j] = h0 ? (F)cuda_widen(h0[state_at(d, b) + j]) : (F)0;
            c[j] = c0 ? (F)cuda_widen(c0[state_at(d, b) + j]) : (F)0;
        }
        __syncthreads();
        for (int64_t i = 0; i < length; i++) {
            const int64_t t = s.reverse || d == 1 ? length - 1 - i : i,
                          row = s.batch_first ? b * sh.steps + t : t * sh.batch + b;
            const F *from = projected + (row * s.directions + d) * stacked;
            const int64_t first = s.kind == GRU ? 2 * n : stacked;
            for (int64_t j = thread; j < first; j += threads) {
                g[j] = from[j] + dot(j, d, h);
                if (s.kind == GRU)
                    g[j] = activated(act[0], s.clip, g[j]);
            }
            __syncthreads();
            if (s.kind == GRU) {
                for (int64_t j = thread; j < n && !s.linear_before_reset; j += threads)
                    spare[j] = g[n + j] * h[j];
                __syncthreads();
                for (int64_t j = thread; j < n; j += threads)
                    g[2 * n + j] =
                        from[2 * n + j] + (s.linear_before_reset ? (F)0 : dot(2 * n + j, d, spare));
                __syncthreads();
                for (int64_t j = thread; j < n && s.linear_before_reset; j += threads)
                    spare[j] =
                        dot(2 * n + j, d, h) + (bias ? (F)cuda_widen(bias[d * 6 * n + 5 * n + j]) : (F)0);
                __syncthreads();
            }
            for (int64_t j = thread; j < n; j += threads) {
                h[j] = unit(g, act, d, j, spare[j], h[j], &c[j]);
                if (y)
                    y[y_at(d, t, b) + j] = cuda_narrow<T, F>(h[j]);
            }
            __syncthreads();
        }
        for (int64_t t = length; y && t < sh.steps; t++) /* beyond the end of the row */
            for (int64_t j = thread; j < n; j += threads)
                y[y_at(d, t, b) + j] = cuda_narrow<T, F>((F)0);
        for (int64_t j = thread; j < n; j += threads) {
            if (last_h)
                last_h[state_at(d, b) + j] = cuda_narrow<T, F>(h[j]);
            if (last_c)
                last_c[state_at(d, b) + j] = cuda_narrow<T, F>(c[j]);
        }
    }
};

template <class T> const T *input(const grt_run *r, int32_t i)
{
    return i < r->n_in && r->in[i] ? (const T *)r->in[i]->data : NULL;
}
template <class T> T *output(const grt_run *r, int32_t i)
{
    return i < r->n_out && r->out[i] ? (T *)r->out[i]->data : NULL;
}

template <class T> grt_status run_typed(const grt_run *r)
{
    typedef typename cuda_wide<T>::type F;
    job<T, F> all = {*(const rnn_state *)r->state, *(const rnn_shape *)r->shape};
    const rnn_state &s = all.s;
    const rnn_shape &sh = all.sh;
    const int64_t n = sh.hidden, stacked = s.gates * n, width = s.directions * stacked, inputs = sh.input;
    if (sh.batch == 0 || n == 0)
        return GRT_OK;
    all.r = input<T>(r, R);
    all.bias = input<T>(r, B);
    all.lengths = input<int32_t>(r, LENGTHS);
    all.h0 = input<T>(r, INITIAL_H);
    all.c0 = s.kind == LSTM ? input<T>(r, INITIAL_C) : NULL;
    all.peep = s.kind == LSTM ? input<T>(r, PEEPHOLES) : NULL;
    all.y = output<T>(r, 0);
    all.last_h = output<T>(r, 1);
    all.last_c = s.kind == LSTM ? output<T>(r, 2) : NULL;
    all.projected = (F *)r->workspace;
    all.room = per_row(&s, &sh);
    all.rows = all.projected + sh.steps * sh.batch * width;
    const T *x = input<T>(r, X), *w = input<T>(r, W), *bias = all.bias;
    F *projected = all.projected;
    const bool apart =
        s.kind == GRU && s.linear_before_reset; /* R's bias of the hidden gate is added within the reset */
    GRT_TRY(cuda_each(r, sh.steps * sh.batch * width, [=] __device__(int64_t i) {
        int64_t row = i / width, gate = i % width, d = gate / stacked, k = gate % stacked;
        F sum = 0;
        if (bias)
            sum = (F)cuda_widen(bias[d * 2 * stacked + k]) +
                  (apart && k >= 2 * n ? (F)0 : (F)cuda_widen(bias[d * 2 * stacked + stacked + k]));
        for (int64_t j = 0; j < inputs; j++)
            sum += (F)cuda_widen(x[row * inputs + j]) * (F)cuda_widen(w[gate * inputs + j]);
        projected[i] = sum;
    }));
    return cuda_each_block(r, s.directions * sh.batch, [=] __device__(int64_t item, int thread, int threads) {
        all.steps(item, thread, threads);
    });
}

grt_status run(const grt_run *r)
{
    CUDA_FOR_FLOATS(r->in[X]->dtype, T, return run_typed<T>(r))
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "LSTM",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS | GRT_BIT(INT32)},
     .supports = supports,
     .create = create,
     .destroy = free,
     .reshape = reshape,
     .release_shape = free,
     .run = run},
    {.domain = "",
     .op = "GRU",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS | GRT_BIT(INT32)},
     .supports = supports,
     .create = create,
     .destroy = free,
     .reshape = reshape,
     .release_shape = free,
     .run = run},
    {.domain = "",
     .op = "RNN",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS | GRT_BIT(INT32)},
     .supports = supports,
     .create = create,
     .destroy = free,
     .reshape = reshape,
     .release_shape = free,
     .run = run},
};

} // namespace
CUDA_KERNELS(rnn, rows);
