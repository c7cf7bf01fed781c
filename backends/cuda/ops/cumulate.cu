/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum, CumProd. Long lines that are few are cumulated in pieces: what each makes together, what is before
 * each, then the pieces. */
#include "backends/cuda/line.cuh"
#include "backends/shared/cumulate.h"

namespace
{

template <typename A> __device__ __forceinline__ A cumulated(bool product, A a, A b)
{
    return product ? pw_vocabulary<A>::mul(a, b) : pw_vocabulary<A>::add(a, b);
}

template <typename S, typename A>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cumulate_thread_kernel(cuda_lines s, grt_cumulate how, const S *in, S *out)
{
    CUDA_ITEMS (l, s.n_lines) {
        int64_t base = cuda_line_base(s, l, s.n);
        A acc = how.product ? A(1) : A(0);
        for (int64_t i = 0; i < s.n; i++) {
            int64_t at = base + (how.reverse ? s.n - 1 - i : i) * s.inner;
            A next = cumulated<A>(how.product, acc, (A)pw_widen<S>(in[at]));
            out[at] = pw_narrow<S>((typename pw_storage<S>::T)(how.exclusive ? acc : next));
            acc = next;
        }
    }
}

template <typename S, typename A>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cumulate_warp_kernel(cuda_lines s, grt_cumulate how, const S *in, S *out)
{
    int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32);
    int lane = threadIdx.x % 32;
    A none = how.product ? A(1) : A(0);
    for (int64_t l = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; l < s.n_lines; l += warps) {
        int64_t base = cuda_line_base(s, l, s.n);
        A before = none;
        for (int64_t first = 0; first < s.n; first += 32) {
            int64_t i = first + lane, at = base + (how.reverse ? s.n - 1 - i : i) * s.inner;
            A acc = i < s.n ? (A)pw_widen<S>(in[at]) : none;
            for (int step = 1; step < 32; step *= 2) {
                A other = __shfl_up_sync(0xffffffffu, acc, step);
                acc = lane >= step ? cumulated<A>(how.product, other, acc) : acc;
            }
            A left = __shfl_up_sync(0xffffffffu, acc, 1);
            left = lane ? left : none;
            A result = cumulated<A>(how.product, before, how.exclusive ? left : acc);
            if (i < s.n)
                out[at] = pw_narrow<S>((typename pw_storage<S>::T)result);
            before = cumulated<A>(how.product, before, __shfl_sync(0xffffffffu, acc, 31));
        }
    }
}

struct cumulate_shape {
    cuda_lines lines;
    cuda_line_parts cut;
};

/* The threads' values before and up to each thread of a block of CUDA_BLOCK; `whole`: of all. */
template <typename A> __device__ __forceinline__ A cumulated_before(bool product, A none, A mine, A *whole)
{
    __shared__ A warps[CUDA_BLOCK / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    A acc = mine;
    for (int step = 1; step < 32; step *= 2) {
        const A other = __shfl_up_sync(0xffffffffu, acc, step);
        acc = lane >= step ? cumulated<A>(product, other, acc) : acc;
    }
    __syncthreads(); /* the values before may still be read */
    if (lane == 31)
        warps[warp] = acc;
    __syncthreads();
    A before = none, all = none;
    for (int w = 0; w < CUDA_BLOCK / 32; w++) {
        before = w < warp ? cumulated<A>(product, before, warps[w]) : before;
        all = cumulated<A>(product, all, warps[w]);
    }
    const A left = __shfl_up_sync(0xffffffffu, acc, 1);
    *whole = all;
    return lane ? cumulated<A>(product, before, left) : before;
}

enum { EACH = 4 }; /* numbers that follow each other, of a thread at a time */

/* A block a piece of a line of neighbours; `out` NULL: only what the piece makes together, into `joined`,
 * else there is what comes before the piece. */
template <typename S, typename A>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cumulate_block_kernel(cuda_lines s, cuda_line_parts cut, grt_cumulate how, const S *in, S *out, A *joined)
{
    const A none = how.product ? A(1) : A(0);
    for (int64_t item = blockIdx.x; item < s.n_lines * cut.parts; item += gridDim.x) {
        const int64_t line = item / cut.parts, begin = (item - line * cut.parts) * cut.per_part,
                      end = begin + cut.per_part < s.n ? begin + cut.per_part : s.n;
        const S *from = in + line * s.n;
        A before = out ? joined[item] : none;
        for (int64_t first = begin; first < end; first += CUDA_BLOCK * EACH) {
            A v[EACH], mine = none, whole;
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                const int64_t i = first + threadIdx.x * EACH + e;
                v[e] = i < end ? (A)pw_widen<S>(from[how.reverse ? s.n - 1 - i : i]) : none;
                mine = cumulated<A>(how.product, mine, v[e]);
            }
            const A left = cumulated_before<A>(how.product, none, mine, &whole);
            A acc = cumulated<A>(how.product, before, left);
#pragma unroll
            for (int e = 0; e < EACH && out; e++) {
                const int64_t i = first + threadIdx.x * EACH + e;
                const A next = cumulated<A>(how.product, acc, v[e]);
                if (i < end)
                    out[line * s.n + (how.reverse ? s.n - 1 - i : i)] =
                        pw_narrow<S>((typename pw_storage<S>::T)(how.exclusive ? acc : next));
                acc = next;
            }
            before = cumulated<A>(how.product, before, whole);
        }
        if (!out && threadIdx.x == 0)
            joined[item] = before;
    }
}

