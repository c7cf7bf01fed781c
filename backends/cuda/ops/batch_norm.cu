/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization. Each channel becomes x * a + b, in training mode by the batch's own statistics. */
#include "backends/cuda/number.cuh"
#include "backends/shared/norm.h"

#include <stdlib.h>

enum { THREADS = 256 };

/* What is read and written besides x and y. */
typedef struct batch_tensors {
    const void *in[5];
    int in_dtype[5];
    void *out[3];
    int out_dtype[3];
} batch_tensors;

/* a and b of one channel per block. */
template <class T>
__global__ void __launch_bounds__(THREADS) batch_affine(grt_batch_norm s, batch_tensors t, double *ab)
{
    const T *x = (const T *)t.in[0];
    const int64_t count = s.batch * s.inner;
    for (int64_t c = blockIdx.x; c < s.channels; c += gridDim.x) {
        double mean = cuda_load<double>(t.in[GRT_NORM_MEAN], t.in_dtype[GRT_NORM_MEAN], c);
        double variance = cuda_load<double>(t.in[GRT_NORM_VARIANCE], t.in_dtype[GRT_NORM_VARIANCE], c);
        if (s.training) {
            double sum = 0, squares = 0;
            for (int64_t i = threadIdx.x; i < count; i += THREADS)
                sum += (double)cuda_widen(x[(i / s.inner * s.channels + c) * s.inner + i % s.inner]);
            const double own = cuda_row_reduce<THREADS, cuda_sum, double>(sum, 0) / (double)count;
            for (int64_t i = threadIdx.x; i < count; i += THREADS) {
                const double d =
                    (double)cuda_widen(x[(i / s.inner * s.channels + c) * s.inner + i % s.inner]) - own;
                squares += d * d;
            }
            const double spread = cuda_row_reduce<THREADS, cuda_sum, double>(squares, 0) / (double)count;
            if (threadIdx.x == 0 && t.out[1])
                cuda_store<double>(t.out[1], t.out_dtype[1], c, mean * s.momentum + own * (1 - s.momentum));
            if (threadIdx.x == 0 && t.out[2])
                cuda_store<double>(t.out[2], t.out_dtype[2], c,
                                   variance * s.momentum + spread * (1 - s.momentum));
            mean = own;
            variance = spread;
        }
        if (threadIdx.x == 0) {
            const double a = cuda_load<double>(t.in[GRT_NORM_SCALE], t.in_dtype[GRT_NORM_SCALE], c) /
                             sqrt(variance + s.epsilon);
            ab[2 * c] = a;
            ab[2 * c + 1] = cuda_load<double>(t.in[GRT_NORM_BIAS], t.in_dtype[GRT_NORM_BIAS], c) - mean * a;
        }
    }
}

template <class T> __global__ void batch_apply(grt_batch_norm s, const T *x, const double *ab, T *y)
{
    using W = typename cuda_wide<T>::type;
    CUDA_EACH(i, s.batch * s.channels * s.inner)
    {
        const int64_t c = i / s.inner % s.channels;
        y[i] = cuda_narrow<T, W>(cuda_widen(x[i]) * (W)ab[2 * c] + (W)ab[2 * c + 1]);
    }
}

static grt_status batch_reshape(grt_reshape *r)
{
    grt_batch_norm *s = (grt_batch_norm *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const grt_status status = grt_batch_norm_fit(r, s);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    r->workspace_bytes = (size_t)s->channels * 2 * sizeof(double);
    r->shape = s;
    return GRT_OK;
}

template <class T>
static void launch_batch(const grt_batch_norm *s, const batch_tensors *t, double *ab, cudaStream_t stream)
{
    batch_affine<T><<<cuda_blocks(s->channels, 1), THREADS, 0, stream>>>(*s, *t, ab);
    batch_apply<T><<<cuda_blocks(s->batch * s->channels * s->inner, THREADS), THREADS, 0, stream>>>(
        *s, (const T *)t->in[0], ab, (T *)t->out[0]);
}

static grt_status batch_run(const grt_run *r)
{
    const grt_batch_norm *s = (const grt_batch_norm *)r->shape;
    batch_tensors t = {};
    for (int32_t i = 0; i < 5; i++) {
        t.in[i] = r->in[i]->data;
        t.in_dtype[i] = r->in[i]->dtype;
    }
    for (int32_t i = 0; i < 3 && i < r->n_out; i++)
        if (r->out[i]) {
            t.out[i] = r->out[i]->data;
            t.out_dtype[i] = r->out[i]->dtype;
        }
    if (s->batch * s->channels * s->inner == 0)
        return GRT_OK;
    CUDA_FOR_FLOATS(r->in[0]->dtype, T,
                    launch_batch<T>(s, &t, (double *)r->workspace, (cudaStream_t)r->stream));
    CUDA_LAUNCHED();
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "BatchNormalization",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .reshape = batch_reshape,
     .release_shape = free,
     .run = batch_run},
};
CUDA_KERNELS(batch_norm, rows);
