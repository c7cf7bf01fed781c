/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherElements, GatherND, ScatterElements, ScatterND, TensorScatter. Indices are in device memory:
 * one that is out of range is reported and clamped (see watch.h). */
#include "backends/cuda/number.cuh"
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/walk.h"

namespace
{

/* An input of indices, as kernels read it. */
struct indexed {
    const void *data;
    bool is32;
    cuda_watch watch;

    __device__ __forceinline__ int64_t operator[](int64_t k) const
    {
        return cuda_index(data, is32, k);
    }
    /* Element k, from the start of an axis of that size. */
    __device__ __forceinline__ int64_t at(int64_t k, int64_t size) const
    {
        return cuda_check_index(watch, (*this)[k], k, size);
    }
};

grt_status begin_indices(const grt_run *r, int32_t input, const char *name, indexed *out)
{
    const grt_tensor *t = input < r->n_in ? r->in[input] : NULL;
    out->data = t ? t->data : NULL;
    out->is32 = t && t->dtype == GRT_DTYPE_INT32;
    return cuda_watch_begin(r, name, &out->watch);
}

/* No index fits an axis of no elements. */
grt_status no_elements(const grt_run *r)
{
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "an axis of input 'data' has size 0: input 'indices' must be empty");
}

grt_status create_axis(const grt_kernel_node *node, void **out_state)
{
    int64_t *axis;
    GRT_TRY(cuda_state(&axis));
    *axis = grt_attr_int(node->desc, "axis", 0);
    *out_state = axis;
    return GRT_OK;
}

struct divided {
    int64_t q, r;
};
/* Unsigned 32-bit division where it does: 64-bit division is several times as slow. */
__device__ __forceinline__ divided divide(int64_t n, int64_t by)
{
    if (n <= UINT32_MAX && by <= UINT32_MAX) {
        uint32_t q = (uint32_t)n / (uint32_t)by;
        return {(int64_t)q, (int64_t)((uint32_t)n - q * (uint32_t)by)};
    }
    int64_t q = n / by;
    return {q, n - q * by};
}

/* Bytes that are copied at once when runs of `run` elements start at multiples of `run` in aligned tensors.
 */
int32_t unit_bytes(int64_t run, size_t size, const void *a, const void *b)
{
    size_t unit = 16;
    while (unit > size && ((size_t)run * size % unit || !cuda_aligned(a, unit) || !cuda_aligned(b, unit)))
        unit /= 2;
    return (int32_t)unit;
}

/* ---- Gather ---- */

struct gather_shape {
    int64_t outer, size, n, inner;
};

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK) gather_kernel(gather_shape s, indexed by, T *dst, const T *src)
{
    CUDA_ITEMS (i, s.outer * s.n * s.inner) {
        divided row = divide(i, s.inner), at = divide(row.q, s.n);
        int64_t index = by.at(at.r, s.size);
        dst[i] = src[(at.q * s.size + index) * s.inner + row.r];
    }
}

