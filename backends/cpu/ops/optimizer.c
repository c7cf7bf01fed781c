/* Adagrad, Adam, Momentum: one step of training for any number of tensors. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/element.h"

#include <stdlib.h>
#include <string.h>

typedef enum step_kind { ADAGRAD, ADAM, MOMENTUM } step_kind;

typedef struct step_state {
    step_kind kind;
    bool nesterov;
    double alpha, beta, epsilon, decay, norm, norm_post;
} step_state;

/* Numbers of one run that all elements share. */
typedef struct step_now {
    double rate, beta;
} step_now;

static grt_status step_create(const grt_kernel_node *node, void **out_state)
{
    step_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const grt_op_desc *desc = node->desc;
    state->kind = !strcmp(desc->op, "Adam") ? ADAM : !strcmp(desc->op, "Momentum") ? MOMENTUM : ADAGRAD;
    state->nesterov = !strcmp(grt_attr_string(desc, "mode", "standard"), "nesterov");
    state->alpha = (double)grt_attr_float(desc, "alpha", 0.9f);
    state->beta = (double)grt_attr_float(desc, "beta", 0.999f);
    state->epsilon = (double)grt_attr_float(desc, "epsilon", 1e-6f);
    state->decay = (double)grt_attr_float(desc, "decay_factor", 0);
    state->norm = (double)grt_attr_float(desc, "norm_coefficient", 0);
    state->norm_post = (double)grt_attr_float(desc, "norm_coefficient_post", 0);
    *out_state = state;
    return GRT_OK;
}

static grt_status step_reshape(grt_reshape *reshape)
{
    const step_state *state = reshape->state;
    int32_t kinds = state->kind == ADAM ? 4 : 3, n = (reshape->n_in - 2) / kinds;
    bool fits = grt_tensor_elements(reshape->in[0]) == 1 && grt_tensor_elements(reshape->in[1]) == 1;
    for (int32_t i = 2; fits && i < 2 + n * kinds; i++) {
        const grt_tensor *x = reshape->in[2 + (i - 2) % n];
        fits = reshape->in[i] && grt_tensor_same_type(reshape->in[i], x);
    }
    return fits ? GRT_OK
                : grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                              "R and T must be scalars; each tensor, its gradient and its states must have "
                              "one type and shape");
}

static step_now prepare(const step_state *state, const grt_run *run)
{
    double rate = cpu_element_get(run->in[0], 0), t = (double)grt_tensor_int(run->in[1], 0);
    step_now now = {rate, state->beta};
    if (state->kind == ADAGRAD)
        now.rate = rate / (1 + t * state->decay);
    else if (state->kind == ADAM && t > 0) /* states start at zero: undo the bias */
        now.rate = rate * sqrt(1 - pow(state->beta, t)) / (1 - pow(state->alpha, t));
    else if (state->kind == MOMENTUM && !(t > 0))
        now.beta = 1;
    return now;
}

/* x: value; s, s2: states, updated in place; g: gradient. Returns the new value. */
static double step(const step_state *state, step_now now, double x, double g, double *s, double *s2)
{
    g += state->norm * x;
    switch (state->kind) {
    case ADAGRAD:
        *s += g * g;
        return x - now.rate * g / (sqrt(*s) + state->epsilon);
    case ADAM:
        *s = state->alpha * *s + (1 - state->alpha) * g;
        *s2 = state->beta * *s2 + (1 - state->beta) * g * g;
        return (1 - state->norm_post) * (x - now.rate * *s / (sqrt(*s2) + state->epsilon));
    case MOMENTUM:
        *s = state->alpha * *s + now.beta * g;
        return x - now.rate * (state->nesterov ? g + state->alpha * *s : *s);
    }
    return x;
}

static void put(grt_tensor *out, int64_t i, double value)
{
    if (out)
        cpu_element_put(out, i, value);
}

static grt_status step_run(const grt_run *run)
{
    const step_state *state = run->state;
    int32_t kinds = state->kind == ADAM ? 4 : 3, n = (run->n_in - 2) / kinds;
    step_now now = prepare(state, run);
    for (int32_t t = 0; t < n; t++) {
        const grt_tensor *x = run->in[2 + t], *g = run->in[2 + n + t], *s = run->in[2 + 2 * n + t];
        const grt_tensor *s2 = kinds == 4 ? run->in[2 + 3 * n + t] : NULL;
        int64_t elements = grt_tensor_elements(x);
#pragma omp parallel for num_threads(run->threads) if (elements > CPU_GRAIN)
        for (int64_t i = 0; i < elements; i++) {
            double first = cpu_element_get(s, i), second = s2 ? cpu_element_get(s2, i) : 0;
            put(run->out[t], i,
                step(state, now, cpu_element_get(x, i), cpu_element_get(g, i), &first, &second));
            put(run->out[n + t], i, first);
            if (s2)
                put(run->out[2 * n + t], i, second);
        }
    }
    return GRT_OK;
}

#define FLOATS (GRT_BIT(FLOAT) | GRT_BIT(DOUBLE))
#define ROW(name)                                                                                            \
    {                                                                                                        \
        .domain = "ai.onnx.preview.training", .op = name, .types = {FLOATS, GRT_BIT(INT64), FLOATS, FLOATS}, \
        .create = step_create, .destroy = free, .reshape = step_reshape, .run = step_run                     \
    }
static const grt_kernel_row rows[] = {ROW("Adagrad"), ROW("Adam"), ROW("Momentum")};
CPU_KERNELS(optimizer, rows);
