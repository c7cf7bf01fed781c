/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on lines of elements along one axis: ArgMax, ArgMin, TopK, CumSum, CumProd. A warp or a block works on
 * a line where its elements are neighbours or lines are few, else a thread does. */
#include "backends/cuda/order.cuh"
#include "backends/cuda/number.cuh"
#include "backends/cuda/pointwise_eval.h"

namespace
{

/* Element i of line l: base(l) + i * inner. */
struct lines {
    int64_t n_lines, n, inner;
};

__device__ __forceinline__ int64_t line_base(const lines &s, int64_t line, int64_t n)
{
    int64_t outer = line / s.inner;
    return outer * n * s.inner + (line - outer * s.inner);
}

void plan_lines(lines *s, const grt_tensor *t, int64_t axis)
{
    s->n = t->rank ? t->dims[axis] : 1;
    s->inner = t->rank ? grt_dims_product(t->dims, (int32_t)axis + 1, t->rank) : 1;
    s->n_lines = (t->rank ? grt_dims_product(t->dims, 0, (int32_t)axis) : 1) * s->inner;
}

/* A warp per line pays if loads become contiguous or the device is filled. */
bool by_warp(const lines &s)
{
    return s.n > 16 && (s.inner == 1 || s.n_lines < 4096);
}

/* ---- order ----
 * Elements as unsigned keys in the same order; both zeros are one, every NaN is greater than all numbers. */

template <typename S> __device__ __forceinline__ uint64_t order_key(S x)
{
    typename pw_storage<S>::T v = pw_widen<S>(x);
    typedef decltype(v) T;
    if constexpr (std::is_floating_point<T>::value) {
        double d = (double)v;
        if (d != d)
            return UINT64_MAX;
        uint64_t bits = (uint64_t)__double_as_longlong(d == 0 ? 0.0 : d);
        return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
    } else if constexpr (std::is_signed<T>::value) {
        return (uint64_t)(int64_t)v ^ UINT64_C(1) << 63;
    } else {
        return (uint64_t)v;
    }
}

struct place {
    uint64_t key;
    int64_t at; /* -1: none */
};

/* The greater key; of equal ones the first, or the last. */
__device__ __forceinline__ place better(place a, place b, bool last)
{
    if (a.at < 0 || b.at < 0)
        return a.at < 0 ? b : a;
    if (a.key != b.key)
        return a.key > b.key ? a : b;
    return (a.at < b.at) != last ? a : b;
}

__device__ __forceinline__ place better_of_warp(place a, bool last)
{
    for (int lane = 16; lane; lane /= 2) {
        place b = {__shfl_xor_sync(0xffffffffu, (unsigned long long)a.key, lane),
                   (int64_t)__shfl_xor_sync(0xffffffffu, (long long)a.at, lane)};
        a = better(a, b, last);
    }
    return a;
}

/* ---- ArgMax, ArgMin ---- */

struct arg_state {
    int64_t axis;
    bool least, last;
};

/* NaN counts as greatest and as least. */
template <typename S>
__device__ __forceinline__ place best_of(const S *in, int64_t begin, int64_t n, int64_t step, int64_t inner,
                                         bool least, bool last)
{
    place best = {0, -1};
    for (int64_t i = begin; i < n; i += step) {
        uint64_t key = order_key<S>(in[i * inner]);
        bool odd = std::is_floating_point<typename pw_storage<S>::T>::value && key == UINT64_MAX;
        best = better(best, {least && !odd ? ~key : key, i}, last);
    }
    return best;
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    arg_thread_kernel(lines s, bool least, bool last, const S *in, int64_t *out)
{
    CUDA_ITEMS (l, s.n_lines)
        out[l] = best_of<S>(in + line_base(s, l, s.n), 0, s.n, 1, s.inner, least, last).at;
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    arg_warp_kernel(lines s, bool least, bool last, const S *in, int64_t *out)
{
    int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32);
    for (int64_t l = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; l < s.n_lines; l += warps) {
        place best = best_of<S>(in + line_base(s, l, s.n), threadIdx.x % 32, s.n, 32, s.inner, least, last);
        best = better_of_warp(best, last);
        if (threadIdx.x % 32 == 0)
            out[l] = best.at;
    }
}

template <typename S> grt_status arg(const grt_run *r)
{
    const arg_state *state = (const arg_state *)r->state;
    lines s = *(const lines *)r->shape;
    const S *in = (const S *)r->in[0]->data;
    int64_t *out = (int64_t *)r->out[0]->data;
    if (by_warp(s))
        arg_warp_kernel<S><<<cuda_grid(s.n_lines, CUDA_BLOCK / 32), CUDA_BLOCK, 0, cuda_stream(r)>>>(
            s, state->least, state->last, in, out);
    else
        arg_thread_kernel<S>
            <<<cuda_grid(s.n_lines), CUDA_BLOCK, 0, cuda_stream(r)>>>(s, state->least, state->last, in, out);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status create_arg(const grt_kernel_node *node, void **out_state)
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
    lines *s;
    GRT_TRY(cuda_state(&s));
    plan_lines(s, in, axis);
    if (s->n == 0 && s->n_lines > 0) {
        free(s);
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "axis %lld has size 0: there is no index to name", (long long)axis);
    }
    r->shape = s;
    return GRT_OK;
}

grt_status run_arg(const grt_run *r)
{
    if (((const lines *)r->shape)->n_lines <= 0)
        return GRT_OK;
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, arg, r)
}