template <typename T>
grt_status gather(gather_shape s, indexed by, void *dst, const void *src, cudaStream_t stream)
{
    gather_kernel<T>
        <<<cuda_grid(s.outer * s.n * s.inner), CUDA_BLOCK, 0, stream>>>(s, by, (T *)dst, (const T *)src);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status reshape_gather(grt_reshape *r)
{
    const grt_tensor *data = r->in[0];
    int32_t axis = (int32_t)grt_axis(*(const int64_t *)r->state, data->rank);
    gather_shape *s;
    GRT_TRY(cuda_state(&s));
    s->outer = grt_dims_product(data->dims, 0, axis);
    s->inner = grt_dims_product(data->dims, axis + 1, data->rank);
    s->size = data->dims[axis];
    s->n = grt_tensor_elements(r->in[1]);
    r->shape = s;
    return GRT_OK;
}

grt_status run_gather(const grt_run *r)
{
    indexed by;
    gather_shape s = *(const gather_shape *)r->shape;
    if (s.outer * s.n * s.inner <= 0)
        return GRT_OK;
    if (s.size <= 0)
        return no_elements(r);
    size_t size = grt_dtype_size(r->in[0]->dtype);
    int32_t unit = unit_bytes(s.inner, size, r->in[0]->data, r->out[0]->data);
    s.inner = s.inner * (int64_t)size / unit;
    GRT_TRY(begin_indices(r, 1, "indices", &by));
    return CUDA_BY_SIZE(unit, gather, s, by, r->out[0]->data, r->in[0]->data, cuda_stream(r));
}

/* ---- GatherElements, ScatterElements ----
 * Both walk the indices' box: an element of it belongs to the place in data that has the same indices but
 * along the axis. */

struct element_shape {
    int32_t rank, axis;
    int64_t total, size, stride;                       /* of data along the axis */
    int64_t dims[GRT_MAX_RANK], strides[GRT_MAX_RANK]; /* of the indices; of data, 0 along the axis */
};

grt_status reshape_elements(grt_reshape *r)
{
    const grt_tensor *data = r->in[0], *indices = r->in[1];
    int32_t axis;
    element_shape *s;
    axis = (int32_t)grt_axis(*(const int64_t *)r->state, data->rank);
    for (int32_t k = 0; k < data->rank; k++)
        if (k != axis && indices->dims[k] > data->dims[k])
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "indices has size %lld in dim %d, more than data's %lld",
                               (long long)indices->dims[k], k, (long long)data->dims[k]);
    GRT_TRY(cuda_state(&s));
    s->rank = data->rank;
    s->axis = axis;
    s->total = grt_tensor_elements(indices);
    s->size = data->dims[axis];
    grt_dims_strides(data->dims, data->rank, s->strides);
    s->stride = s->strides[axis];
    s->strides[axis] = 0;
    memcpy(s->dims, indices->dims, sizeof s->dims);
    r->shape = s;
    return GRT_OK;
}

__device__ __forceinline__ int64_t element_base(const element_shape &s, int64_t i)
{
    int64_t base = 0;
    for (int32_t k = s.rank - 1; k >= 0; k--) {
        divided d = divide(i, s.dims[k]);
        base += d.r * s.strides[k];
        i = d.q;
    }
    return base;
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    pick_kernel(const __grid_constant__ element_shape s, indexed by, T *dst, const T *src)
{
    CUDA_ITEMS (i, s.total)
        dst[i] = src[element_base(s, i) + by.at(i, s.size) * s.stride];
}

template <typename T>
grt_status pick(const element_shape *s, indexed by, void *dst, const void *src, cudaStream_t stream)
{
    pick_kernel<T><<<cuda_grid(s->total), CUDA_BLOCK, 0, stream>>>(*s, by, (T *)dst, (const T *)src);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status run_gather_elements(const grt_run *r)
{
    indexed by;
    const element_shape *s = (const element_shape *)r->shape;
    if (s->total <= 0)
        return GRT_OK;
    if (s->size <= 0)
        return no_elements(r);
    GRT_TRY(begin_indices(r, 1, "indices", &by));
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), pick, s, by, r->out[0]->data, r->in[0]->data,
                        cuda_stream(r));
}

/* ---- GatherND, ScatterND ---- */

/* Index tuple k names a run of `inner` elements of data. */
struct tuple_shape {
    int64_t n, depth, inner, per_batch, batch_stride;
    int64_t dims[GRT_MAX_RANK], strides[GRT_MAX_RANK]; /* of the axes that are indexed */
};

