/* SPDX-License-Identifier: Apache-2.0 */
/* ScatterElements, ScatterND, TensorScatter, graphrt::WriteSlice. */
#include "backends/cuda/copy.h"
#include "backends/cuda/indexed.cuh"
#include "backends/cuda/number.cuh"
#include "backends/cuda/order.cuh"
#include "backends/cuda/overlap_device.cuh"
#include "backends/cuda/pointwise_eval.h"
#include "backends/shared/slice.h"

namespace
{

/* ---- scattering ----
 * Without a reduction, every update is written by its own thread (ONNX wants no index twice then). With one,
 * the updates that may meet are combined by one thread in order: deterministic. Where such threads would be
 * few with much to do each, updates are sorted by what they go to: then a thread has those of one element. */

enum reduction { TAKE, ADD, MUL, MAX, MIN };

struct scatter_state {
    int64_t axis; /* first: cuda_elements_reshape reads it */
    reduction how;
};

grt_status cuda_create_scatter(const grt_kernel_node *node, void **out_state)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *name = grt_attr_string(node->desc, "reduction", "none");
    scatter_state *state;
    GRT_TRY(cuda_state(&state));
    state->axis = grt_attr_int(node->desc, "axis", 0);
    for (int k = 0; k < 5; k++)
        if (!strcmp(name, names[k]))
            state->how = (reduction)k;
    *out_state = state;
    return GRT_OK;
}

bool cuda_supports_scatter(const grt_kernel_node *node, grt_text *why)
{
    bool number = grt_dtype_in(node->in[0].dtype, GRT_SET_NUMBERS | GRT_BIT(BOOL));
    if (number || !strcmp(grt_attr_string(node->desc, "reduction", "none"), "none"))
        return true;
    if (why)
        grt_text_add(why, "reductions are for numbers and bools, not %s", grt_dtype_name(node->in[0].dtype));
    return false;
}

grt_status cuda_start_output(const grt_run *r)
{
    size_t bytes = grt_tensor_bytes(r->in[0]);
    if (r->out[0]->data != r->in[0]->data && bytes)
        CUDA_TRY(cudaMemcpyAsync(r->out[0]->data, r->in[0]->data, bytes, cudaMemcpyDeviceToDevice,
                                 cuda_stream(r)));
    return GRT_OK;
}

