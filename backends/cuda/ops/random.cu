/* SPDX-License-Identifier: Apache-2.0 */
/* RandomNormal, RandomUniform, their *Like forms, Bernoulli, Multinomial: the CPU's numbers
 * (backends/shared/random.h). The run counter is in device memory, so that replayed graphs draw new numbers.
 */
#include "backends/cuda/each.cuh"
#include "backends/shared/random.h"

namespace
{

struct random_state {
    uint64_t seed;
    unsigned long long *runs; /* on the device */
    double a, b;              /* low and high, or mean and scale */
};

void cuda_random_destroy(void *data)
{
    random_state *s = (random_state *)data;
    if (s)
        cudaFree(s->runs);
    free(s);
}

grt_status start_counting(const grt_kernel_node *node, random_state *s)
{
    void *runs = NULL;
    const unsigned long long none = 0;
    const grt_status status = cuda_keep(node, &none, sizeof none, &runs);
    s->runs = (unsigned long long *)runs;
    return status;
}

grt_status cuda_random_create(const grt_kernel_node *node, void **out_state)
{
    const bool normal = !strncmp(node->desc->op, "RandomNormal", 12);
    random_state *s;
    GRT_TRY(cuda_state(&s));
    s->seed = grt_random_seed(node->desc);
    s->a = (double)(normal ? grt_attr_float(node->desc, "mean", 0) : grt_attr_float(node->desc, "low", 0));
    s->b = (double)(normal ? grt_attr_float(node->desc, "scale", 1) : grt_attr_float(node->desc, "high", 1));
    grt_status status = start_counting(node, s);
    if (status != GRT_OK)
        cuda_random_destroy(s);
    else
        *out_state = s;
    return status;
}

grt_status reshape_key(grt_reshape *r)
{
    r->workspace_bytes = sizeof(uint64_t);
    return GRT_OK;
}

/* The key of this run into the workspace. */
grt_status cuda_random_begin(const grt_run *r)
{
    const random_state s = *(const random_state *)r->state;
    uint64_t *key = (uint64_t *)r->workspace;
    return cuda_each(r, 1,
                     [=] __device__(int64_t) { *key = grt_random_key(s.seed, atomicAdd(s.runs, 1ull) + 1); });
}

grt_status run_uniform(const grt_run *r)
{
    const random_state s = *(const random_state *)r->state;
    const uint64_t *key = (const uint64_t *)r->workspace;
    const cuda_any out = cuda_any_out(r, 0);
    GRT_TRY(cuda_random_begin(r));
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        out.put(i, s.a + (s.b - s.a) * grt_random_uniform(*key, (uint64_t)i));
    });
}

grt_status run_normal(const grt_run *r)
{
    const random_state s = *(const random_state *)r->state;
    const uint64_t *key = (const uint64_t *)r->workspace;
    const cuda_any out = cuda_any_out(r, 0);
    GRT_TRY(cuda_random_begin(r));
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        out.put(i, s.a + s.b * grt_random_normal(*key, (uint64_t)i));
    });
}

grt_status run_bernoulli(const grt_run *r)
{
    const uint64_t *key = (const uint64_t *)r->workspace;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    GRT_TRY(cuda_random_begin(r));
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        out.put(i, grt_random_uniform(*key, (uint64_t)i) < in.get(i));
    });
}

/* Sums of the classes' probabilities, up to a factor, then a binary search for each sample. */

grt_status reshape_multinomial(grt_reshape *r)
{
    const grt_tensor *x = r->in[0];
    if (x->rank != 2 || x->dims[1] < 1)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input must be batch x classes, with a class or more");
    r->workspace_bytes = sizeof(uint64_t) + (size_t)grt_tensor_elements(x) * sizeof(double);
    return GRT_OK;
}

__device__ void accumulate(const cuda_any &in, int64_t row, int64_t classes, double *sums)
{
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; k++)
        max = fmax(max, in.get(row * classes + k));
    for (int64_t k = 0; k < classes; k++) {
        const double logit = in.get(row * classes + k);
        sum += isinf(max) ? (logit == max ? 1 : 0) : exp(logit - max);
        sums[k] = sum;
    }
}

grt_status run_multinomial(const grt_run *r)
{
    const uint64_t *key = (const uint64_t *)r->workspace;
    double *sums = (double *)r->workspace + 1;
    const int64_t classes = r->in[0]->dims[1], samples = r->out[0]->dims[1];
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    GRT_TRY(cuda_random_begin(r));
    GRT_TRY(cuda_each(r, r->in[0]->dims[0],
                      [=] __device__(int64_t row) { accumulate(in, row, classes, sums + row * classes); }));
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        const double *mine = sums + i / samples * classes,
                     at = grt_random_uniform(*key, (uint64_t)i) * mine[classes - 1];
        int64_t low = 0, high = classes - 1;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (mine[middle] > at)
                high = middle;
            else
                low = middle + 1;
        }
        out.put(i, (double)low);
    });
}

#define ROW(name, set, reshape_fn, run_fn)                                      \
    {                                                                           \
        .domain = "", .op = name, .types = {set}, .create = cuda_random_create, \
        .destroy = cuda_random_destroy, .reshape = reshape_fn, .run = run_fn    \
    }
const grt_kernel_row rows[] = {
    ROW("Bernoulli", GRT_SET_FLOATS, reshape_key, run_bernoulli),
    ROW("Multinomial", GRT_SET_FLOATS, reshape_multinomial, run_multinomial),
    ROW("RandomNormal", 0, reshape_key, run_normal),
    ROW("RandomNormalLike", 0, reshape_key, run_normal),
    ROW("RandomUniform", 0, reshape_key, run_uniform),
    ROW("RandomUniformLike", 0, reshape_key, run_uniform),
};

} // namespace
CUDA_KERNELS(random, rows);