__device__ __forceinline__ int64_t tuple_offset(const tuple_shape &s, const indexed &by, int64_t k)
{
    int64_t offset = s.batch_stride ? divide(k, s.per_batch).q * s.batch_stride : 0;
    for (int64_t d = 0; d < s.depth; d++)
        offset += by.at(k * s.depth + d, s.dims[d]) * s.strides[d];
    return offset;
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    gather_nd_kernel(const __grid_constant__ tuple_shape s, indexed by, T *dst, const T *src)
{
    CUDA_ITEMS (i, s.n * s.inner) {
        divided at = divide(i, s.inner);
        dst[i] = src[tuple_offset(s, by, at.q) + at.r];
    }
}

template <typename T>
grt_status gather_nd(const tuple_shape *s, indexed by, void *dst, const void *src, cudaStream_t stream)
{
    gather_nd_kernel<T>
        <<<cuda_grid(s->n * s->inner), CUDA_BLOCK, 0, stream>>>(*s, by, (T *)dst, (const T *)src);
    CUDA_LAUNCHED();
    return GRT_OK;
}

void plan_tuples(tuple_shape *s, const grt_tensor *data, const grt_tensor *indices, int32_t batch)
{
    int64_t strides[GRT_MAX_RANK];
    s->depth = indices->dims[indices->rank - 1];
    s->n = grt_dims_product(indices->dims, 0, indices->rank - 1);
    s->per_batch = grt_dims_product(indices->dims, batch, indices->rank - 1);
    s->batch_stride = batch ? grt_dims_product(data->dims, batch, data->rank) : 0;
    s->inner = grt_dims_product(data->dims, batch + (int32_t)s->depth, data->rank);
    grt_dims_strides(data->dims, data->rank, strides);
    for (int64_t d = 0; d < s->depth; d++) {
        s->dims[d] = data->dims[batch + d];
        s->strides[d] = strides[batch + d];
    }
}

grt_status create_batch(const grt_kernel_node *node, void **out_state)
{
    int64_t *batch;
    GRT_TRY(cuda_state(&batch));
    *batch = grt_attr_int(node->desc, "batch_dims", 0);
    *out_state = batch;
    return GRT_OK;
}

grt_status reshape_tuples(grt_reshape *r, int64_t batch)
{
    const grt_tensor *data = r->in[0], *indices = r->in[1];
    if (indices->rank < 1 || batch < 0 || batch >= indices->rank || indices->dims[indices->rank - 1] < 0 ||
        batch + indices->dims[indices->rank - 1] > data->rank)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "indices and batch_dims do not fit data of rank %d", data->rank);
    tuple_shape *s;
    GRT_TRY(cuda_state(&s));
    plan_tuples(s, data, indices, (int32_t)batch);
    r->shape = s;
    return GRT_OK;
}

grt_status reshape_gather_nd(grt_reshape *r)
{
    return reshape_tuples(r, *(const int64_t *)r->state);
}

bool has_empty_axis(const tuple_shape *s)
{
    bool empty = false;
    for (int64_t d = 0; d < s->depth; d++)
        empty |= s->dims[d] <= 0;
    return empty;
}

grt_status run_gather_nd(const grt_run *r)
{
    indexed by;
    const tuple_shape *s = (const tuple_shape *)r->shape;
    if (s->n * s->inner <= 0)
        return GRT_OK;
    if (has_empty_axis(s))
        return no_elements(r);
    GRT_TRY(begin_indices(r, 1, "indices", &by));
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), gather_nd, s, by, r->out[0]->data, r->in[0]->data,
                        cuda_stream(r));
}

/* ---- scattering ----
 * Without a reduction, every update is written by its own thread (ONNX wants no index twice then). With one,
 * the updates that may meet are combined by one thread in order: deterministic. */

enum reduction { TAKE, ADD, MUL, MAX, MIN };

struct scatter_state {
    int64_t axis; /* first: reshape_elements reads it */
    reduction how;
};

grt_status create_scatter(const grt_kernel_node *node, void **out_state)
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

bool supports_scatter(const grt_kernel_node *node, grt_text *why)
{
    bool number = grt_dtype_in(node->in[0].dtype, GRT_SET_NUMBERS | GRT_BIT(BOOL));
    if (number || !strcmp(grt_attr_string(node->desc, "reduction", "none"), "none"))
        return true;
    if (why)
        grt_text_add(why, "reductions are for numbers and bools, not %s", grt_dtype_name(node->in[0].dtype));
    return false;
}

