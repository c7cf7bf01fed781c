/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin, Hardmax. Long lines that are few are searched in pieces, whose results a second kernel
 * compares. */
#include "backends/cuda/indexed.cuh"
#include "backends/cuda/line.cuh"

namespace
{

struct arg_state {
    int64_t axis;
    bool least, last;
};

/* NaN counts as greatest and as least. */
template <typename S>
__device__ __forceinline__ cuda_place best_of(const S *in, int64_t begin, int64_t n, int64_t step,
                                              int64_t inner, bool least, bool last)
{
    cuda_place best = {0, -1};
#pragma unroll 4
    for (int64_t i = begin; i < n; i += step) {
        uint64_t key = cuda_order_key<S>(in[i * inner]);
        bool odd = std::is_floating_point<typename pw_storage<S>::T>::value && key == UINT64_MAX;
        key = least && !odd ? ~key : key;
        /* Places come in order. */
        if (best.at < 0 || key > best.key || (last && key == best.key))
            best = {key, i};
    }
    return best;
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    arg_thread_kernel(cuda_lines s, bool least, bool last, const S *in, int64_t *out)
{
    CUDA_ITEMS (l, s.n_lines)
        out[l] = best_of<S>(in + cuda_line_base(s, l, s.n), 0, s.n, 1, s.inner, least, last).at;
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    arg_warp_kernel(cuda_lines s, bool least, bool last, const S *in, int64_t *out)
{
    int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32);
    for (int64_t l = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; l < s.n_lines; l += warps) {
        cuda_place best =
            best_of<S>(in + cuda_line_base(s, l, s.n), threadIdx.x % 32, s.n, 32, s.inner, least, last);
        best = cuda_better_of_warp(best, last);
        if (threadIdx.x % 32 == 0)
            out[l] = best.at;
    }
}

struct arg_shape {
    cuda_lines lines;
    cuda_line_parts cut;
};

/* A piece of a line of neighbours. For all threads of the block, which has CUDA_BLOCK. */
template <typename S>
__device__ __forceinline__ cuda_place best_of_part(const cuda_lines &s, const cuda_line_parts &cut,
                                                   int64_t item, bool least, bool last, const S *in)
{
    __shared__ cuda_place shared[CUDA_BLOCK / 32];
    const int64_t line = item / cut.parts, begin = (item - line * cut.parts) * cut.per_part,
                  end = begin + cut.per_part < s.n ? begin + cut.per_part : s.n;
    cuda_place best = best_of<S>(in + line * s.n, begin + threadIdx.x, end, CUDA_BLOCK, 1, least, last);
    best = cuda_better_of_warp(best, last);
    __syncthreads(); /* the item before may still be read */
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = best;
    __syncthreads();
    best = shared[0];
    for (int w = 1; w < CUDA_BLOCK / 32; w++)
        best = cuda_better(best, shared[w], last);
    return best;
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    arg_parts_kernel(cuda_lines s, cuda_line_parts cut, bool least, bool last, const S *in, cuda_place *found)
{
    for (int64_t item = blockIdx.x; item < s.n_lines * cut.parts; item += gridDim.x) {
        const cuda_place best = best_of_part<S>(s, cut, item, least, last, in);
        if (threadIdx.x == 0)
            found[item] = best;
    }
}

/* A thread a piece; threads that are neighbours have neighbouring lines. */
template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    arg_columns_kernel(cuda_lines s, cuda_line_parts cut, bool least, bool last, const S *in,
                       cuda_place *found)
{
    CUDA_ITEMS (i, s.n_lines * cut.parts) {
        const int64_t part = i / s.n_lines, line = i - part * s.n_lines, begin = part * cut.per_part,
                      end = begin + cut.per_part < s.n ? begin + cut.per_part : s.n;
        found[line * cut.parts + part] =
            best_of<S>(in + cuda_line_base(s, line, s.n), begin, end, 1, s.inner, least, last);
    }
}

/* A warp a line. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    arg_join_kernel(int64_t lines, int64_t parts, bool last, const cuda_place *found, int64_t *out)
{
    const int64_t warps = (int64_t)gridDim.x * (CUDA_BLOCK / 32);
    for (int64_t l = ((int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x) / 32; l < lines; l += warps) {
        cuda_place best = {0, -1};
        for (int64_t p = threadIdx.x % 32; p < parts; p += 32)
            best = cuda_better(best, found[l * parts + p], last);
        best = cuda_better_of_warp(best, last);
        if (threadIdx.x % 32 == 0)
            out[l] = best.at;
    }
}

template <typename S>
grt_status arg_in_parts(const grt_run *r, const arg_shape *sh, const S *in, bool least, bool last,
                        int64_t *out)
{
    const int64_t items = sh->lines.n_lines * sh->cut.parts;
    cuda_place *found = (cuda_place *)r->workspace;
    if (sh->lines.inner == 1)
        arg_parts_kernel<S><<<cuda_grid(items, 1), CUDA_BLOCK, 0, cuda_stream(r)>>>(sh->lines, sh->cut, least,
                                                                                    last, in, found);
    else
        arg_columns_kernel<S>
            <<<cuda_grid(items), CUDA_BLOCK, 0, cuda_stream(r)>>>(sh->lines, sh->cut, least, last, in, found);
    CUDA_LAUNCHED();
    arg_join_kernel<<<cuda_grid(sh->lines.n_lines, CUDA_BLOCK / 32), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        sh->lines.n_lines, sh->cut.parts, last, found, out);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S> grt_status arg(const grt_run *r)
{
    const arg_state *state = (const arg_state *)r->state;
    const arg_shape *sh = (const arg_shape *)r->shape;
    const cuda_lines s = sh->lines;
    const S *in = (const S *)r->in[0]->data;
    int64_t *out = (int64_t *)r->out[0]->data;
    if (sh->cut.parts > 1)
        return arg_in_parts<S>(r, sh, in, state->least, state->last, out);
    if (cuda_lines_by_warp(s))
        arg_warp_kernel<S><<<cuda_grid(s.n_lines, CUDA_BLOCK / 32), CUDA_BLOCK, 0, cuda_stream(r)>>>(
            s, state->least, state->last, in, out);
    else
        arg_thread_kernel<S>
            <<<cuda_grid(s.n_lines), CUDA_BLOCK, 0, cuda_stream(r)>>>(s, state->least, state->last, in, out);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_create_arg(const grt_kernel_node *node, void **out_state)
{
    arg_state *state;
    GRT_TRY(cuda_state(&state));
    state->axis = grt_attr_int(node->desc, "axis", 0);
    state->least = grt_op_is(node->desc, "", "ArgMin");
    state->last = grt_attr_int(node->desc, "select_last_index", 0) != 0;
    *out_state = state;
    return GRT_OK;
}

grt_status reshape_arg(grt_reshape *r)
{
    const grt_tensor *in = r->in[0];
    int64_t axis = in->rank ? grt_axis(((const arg_state *)r->state)->axis, in->rank) : 0;
    arg_shape *s;
    GRT_TRY(cuda_state(&s));
    cuda_lines_of(&s->lines, in, axis);
    s->cut = cuda_line_parts_of(s->lines);
    if (s->cut.parts > 1)
        r->workspace_bytes = (size_t)(s->lines.n_lines * s->cut.parts) * sizeof(cuda_place);
    if (s->lines.n == 0 && s->lines.n_lines > 0) {
        free(s);
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "axis %lld has size 0: there is no index to name", (long long)axis);
    }
    r->shape = s;
    return GRT_OK;
}

grt_status cuda_run_arg(const grt_run *r)
{
    if (((const arg_shape *)r->shape)->lines.n_lines <= 0)
        return GRT_OK;
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, arg, r)
}

grt_status create_hardmax(const grt_kernel_node *node, void **out_state)
{
    int64_t *axis;
    GRT_TRY(cuda_state(&axis));
    *axis = grt_attr_int(node->desc, "axis", -1);
    *out_state = axis;
    return GRT_OK;
}

grt_status reshape_hardmax(grt_reshape *r)
{
    const grt_tensor *in = r->in[0];
    arg_shape *s;
    GRT_TRY(cuda_state(&s));
    cuda_lines_of(&s->lines, in, in->rank ? grt_axis(*(const int64_t *)r->state, in->rank) : 0);
    s->cut = cuda_line_parts_of(s->lines);
    r->workspace_bytes =
        (size_t)s->lines.n_lines * ((size_t)s->cut.parts * sizeof(cuda_place) + sizeof(int64_t));
    r->shape = s;
    return GRT_OK;
}

/* The places of the greatest are behind what is found of pieces. */
template <typename S> grt_status hardmax(const grt_run *r)
{
    const arg_shape *sh = (const arg_shape *)r->shape;
    const cuda_lines s = sh->lines;
    int64_t *at = (int64_t *)((cuda_place *)r->workspace + s.n_lines * sh->cut.parts);
    S *out = (S *)r->out[0]->data;
    GRT_TRY(arg_in_parts<S>(r, sh, (const S *)r->in[0]->data, false, false, at));
    const S one = (S)1.0f, none = (S)0.0f;
    return cuda_each(r, s.n_lines * s.n, [=] __device__(int64_t i) {
        const cuda_divided of = cuda_divide(i, s.inner), k = cuda_divide(of.q, s.n);
        out[i] = at[k.q * s.inner + of.r] == k.r ? one : none;
    });
}

grt_status cuda_run_hardmax(const grt_run *r)
{
    const arg_shape *sh = (const arg_shape *)r->shape;
    if (sh->lines.n_lines <= 0 || sh->lines.n <= 0)
        return GRT_OK;
    CUDA_FOR_FLOATS(r->in[0]->dtype, T, return hardmax<T>(r));
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "ArgMax",
     .types = {GRT_SET_NUMBERS},
     .create = cuda_create_arg,
     .destroy = free,
     .reshape = reshape_arg,
     .release_shape = free,
     .run = cuda_run_arg},
    {.domain = "",
     .op = "ArgMin",
     .types = {GRT_SET_NUMBERS},
     .create = cuda_create_arg,
     .destroy = free,
     .reshape = reshape_arg,
     .release_shape = free,
     .run = cuda_run_arg},
    {.domain = "",
     .op = "Hardmax",
     .types = {GRT_SET_FLOATS},
     .create = create_hardmax,
     .destroy = free,
     .reshape = reshape_hardmax,
     .release_shape = free,
     .run = cuda_run_hardmax},
};

} // namespace
CUDA_KERNELS(arg, rows);
