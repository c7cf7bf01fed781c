/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/epilogue.h"

#include "backends/cuda/activate.cuh"

/* How element i finds its bias. */
enum bias_kind { NO_BIAS, BIAS_VECTOR, BIAS_ONE };

/* A vector a thread. VECTOR: the channels of neighbours are neighbours; ONE: neighbours are of one channel.
 */
template <class T, int BIAS>
__global__ void finish_vectors(cuda_epilogue e, uint32_t vectors, uint32_t inner, uint32_t channels,
                               cuda_vector<T> *dst)
{
    enum { N = cuda_vector<T>::N };
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= vectors)
        return;
    cuda_vector<T> pack = dst[i], add = {};
    if (e.residual)
        add = ((const cuda_vector<T> *)e.residual)[i];
    float bias[N] = {};
    if (BIAS == BIAS_VECTOR) {
        const cuda_vector<T> b = ((const cuda_vector<T> *)e.bias)[i % channels];
        for (int k = 0; k < N; k++)
            bias[k] = cuda_widen(b.v[k]);
    } else if (BIAS == BIAS_ONE) {
        const float b = cuda_widen(((const T *)e.bias)[i / inner % channels]);
        for (int k = 0; k < N; k++)
            bias[k] = b;
    }
    float x[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        x[k] = cuda_widen(pack.v[k]) + bias[k];
        if (e.residual)
            x[k] += cuda_widen(add.v[k]);
    }
    cuda_activate_all<T>(e.act, x);
#pragma unroll
    for (int k = 0; k < N; k++)
        pack.v[k] = cuda_narrow<T, float>(x[k]);
    dst[i] = pack;
}

template <class T> __global__ void finish(cuda_epilogue e, T *dst)
{
    using W = typename cuda_wide<T>::type;
    const T *bias = (const T *)e.bias, *residual = (const T *)e.residual;
    CUDA_EACH(i, e.n)
    {
        W x = cuda_widen(dst[i]);
        if (bias)
            x += cuda_widen(
                bias[e.matrix ? i / e.matrix * e.channels + i % e.channels : i / e.inner % e.channels]);
        if (residual)
            x += cuda_widen(residual[i]);
        dst[i] = cuda_narrow<T, W>(cuda_activate<W>(e.act, x));
    }
}

template <class T, int BIAS>
static void cuda_epilogue_launch_vectors(const cuda_epilogue *e, uint32_t inner, uint32_t channels, void *dst,
                                         cudaStream_t stream)
{
    const uint32_t vectors = (uint32_t)(e->n / cuda_vector<T>::N);
    finish_vectors<T, BIAS>
        <<<(vectors + 255) / 256, 256, 0, stream>>>(*e, vectors, inner, channels, (cuda_vector<T> *)dst);
}

template <class T> static void cuda_epilogue_launch(const cuda_epilogue *e, void *dst, cudaStream_t stream)
{
    const int64_t n = cuda_vector<T>::N;
    bool vectors = sizeof(T) <= 4 && e->n % n == 0 && e->n < INT32_MAX && cuda_is_vector(dst) &&
                   cuda_is_vector(e->residual);
    if constexpr (sizeof(T) <= 4) {
        if (vectors && !e->bias) {
            cuda_epilogue_launch_vectors<T, NO_BIAS>(e, 1, 1, dst, stream);
            return;
        }
        vectors = vectors && !e->matrix;
        if (vectors && e->inner == 1 && e->channels % n == 0 && cuda_is_vector(e->bias)) {
            cuda_epilogue_launch_vectors<T, BIAS_VECTOR>(e, 1, (uint32_t)(e->channels / n), dst, stream);
            return;
        }
        if (vectors && e->inner % n == 0) {
            cuda_epilogue_launch_vectors<T, BIAS_ONE>(e, (uint32_t)(e->inner / n), (uint32_t)e->channels, dst,
                                                      stream);
            return;
        }
    }
    finish<T><<<cuda_blocks(e->n, 256), 256, 0, stream>>>(*e, (T *)dst);
}

grt_status cuda_epilogue_run(const cuda_epilogue *e, void *dst, cudaStream_t stream)
{
    if (e->n == 0 || (!e->bias && !e->residual && e->act.kind == GRT_ACT_NONE))
        return GRT_OK;
    CUDA_FOR_FLOATS(e->dtype, T, cuda_epilogue_launch<T>(e, dst, stream));
    CUDA_LAUNCHED();
    return GRT_OK;
}
