/* Random numbers. Number i of run r is a hash of (seed, r, i): the same on any number of threads, new in each
 * run. Without a seed attribute, the seed comes from the system when the session is created. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/element.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

typedef struct random_state {
    atomic_uint_fast64_t runs;
    uint64_t seed;
    double a, b; /* low and high, or mean and scale */
} random_state;

/* The finaliser of splitmix64: every bit of the input changes half of the output's. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t number(uint64_t key, uint64_t i)
{
    return mix(key + mix((i + 1) * 0x9e3779b97f4a7c15u));
}

/* In [0, 1). */
static double uniform(uint64_t key, uint64_t i)
{
    return (double)(number(key, i) >> 11) * 0x1p-53;
}

static uint64_t run_key(const grt_run *run)
{
    random_state *state = run->state; /* only the counter changes, and that is atomic */
    return mix(state->seed + mix(atomic_fetch_add(&state->runs, 1) + 1));
}

static uint64_t system_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return seed;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return mix((uint64_t)now.tv_sec ^ (uint64_t)now.tv_nsec << 32);
}

static grt_status random_create(const grt_kernel_node *node, void **out_state)
{
    random_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    bool seeded = grt_attr_find(node->desc, "seed") != NULL;
    bool normal = !strncmp(node->desc->op, "RandomNormal", 12);
    atomic_init(&state->runs, 0);
    state->seed = seeded ? mix(grt_float_to_bits(grt_attr_float(node->desc, "seed", 0))) : system_seed();
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
        cpu_element_put(run->out[0], i, state->a + (state->b - state->a) * uniform(key, (uint64_t)i));
    return GRT_OK;
}

/* Box and Muller's method; one number of each pair is enough. */
static grt_status normal_run(const grt_run *run)
{
    const random_state *state = run->state;
    uint64_t key = run_key(run);
    int64_t n = grt_tensor_elements(run->out[0]);
#pragma omp parallel for num_threads(run->threads) if (n > CPU_GRAIN)
    for (int64_t i = 0; i < n; i++) {
        double radius = sqrt(-2 * log(1 - uniform(key, 2 * (uint64_t)i))); /* 1 - u is never 0 */
        cpu_element_put(run->out[0], i,
                        state->a + state->b * radius * cos(2 * M_PI * uniform(key, 2 * (uint64_t)i + 1)));
    }
    return GRT_OK;
}

static grt_status bernoulli_run(const grt_run *run)
{
    uint64_t key = run_key(run);
    int64_t n = grt_tensor_elements(run->out[0]);
#pragma omp parallel for num_threads(run->threads) if (n > CPU_GRAIN)
    for (int64_t i = 0; i < n; i++)
        cpu_element_put(run->out[0], i, uniform(key, (uint64_t)i) < cpu_element_get(run->in[0], i));
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
        max = fmax(max, cpu_element_get(x, row * classes + k));
    for (int64_t k = 0; k < classes; k++) {
        double logit = cpu_element_get(x, row * classes + k);
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
            cpu_element_put(run->out[0], i,
                            (double)draw(sums, classes, uniform(key, (uint64_t)i) * sums[classes - 1]));
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
