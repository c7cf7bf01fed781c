/* SPDX-License-Identifier: Apache-2.0 */
/* TopK: by warps, by selecting words in chunks or places in pieces, by a block a line, or by sorting. */
#include "backends/cuda/top_places.cuh"
#include "backends/cuda/top_words.cuh"

namespace
{

/* ---- TopK ----
 * Numbers of 32 bits or fewer: lines of up to 1,024 of which few are wanted lie in a warp's registers
 * (warp_top_kernel), of others up to 2,048 are selected by chunks (top_words.cuh). Of long lines of 64-bit
 * numbers up to 128 are selected by pieces (top_places.cuh). Else a block per line
 * finds the best element k times, each time among those that come after the one before. Where k is large, or
 * long lines are too few to fill the device so, lines are sorted. */

enum { WARP_LINE = 1024, WARP_FEW = 16, WARPS = CUDA_BLOCK / 32 };

struct top_shape {
    cuda_lines in;
    int64_t k;
    bool sorts, selects, pieces;
};

struct top_state {
    int64_t axis;
    bool least;
};

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    top_kernel(top_shape s, bool least, const S *in, S *values, int64_t *places)
{
    for (int64_t l = blockIdx.x; l < s.in.n_lines; l += gridDim.x) {
        const S *line = in + cuda_line_base(s.in, l, s.in.n);
        int64_t to = cuda_line_base(s.in, l, s.k);
        cuda_place before = {0, -1};
        for (int64_t j = 0; j < s.k; j++) {
            cuda_place best = {0, -1};
            for (int64_t i = threadIdx.x; i < s.in.n; i += blockDim.x) {
                uint64_t key = cuda_order_key<S>(line[i * s.in.inner]);
                key = least ? ~key : key;
                bool left = before.at < 0 || key < before.key || (key == before.key && i > before.at);
                if (left)
                    best = cuda_better(best, {key, i}, false);
            }
            best = top_of_block(best);
            before = best;
            if (threadIdx.x == 0) {
                if (values)
                    values[to + j * s.in.inner] = line[best.at * s.in.inner];
                if (places)
                    places[to + j * s.in.inner] = best.at;
            }
        }
    }
}

__device__ __forceinline__ uint64_t greatest_of_warp(uint64_t a)
{
    for (int lane = 16; lane; lane /= 2) {
        const uint64_t b = __shfl_xor_sync(0xffffffffu, (unsigned long long)a, lane);
        a = b > a ? b : a;
    }
    return a;
}

/* A warp a line, E numbers a lane. Each lane knows the best that it has left. */
template <typename S, int E>
__global__ void __launch_bounds__(CUDA_BLOCK)
    warp_top_kernel(top_shape s, bool least, const S *in, S *values, int64_t *places)
{
    const int lane = threadIdx.x % 32, n = (int)s.in.n;
    for (int64_t l = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; l < s.in.n_lines;
         l += (int64_t)gridDim.x * WARPS) {
        const S *line = in + cuda_line_base(s.in, l, n);
        const int64_t to = cuda_line_base(s.in, l, s.k);
        uint64_t word[E], own = 0;
#pragma unroll
        for (int e = 0; e < E; e++) {
            const int at = e * 32 + lane;
            word[e] = at < n ? top_word<S>(line[at * s.in.inner], least, at) : 0;
            own = word[e] > own ? word[e] : own;
        }
        for (int64_t j = 0; j < s.k; j++) {
            const uint64_t best = greatest_of_warp(own);
            const int at = (int)~(uint32_t)best;
            if (lane == 0 && values)
                values[to + j * s.in.inner] = line[at * s.in.inner];
            if (lane == 0 && places)
                places[to + j * s.in.inner] = at;
            if (own == best) {
                own = 0;
#pragma unroll
                for (int e = 0; e < E; e++) {
                    word[e] = word[e] == best ? 0 : word[e];
                    own = word[e] > own ? word[e] : own;
                }
            }
        }
    }
}

/* Keys of the lines one after another; the best come first when they are sorted. */
template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    key_kernel(cuda_lines s, bool least, const S *in, cuda_keyed *out)
{
    CUDA_ITEMS (i, s.n_lines * s.n) {
        int64_t line = i / s.n, at = i - line * s.n;
        uint64_t key = cuda_order_key<S>(in[cuda_line_base(s, line, s.n) + at * s.inner]);
        out[i] = {least ? key : ~key, at};
    }
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    take_kernel(top_shape s, const cuda_keyed *sorted, const S *in, S *values, int64_t *places)
{
    CUDA_ITEMS (i, s.in.n_lines * s.k) {
        int64_t line = i / s.k, j = i - line * s.k, at = sorted[line * s.in.n + j].at,
                to = cuda_line_base(s.in, line, s.k) + j * s.in.inner;
        if (values)
            values[to] = in[cuda_line_base(s.in, line, s.in.n) + at * s.in.inner];
        if (places)
            places[to] = at;
    }
}

template <typename S>
grt_status top_by_sorting(const grt_run *r, const top_shape *s, bool least, const S *in, S *values,
                          int64_t *places)
{
    const int64_t total = s->in.n_lines * s->in.n;
    cuda_keyed *v = (cuda_keyed *)r->workspace, *spare = v + total;
    key_kernel<S><<<cuda_grid(total), CUDA_BLOCK, 0, cuda_stream(r)>>>(s->in, least, in, v);
    CUDA_LAUNCHED();
    GRT_TRY(cuda_sort(r, s->in.n_lines, s->in.n, &v, &spare, cuda_keyed_less()));
    take_kernel<S>
        <<<cuda_grid(s->in.n_lines * s->k), CUDA_BLOCK, 0, cuda_stream(r)>>>(*s, v, in, values, places);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S, int E>
void launch_warps(const grt_run *r, const top_shape *s, bool least, const S *in, S *values, int64_t *places)
{
    warp_top_kernel<S, E>
        <<<cuda_grid(s->in.n_lines, WARPS), CUDA_BLOCK, 0, cuda_stream(r)>>>(*s, least, in, values, places);
}

template <typename S>
grt_status top_by_warps(const grt_run *r, const top_shape *s, bool least, const S *in, S *values,
                        int64_t *places)
{
    if (s->in.n <= 128)
        launch_warps<S, 4>(r, s, least, in, values, places);
    else if (s->in.n <= 512)
        launch_warps<S, 16>(r, s, least, in, values, places);
    else
        launch_warps<S, WARP_LINE / 32>(r, s, least, in, values, places);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S> grt_status top(const grt_run *r)
{
    const top_shape *s = (const top_shape *)r->shape;
    const bool least = ((const top_state *)r->state)->least;
    const S *in = (const S *)r->in[0]->data;
    S *values = r->out[0] ? (S *)r->out[0]->data : NULL;
    int64_t *places = r->n_out > 1 && r->out[1] ? (int64_t *)r->out[1]->data : NULL;
    if constexpr (sizeof(S) <= sizeof(uint32_t)) {
        if (s->selects)
            return top_by_words<S>(r, s->in, (int)s->k, least, in, values, places);
        if (s->in.n <= WARP_LINE && !s->sorts)
            return top_by_warps<S>(r, s, least, in, values, places);
    }
    if constexpr (sizeof(S) == sizeof(uint64_t))
        if (s->pieces)
            return top_by_places<S>(r, s->in, (int)s->k, least, in, values, places);
    if (s->sorts)
        return top_by_sorting<S>(r, s, least, in, values, places);
    unsigned block = s->in.n <= 32 ? 32 : s->in.n <= 128 ? 128 : CUDA_BLOCK;
    top_kernel<S><<<cuda_grid(s->in.n_lines, 1), block, 0, cuda_stream(r)>>>(*s, least, in, values, places);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status create_top(const grt_kernel_node *node, void **out_state)
{
    top_state *state;
    GRT_TRY(cuda_state(&state));
    state->axis = grt_attr_int(node->desc, "axis", -1);
    state->least = grt_attr_int(node->desc, "largest", 1) == 0;
    *out_state = state;
    return GRT_OK;
}

grt_status reshape_top(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *out = r->out[0] ? r->out[0] : r->n_out > 1 ? r->out[1] : NULL;
    top_shape *s;
    GRT_TRY(cuda_state(&s));
    r->shape = s;
    if (!out || in->rank == 0)
        return GRT_OK;
    int64_t axis = grt_axis(((const top_state *)r->state)->axis, in->rank);
    cuda_lines_of(&s->in, in, axis);
    s->k = out->dims[axis];
    s->selects = grt_dtype_size(in->dtype) <= sizeof(uint32_t) && s->k > 0 && s->k <= TOP_BLOCK_MOST &&
                 s->in.n < INT32_MAX && (s->in.n > WARP_LINE || s->k > WARP_FEW);
    if (s->selects)
        r->workspace_bytes = (size_t)top_room(s->in, (int)s->k) * sizeof(uint64_t);
    s->pieces = grt_dtype_size(in->dtype) == sizeof(uint64_t) && s->k > 0 && s->k <= PLACES_MOST &&
                s->in.n > PLACES_PIECE;
    if (s->pieces)
        r->workspace_bytes = (size_t)top_places_room(s->in, (int)s->k) * sizeof(cuda_place);
    s->sorts =
        !s->selects && !s->pieces && (s->k > 128 || (s->k > 8 && s->in.n > 4096 && s->in.n_lines < 64));
    if (s->sorts)
        r->workspace_bytes = 2 * (size_t)(s->in.n_lines * s->in.n) * sizeof(cuda_keyed);
    if (s->k <= s->in.n)
        return GRT_OK;
    r->shape = NULL;
    free(s);
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "K is %lld; axis %lld has size %lld",
                       (long long)out->dims[axis], (long long)axis, (long long)in->dims[axis]);
}

grt_status run_top(const grt_run *r)
{
    const top_shape *s = (const top_shape *)r->shape;
    if (s->in.n_lines <= 0 || s->k <= 0)
        return GRT_OK;
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, top, r)
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "TopK",
     .types = {GRT_SET_NUMBERS, GRT_BIT(INT64)},
     .create = create_top,
     .destroy = free,
     .reshape = reshape_top,
     .release_shape = free,
     .run = run_top},
};

} // namespace
CUDA_KERNELS(top_k, rows);
