/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout. When it is not training: a copy. Otherwise one block makes the mask by the Mersenne Twister of
 * ONNX's reference, as on the CPU (backends/shared/twister.h): equal seeds give equal masks. Its numbers come
 * one after another, 624 words at a time, which the threads of a block make together. Without a seed each run
 * has one of its own, by a counter in device memory, so that replayed graphs draw new numbers. */
#include "backends/cuda/each.cuh"
#include "backends/shared/random.h"
#include "backends/shared/twister.h"

namespace
{

enum {
    RATIO = 1,
    TRAINING = 2,
    FRESH = TWISTER_WORDS - TWISTER_SHIFT /* words that depend on old ones alone */
};
static_assert((int)FRESH <= (int)CUDA_BLOCK, "a thread makes at most one word in each step");

struct dropout_state {
    bool trains; /* unless training_mode is false when the model runs */
    bool seeded;
    uint64_t seed;
    unsigned long long *runs; /* on the device; NULL if seeded */
};

void cuda_dropout_destroy(void *data)
{
    dropout_state *s = (dropout_state *)data;
    if (s)
        cudaFree(s->runs);
    free(s);
}

grt_status cuda_dropout_create(const grt_kernel_node *node, void **out_state)
{
    dropout_state *s;
    GRT_TRY(cuda_state(&s));
    const bool never = !grt_node_has(node, TRAINING) ||
                       (node->in[TRAINING].data && !*(const uint8_t *)node->in[TRAINING].data);
    s->trains = !never;
    s->seeded = grt_attr_find(node->desc, "seed") != NULL;
    s->seed = s->seeded ? (uint64_t)grt_attr_int(node->desc, "seed", 0) : grt_random_seed(node->desc);
    *out_state = s;
    if (s->seeded || never)
        return GRT_OK;
    void *runs = NULL;
    const unsigned long long none = 0;
    const grt_status status = cuda_keep(node, &none, sizeof none, &runs);
    s->runs = (unsigned long long *)runs;
    if (status != GRT_OK) {
        cuda_dropout_destroy(s);
        *out_state = NULL;
    }
    return status;
}

/* What stands in device memory, as kernels take it. */
struct dropout_inputs {
    cuda_any ratio;
    const uint8_t *training;
    cuda_watch watch;

    /* 0: nothing is dropped. */
    __device__ double taken() const
    {
        const double x = ratio ? ratio.get(0) : 0.5;
        return *training && x > 0 && x < 1 ? x : 0;
    }
};

/* The words' next state, in three steps of those that depend on one another no more. */
__device__ void refill(uint32_t *words)
{
    for (int begin = 0; begin < TWISTER_WORDS; begin += FRESH) {
        const int n = begin + FRESH < TWISTER_WORDS ? FRESH : TWISTER_WORDS - begin,
                  at = begin + (int)threadIdx.x;
        const uint32_t next = (int)threadIdx.x < n ? grt_twister_next(words, at) : 0;
        __syncthreads();
        if ((int)threadIdx.x < n)
            words[at] = next;
        __syncthreads();
    }
}

__global__ void __launch_bounds__(CUDA_BLOCK)
    draw(dropout_inputs in, dropout_state s, int64_t n, uint8_t *mask)
{
    __shared__ uint32_t words[TWISTER_WORDS];
    const double ratio = in.taken();
    if (threadIdx.x == 0) {
        const double x = in.ratio ? in.ratio.get(0) : 0.5;
        if (*in.training && !(x >= 0 && x < 1))
            cuda_tell(in.watch, (int64_t)floor(x), 0, 0, 0);
        if (ratio > 0)
            grt_twister_seed(
                words, (uint32_t)(s.seeded ? s.seed : grt_random_key(s.seed, atomicAdd(s.runs, 1ull) + 1)));
    }
    __syncthreads();
    for (int64_t begin = 0; ratio > 0 && begin < n; begin += TWISTER_NUMBERS) {
        refill(words);
        for (int k = (int)threadIdx.x; k < TWISTER_NUMBERS && begin + k < n; k += CUDA_BLOCK)
            mask[begin + k] = grt_twister_uniform(words, k) >= ratio;
        __syncthreads();
    }
}

grt_status cuda_dropout_copy(const grt_run *r)
{
    const size_t bytes = grt_tensor_bytes(r->in[0]);
    if (!bytes)
        return GRT_OK;
    if (r->out[0] && r->out[0]->data != r->in[0]->data)
        CUDA_TRY(cudaMemcpyAsync(r->out[0]->data, r->in[0]->data, bytes, cudaMemcpyDeviceToDevice,
                                 cuda_stream(r)));
    if (r->n_out > 1 && r->out[1])
        CUDA_TRY(cudaMemsetAsync(r->out[1]->data, 1, (size_t)grt_tensor_elements(r->in[0]), cuda_stream(r)));
    return GRT_OK;
}

grt_status cuda_dropout_reshape(grt_reshape *r)
{
    const bool has_mask = r->n_out > 1 && r->out[1];
    r->workspace_bytes =
        ((const dropout_state *)r->state)->trains && !has_mask ? (size_t)grt_tensor_elements(r->in[0]) : 0;
    return GRT_OK;
}

grt_status cuda_dropout_run(const grt_run *r)
{
    const int64_t n = grt_tensor_elements(r->in[0]);
    if (!((const dropout_state *)r->state)->trains)
        return cuda_dropout_copy(r);
    dropout_inputs in = {cuda_any_in(r, RATIO), (const uint8_t *)r->in[TRAINING]->data, {}};
    GRT_TRY(cuda_watch_begin(r, "ratio (rounded down)", &in.watch));
    uint8_t *mask = (uint8_t *)(r->n_out > 1 && r->out[1] ? r->out[1]->data : r->workspace);
    if (!n)
        return GRT_OK;
    draw<<<1, CUDA_BLOCK, 0, cuda_stream(r)>>>(in, *(const dropout_state *)r->state, n, mask);
    CUDA_LAUNCHED();
    const cuda_any x = cuda_any_in(r, 0), y = cuda_any_out(r, 0);
    return cuda_each(r, n, [=] __device__(int64_t i) {
        const double ratio = in.taken();
        const bool keep = ratio == 0 || mask[i];
        if (!keep)
            y.put(i, 0);
        else if (ratio > 0)
            y.put(i, x.get(i) * (1.0 / (1.0 - ratio)));
        else if (y.data != x.data)
            y.put(i, x.get(i));
        mask[i] = keep;
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Dropout",
     .types = {GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = cuda_dropout_create,
     .destroy = cuda_dropout_destroy,
     .reshape = cuda_dropout_reshape,
     .run = cuda_dropout_run},
};

} // namespace
CUDA_KERNELS(dropout, rows);
