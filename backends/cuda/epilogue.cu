/* The epilogue pass and the activations' formulas. */
#include "backends/cuda/epilogue.h"

#include "backends/cuda/number.cuh"

static const struct {
    const char *name;
    cuda_act_kind kind;
} acts[] = {
    {"", CUDA_ACT_NONE},
    {"Relu", CUDA_ACT_RELU},
    {"LeakyRelu", CUDA_ACT_LEAKY_RELU},
    {"Clip", CUDA_ACT_CLIP},
    {"Elu", CUDA_ACT_ELU},
    {"Sigmoid", CUDA_ACT_SIGMOID},
    {"Tanh", CUDA_ACT_TANH},
    {"Silu", CUDA_ACT_SILU},
    {"Gelu", CUDA_ACT_GELU},
    {"GeluTanh", CUDA_ACT_GELU_TANH},
    {"HardSigmoid", CUDA_ACT_HARD_SIGMOID},
    {"HardSwish", CUDA_ACT_HARD_SWISH},
    {"Softplus", CUDA_ACT_SOFTPLUS},
};

bool cuda_act_read(const grt_op_desc *desc, cuda_act *out, grt_text *why)
{
    const char *name = grt_attr_string(desc, "activation", "");
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (!strcmp(acts[i].name, name)) {
            *out = {acts[i].kind, grt_attr_float(desc, "alpha", 0), grt_attr_float(desc, "beta", 0)};
            return true;
        }
    *out = {CUDA_ACT_NONE, 0, 0};
    if (why)
        grt_text_add(why, "the CUDA backend has no activation '%s' in an epilogue", name);
    return false;
}

__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }

template <class W> __device__ __forceinline__ W bounded(W x, W low, W high)
{
    x = x < low ? low : x; /* NaN goes through */
    return x > high ? high : x;
}

template <class W> __device__ __forceinline__ W sigmoid(W x) { return 1 / (1 + exponential(-x)); }

template <class W> __device__ __forceinline__ W activate(cuda_act act, W x)
{
    const W a = act.a, b = act.b;
    switch (act.kind) {
    case CUDA_ACT_RELU:
        return x < 0 ? (W)0 : x;
    case CUDA_ACT_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case CUDA_ACT_CLIP:
        return bounded<W>(x, a, b);
    case CUDA_ACT_ELU:
        return x < 0 ? a * (W)expm1((W)x) : x;
    case CUDA_ACT_SIGMOID:
        return sigmoid<W>(x);
    case CUDA_ACT_TANH:
        return tanh(x);
    case CUDA_ACT_SILU:
        return x * sigmoid<W>(a * x);
    case CUDA_ACT_GELU:
        return x * (W)normcdf((W)x);
    case CUDA_ACT_GELU_TANH:
        return x * sigmoid<W>((W)1.5957691216057308 * (x + (W)0.044715 * x * x * x));
    case CUDA_ACT_HARD_SIGMOID:
        return bounded<W>(a * x + b, 0, 1);
    case CUDA_ACT_HARD_SWISH:
        return x * bounded<W>(x * (W)(1.0 / 6.0) + (W)0.5, 0, 1);
    case CUDA_ACT_SOFTPLUS:
        return (x > 0 ? x : (W)0) + (W)log1p(exponential(x > 0 ? -x : x));
    default:
        return x;
    }
}

template <class T> struct alignas(4 * sizeof(T)) quad {
    T v[4];
};

template <class T, int WIDTH> __global__ void finish(cuda_epilogue e, T *dst)
{
    using W = typename cuda_wide<T>::type;
    const T *bias = (const T *)e.bias, *residual = (const T *)e.residual;
    CUDA_EACH(block, e.n / WIDTH)
    {
        alignas(4 * sizeof(T)) T v[WIDTH], r[WIDTH];
        if constexpr (WIDTH == 4) {
            *(quad<T> *)v = ((const quad<T> *)dst)[block];
            if (residual)
                *(quad<T> *)r = ((const quad<T> *)residual)[block];
        } else {
            v[0] = dst[block];
            if (residual)
                r[0] = residual[block];
        }
        for (int k = 0; k < WIDTH; k++) {
            W x = cuda_widen(v[k]);
            if (bias)
                x += cuda_widen(bias[(block * WIDTH + k) / e.inner % e.channels]);
            if (residual)
                x += cuda_widen(r[k]);
            v[k] = cuda_narrow<T, W>(activate<W>(e.act, x));
        }
        if constexpr (WIDTH == 4)
            ((quad<T> *)dst)[block] = *(quad<T> *)v;
        else
            dst[block] = v[0];
    }
}

template <class T> static void launch(const cuda_epilogue *e, void *dst, cudaStream_t stream)
{
    const uintptr_t address = (uintptr_t)dst | (uintptr_t)e->residual;
    if (e->n % 4 == 0 && address % (4 * sizeof(T)) == 0)
        finish<T, 4><<<cuda_blocks(e->n / 4, 256), 256, 0, stream>>>(*e, (T *)dst);
    else
        finish<T, 1><<<cuda_blocks(e->n, 256), 256, 0, stream>>>(*e, (T *)dst);
}

grt_status cuda_epilogue_run(const cuda_epilogue *e, void *dst, cudaStream_t stream)
{
    if (e->n == 0 || (!e->bias && !e->residual && e->act.kind == CUDA_ACT_NONE))
        return GRT_OK;
    CUDA_FOR_FLOATS(e->dtype, T, launch<T>(e, dst, stream));
    CUDA_LAUNCHED();
    return GRT_OK;
}
