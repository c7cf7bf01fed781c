/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that interpret any program of a pointwise group: every thread runs the whole program for a few
 * neighbouring elements, so that intermediate results never reach device memory unless there are very many.
 * All threads take the same way through the program. */
#ifndef GRT_BACKENDS_CUDA_POINTWISE_INTERPRET_CUH
#define GRT_BACKENDS_CUDA_POINTWISE_INTERPRET_CUH

#include "backends/cuda/overlap.cuh"
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/pointwise_program.h"
#include "backends/cuda/walk.h"

namespace
{

enum { INTERPRET_VECTOR = 4, INTERPRET_BLOCK = 128 };

typedef cuda_walk<CUDA_POINTWISE_INPUTS + 1, GRT_MAX_RANK> interpreted_walk;

/* A form (pointwise_source.h) as the kernel for the usual case has it. */
struct interpreted_form {
    uint32_t n; /* vectors */
    cuda_divisor by_inner, by_middle;
    /* Of an input's elements: outer, middle, and vectors of inner. */
    uint32_t strides[CUDA_POINTWISE_INPUTS][3];
};

struct interpreted_operands {
    const void *in[CUDA_POINTWISE_INPUTS];
    void *out;
    bool packed[CUDA_POINTWISE_INPUTS]; /* neighbours differ */
};

template <typename S, int V>
__device__ __forceinline__ void interpret_load_typed(const void *data, int64_t at, bool packed, float *x)
{
    const S *from = (const S *)data + at;
    if (V > 1 && packed) {
        cuda_pack<S, V> pack = *(const cuda_pack<S, V> *)from;
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = (float)pw_widen<S>(pack.v[j]);
    } else {
        float one = (float)pw_widen<S>(*from);
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = one;
    }
}

template <int V>
__device__ __forceinline__ void interpret_load(grt_dtype dtype, const void *data, int64_t at, bool packed,
                                               float *x)
{
    if (dtype == GRT_DTYPE_FLOAT) {
        interpret_load_typed<float, V>(data, at, packed, x);
    } else if (dtype == GRT_DTYPE_FLOAT16) {
        interpret_load_typed<__half, V>(data, at, packed, x);
    } else if (dtype == GRT_DTYPE_BFLOAT16) {
        interpret_load_typed<__nv_bfloat16, V>(data, at, packed, x);
    } else {
        interpret_load_typed<uint8_t, V>(data, at, packed, x);
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = x[j] != 0.0f ? 1.0f : 0.0f;
    }
}

template <typename S, int V>
__device__ __forceinline__ void interpret_store_typed(void *data, int64_t at, const float *x)
{
    cuda_pack<S, V> pack;
#pragma unroll
    for (int j = 0; j < V; j++)
        pack.v[j] = pw_narrow<S>(x[j]);
    *(cuda_pack<S, V> *)((S *)data + at) = pack;
}

template <int V>
__device__ __forceinline__ void interpret_store(grt_dtype dtype, void *data, int64_t at, const float *x)
{
    if (dtype == GRT_DTYPE_FLOAT) {
        interpret_store_typed<float, V>(data, at, x);
    } else if (dtype == GRT_DTYPE_FLOAT16) {
        interpret_store_typed<__half, V>(data, at, x);
    } else if (dtype == GRT_DTYPE_BFLOAT16) {
        interpret_store_typed<__nv_bfloat16, V>(data, at, x);
    } else {
        cuda_pack<uint8_t, V> pack;
#pragma unroll
        for (int j = 0; j < V; j++)
            pack.v[j] = x[j] != 0.0f;
        *(cuda_pack<uint8_t, V> *)((uint8_t *)data + at) = pack;
    }
}

/* The usual functions are met here without a call. */
template <int V>
__device__ __forceinline__ void interpret_one(const cuda_pointwise_instruction &in, const float (*x)[V],
                                              float *y)
{
#define EACH(opcode)                                     \
    _Pragma("unroll") for (int j = 0; j < V; j++) y[j] = \
        pw_eval<float>(opcode, x[0][j], x[1][j], x[2][j], in.p[0], in.p[1])
#define X(name)          \
    case PW_##name:      \
        EACH(PW_##name); \
        break;
    switch (in.opcode) {
        /* clang-format off */
        X(Add) X(Sub) X(Mul) X(Div) X(Max) X(Min) X(Neg) X(Sqrt) X(Relu) X(Sigmoid) X(Tanh) X(Clip) X(Where)
        X(LeakyRelu) X(Exp) X(Erf) X(Reciprocal) X(HardSigmoid) X(HardSwish) X(Swish)
    default:
#pragma unroll
        for (int j = 0; j < V; j++)
            y[j] = pw_eval_any<float>(in.opcode, x[0][j], x[1][j], x[2][j], in.p[0], in.p[1]);
        /* clang-format on */
    }
#undef X
#undef EACH
}

template <int V, int REGISTERS>
__global__ void __launch_bounds__(INTERPRET_BLOCK)
    interpret_kernel(const __grid_constant__ interpreted_walk walk,
                     const __grid_constant__ cuda_pointwise_program p,
                     const __grid_constant__ interpreted_operands o)
{
    CUDA_ITEMS (i, walk.total) {
        int64_t at[CUDA_POINTWISE_INPUTS + 1];
        float registers[REGISTERS][V], x[PW_MAX_OPERANDS][V], y[V];
        cuda_walk_at(walk, i, at);
#pragma unroll
        for (int j = 0; j < V; j++)
            y[j] = 0.0f;
        for (int32_t c = 0; c < p.n; c++) {
            const cuda_pointwise_instruction &in = p.code[c];
#pragma unroll
            for (int k = 0; k < PW_MAX_OPERANDS; k++) {
                int index = in.index[k];
                if (k >= in.arity || in.kind[k] == PW_SOURCE_PREVIOUS) {
#pragma unroll
                    for (int j = 0; j < V; j++)
                        x[k][j] = y[j];
                } else if (in.kind[k] == PW_SOURCE_INPUT) {
                    interpret_load<V>(p.in_dtype[index], o.in[index], at[index + 1], o.packed[index], x[k]);
                } else {
#pragma unroll
                    for (int j = 0; j < V; j++)
                        x[k][j] = in.kind[k] == PW_SOURCE_CONSTANT ? p.constants[index] : registers[index][j];
                }
            }
            interpret_one<V>(in, x, y);
            if (in.keep) {
#pragma unroll
                for (int j = 0; j < V; j++)
                    registers[in.target][j] = y[j];
            }
        }
        interpret_store<V>(p.out_dtype, o.out, at[0], y);
    }
}

/* The usual case: shapes that have a form (pointwise_source.h), and no more than a few results wait. 16 bytes
 * of 16-bit floats a thread, no walk, and registers that need no memory. */
enum { INTERPRET_KEPT = 3 };

__global__ void __launch_bounds__(CUDA_POINTWISE_BLOCK)
    interpret_form_kernel(const __grid_constant__ interpreted_form f,
                          const __grid_constant__ cuda_pointwise_program p,
                          const __grid_constant__ interpreted_operands o)
{
    enum { V = CUDA_POINTWISE_VECTOR };
    const uint32_t i = blockIdx.x * CUDA_POINTWISE_BLOCK + threadIdx.x;
    overlap_let_next_begin();
    overlap_wait();
    if (i >= f.n)
        return;
    const uint32_t row = cuda_divide(i, f.by_inner), inner = i - row * f.by_inner.divisor;
    const uint32_t outer = cuda_divide(row, f.by_middle), middle = row - outer * f.by_middle.divisor;
    float kept[INTERPRET_KEPT][V], x[PW_MAX_OPERANDS][V], y[V];
#pragma unroll
    for (int j = 0; j < V; j++)
        y[j] = kept[0][j] = kept[1][j] = kept[2][j] = 0.0f;
    for (int32_t c = 0; c < p.n; c++) {
        const cuda_pointwise_instruction &in = p.code[c];
#pragma unroll
        for (int k = 0; k < PW_MAX_OPERANDS; k++) {
            const int index = in.index[k];
            if (k >= in.arity || in.kind[k] == PW_SOURCE_PREVIOUS) {
#pragma unroll
                for (int j = 0; j < V; j++)
                    x[k][j] = y[j];
            } else if (in.kind[k] == PW_SOURCE_INPUT) {
                const uint32_t *strides = f.strides[index];
                interpret_load<V>(p.in_dtype[index], o.in[index],
                                  outer * strides[0] + middle * strides[1] + inner * strides[2],
                                  strides[2] != 0, x[k]);
            } else if (in.kind[k] == PW_SOURCE_CONSTANT) {
#pragma unroll
                for (int j = 0; j < V; j++)
                    x[k][j] = p.constants[index];
            } else {
#pragma unroll
                for (int j = 0; j < V; j++)
                    x[k][j] = index == 0 ? kept[0][j] : index == 1 ? kept[1][j] : kept[2][j];
            }
        }
        interpret_one<V>(in, x, y);
        if (in.keep) {
#pragma unroll
            for (int j = 0; j < V; j++) {
                kept[0][j] = in.target == 0 ? y[j] : kept[0][j];
                kept[1][j] = in.target == 1 ? y[j] : kept[1][j];
                kept[2][j] = in.target == 2 ? y[j] : kept[2][j];
            }
        }
    }
    interpret_store<V>(p.out_dtype, o.out, (int64_t)i * V, y);
}

} // namespace
#endif
