/* SPDX-License-Identifier: Apache-2.0 */
/* LpNormalization: a thread, a warp or a block a line. */
#include "backends/cuda/line.cuh"
#include "backends/shared/lp_norm.h"

namespace
{

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    lp_norm_kernel(cuda_lines s, bool absolute, bool by_warp, const S *in, S *out)
{
    using A = typename pw_storage<S>::T;
    const int step = by_warp ? 32 : 1, lane = by_warp ? threadIdx.x % 32 : 0;
    const int64_t threads = (int64_t)gridDim.x * blockDim.x / step;
    for (int64_t l = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / step; l < s.n_lines; l += threads) {
        const int64_t base = cuda_line_base(s, l, s.n);
        A norm = 0;
        for (int64_t i = lane; i < s.n; i += step) {
            const A v = pw_widen<S>(in[base + i * s.inner]);
            norm += absolute ? fabs(v) : v * v;
        }
        if (by_warp)
            norm = cuda_warp_reduce<cuda_sum, A>(norm);
        norm = absolute ? norm : sqrt(norm);
        for (int64_t i = lane; i < s.n; i += step) {
            const int64_t at = base + i * s.inner;
            out[at] = pw_narrow<S>(norm == 0 ? A(0) : (A)(pw_widen<S>(in[at]) / norm));
        }
    }
}

/* A block a line of neighbours, N numbers a thread at a time. */
template <typename S, int N>
__global__ void __launch_bounds__(CUDA_BLOCK)
    lp_norm_block_kernel(int64_t lines, int64_t n, bool absolute, const S *in, S *out)
{
    using A = typename pw_storage<S>::T;
    struct alignas(N * sizeof(S)) pack {
        S v[N];
    };
    for (int64_t l = blockIdx.x; l < lines; l += gridDim.x) {
        const pack *from = (const pack *)(in + l * n);
        pack *to = (pack *)(out + l * n);
        A sum = 0;
        for (int64_t i = threadIdx.x; i < n / N; i += CUDA_BLOCK) {
            const pack x = from[i];
#pragma unroll
            for (int k = 0; k < N; k++) {
                const A v = pw_widen<S>(x.v[k]);
                sum += absolute ? fabs(v) : v * v;
            }
        }
        const A whole = (A)cuda_block_sum((double)sum), norm = absolute ? whole : sqrt(whole);
        for (int64_t i = threadIdx.x; i < n / N; i += CUDA_BLOCK) {
            pack x = from[i];
#pragma unroll
            for (int k = 0; k < N; k++)
                x.v[k] = pw_narrow<S>(norm == 0 ? A(0) : (A)(pw_widen<S>(x.v[k]) / norm));
            to[i] = x;
        }
        __syncthreads();
    }
}

/* Long lines: a warp would have too much of one. */
template <typename S> bool lp_norm_by_block(const grt_run *r, const cuda_lines &s, bool absolute)
{
    enum { LONG = 1024, N = 16 / sizeof(S) };
    const S *in = (const S *)r->in[0]->data;
    S *out = (S *)r->out[0]->data;
    if (s.inner != 1 || s.n < LONG)
        return false;
    const unsigned blocks = (unsigned)(s.n_lines < 65536 ? s.n_lines : 65536);
    if (s.n % N == 0 && cuda_is_vector(in) && cuda_is_vector(out))
        lp_norm_block_kernel<S, N>
            <<<blocks, CUDA_BLOCK, 0, cuda_stream(r)>>>(s.n_lines, s.n, absolute, in, out);
    else
        lp_norm_block_kernel<S, 1>
            <<<blocks, CUDA_BLOCK, 0, cuda_stream(r)>>>(s.n_lines, s.n, absolute, in, out);
    return true;
}

template <typename S> void cuda_lp_norm_launch(const grt_run *r, const cuda_lines &s, bool absolute)
{
    if (lp_norm_by_block<S>(r, s, absolute))
        return;
    const bool by_warp = cuda_lines_by_warp(s);
    lp_norm_kernel<S>
        <<<cuda_grid(s.n_lines, by_warp ? CUDA_BLOCK / 32 : CUDA_BLOCK), CUDA_BLOCK, 0, cuda_stream(r)>>>(
            s, absolute, by_warp, (const S *)r->in[0]->data, (S *)r->out[0]->data);
}

grt_status cuda_run_lp_norm(const grt_run *r)
{
    const grt_lp_norm *s = (const grt_lp_norm *)r->state;
    cuda_lines l;
    cuda_lines_of(&l, r->in[0], grt_axis(s->axis, r->in[0]->rank));
    if (l.n_lines <= 0 || l.n <= 0)
        return GRT_OK;
    CUDA_FOR_FLOATS(r->in[0]->dtype, T, cuda_lp_norm_launch<T>(r, l, s->p == 1));
    CUDA_LAUNCHED();
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "LpNormalization",
     .types = {GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = grt_lp_norm_supports,
     .create = grt_lp_norm_create,
     .destroy = free,
     .run = cuda_run_lp_norm},
};

} // namespace
CUDA_KERNELS(lp_norm, rows);