template <typename S>
__device__ __forceinline__ S cuda_scatter_combine(reduction how, bool truth, S to, S from)
{
    typedef typename pw_storage<S>::T T;
    T a = pw_widen<S>(to), b = pw_widen<S>(from);
    switch (how) {
    case ADD:
        a = pw_vocabulary<T>::add(a, b);
        break;
    case MUL:
        a = pw_vocabulary<T>::mul(a, b);
        break;
    case MAX:
        return b > a || b != b ? from : to;
    case MIN:
        return b < a || b != b ? from : to;
    default:
        return from;
    }
    return pw_narrow<S>(truth ? (T)(a != T(0)) : a);
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    put_kernel(const __grid_constant__ cuda_elements s, cuda_indexed by, T *dst, const T *updates)
{
    CUDA_ITEMS (i, s.total)
        dst[cuda_element_base(s, i) + by.at(i, s.size) * s.stride] = updates[i];
}

template <typename T>
grt_status cuda_scatter_put(const cuda_elements *s, cuda_indexed by, void *dst, const void *updates,
                            cudaStream_t stream)
{
    put_kernel<T><<<cuda_grid(s->total), CUDA_BLOCK, 0, stream>>>(*s, by, (T *)dst, (const T *)updates);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* One thread per line of the indices along the axis: `n` long, its elements `step` apart. */
template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    put_lines_kernel(const __grid_constant__ cuda_elements s, reduction how, bool truth, cuda_indexed by,
                     S *dst, const S *updates)
{
    int64_t n = s.dims[s.axis], step = 1;
    for (int32_t k = s.rank - 1; k > s.axis; k--)
        step *= s.dims[k];
    CUDA_ITEMS (line, s.total / n) {
        cuda_divided at = cuda_divide(line, step);
        int64_t first = at.q * n * step + at.r, base = cuda_element_base(s, first);
        for (int64_t j = 0; j < n; j++) {
            int64_t i = first + j * step;
            S *to = dst + base + by.at(i, s.size) * s.stride;
            *to = cuda_scatter_combine<S>(how, truth, *to, updates[i]);
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    put_nd_kernel(const __grid_constant__ cuda_tuples s, cuda_indexed by, T *dst, const T *updates)
{
    CUDA_ITEMS (i, s.n * s.inner) {
        cuda_divided at = cuda_divide(i, s.inner);
        dst[cuda_tuple_offset(s, by, at.q) + at.r] = updates[i];
    }
}

template <typename T>
grt_status put_nd(const cuda_tuples *s, cuda_indexed by, void *dst, const void *updates, cudaStream_t stream)
{
    put_nd_kernel<T>
        <<<cuda_grid(s->n * s->inner), CUDA_BLOCK, 0, stream>>>(*s, by, (T *)dst, (const T *)updates);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* One thread per element of a run; it meets all index tuples. */
template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    put_runs_kernel(const __grid_constant__ cuda_tuples s, reduction how, bool truth, cuda_indexed by, S *dst,
                    const S *updates)
{
    CUDA_ITEMS (i, s.inner)
        for (int64_t k = 0; k < s.n; k++) {
            S *to = dst + cuda_tuple_offset(s, by, k) + i;
            *to = cuda_scatter_combine<S>(how, truth, *to, updates[k * s.inner + i]);
        }
}

/* Updates by what they go to, in order: lines of n, sorted. The first of equal ones combines them all.
 * `runs`: elements that each update has. */
struct sorted_updates {
    int64_t lines, n, runs;
    const cuda_keyed *sorted;
};

/* Calls one(to, line, which, run) for an element's updates in order, `to` the key. */
template <typename F>
__device__ __forceinline__ void each_sorted_update(const sorted_updates &u, int64_t i, const F &one)
{
    const cuda_divided at = cuda_divide(i, u.runs), line = cuda_divide(at.q, u.n);
    const cuda_keyed *sorted = u.sorted + line.q * u.n;
    int64_t k = line.r;
    const uint64_t key = sorted[k].key;
    if (k > 0 && sorted[k - 1].key == key)
        return;
    for (; k < u.n && sorted[k].key == key; k++)
        one((int64_t)key, line.q, sorted[k].at, at.r);
}

/* Where element j of line `line` of the indices is; the lines are those along the axis. */
__device__ __forceinline__ int64_t scatter_line_at(int64_t n, int64_t step, int64_t line, int64_t j)
{
    const cuda_divided at = cuda_divide(line, step);
    return at.q * n * step + at.r + j * step;
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    put_sorted_lines_kernel(const __grid_constant__ cuda_elements s, int64_t step, sorted_updates u,
                            reduction how, bool truth, S *dst, const S *updates)
{
    CUDA_ITEMS (i, u.lines * u.n) {
        S sum = {};
        int64_t to = -1;
        each_sorted_update(u, i, [&](int64_t key, int64_t line, int64_t j, int64_t) {
            const int64_t from = scatter_line_at(u.n, step, line, j);
            if (to < 0) {
                to = cuda_element_base(s, from) + key * s.stride;
                sum = dst[to];
            }
            sum = cuda_scatter_combine<S>(how, truth, sum, updates[from]);
        });
        if (to >= 0)
            dst[to] = sum;
    }
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    put_sorted_runs_kernel(sorted_updates u, reduction how, bool truth, S *dst, const S *updates)
{
    CUDA_ITEMS (i, u.n * u.runs) {
        S sum = {};
        int64_t to = -1;
        each_sorted_update(u, i, [&](int64_t key, int64_t, int64_t k, int64_t run) {
            if (to < 0) {
                to = key + run;
                sum = dst[to];
            }
            sum = cuda_scatter_combine<S>(how, truth, sum, updates[k * u.runs + run]);
        });
        if (to >= 0)
            dst[to] = sum;
    }
}

/* Worth sorting: threads that would have `each` updates to combine are few. */
bool scatter_sorts(reduction how, int64_t threads, int64_t each)
{
    enum { MUCH = 64, FEW = 8192 };
    return how != TAKE && each > MUCH && threads < FEW;
}

/* Of the indices' lines along the axis. */
int64_t scatter_step(const cuda_elements *s)
{
    return grt_dims_product(s->dims, s->axis + 1, s->rank);
}

bool scatter_sorts_elements(const void *state, const cuda_elements *s)
{
    return s->total > 0 &&
           scatter_sorts(((const scatter_state *)state)->how, s->total / s->dims[s->axis], s->dims[s->axis]);
}

bool scatter_sorts_tuples(const void *state, const cuda_tuples *s)
{
    return scatter_sorts(((const scatter_state *)state)->how, s->inner, s->n);
}

template <typename S> grt_status reduce_elements(const grt_run *r)
{
    cuda_indexed by;
    const cuda_elements *s = (const cuda_elements *)r->shape;
    const scatter_state *state = (const scatter_state *)r->state;
    const bool truth = r->in[0]->dtype == GRT_DTYPE_BOOL;
    const int64_t n = s->dims[s->axis], lines = s->total / n, step = scatter_step(s);
    S *dst = (S *)r->out[0]->data;
    const S *updates = (const S *)r->in[2]->data;
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    if (!scatter_sorts_elements(state, s)) {
        put_lines_kernel<S>
            <<<cuda_grid(lines), CUDA_BLOCK, 0, cuda_stream(r)>>>(*s, state->how, truth, by, dst, updates);
        CUDA_LAUNCHED();
        return GRT_OK;
    }
    cuda_keyed *v = (cuda_keyed *)r->workspace, *spare = v + s->total, *keys = v;
    const int64_t size = s->size;
    GRT_TRY(cuda_each(r, s->total, [=] __device__(int64_t i) {
        const cuda_divided at = cuda_divide(i, n);
        keys[i] = {(uint64_t)by.at(scatter_line_at(n, step, at.q, at.r), size), at.r};
    }));
    GRT_TRY(cuda_sort(r, lines, n, &v, &spare, cuda_keyed_less()));
    put_sorted_lines_kernel<S><<<cuda_grid(s->total), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        *s, step, sorted_updates{lines, n, 1, v}, state->how, truth, dst, updates);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S> grt_status reduce_tuples(const grt_run *r)
{
    cuda_indexed by;
    const cuda_tuples s = *(const cuda_tuples *)r->shape;
    const scatter_state *state = (const scatter_state *)r->state;
    const bool truth = r->in[0]->dtype == GRT_DTYPE_BOOL;
    S *dst = (S *)r->out[0]->data;
    const S *updates = (const S *)r->in[2]->data;
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    if (!scatter_sorts_tuples(state, &s)) {
        put_runs_kernel<S>
            <<<cuda_grid(s.inner), CUDA_BLOCK, 0, cuda_stream(r)>>>(s, state->how, truth, by, dst, updates);
        CUDA_LAUNCHED();
        return GRT_OK;
    }
    cuda_keyed *v = (cuda_keyed *)r->workspace, *spare = v + s.n, *keys = v;
    GRT_TRY(cuda_each(r, s.n, [=] __device__(int64_t k) {
        keys[k] = {(uint64_t)cuda_tuple_offset(s, by, k), k};
    }));
    GRT_TRY(cuda_sort(r, 1, s.n, &v, &spare, cuda_keyed_less()));
    put_sorted_runs_kernel<S><<<cuda_grid(s.n * s.inner), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        sorted_updates{1, s.n, s.inner, v}, state->how, truth, dst, updates);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status reshape_scatter_elements(grt_reshape *r)
{
    GRT_TRY(cuda_elements_reshape(r));
    const cuda_elements *s = (const cuda_elements *)r->shape;
    if (scatter_sorts_elements(r->state, s))
        r->workspace_bytes = 2 * (size_t)s->total * sizeof(cuda_keyed);
    return GRT_OK;
}

grt_status cuda_run_scatter_elements(const grt_run *r)
{
    cuda_indexed by;
    const cuda_elements *s = (const cuda_elements *)r->shape;
    GRT_TRY(cuda_start_output(r));
    if (s->total <= 0)
        return GRT_OK;
    if (s->size <= 0)
        return cuda_no_elements(r);
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    if (((const scatter_state *)r->state)->how == TAKE)
        return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), cuda_scatter_put, s, by, r->out[0]->data,
                            r->in[2]->data, cuda_stream(r));
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, reduce_elements, r)
}

grt_status reshape_scatter_nd(grt_reshape *r)
{
    GRT_TRY(cuda_tuples_reshape(r, 0));
    const cuda_tuples *s = (const cuda_tuples *)r->shape;
    if (scatter_sorts_tuples(r->state, s))
        r->workspace_bytes = 2 * (size_t)s->n * sizeof(cuda_keyed);
    return GRT_OK;
}

grt_status cuda_run_scatter_nd(const grt_run *r)
{
    cuda_indexed by;
    const cuda_tuples *s = (const cuda_tuples *)r->shape;
    GRT_TRY(cuda_start_output(r));
    if (s->n * s->inner <= 0)
        return GRT_OK;
    if (cuda_tuples_empty(s))
        return cuda_no_elements(r);
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    if (((const scatter_state *)r->state)->how == TAKE)
        return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), put_nd, s, by, r->out[0]->data, r->in[2]->data,
                            cuda_stream(r));
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, reduce_tuples, r)
}

struct cache_state {
    int64_t axis;
    bool circular;
};

struct cache_shape {
    int64_t total, n, length, heads,
        inner; /* n entries of `inner` elements go into `length`, for each of `heads` in a batch */
};

grt_status create_tensor_scatter(const grt_kernel_node *node, void **out_state)
{
    cache_state *state;
    GRT_TRY(cuda_state(&state));
    state->axis = grt_attr_int(node->desc, "axis", -2);
    state->circular = !strcmp(grt_attr_string(node->desc, "mode", "linear"), "circular");
    *out_state = state;
    return GRT_OK;
}

grt_status reshape_tensor_scatter(grt_reshape *r)
{
    const grt_tensor *cache = r->in[0], *update = r->in[1];
    const int32_t axis = (int32_t)grt_axis(((const cache_state *)r->state)->axis, cache->rank);
    if (update->dims[axis] > cache->dims[axis])
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "%lld entries do not fit into an axis of size %lld", (long long)update->dims[axis],
                           (long long)cache->dims[axis]);
    cache_shape *s;
    GRT_TRY(cuda_state(&s));
    *s = {grt_tensor_elements(update), update->dims[axis], cache->dims[axis],
          grt_dims_product(cache->dims, 1, axis), grt_dims_product(cache->dims, axis + 1, cache->rank)};
    r->shape = s;
    return GRT_OK;
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    put_entries_kernel(cache_shape s, bool circular, cuda_indexed starts, T *dst, const T *updates)
{
    overlap_let_next_begin();
    overlap_wait();
    CUDA_ITEMS (i, s.total) {
        const cuda_divided entry = cuda_divide(i, s.inner), line = cuda_divide(entry.q, s.n);
        const int64_t batch = line.q / s.heads, last = circular ? INT64_MAX : s.length - s.n;
        int64_t start = starts.data ? starts[batch] : 0;
        if (!cuda_check(starts.watch, start, batch, 0, last))
            start = start < 0 ? 0 : last;
        start = circular ? start % s.length : start;
        int64_t to = start + line.r;
        to -= to >= s.length ? s.length : 0;
        dst[(line.q * s.length + to) * s.inner + entry.r] = updates[i];
    }
}

template <typename T> grt_status put_entries(const grt_run *r, const cache_shape *s)
{
    cuda_indexed starts;
    GRT_TRY(cuda_indexed_begin(r, 2, "write_indices", &starts));
    CUDA_TRY(overlap_launch(overlap_is_possible(), put_entries_kernel<T>, cuda_grid(s->total), CUDA_BLOCK, 0,
                            cuda_stream(r), *s, ((const cache_state *)r->state)->circular, starts,
                            (T *)r->out[0]->data, (const T *)r->in[1]->data));
    return GRT_OK;
}

grt_status cuda_run_tensor_scatter(const grt_run *r)
{
    const cache_shape *s = (const cache_shape *)r->shape;
    GRT_TRY(cuda_start_output(r));
    if (s->total <= 0)
        return GRT_OK;
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), put_entries, r, s);
}

