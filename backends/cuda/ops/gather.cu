/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherElements, GatherND. */
#include "backends/cuda/indexed.cuh"

namespace
{

grt_status cuda_gather_create_axis(const grt_kernel_node *node, void **out_state)
{
    int64_t *axis;
    GRT_TRY(cuda_state(&axis));
    *axis = grt_attr_int(node->desc, "axis", 0);
    *out_state = axis;
    return GRT_OK;
}

struct gather_shape {
    int64_t outer, size, n, inner;
};

gather_shape cuda_shape_of(const grt_tensor *data, const grt_tensor *indices, int64_t axis_attribute)
{
    const int32_t axis = (int32_t)grt_axis(axis_attribute, data->rank);
    return {grt_dims_product(data->dims, 0, axis), data->dims[axis], grt_tensor_elements(indices),
            grt_dims_product(data->dims, axis + 1, data->rank)};
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    gather_kernel(gather_shape s, cuda_indexed by, T *dst, const T *src)
{
    CUDA_ITEMS (i, s.outer * s.n * s.inner) {
        cuda_divided row = cuda_divide(i, s.inner), at = cuda_divide(row.q, s.n);
        int64_t index = by.at(at.r, s.size);
        dst[i] = src[(at.q * s.size + index) * s.inner + row.r];
    }
}

template <typename T>
grt_status gather(gather_shape s, cuda_indexed by, void *dst, const void *src, cudaStream_t stream)
{
    gather_kernel<T>
        <<<cuda_grid(s.outer * s.n * s.inner), CUDA_BLOCK, 0, stream>>>(s, by, (T *)dst, (const T *)src);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status reshape_gather(grt_reshape *r)
{
    gather_shape *s;
    GRT_TRY(cuda_state(&s));
    *s = cuda_shape_of(r->in[0], r->in[1], *(const int64_t *)r->state);
    r->shape = s;
    return GRT_OK;
}

grt_status cuda_run_gather(const grt_run *r)
{
    cuda_indexed by;
    gather_shape s = *(const gather_shape *)r->shape;
    if (s.outer * s.n * s.inner <= 0)
        return GRT_OK;
    if (s.size <= 0)
        return cuda_no_elements(r);
    size_t size = grt_dtype_size(r->in[0]->dtype);
    int32_t unit = cuda_unit_bytes(s.inner, size, r->in[0]->data, r->out[0]->data);
    s.inner = s.inner * (int64_t)size / unit;
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    return CUDA_BY_SIZE(unit, gather, s, by, r->out[0]->data, r->in[0]->data, cuda_stream(r));
}

enum { MOST_EACH = 32 };

struct gather_one {
    gather_shape s;
    const void *data, *indices;
    void *out;
    uint32_t is32; /* the indices */
};

struct gather_all {
    cuda_watch watch;
    gather_one each[MOST_EACH];
};

/* blockIdx.y: which. */
template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK) gather_each_kernel(const __grid_constant__ gather_all all)
{
    const gather_one &one = all.each[blockIdx.y];
    const gather_shape s = one.s;
    const cuda_indexed by = {one.indices, one.is32 != 0, all.watch};
    CUDA_ITEMS (i, s.outer * s.n * s.inner) {
        const cuda_divided row = cuda_divide(i, s.inner), at = cuda_divide(row.q, s.n);
        const int64_t index = by.at(at.r, s.size);
        ((T *)one.out)[i] = ((const T *)one.data)[(at.q * s.size + index) * s.inner + row.r];
    }
}

template <typename T>
grt_status gather_each(const gather_all *all, int32_t n, int64_t most, cudaStream_t stream)
{
    gather_each_kernel<T><<<dim3(cuda_grid(most), (unsigned)n), CUDA_BLOCK, 0, stream>>>(*all);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* Of all that there is to copy. */
int32_t common_unit(const grt_run *r)
{
    const size_t size = grt_dtype_size(r->in[0]->dtype);
    int32_t unit = 16;
    for (int32_t i = 0; i < r->n_out; i++) {
        if (!r->out[i])
            continue;
        const gather_shape s = cuda_shape_of(r->in[i], r->in[r->n_out + i], *(const int64_t *)r->state);
        const int32_t its = cuda_unit_bytes(s.inner, size, r->in[i]->data, r->out[i]->data);
        unit = its < unit ? its : unit;
    }
    return unit;
}

grt_status cuda_run_gather_each(const grt_run *r)
{
    gather_all all;
    GRT_TRY(cuda_watch_begin(r, "indices", &all.watch));
    const int32_t unit = common_unit(r);
    int64_t most = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < r->n_out; i++) {
        if (!r->out[i])
            continue;
        const grt_tensor *data = r->in[i], *indices = r->in[r->n_out + i];
        gather_shape s = cuda_shape_of(data, indices, *(const int64_t *)r->state);
        if (s.outer * s.n * s.inner <= 0)
            continue;
        if (s.size <= 0)
            return cuda_no_elements(r);
        s.inner = s.inner * (int64_t)grt_dtype_size(data->dtype) / unit;
        most = s.outer * s.n * s.inner > most ? s.outer * s.n * s.inner : most;
        all.each[n++] = {s, data->data, indices->data, r->out[i]->data, indices->dtype == GRT_DTYPE_INT32};
    }
    return n ? CUDA_BY_SIZE(unit, gather_each, &all, n, most, cuda_stream(r)) : GRT_OK;
}

bool gathers_each(const grt_kernel_node *node, grt_text *why)
{
    for (int32_t i = node->n_out; i < node->n_in; i++)
        if (node->in[i].dtype != GRT_DTYPE_INT32 && node->in[i].dtype != GRT_DTYPE_INT64) {
            if (why)
                grt_text_add(why, "input %d is %s; supported are indices of int32 and int64", i,
                             grt_dtype_name(node->in[i].dtype));
            return false;
        }
    if (node->n_out <= MOST_EACH)
        return true;
    if (why)
        grt_text_add(why, "%d outputs; supported are up to %d", node->n_out, MOST_EACH);
    return false;
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_pick_kernel(const __grid_constant__ cuda_elements s, cuda_indexed by, T *dst, const T *src)
{
    CUDA_ITEMS (i, s.total)
        dst[i] = src[cuda_element_base(s, i) + by.at(i, s.size) * s.stride];
}

template <typename T>
grt_status cuda_gather_pick(const cuda_elements *s, cuda_indexed by, void *dst, const void *src,
                            cudaStream_t stream)
{
    cuda_pick_kernel<T><<<cuda_grid(s->total), CUDA_BLOCK, 0, stream>>>(*s, by, (T *)dst, (const T *)src);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_run_gather_elements(const grt_run *r)
{
    cuda_indexed by;
    const cuda_elements *s = (const cuda_elements *)r->shape;
    if (s->total <= 0)
        return GRT_OK;
    if (s->size <= 0)
        return cuda_no_elements(r);
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), cuda_gather_pick, s, by, r->out[0]->data,
                        r->in[0]->data, cuda_stream(r));
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    gather_nd_kernel(const __grid_constant__ cuda_tuples s, cuda_indexed by, T *dst, const T *src)
{
    CUDA_ITEMS (i, s.n * s.inner) {
        cuda_divided at = cuda_divide(i, s.inner);
        dst[i] = src[cuda_tuple_offset(s, by, at.q) + at.r];
    }
}

template <typename T>
grt_status gather_nd(const cuda_tuples *s, cuda_indexed by, void *dst, const void *src, cudaStream_t stream)
{
    gather_nd_kernel<T>
        <<<cuda_grid(s->n * s->inner), CUDA_BLOCK, 0, stream>>>(*s, by, (T *)dst, (const T *)src);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_create_batch(const grt_kernel_node *node, void **out_state)
{
    int64_t *batch;
    GRT_TRY(cuda_state(&batch));
    *batch = grt_attr_int(node->desc, "batch_dims", 0);
    *out_state = batch;
    return GRT_OK;
}

grt_status reshape_gather_nd(grt_reshape *r)
{
    return cuda_tuples_reshape(r, *(const int64_t *)r->state);
}

grt_status cuda_run_gather_nd(const grt_run *r)
{
    cuda_indexed by;
    const cuda_tuples *s = (const cuda_tuples *)r->shape;
    if (s->n * s->inner <= 0)
        return GRT_OK;
    if (cuda_tuples_empty(s))
        return cuda_no_elements(r);
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), gather_nd, s, by, r->out[0]->data, r->in[0]->data,
                        cuda_stream(r));
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Gather",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .create = cuda_gather_create_axis,
     .destroy = free,
     .reshape = reshape_gather,
     .release_shape = free,
     .run = cuda_run_gather},
    {.domain = "graphrt",
     .op = "GatherEach",
     .types = {CUDA_MOVABLE},
     .supports = gathers_each,
     .create = cuda_gather_create_axis,
     .destroy = free,
     .run = cuda_run_gather_each},
    {.domain = "",
     .op = "GatherElements",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .create = cuda_gather_create_axis,
     .destroy = free,
     .reshape = cuda_elements_reshape,
     .release_shape = free,
     .run = cuda_run_gather_elements},
    {.domain = "",
     .op = "GatherND",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .create = cuda_create_batch,
     .destroy = free,
     .reshape = reshape_gather_nd,
     .release_shape = free,
     .run = cuda_run_gather_nd},
};

} // namespace
CUDA_KERNELS(gather, rows);
