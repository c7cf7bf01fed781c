/* SPDX-License-Identifier: Apache-2.0 */
/* The gates of recurrent layers whose activations are those that ONNX takes where none are named. */
#ifndef GRT_BACKENDS_CUDA_RNN_GATES_CUH
#define GRT_BACKENDS_CUDA_RNN_GATES_CUH

#include "backends/cuda/number.cuh"
#include "backends/cuda/rnn.h"

/* Whether rnn_update computes the layer. RNN may have Relu. */
static inline bool rnn_gates_are_usual(const rnn_layer *layer)
{
    if (layer->clip != 0 || layer->coupled || (layer->kind == GRT_RNN_GRU && !layer->linear_before_reset))
        return false;
    for (int32_t d = 0; d < layer->directions; d++) {
        const grt_rnn_act_kind first = layer->act[d][0].kind;
        if (layer->kind == GRT_RNN_PLAIN
                ? (first != GRT_RNN_TANH && first != GRT_RNN_RELU) || first != layer->act[0][0].kind
                : first != GRT_RNN_SIGMOID || layer->act[d][1].kind != GRT_RNN_TANH)
            return false;
        if (layer->kind == GRT_RNN_LSTM && layer->act[d][2].kind != GRT_RNN_TANH)
            return false;
    }
    return true;
}

/* Sigmoid and tanh: in full for float32, to 1e-7 of 1 where products are narrower. There each is a power of
 * two and a reciprocal, whose instructions are what a step waits for. */
__device__ __forceinline__ float rnn_power(float exponent)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(exponent));
    return y;
}
__device__ __forceinline__ float rnn_reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#define RNN_LOG2_E 1.4426950408889634f

template <bool FULL> __device__ __forceinline__ float rnn_sigmoid(float x)
{
    return FULL ? 1 / (1 + expf(-x)) : rnn_reciprocal(1 + rnn_power(-RNN_LOG2_E * x));
}
template <bool FULL> __device__ __forceinline__ float rnn_tanh(float x)
{
    return FULL ? tanhf(x) : 1 - 2 * rnn_reciprocal(1 + rnn_power(2 * RNN_LOG2_E * x));
}
/* sigmoid(x) tanh(y) with one reciprocal. Powers of y stop where tanh is 1; those of x may be infinite. */
template <bool FULL> __device__ __forceinline__ float rnn_gated_tanh(float x, float y)
{
    if (FULL)
        return rnn_sigmoid<FULL>(x) * rnn_tanh<FULL>(y);
    const float exponent = 2 * RNN_LOG2_E * y, power = rnn_power(exponent > 30 ? 30 : exponent);
    return (power - 1) * rnn_reciprocal((1 + rnn_power(-RNN_LOG2_E * x)) * (1 + power));
}

/* What a unit's gates have from the inputs and biases. GRU adds R's bias of the hidden gate within the reset:
 * `inner` is that. */
template <int GATES> struct rnn_gate_biases {
    float outer[GATES], inner;
};

/* Biases of unit j of direction d, [directions, 2, gates, hidden], or NULL. */
template <class T, int GATES>
__device__ __forceinline__ rnn_gate_biases<GATES> rnn_read_biases(const T *bias, int64_t d, int64_t hidden,
                                                                  int64_t j)
{
    rnn_gate_biases<GATES> to = {};
    if (!bias)
        return to;
#pragma unroll
    for (int g = 0; g < GATES; g++) {
        const T *all = bias + d * 2 * GATES * hidden + g * hidden + j;
        const float outer = cuda_widen(all[0]), inner = cuda_widen(all[GATES * hidden]);
        to.outer[g] = GATES == 3 && g == 2 ? outer : outer + inner;
        to.inner = inner;
    }
    return to;
}

/* A step of one unit: states h and c after inputs and the sums of h R^T. */
template <class T, int GATES, bool FULL>
__device__ __forceinline__ void rnn_update(const T (&input)[GATES], const rnn_gate_biases<GATES> &bias,
                                           const float (&sums)[GATES], bool relu, float &h, float &c)
{
    float x[GATES];
#pragma unroll
    for (int g = 0; g < GATES; g++)
        x[g] = cuda_widen(input[g]) + bias.outer[g] + (GATES == 3 && g == 2 ? 0 : sums[g]);
    if constexpr (GATES == 4) {
        c = rnn_sigmoid<FULL>(x[2]) * c + rnn_gated_tanh<FULL>(x[0], x[3]);
        h = rnn_gated_tanh<FULL>(x[1], c);
    } else if constexpr (GATES == 3) {
        const float keep = rnn_sigmoid<FULL>(x[0]);
        const float fresh = rnn_tanh<FULL>(x[2] + rnn_sigmoid<FULL>(x[1]) * (sums[2] + bias.inner));
        h = (1 - keep) * fresh + keep * h;
    } else {
        h = !relu ? rnn_tanh<FULL>(x[0]) : x[0] < 0 ? 0 : x[0];
    }
}

#endif
