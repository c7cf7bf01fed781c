/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Roll: a unit of up to 16 bytes a thread, which looks up where it came from. */
#include "backends/cuda/walk.h"

namespace
{

/* Axes that are not rolled are one with those next to them; the last ones of them are cut into units. */
struct roll_axes {
    int32_t rank, unit; /* unit: bytes */
    int64_t total;      /* units */
    bool wide;          /* total does not fit in 31 bits */
    int64_t dims[GRT_MAX_RANK], shifts[GRT_MAX_RANK];
    cuda_divisor by[GRT_MAX_RANK];
};

struct roll_shape {
    roll_axes units, elements; /* elements: for pointers that are not aligned to units */
};

/* Where unit i of the result comes from. */
__device__ __forceinline__ int64_t roll_source(const roll_axes &s, int64_t i)
{
    int64_t from = 0, stride = 1;
    if (s.wide) {
        for (int32_t a = s.rank - 1; a >= 0; a--) {
            const int64_t rest = i / s.dims[a];
            int64_t at = i - rest * s.dims[a] + s.shifts[a];
            at -= at >= s.dims[a] ? s.dims[a] : 0;
            from += at * stride;
            stride *= s.dims[a];
            i = rest;
        }
        return from;
    }
    uint32_t left = (uint32_t)i, sum = 0, step = 1;
    for (int32_t a = s.rank - 1; a >= 0; a--) {
        const uint32_t size = s.by[a].divisor, rest = cuda_divide(left, s.by[a]);
        uint32_t at = left - rest * size + (uint32_t)s.shifts[a];
        at -= at >= size ? size : 0;
        sum += at * step;
        step *= size;
        left = rest;
    }
    return sum;
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    roll_kernel(const __grid_constant__ roll_axes s, T *dst, const T *src)
{
    CUDA_ITEMS (i, s.total)
        dst[i] = src[roll_source(s, i)];
}

/* Axes with units of at most so many bytes. */
void plan_axes(roll_axes *s, const grt_tensor *t, const int64_t *given, size_t n, int64_t most)
{
    const int64_t size = (int64_t)grt_dtype_size(t->dtype);
    int64_t together = 1; /* of axes that are not rolled */
    for (int32_t k = 0; k < t->rank; k++) {
        const int64_t shift = (size_t)k < n && given[k] > 0 && t->dims[k] > 0 ? given[k] % t->dims[k] : 0;
        if (!shift) {
            together *= t->dims[k];
            continue;
        }
        if (together > 1)
            s->dims[s->rank++] = together;
        s->dims[s->rank] = t->dims[k];
        s->shifts[s->rank++] = shift;
        together = 1;
    }
    const int64_t bytes = (together * size) | most;
    s->unit = (int32_t)(bytes & -bytes);
    if (together * size > s->unit)
        s->dims[s->rank++] = together * size / s->unit;
    s->total = grt_tensor_elements(t) * size / s->unit;
    s->wide = s->total > INT32_MAX;
    for (int32_t a = 0; !s->wide && s->total > 0 && a < s->rank; a++)
        s->by[a] = cuda_divisor_of(s->dims[a]);
}

grt_status reshape_roll(grt_reshape *r)
{
    const grt_tensor *in = r->in[0];
    size_t n;
    const int64_t *given = grt_attr_ints(r->desc, "shifts", &n);
    roll_shape *s;
    GRT_TRY(cuda_state(&s));
    plan_axes(&s->units, in, given, n, 16);
    plan_axes(&s->elements, in, given, n, (int64_t)grt_dtype_size(in->dtype));
    r->shape = s;
    return GRT_OK;
}

template <typename T> grt_status launch_roll(const grt_run *r, const roll_axes *axes)
{
    roll_kernel<T><<<cuda_grid(axes->total), CUDA_BLOCK, 0, cuda_stream(r)>>>(*axes, (T *)r->out[0]->data,
                                                                              (const T *)r->in[0]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_run_roll(const grt_run *r)
{
    const roll_shape *s = (const roll_shape *)r->shape;
    const size_t unit = (size_t)s->units.unit;
    const roll_axes *axes =
        cuda_aligned(r->in[0]->data, unit) && cuda_aligned(r->out[0]->data, unit) ? &s->units : &s->elements;
    return axes->total > 0 ? CUDA_BY_SIZE(axes->unit, launch_roll, r, axes) : GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "Roll",
     .types = {CUDA_MOVABLE},
     .reshape = reshape_roll,
     .release_shape = free,
     .run = cuda_run_roll},
};

} // namespace
CUDA_KERNELS(roll, rows);
