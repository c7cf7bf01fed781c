/* SPDX-License-Identifier: Apache-2.0 */
/* ScatterElements, ScatterND, TensorScatter, graphrt::WriteSlice. */
#include "backends/cuda/copy.h"
#include "backends/cuda/each.cuh"
#include "backends/cuda/indexed.cuh"
#include "backends/cuda/number.cuh"
#include "backends/cuda/overlap_device.cuh"
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/sorted_updates.cuh"
#include "backends/shared/slice.h"

namespace
{

/* ---- scattering ----
 * Without a reduction, every update is written by its own thread (ONNX wants no index twice then). With one,
 * the updates that may meet are combined by one thread in order: deterministic. Where such threads would be
 * few with much to do each, updates are sorted by what they go to (sorted_updates.cuh). */

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

/* ---- sorted updates ---- */

/* `n` updates go to `elements` elements, runs of `run` numbers each. */
struct scatter_sort {
    int64_t n, run, elements;
    bool sorts, wide; /* wide: their numbers take more than 32 bits */
};

/* Whether a sort is quicker than `threads` that each combine `each` updates, one after another. Times on an
 * H100: what a thread takes for an update is measured; the launches of a sort, and its work for an update by
 * the bytes that it moves, are estimates that no GPU has confirmed yet. */
bool scatter_pays(int64_t threads, int64_t each)
{
    const double n = (double)threads * (double)each, update_us = 0.27, sorted_us = 45e-6,
                 launches_us = n <= digit_tile<uint32_t> ? 17 : 30;
    return (double)each * update_us > launches_us + n * sorted_us;
}

scatter_sort scatter_sort_of(const void *state, int64_t n, int64_t run, const grt_tensor *data,
                             int64_t threads)
{
    scatter_sort s = {n, run, run > 0 ? grt_tensor_elements(data) / run : 0, false, false};
    s.sorts = ((const scatter_state *)state)->how != TAKE && n * run > 0 &&
              scatter_pays(threads, n * run / threads);
    s.wide = n > UINT32_MAX || s.elements > UINT32_MAX;
    return s;
}

scatter_sort scatter_sort_of_elements(const void *state, const cuda_elements *s, const grt_tensor *data)
{
    return scatter_sort_of(state, s->total, 1, data, s->total > 0 ? s->total / s->dims[s->axis] : 1);
}

scatter_sort scatter_sort_of_tuples(const void *state, const cuda_tuples *s, const grt_tensor *data)
{
    return scatter_sort_of(state, s->n, s->inner, data, s->inner);
}

template <typename K> size_t scatter_sort_room(const scatter_sort &s, size_t size)
{
    return 2 * (size_t)s.n * sizeof(cuda_pair<K>) + cuda_digit_room<K>(s.n) * sizeof(int64_t) +
           (size_t)(sorted_pieces(s.n) * s.run) * size;
}

size_t scatter_sort_bytes(const scatter_sort &s, const grt_tensor *data)
{
    const size_t size = grt_dtype_size(data->dtype);
    return !s.sorts ? 0
           : s.wide ? scatter_sort_room<uint64_t>(s, size)
                    : scatter_sort_room<uint32_t>(s, size);
}

/* Which element an update goes to. */
struct element_of_index {
    cuda_elements s;
    cuda_indexed by;

    __device__ __forceinline__ int64_t operator()(int64_t i) const
    {
        return cuda_element_base(s, i) + by.at(i, s.size) * s.stride;
    }
};
struct element_of_tuple {
    cuda_tuples s;
    cuda_indexed by;

    __device__ __forceinline__ int64_t operator()(int64_t k) const
    {
        return cuda_divide(cuda_tuple_offset(s, by, k), s.inner).q;
    }
};

/* What an element becomes by an update. */
struct scatter_combiner {
    reduction how;
    bool truth;

    template <typename S> __device__ __forceinline__ S operator()(S to, S from) const
    {
        return cuda_scatter_combine<S>(how, truth, to, from);
    }
};

template <typename K> struct sorted_call {
    const grt_run *r;
    sorted_updates<K> updates;
    void *pieces;
};

template <typename S, typename K> grt_status reduce_sorted_as(const sorted_call<K> &call)
{
    const grt_run *r = call.r;
    const scatter_combiner combine = {((const scatter_state *)r->state)->how,
                                      r->in[0]->dtype == GRT_DTYPE_BOOL};
    return combine_sorted<S>(r, call.updates, combine, (S *)r->out[0]->data, (const S *)r->in[2]->data,
                             (S *)call.pieces);
}

template <typename K, typename F>
grt_status reduce_sorted_by(const grt_run *r, const scatter_sort &s, const F &element)
{
    cuda_pair<K> *v = (cuda_pair<K> *)r->workspace, *spare = v + s.n, *pairs = v;
    int64_t *room = (int64_t *)(spare + s.n);
    GRT_TRY(cuda_each(r, s.n, [=] __device__(int64_t i) { pairs[i] = {(K)element(i), (K)i}; }));
    GRT_TRY(cuda_sort_by_digits<K>(r, s.n, cuda_bits_below(s.elements), &v, &spare, room));
    const sorted_call<K> call = {r, {s.n, s.run, v}, room + cuda_digit_room<K>(s.n)};
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, reduce_sorted_as, call)
}

template <typename F> grt_status reduce_sorted(const grt_run *r, const scatter_sort &s, const F &element)
{
    return s.wide ? reduce_sorted_by<uint64_t>(r, s, element) : reduce_sorted_by<uint32_t>(r, s, element);
}

/* ---- reductions ---- */

template <typename S> grt_status reduce_lines(const grt_run *r)
{
    cuda_indexed by;
    const cuda_elements *s = (const cuda_elements *)r->shape;
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    put_lines_kernel<S><<<cuda_grid(s->total / s->dims[s->axis]), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        *s, ((const scatter_state *)r->state)->how, r->in[0]->dtype == GRT_DTYPE_BOOL, by,
        (S *)r->out[0]->data, (const S *)r->in[2]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S> grt_status reduce_runs(const grt_run *r)
{
    cuda_indexed by;
    const cuda_tuples *s = (const cuda_tuples *)r->shape;
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    put_runs_kernel<S><<<cuda_grid(s->inner), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        *s, ((const scatter_state *)r->state)->how, r->in[0]->dtype == GRT_DTYPE_BOOL, by,
        (S *)r->out[0]->data, (const S *)r->in[2]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status reshape_scatter_elements(grt_reshape *r)
{
    GRT_TRY(cuda_elements_reshape(r));
    r->workspace_bytes = scatter_sort_bytes(
        scatter_sort_of_elements(r->state, (const cuda_elements *)r->shape, r->in[0]), r->in[0]);
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
    const scatter_sort sort = scatter_sort_of_elements(r->state, s, r->in[0]);
    if (sort.sorts)
        return reduce_sorted(r, sort, element_of_index{*s, by});
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, reduce_lines, r)
}

grt_status reshape_scatter_nd(grt_reshape *r)
{
    GRT_TRY(cuda_tuples_reshape(r, 0));
    r->workspace_bytes = scatter_sort_bytes(
        scatter_sort_of_tuples(r->state, (const cuda_tuples *)r->shape, r->in[0]), r->in[0]);
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
    const scatter_sort sort = scatter_sort_of_tuples(r->state, s, r->in[0]);
    if (sort.sorts)
        return reduce_sorted(r, sort, element_of_tuple{*s, by});
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, reduce_runs, r)
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