grt_status start_output(const grt_run *r)
{
    size_t bytes = grt_tensor_bytes(r->in[0]);
    if (r->out[0]->data != r->in[0]->data && bytes)
        CUDA_TRY(cudaMemcpyAsync(r->out[0]->data, r->in[0]->data, bytes, cudaMemcpyDeviceToDevice,
                                 cuda_stream(r)));
    return GRT_OK;
}

template <typename S> __device__ __forceinline__ S combine(reduction how, bool truth, S to, S from)
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
    put_kernel(const __grid_constant__ element_shape s, indexed by, T *dst, const T *updates)
{
    CUDA_ITEMS (i, s.total)
        dst[element_base(s, i) + by.at(i, s.size) * s.stride] = updates[i];
}

template <typename T>
grt_status put(const element_shape *s, indexed by, void *dst, const void *updates, cudaStream_t stream)
{
    put_kernel<T><<<cuda_grid(s->total), CUDA_BLOCK, 0, stream>>>(*s, by, (T *)dst, (const T *)updates);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* One thread per line of the indices along the axis: `n` long, its elements `step` apart. */
template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    put_lines_kernel(const __grid_constant__ element_shape s, reduction how, bool truth, indexed by, S *dst,
                     const S *updates)
{
    int64_t n = s.dims[s.axis], step = 1;
    for (int32_t k = s.rank - 1; k > s.axis; k--)
        step *= s.dims[k];
    CUDA_ITEMS (line, s.total / n) {
        divided at = divide(line, step);
        int64_t first = at.q * n * step + at.r, base = element_base(s, first);
        for (int64_t j = 0; j < n; j++) {
            int64_t i = first + j * step;
            S *to = dst + base + by.at(i, s.size) * s.stride;
            *to = combine<S>(how, truth, *to, updates[i]);
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    put_nd_kernel(const __grid_constant__ tuple_shape s, indexed by, T *dst, const T *updates)
{
    CUDA_ITEMS (i, s.n * s.inner) {
        divided at = divide(i, s.inner);
        dst[tuple_offset(s, by, at.q) + at.r] = updates[i];
    }
}

template <typename T>
grt_status put_nd(const tuple_shape *s, indexed by, void *dst, const void *updates, cudaStream_t stream)
{
    put_nd_kernel<T>
        <<<cuda_grid(s->n * s->inner), CUDA_BLOCK, 0, stream>>>(*s, by, (T *)dst, (const T *)updates);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* One thread per element of a run; it meets all index tuples. */
template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    put_runs_kernel(const __grid_constant__ tuple_shape s, reduction how, bool truth, indexed by, S *dst,
                    const S *updates)
{
    CUDA_ITEMS (i, s.inner)
        for (int64_t k = 0; k < s.n; k++) {
            S *to = dst + tuple_offset(s, by, k) + i;
            *to = combine<S>(how, truth, *to, updates[k * s.inner + i]);
        }
}

template <typename S> grt_status reduce_elements(const grt_run *r)
{
    indexed by;
    const element_shape *s = (const element_shape *)r->shape;
    const scatter_state *state = (const scatter_state *)r->state;
    GRT_TRY(begin_indices(r, 1, "indices", &by));
    put_lines_kernel<S><<<cuda_grid(s->total / s->dims[s->axis]), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        *s, state->how, r->in[0]->dtype == GRT_DTYPE_BOOL, by, (S *)r->out[0]->data,
        (const S *)r->in[2]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S> grt_status reduce_tuples(const grt_run *r)
{
    indexed by;
    const tuple_shape *s = (const tuple_shape *)r->shape;
    const scatter_state *state = (const scatter_state *)r->state;
    GRT_TRY(begin_indices(r, 1, "indices", &by));
    put_runs_kernel<S><<<cuda_grid(s->inner), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        *s, state->how, r->in[0]->dtype == GRT_DTYPE_BOOL, by, (S *)r->out[0]->data,
        (const S *)r->in[2]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status run_scatter_elements(const grt_run *r)
{
    indexed by;
    const element_shape *s = (const element_shape *)r->shape;
    GRT_TRY(start_output(r));
    if (s->total <= 0)
        return GRT_OK;
    if (s->size <= 0)
        return no_elements(r);
    GRT_TRY(begin_indices(r, 1, "indices", &by));
    if (((const scatter_state *)r->state)->how == TAKE)
        return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), put, s, by, r->out[0]->data, r->in[2]->data,
                            cuda_stream(r));
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, reduce_elements, r)
}

grt_status reshape_scatter_nd(grt_reshape *r)
{
    return reshape_tuples(r, 0);
}

grt_status run_scatter_nd(const grt_run *r)
{
    indexed by;
    const tuple_shape *s = (const tuple_shape *)r->shape;
    GRT_TRY(start_output(r));
    if (s->n * s->inner <= 0)
        return GRT_OK;
    if (has_empty_axis(s))
        return no_elements(r);
    GRT_TRY(begin_indices(r, 1, "indices", &by));
    if (((const scatter_state *)r->state)->how == TAKE)
        return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), put_nd, s, by, r->out[0]->data, r->in[2]->data,
                            cuda_stream(r));
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, reduce_tuples, r)
}

/* ---- TensorScatter: entries of an axis, from a place of its own in each batch ---- */

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
    put_entries_kernel(cache_shape s, bool circular, indexed starts, T *dst, const T *updates)
{
    CUDA_ITEMS (i, s.total) {
        const divided entry = divide(i, s.inner), line = divide(entry.q, s.n);
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
    indexed starts;
    GRT_TRY(begin_indices(r, 2, "write_indices", &starts));
    put_entries_kernel<T><<<cuda_grid(s->total), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        *s, ((const cache_state *)r->state)->circular, starts, (T *)r->out[0]->data,
        (const T *)r->in[1]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status run_tensor_scatter(const grt_run *r)
{
    const cache_shape *s = (const cache_shape *)r->shape;
    GRT_TRY(start_output(r));
    if (s->total <= 0)
        return GRT_OK;
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), put_entries, r, s);
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Gather",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .create = create_axis,
     .destroy = free,
     .reshape = reshape_gather,
     .release_shape = free,
     .run = run_gather},
    {.domain = "",
     .op = "GatherElements",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .create = create_axis,
     .destroy = free,
     .reshape = reshape_elements,
     .release_shape = free,
     .run = run_gather_elements},
    {.domain = "",
     .op = "GatherND",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .create = create_batch,
     .destroy = free,
     .reshape = reshape_gather_nd,
     .release_shape = free,
     .run = run_gather_nd},
    {.domain = "",
     .op = "ScatterElements",
     .types = {CUDA_MOVABLE, CUDA_INDEX, CUDA_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = supports_scatter,
     .create = create_scatter,
     .destroy = free,
     .reshape = reshape_elements,
     .release_shape = free,
     .run = run_scatter_elements},
    {.domain = "",
     .op = "ScatterND",
     .types = {CUDA_MOVABLE, CUDA_INDEX, CUDA_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = supports_scatter,
     .create = create_scatter,
     .destroy = free,
     .reshape = reshape_scatter_nd,
     .release_shape = free,
     .run = run_scatter_nd},
    {.domain = "",
     .op = "TensorScatter",
     .types = {CUDA_MOVABLE, CUDA_MOVABLE, CUDA_INDEX},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = create_tensor_scatter,
     .destroy = free,
     .reshape = reshape_tensor_scatter,
     .release_shape = free,
     .run = run_tensor_scatter},
};

} // namespace
CUDA_KERNELS(gather, rows);
