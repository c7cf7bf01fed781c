/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherElements, GatherND. */
#include "backends/cuda/indexed.cuh"

namespace
{

grt_status create_axis(const grt_kernel_node *node, void **out_state)
{
    int64_t *axis;
    GRT_TRY(cuda_state(&axis));
    *axis = grt_attr_int(node->desc, "axis", 0);
    *out_state = axis;
    return GRT_OK;
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
    cuda_indexed by;
    gather_shape s = *(const gather_shape *)r->shape;
    if (s.outer * s.n * s.inner <= 0)
        return GRT_OK;
    if (s.size <= 0)
        return cuda_no_elements(r);
    size_t size = grt_dtype_size(r->in[0]->dtype);
    int32_t unit = unit_bytes(s.inner, size, r->in[0]->data, r->out[0]->data);
    s.inner = s.inner * (int64_t)size / unit;
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    return CUDA_BY_SIZE(unit, gather, s, by, r->out[0]->data, r->in[0]->data, cuda_stream(r));
}

/* ---- GatherElements ---- */

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    pick_kernel(const __grid_constant__ cuda_elements s, cuda_indexed by, T *dst, const T *src)
{
    CUDA_ITEMS (i, s.total)
        dst[i] = src[cuda_element_base(s, i) + by.at(i, s.size) * s.stride];
}

template <typename T>
grt_status pick(const cuda_elements *s, cuda_indexed by, void *dst, const void *src, cudaStream_t stream)
{
    pick_kernel<T><<<cuda_grid(s->total), CUDA_BLOCK, 0, stream>>>(*s, by, (T *)dst, (const T *)src);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status run_gather_elements(const grt_run *r)
{
    cuda_indexed by;
    const cuda_elements *s = (const cuda_elements *)r->shape;
    if (s->total <= 0)
        return GRT_OK;
    if (s->size <= 0)
        return cuda_no_elements(r);
    GRT_TRY(cuda_indexed_begin(r, 1, "indices", &by));
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), pick, s, by, r->out[0]->data, r->in[0]->data,
                        cuda_stream(r));
}

/* ---- GatherND ---- */

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

grt_status create_batch(const grt_kernel_node *node, void **out_state)
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

grt_status run_gather_nd(const grt_run *r)
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
     .reshape = cuda_elements_reshape,
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
};

} // namespace
CUDA_KERNELS(gather, rows);