/* ---- TopK ----
 * A block per line finds the best element k times, each time among those that come after the one before.
 * Where k is large, or long lines are too few to fill the device so, lines are sorted. */

struct top_shape {
    lines in;
    int64_t k;
    bool sorts;
};

struct top_state {
    int64_t axis;
    bool least;
};

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    top_kernel(top_shape s, bool least, const S *in, S *values, int64_t *places)
{
    __shared__ place shared[CUDA_BLOCK / 32];
    for (int64_t l = blockIdx.x; l < s.in.n_lines; l += gridDim.x) {
        const S *line = in + line_base(s.in, l, s.in.n);
        int64_t to = line_base(s.in, l, s.k);
        place before = {0, -1};
        for (int64_t j = 0; j < s.k; j++) {
            place best = {0, -1};
            for (int64_t i = threadIdx.x; i < s.in.n; i += blockDim.x) {
                uint64_t key = order_key<S>(line[i * s.in.inner]);
                key = least ? ~key : key;
                bool left = before.at < 0 || key < before.key || (key == before.key && i > before.at);
                if (left)
                    best = better(best, {key, i}, false);
            }
            best = better_of_warp(best, false);
            __syncthreads();
            if (threadIdx.x % 32 == 0)
                shared[threadIdx.x / 32] = best;
            __syncthreads();
            best = shared[0];
            for (int w = 1; w < (int)blockDim.x / 32; w++)
                best = better(best, shared[w], false);
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

/* Keys of the lines one after another; the best come first when they are sorted. */
template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK) key_kernel(lines s, bool least, const S *in, cuda_keyed *out)
{
    CUDA_ITEMS (i, s.n_lines * s.n) {
        int64_t line = i / s.n, at = i - line * s.n;
        uint64_t key = order_key<S>(in[line_base(s, line, s.n) + at * s.inner]);
        out[i] = {least ? key : ~key, at};
    }
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    take_kernel(top_shape s, const cuda_keyed *sorted, const S *in, S *values, int64_t *places)
{
    CUDA_ITEMS (i, s.in.n_lines * s.k) {
        int64_t line = i / s.k, j = i - line * s.k, at = sorted[line * s.in.n + j].at,
                to = line_base(s.in, line, s.k) + j * s.in.inner;
        if (values)
            values[to] = in[line_base(s.in, line, s.in.n) + at * s.in.inner];
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

template <typename S> grt_status top(const grt_run *r)
{
    const top_shape *s = (const top_shape *)r->shape;
    if (s->sorts)
        return top_by_sorting<S>(r, s, ((const top_state *)r->state)->least, (const S *)r->in[0]->data,
                                 r->out[0] ? (S *)r->out[0]->data : NULL,
                                 r->n_out > 1 && r->out[1] ? (int64_t *)r->out[1]->data : NULL);
    unsigned block = s->in.n <= 32 ? 32 : s->in.n <= 128 ? 128 : CUDA_BLOCK;
    top_kernel<S><<<cuda_grid(s->in.n_lines, 1), block, 0, cuda_stream(r)>>>(
        *s, ((const top_state *)r->state)->least, (const S *)r->in[0]->data,
        r->out[0] ? (S *)r->out[0]->data : NULL,
        r->n_out > 1 && r->out[1] ? (int64_t *)r->out[1]->data : NULL);
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
    plan_lines(&s->in, in, axis);
    s->k = out->dims[axis];
    s->sorts = s->k > 128 || (s->k > 8 && s->in.n > 4096 && s->in.n_lines < 64);
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

/* ---- CumSum, CumProd ---- */

struct cumulate_state {
    bool product, exclusive, reverse;
};

template <typename A> __device__ __forceinline__ A cumulated(bool product, A a, A b)
{
    return product ? pw_vocabulary<A>::mul(a, b) : pw_vocabulary<A>::add(a, b);
}

template <typename S, typename A>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cumulate_thread_kernel(lines s, cumulate_state how, const S *in, S *out)
{
    CUDA_ITEMS (l, s.n_lines) {
        int64_t base = line_base(s, l, s.n);
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
    cumulate_warp_kernel(lines s, cumulate_state how, const S *in, S *out)
{
    int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32);
    int lane = threadIdx.x % 32;
    A none = how.product ? A(1) : A(0);
    for (int64_t l = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; l < s.n_lines; l += warps) {
        int64_t base = line_base(s, l, s.n);
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

template <typename S> grt_status cumulate(const grt_run *r)
{
    typedef typename std::conditional<std::is_floating_point<typename pw_storage<S>::T>::value, double,
                                      uint64_t>::type A;
    const cumulate_state *how = (const cumulate_state *)r->state;
    lines s = *(const lines *)r->shape;
    const S *in = (const S *)r->in[0]->data;
    S *out = (S *)r->out[0]->data;
    if (by_warp(s))
        cumulate_warp_kernel<S, A>
            <<<cuda_grid(s.n_lines, CUDA_BLOCK / 32), CUDA_BLOCK, 0, cuda_stream(r)>>>(s, *how, in, out);
    else
        cumulate_thread_kernel<S, A>
            <<<cuda_grid(s.n_lines), CUDA_BLOCK, 0, cuda_stream(r)>>>(s, *how, in, out);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status create_cumulate(const grt_kernel_node *node, void **out_state)
{
    cumulate_state *state;
    GRT_TRY(cuda_state(&state));
    state->product = grt_op_is(node->desc, "", "CumProd");
    state->exclusive = grt_attr_int(node->desc, "exclusive", 0) != 0;
    state->reverse = grt_attr_int(node->desc, "reverse", 0) != 0;
    *out_state = state;
    return GRT_OK;
}

grt_status reshape_cumulate(grt_reshape *r)
{
    const grt_tensor *in = r->in[0];
    if (!r->in[1]->data)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "input axis must be known before the run");
    int64_t given = cuda_host_index(r->in[1], 0), axis = grt_axis(given, in->rank);
    if (axis < 0)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "axis is %lld; for rank %d it must lie in [%d, %d]", (long long)given, in->rank,
                           -in->rank, in->rank - 1);
    lines *s;
    GRT_TRY(cuda_state(&s));
    plan_lines(s, in, axis);
    r->shape = s;
    return GRT_OK;
}

grt_status run_cumulate(const grt_run *r)
{
    const lines *s = (const lines *)r->shape;
    if (s->n_lines <= 0 || s->n <= 0)
        return GRT_OK;
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, cumulate, r)
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "ArgMax",
     .types = {GRT_SET_NUMBERS},
     .create = create_arg,
     .destroy = free,
     .reshape = reshape_arg,
     .release_shape = free,
     .run = run_arg},
    {.domain = "",
     .op = "ArgMin",
     .types = {GRT_SET_NUMBERS},
     .create = create_arg,
     .destroy = free,
     .reshape = reshape_arg,
     .release_shape = free,
     .run = run_arg},
    {.domain = "",
     .op = "TopK",
     .types = {GRT_SET_NUMBERS, GRT_BIT(INT64)},
     .create = create_top,
     .destroy = free,
     .reshape = reshape_top,
     .release_shape = free,
     .run = run_top},
    {.domain = "",
     .op = "CumSum",
     .types = {GRT_SET_NUMBERS, CUDA_INDEX},
     .flags = GRT_KERNEL_IN_PLACE(0) | GRT_KERNEL_READS(1),
     .create = create_cumulate,
     .destroy = free,
     .reshape = reshape_cumulate,
     .release_shape = free,
     .run = run_cumulate},
    {.domain = "",
     .op = "CumProd",
     .types = {GRT_SET_NUMBERS, CUDA_INDEX},
     .flags = GRT_KERNEL_IN_PLACE(0) | GRT_KERNEL_READS(1),
     .create = create_cumulate,
     .destroy = free,
     .reshape = reshape_cumulate,
     .release_shape = free,
     .run = run_cumulate},
};

} // namespace
CUDA_KERNELS(line, rows);
