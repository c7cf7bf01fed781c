/* SPDX-License-Identifier: Apache-2.0 */
/* What recurrent layers do to the sums of a step, one hidden unit at a time, and where things lie. */
#ifndef GRT_BACKENDS_CUDA_RNN_CELL_CUH
#define GRT_BACKENDS_CUDA_RNN_CELL_CUH

#include "backends/cuda/number.cuh"
#include "backends/cuda/rnn.h"

template <class F> __device__ F rnn_activated(grt_rnn_act act, float clip, F x)
{
    const F a = (F)act.a, b = (F)act.b;
    if (clip > 0)
        x = x < -(F)clip ? -(F)clip : x > (F)clip ? (F)clip : x;
    switch (act.kind) {
    case GRT_RNN_RELU:
        return x < 0 ? (F)0 : x;
    case GRT_RNN_TANH:
        return tanh(x);
    case GRT_RNN_SIGMOID:
        return 1 / (1 + exp(-x));
    case GRT_RNN_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case GRT_RNN_HARD_SIGMOID:
        x = a * x + b;
        return x < 0 ? (F)0 : x > 1 ? (F)1 : x;
    case GRT_RNN_ELU:
        return x < 0 ? a * expm1(x) : x;
    case GRT_RNN_SOFTPLUS:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case GRT_RNN_AFFINE:
        return a * x + b;
    case GRT_RNN_THRESHOLDED_RELU:
        return x >= a ? x : (F)0;
    case GRT_RNN_SCALED_TANH:
        return a * tanh(b * x);
    default:
        return x / (1 + (x < 0 ? -x : x));
    }
}

/* Unit j of direction d and row b: of initial and last states, of the output of time t, of the projected
 * inputs (first gate), of the biases. */
struct rnn_places {
    rnn_size n;
    int32_t directions, gates;

    __device__ __forceinline__ int64_t state(int64_t d, int64_t b) const
    {
        return grt_rnn_state_at(&n, d, b) * n.hidden;
    }
    __device__ __forceinline__ int64_t y(int64_t d, int64_t t, int64_t b) const
    {
        return grt_rnn_y_at(&n, d, t, b) * n.hidden;
    }
    __device__ __forceinline__ int64_t projected(int64_t d, int64_t t, int64_t b) const
    {
        return (grt_rnn_x_at(&n, t, b) * directions + d) * gates * n.hidden;
    }
    /* The same of time 0, for batches of less than 2^32 rows. */
    __device__ __forceinline__ void start(int64_t d, uint32_t b, int64_t *out_projected, int64_t *out_y) const
    {
        const uint32_t outer = b / (uint32_t)n.inner, inside = b - outer * (uint32_t)n.inner;
        *out_projected = ((outer * n.x_outer + inside) * directions + d) * gates * n.hidden;
        *out_y = (outer * n.y_outer + inside * n.y_row + d * n.y_direction) * n.hidden;
    }
    /* From one time to the next. */
    __device__ __forceinline__ int64_t y_step() const
    {
        return n.y_step * n.hidden;
    }
    __device__ __forceinline__ int64_t projected_step() const
    {
        return n.x_step * directions * gates * n.hidden;
    }
    /* Steps that row b has. */
    __device__ __forceinline__ int64_t length(const int32_t *lengths, int64_t b) const
    {
        const int64_t all = lengths ? lengths[b] : n.steps;
        return all < 0 ? 0 : all > n.steps ? n.steps : all;
    }
};

static inline rnn_places rnn_places_of(const rnn_layer *layer, const rnn_size *size)
{
    return {*size, layer->directions, layer->gates};
}

#endif
