/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, see backends/shared/random.h: new in each run. Without a seed attribute, the seed comes
 * from the system when the session is created. */
#include "backends/cpu/cpu.h"
#include "src/base/element.h"
#include "backends/cpu/threads.h"
#include "backends/shared/random.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

typedef struct random_state {
    atomic_uint_fast64_t runs;
    uint64_t seed;
    double a, b; /* low and high, or mean and scale */
} random_state;

static uint64_t run_key(const grt_run *run)
{
    random_state *state = run->state; /* only the counter changes, and that is atomic */
    return grt_random_key(state->seed, atomic_fetch_add(&state->runs, 1) + 1);
}

static grt_status random_create(const grt_kernel_node *node, void **out_state)
{
    random_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    bool normal = !strncmp(node->desc->op, "RandomNormal", 12);
    atomic_init(&state->runs, 0);
    state->seed = grt_random_seed(node->desc);
    state->a =
        (double)(normal ? grt_attr_float(node->desc, "mean", 0) : grt_attr_float(node->desc, "low", 0));
    state->b =
        (double)(normal ? grt_attr_float(node->desc, "scale", 1) : grt_attr_float(node->desc, "high", 1));
    *out_state = state;
    return GRT_OK;
}

static grt_status uniform_run(const grt_run *run)
{
    const random_state *state = run->state;
    uint64_t key = run_key(run);
    int64_t n = grt_tensor_elements(run->out[0]);
#pragma omp parallel for num_threads(run->threads) if (n > CPU_GRAIN)
    for (int64_t i = 0; i < n; i++)
        grt_element_put(run->out[0], i,
                        state->a + (state->b - state->a) * grt_random_uniform(key, (uint64_t)i));
    return GRT_OK;
}

static grt_status normal_run(const grt_run *run)
{
    const random_state *state = run->state;
    uint64_t key = run_key(run);
    int64_t n = grt_tensor_elements(run->out[0]);
#pragma omp parallel for num_threads(run->threads) if (n > CPU_GRAIN)
    for (int64_t i = 0; i < n; i++)
        grt_element_put(run->out[0], i, state->a + state->b * grt_random_normal(key, (uint64_t)i));
    return GRT_OK;
}

static grt_status bernoulli_run(const grt_run *run)
{
    uint64_t key = run_key(run);
    int64_t n = grt_tensor_elements(run->out[0]);
#pragma omp parallel for num_threads(run->threads) if (n > CPU_GRAIN)
    for (int64_t i = 0; i < n; i++)
        grt_element_put(run->out[0], i,
                        grt_random_uniform(key, (uint64_t)i) < grt_element_get(run->in[0], i));
    return GRT_OK;
}

static grt_status multinomial_reshape(grt_reshape *reshape)
{
    const grt_tensor *x = reshape->in[0];
    if (x->rank != 2 || x->dims[1] < 1)
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input must be batch x classes, with a class or more");
    if (!grt_mul_size((size_t)x->dims[1] * sizeof(double), (size_t)reshape->threads,
                      &reshape->workspace_bytes))
        return grt_fail_memory(SIZE_MAX);
    return GRT_OK;
}

/* Sums of the probabilities of classes 0..k, up to a factor. */
static void accumulate(const grt_tensor *x, int64_t row, double *sums)
{
    int64_t classes = x->dims[1];
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; k++)
        max = fmax(max, grt_element_get(x, row * classes + k));
    for (int64_t k = 0; k < classes; k++) {
        double logit = grt_element_get(x, row * classes + k);
        sum += isinf(max) ? (logit == max ? 1 : 0) : exp(logit - max);
        sums[k] = sum;
    }
}

static int64_t draw(const double *sums, int64_t classes, double at)
{
    int64_t lo = 0, hi = classes - 1;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (sums[mid] > at)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static grt_status multinomial_run(const grt_run *run)
{
    const grt_tensor *x = run->in[0];
    int64_t classes = x->dims[1], samples = run->out[0]->dims[1];
    uint64_t key = run_key(run);
#pragma omp parallel for num_threads(run->threads) if (x->dims[0] * (classes + samples) > CPU_GRAIN)
    for (int64_t row = 0; row < x->dims[0]; row++) {
        double *sums = (double *)run->workspace + cpu_thread() * classes;
        accumulate(x, row, sums);
        for (int64_t i = row * samples; i < (row + 1) * samples; i++)
            grt_element_put(
                run->out[0], i,
                (double)draw(sums, classes, grt_random_uniform(key, (uint64_t)i) * sums[classes - 1]));
    }
    return GRT_OK;
}

#define ROW(name, set, reshape_fn, run_fn)                                                  \
    {                                                                                       \
        .domain = "", .op = name, .types = {set}, .create = random_create, .destroy = free, \
        .reshape = reshape_fn, .run = run_fn                                                \
    }
static const grt_kernel_row rows[] = {
    ROW("Bernoulli", GRT_SET_FLOATS, NULL, bernoulli_run),
    ROW("Multinomial", GRT_SET_FLOATS, multinomial_reshape, multinomial_run),
    ROW("RandomNormal", 0, NULL, normal_run),
    ROW("RandomNormalLike", 0, NULL, normal_run),
    ROW("RandomUniform", 0, NULL, uniform_run),
    ROW("RandomUniformLike", 0, NULL, uniform_run),
};
CPU_KERNELS(random, rows);
