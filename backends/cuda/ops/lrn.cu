/* SPDX-License-Identifier: Apache-2.0 */
/* LRN: each element divided by a power of the squares in the channels around it. */
#include "backends/cuda/number.cuh"
#include "backends/shared/norm.h"

#include <stdlib.h>

enum { THREADS = 256 };

template <class T> __global__ void lrn(grt_lrn s, const T *x, T *y)
{
    using W = typename cuda_wide<T>::type;
    CUDA_EACH(i, s.batch * s.channels * s.pixels)
    {
        const int64_t channel = i / s.pixels % s.channels;
        const int64_t from = channel > s.before ? channel - s.before : 0;
        const int64_t to = channel + s.after < s.channels ? channel + s.after + 1 : s.channels;
        W sum = 0;
        for (int64_t c = from; c < to; c++) {
            const W v = cuda_widen(x[i + (c - channel) * s.pixels]);
            sum += v * v;
        }
        y[i] = cuda_narrow<T, W>(cuda_widen(x[i]) * (W)pow((W)s.bias + (W)s.alpha * sum, -(W)s.beta));
    }
}

static grt_status cuda_lrn_reshape(grt_reshape *r)
{
    grt_lrn *s = (grt_lrn *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    grt_lrn_fit(r, s);
    r->shape = s;
    return GRT_OK;
}

static grt_status cuda_lrn_run(const grt_run *r)
{
    const grt_lrn *s = (const grt_lrn *)r->shape;
    const int64_t n = s->batch * s->channels * s->pixels;
    if (n == 0)
        return GRT_OK;
    CUDA_FOR_FLOATS(r->in[0]->dtype, T,
                    lrn<T><<<cuda_blocks(n, THREADS), THREADS, 0, (cudaStream_t)r->stream>>>(
                        *s, (const T *)r->in[0]->data, (T *)r->out[0]->data));
    CUDA_LAUNCHED();
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "LRN",
     .types = {GRT_SET_FLOATS},
     .reshape = cuda_lrn_reshape,
     .release_shape = free,
     .run = cuda_lrn_run},
};
CUDA_KERNELS(lrn, rows);
