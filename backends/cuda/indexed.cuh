/* SPDX-License-Identifier: Apache-2.0 */
/* What gathering and scattering share. Indices are in device memory: one that is out of range is reported and
 * clamped (see watch.h). */
#ifndef GRT_BACKENDS_CUDA_INDEXED_CUH
#define GRT_BACKENDS_CUDA_INDEXED_CUH

#include "backends/cuda/walk.h"

/* An input of indices, as kernels read it. */
struct cuda_indexed {
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

static inline grt_status cuda_indexed_begin(const grt_run *r, int32_t input, const char *name,
                                            cuda_indexed *out)
{
    const grt_tensor *t = input < r->n_in ? r->in[input] : NULL;
    out->data = t ? t->data : NULL;
    out->is32 = t && t->dtype == GRT_DTYPE_INT32;
    return cuda_watch_begin(r, name, &out->watch);
}

/* No index fits an axis of no elements. */
static inline grt_status cuda_no_elements(const grt_run *r)
{
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "an axis of input 'data' has size 0: input 'indices' must be empty");
}

/* Bytes that are copied at once when runs of `run` elements start at multiples of `run` in aligned tensors.
 */
static inline int32_t cuda_unit_bytes(int64_t run, size_t size, const void *a, const void *b)
{
    size_t unit = 16;
    while (unit > size && ((size_t)run * size % unit || !cuda_aligned(a, unit) || !cuda_aligned(b, unit)))
        unit /= 2;
    return (int32_t)unit;
}

struct cuda_divided {
    int64_t q, r;
};
/* Unsigned 32-bit division where it does: 64-bit division is several times as slow. */
__device__ __forceinline__ cuda_divided cuda_divide(int64_t n, int64_t by)
{
    if (n <= UINT32_MAX && by <= UINT32_MAX) {
        uint32_t q = (uint32_t)n / (uint32_t)by;
        return {(int64_t)q, (int64_t)((uint32_t)n - q * (uint32_t)by)};
    }
    int64_t q = n / by;
    return {q, n - q * by};
}

/* ---- elements ----
 * Both walk the indices' box: an element of it belongs to the place in data that has the same indices but
 * along the axis. */

struct cuda_elements {
    int32_t rank, axis;
    int64_t total, size, stride;                       /* of data along the axis */
    int64_t dims[GRT_MAX_RANK], strides[GRT_MAX_RANK]; /* of the indices; of data, 0 along the axis */
};

static inline grt_status cuda_elements_reshape(grt_reshape *r)
{
    const grt_tensor *data = r->in[0], *indices = r->in[1];
    int32_t axis;
    cuda_elements *s;
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

__device__ __forceinline__ int64_t cuda_element_base(const cuda_elements &s, int64_t i)
{
    int64_t base = 0;
    for (int32_t k = s.rank - 1; k >= 0; k--) {
        cuda_divided d = cuda_divide(i, s.dims[k]);
        base += d.r * s.strides[k];
        i = d.q;
    }
    return base;
}

/* Index tuple k names a run of `inner` elements of data. */
struct cuda_tuples {
    int64_t n, depth, inner, per_batch, batch_stride;
    int64_t dims[GRT_MAX_RANK], strides[GRT_MAX_RANK]; /* of the axes that are cuda_indexed */
};

__device__ __forceinline__ int64_t cuda_tuple_offset(const cuda_tuples &s, const cuda_indexed &by, int64_t k)
{
    int64_t offset = s.batch_stride ? cuda_divide(k, s.per_batch).q * s.batch_stride : 0;
    for (int64_t d = 0; d < s.depth; d++)
        offset += by.at(k * s.depth + d, s.dims[d]) * s.strides[d];
    return offset;
}

static inline void cuda_tuples_plan(cuda_tuples *s, const grt_tensor *data, const grt_tensor *indices,
                                    int32_t batch)
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

static inline grt_status cuda_tuples_reshape(grt_reshape *r, int64_t batch)
{
    const grt_tensor *data = r->in[0], *indices = r->in[1];
    if (indices->rank < 1 || batch < 0 || batch >= indices->rank || indices->dims[indices->rank - 1] < 0 ||
        batch + indices->dims[indices->rank - 1] > data->rank)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "indices and batch_dims do not fit data of rank %d", data->rank);
    cuda_tuples *s;
    GRT_TRY(cuda_state(&s));
    cuda_tuples_plan(s, data, indices, (int32_t)batch);
    r->shape = s;
    return GRT_OK;
}

static inline bool cuda_tuples_empty(const cuda_tuples *s)
{
    bool empty = false;
    for (int64_t d = 0; d < s->depth; d++)
        empty |= s->dims[d] <= 0;
    return empty;
}

#endif