/* The same by a thread a piece; threads that are neighbours have neighbouring lines. */
template <typename S, typename A>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cumulate_columns_kernel(cuda_lines s, cuda_line_parts cut, grt_cumulate how, const S *in, S *out,
                            A *joined)
{
    CUDA_ITEMS (t, s.n_lines * cut.parts) {
        const int64_t part = t / s.n_lines, line = t - part * s.n_lines, begin = part * cut.per_part,
                      end = begin + cut.per_part < s.n ? begin + cut.per_part : s.n,
                      base = cuda_line_base(s, line, s.n);
        A *of_part = joined + line * cut.parts + part;
        A acc = out ? *of_part : how.product ? A(1) : A(0);
#pragma unroll 4
        for (int64_t i = begin; i < end; i++) {
            const int64_t at = base + (how.reverse ? s.n - 1 - i : i) * s.inner;
            const A next = cumulated<A>(how.product, acc, (A)pw_widen<S>(in[at]));
            if (out)
                out[at] = pw_narrow<S>((typename pw_storage<S>::T)(how.exclusive ? acc : next));
            acc = next;
        }
        if (!out)
            *of_part = acc;
    }
}

/* A block a line: each piece gets what comes before it. */
template <typename A>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cumulate_joined_kernel(int64_t lines, int64_t parts, bool product, A *joined)
{
    const A none = product ? A(1) : A(0);
    for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
        A before = none;
        for (int64_t first = 0; first < parts; first += CUDA_BLOCK) {
            A *mine = joined + line * parts + first + threadIdx.x, whole;
            const bool has = first + threadIdx.x < parts;
            const A left = cumulated_before<A>(product, none, has ? *mine : none, &whole);
            if (has)
                *mine = cumulated<A>(product, before, left);
            before = cumulated<A>(product, before, whole);
        }
    }
}

template <typename S, typename A>
grt_status cumulate_in_parts(const grt_run *r, const cumulate_shape *sh, const grt_cumulate &how, const S *in,
                             S *out)
{
    const cuda_lines s = sh->lines;
    const int64_t items = s.n_lines * sh->cut.parts;
    A *joined = (A *)r->workspace;
    cudaStream_t stream = cuda_stream(r);
    for (int pass = 0; pass < 2; pass++) {
        S *to = pass ? out : NULL;
        if (s.inner == 1)
            cumulate_block_kernel<S, A>
                <<<cuda_grid(items, 1), CUDA_BLOCK, 0, stream>>>(s, sh->cut, how, in, to, joined);
        else
            cumulate_columns_kernel<S, A>
                <<<cuda_grid(items), CUDA_BLOCK, 0, stream>>>(s, sh->cut, how, in, to, joined);
        CUDA_LAUNCHED();
        if (!pass)
            cumulate_joined_kernel<A><<<cuda_grid(s.n_lines, 1), CUDA_BLOCK, 0, stream>>>(
                s.n_lines, sh->cut.parts, how.product, joined);
        CUDA_LAUNCHED();
    }
    return GRT_OK;
}

template <typename S> grt_status cumulate(const grt_run *r)
{
    typedef typename std::conditional<std::is_floating_point<typename pw_storage<S>::T>::value, double,
                                      uint64_t>::type A;
    const grt_cumulate *how = (const grt_cumulate *)r->state;
    const cumulate_shape *sh = (const cumulate_shape *)r->shape;
    const cuda_lines s = sh->lines;
    const S *in = (const S *)r->in[0]->data;
    S *out = (S *)r->out[0]->data;
    if (sh->cut.parts > 1)
        return cumulate_in_parts<S, A>(r, sh, *how, in, out);
    if (cuda_lines_by_warp(s))
        cumulate_warp_kernel<S, A>
            <<<cuda_grid(s.n_lines, CUDA_BLOCK / 32), CUDA_BLOCK, 0, cuda_stream(r)>>>(s, *how, in, out);
    else
        cumulate_thread_kernel<S, A>
            <<<cuda_grid(s.n_lines), CUDA_BLOCK, 0, cuda_stream(r)>>>(s, *how, in, out);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status reshape_cumulate(grt_reshape *r)
{
    const grt_tensor *in = r->in[0];
    if (!r->in[1]->data)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "input axis must be known before the run");
    int32_t axis;
    GRT_TRY(grt_cumulate_axis(r->desc, in, r->in[1], &axis));
    cumulate_shape *s;
    GRT_TRY(cuda_state(&s));
    cuda_lines_of(&s->lines, in, axis);
    s->cut = cuda_line_parts_of(s->lines);
    if (s->cut.parts > 1)
        r->workspace_bytes = (size_t)(s->lines.n_lines * s->cut.parts) * sizeof(double);
    r->shape = s;
    return GRT_OK;
}

grt_status cuda_run_cumulate(const grt_run *r)
{
    const cuda_lines *s = &((const cumulate_shape *)r->shape)->lines;
    if (s->n_lines <= 0 || s->n <= 0)
        return GRT_OK;
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, cumulate, r)
}

#define CUMULATE(name)                                                                                \
    {                                                                                                 \
        .domain = "", .op = name, .types = {GRT_SET_NUMBERS, CUDA_INDEX},                             \
        .flags = GRT_KERNEL_IN_PLACE(0) | GRT_KERNEL_READS(1), .create = grt_cumulate_create,         \
        .destroy = free, .reshape = reshape_cumulate, .release_shape = free, .run = cuda_run_cumulate \
    }
const grt_kernel_row rows[] = {CUMULATE("CumSum"), CUMULATE("CumProd")};

} // namespace
CUDA_KERNELS(cumulate, rows);