grt_status reshape_write_slice(grt_reshape *r)
{
    const grt_tensor *updates = r->in[1], *out = r->out[0];
    int64_t from[GRT_MAX_RANK];
    grt_slice slice;
    cuda_copy *copy;
    GRT_TRY(grt_write_slice_plan(r->desc, out, updates, &slice));
    GRT_TRY(cuda_state(&copy));
    grt_dims_strides(updates->dims, updates->rank, from);
    cuda_copy_begin(copy, out->dtype);
    copy->to_offset = slice.offset;
    for (int32_t k = 0; k < out->rank; k++)
        cuda_copy_axis(copy, updates->dims[k], slice.steps[k], from[k]);
    cuda_copy_end(copy);
    r->shape = copy;
    return GRT_OK;
}

grt_status cuda_run_write_slice(const grt_run *r)
{
    GRT_TRY(cuda_start_output(r));
    if (grt_tensor_elements(r->in[1]) == 0)
        return GRT_OK;
    return cuda_copy_run((const cuda_copy *)r->shape, r->out[0]->data, r->in[1]->data, cuda_stream(r));
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "ScatterElements",
     .types = {CUDA_MOVABLE, CUDA_INDEX, CUDA_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = cuda_supports_scatter,
     .create = cuda_create_scatter,
     .destroy = free,
     .reshape = reshape_scatter_elements,
     .release_shape = free,
     .run = cuda_run_scatter_elements},
    {.domain = "",
     .op = "ScatterND",
     .types = {CUDA_MOVABLE, CUDA_INDEX, CUDA_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = cuda_supports_scatter,
     .create = cuda_create_scatter,
     .destroy = free,
     .reshape = reshape_scatter_nd,
     .release_shape = free,
     .run = cuda_run_scatter_nd},
    {.domain = "",
     .op = "TensorScatter",
     .types = {CUDA_MOVABLE, CUDA_MOVABLE, CUDA_INDEX},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = create_tensor_scatter,
     .destroy = free,
     .reshape = reshape_tensor_scatter,
     .release_shape = free,
     .run = cuda_run_tensor_scatter},
    {.domain = "graphrt",
     .op = "WriteSlice",
     .types = {CUDA_MOVABLE, CUDA_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .reshape = reshape_write_slice,
     .release_shape = free,
     .run = cuda_run_write_slice},
};

} // namespace
CUDA_KERNELS(scatter, rows);
