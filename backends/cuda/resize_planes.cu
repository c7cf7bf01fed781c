/* SPDX-License-Identifier: Apache-2.0 */
/* See resize_planes.h. A thread has one place of the plane, whose neighbours and weights it computes once,
 * and 16 bytes there or one number; it makes that of several planes. */
#include "backends/cuda/resize_planes.h"

#include "backends/cuda/number.cuh"
#include "backends/cuda/walk.h"

namespace
{

enum { THREADS = 256, WANTED = 1 << 19 /* threads that fill a GPU */, MOST_PLANES = 1 << 30 };

struct sizes {
    grt_resize resize;
    grt_resize_axis rows, columns;
    int64_t outer;
    int inner, places, planes; /* inner: in units; places: threads of a plane; planes: of a thread */
    float outside;
};

/* The neighbours of place i on an axis and what they count; false: outside of what is cropped from. They are
 * places of the axis in either case. */
template <int TAPS>
__device__ __forceinline__ bool cuda_resize_planes_look(const grt_resize &s, const grt_resize_axis &axis,
                                                        int i, int (&at)[TAPS], float (&weight)[TAPS])
{
    if (!axis.active) {
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            at[k] = i;
            weight[k] = k ? 0 : 1;
        }
        return true;
    }
    if constexpr (TAPS == 1) {
        double x;
        weight[0] = 1;
        at[0] = 0;
        if (!grt_resize_source(s.coordinates, &axis, i, &x))
            return false;
        at[0] = (int)grt_resize_nearest(s.rounding, x, axis.in);
        return true;
    } else {
        grt_resize_reach reach;
        double found[TAPS], sum = 0;
        if (!grt_resize_reach_of(&s, &axis, i, &reach)) {
#pragma unroll
            for (int k = 0; k < TAPS; k++) /* read all the same, and not used */
                at[k] = 0, weight[k] = 0;
            return false;
        }
        const int64_t first = (int64_t)floor(reach.x) - (TAPS / 2 - 1);
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            found[k] = grt_resize_weight(&s, &reach, first + k, axis.in);
            sum += found[k];
            at[k] = (int)(first + k < 0 ? 0 : first + k >= axis.in ? axis.in - 1 : first + k);
        }
        const double factor = grt_resize_rescales(&s) && sum != 0 ? 1 / sum : 1;
#pragma unroll
        for (int k = 0; k < TAPS; k++)
            weight[k] = (float)(found[k] * factor);
        return true;
    }
}

template <class T, int N> struct alignas(sizeof(T) * N) cuda_resize_planes_unit {
    T v[N];
};

/* N numbers of type T at once, from TAPS x TAPS neighbours; one neighbour is copied as it is. */
template <class T, int N, int TAPS>
__global__ void __launch_bounds__(THREADS)
    cuda_resize_planes_kernel(const __grid_constant__ sizes s, const cuda_resize_planes_unit<T, N> *x,
                              cuda_resize_planes_unit<T, N> *y)
{
    using unit = cuda_resize_planes_unit<T, N>;
    const int64_t item = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t first = item / s.places * s.planes;
    if (first >= s.outer)
        return;
    const int place = (int)(item % s.places), inner = place % s.inner, pixel = place / s.inner,
              column = pixel % (int)s.columns.out, row = pixel / (int)s.columns.out;
    int rows[TAPS], columns[TAPS];
    float by_row[TAPS], by_column[TAPS];
    const bool inside = cuda_resize_planes_look<TAPS>(s.resize, s.rows, row, rows, by_row) &
                        cuda_resize_planes_look<TAPS>(s.resize, s.columns, column, columns, by_column);
    const int64_t in_plane = s.rows.in * s.columns.in * s.inner, out_plane = s.places;
    x += first * in_plane + inner;
    y += first * out_plane + place;
    for (int k = 0; k < s.planes && first + k < s.outer; k++, x += in_plane, y += out_plane) {
        if constexpr (TAPS == 1) {
            unit result = {};
            if (inside)
                result = x[(int64_t)(rows[0] * (int)s.columns.in + columns[0]) * s.inner];
            *y = result;
        } else {
            float sum[N] = {};
#pragma unroll
            for (int r = 0; r < TAPS; r++)
#pragma unroll
                for (int c = 0; c < TAPS; c++) {
                    const float weight = by_row[r] * by_column[c];
                    const unit from = x[(int64_t)(rows[r] * (int)s.columns.in + columns[c]) * s.inner];
#pragma unroll
                    for (int i = 0; i < N; i++)
                        sum[i] += weight != 0 ? weight * cuda_widen(from.v[i]) : 0.0f; /* infinities, too */
                }
            unit result;
#pragma unroll
            for (int i = 0; i < N; i++)
                result.v[i] = cuda_narrow<T, float>(inside ? sum[i] : s.outside);
            *y = result;
        }
    }
}

template <class T, int N, int TAPS>
void cuda_resize_planes_launch(const cuda_resize_planes *p, const void *x, void *y, cudaStream_t stream)
{
    sizes s = {p->resize, p->rows, p->columns, p->outer, (int)(p->inner / N), 0, 1, (float)p->resize.outside};
    s.places = (int)(p->rows.out * p->columns.out * s.inner);
    const int64_t all = s.places * p->outer, planes = all / WANTED;
    s.planes = (int)(planes < 1 ? 1 : planes > 16 ? 16 : planes);
    const int64_t items = (p->outer + s.planes - 1) / s.planes * s.places;
    cuda_resize_planes_kernel<T, N, TAPS>
        <<<(unsigned)((items + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
            s, (const cuda_resize_planes_unit<T, N> *)x, (cuda_resize_planes_unit<T, N> *)y);
}

template <class T, int TAPS>
void cuda_resize_planes_launch_units(const cuda_resize_planes *p, const void *x, void *y, cudaStream_t stream)
{
    constexpr int together = 16 / sizeof(T);
    if (p->inner % together == 0 && cuda_is_vector(x) && cuda_is_vector(y))
        cuda_resize_planes_launch<T, together, TAPS>(p, x, y, stream);
    else
        cuda_resize_planes_launch<T, 1, TAPS>(p, x, y, stream);
}

template <class T>
void cuda_resize_planes_blend(const cuda_resize_planes *p, const void *x, void *y, cudaStream_t stream)
{
    if (p->resize.mode == GRT_RESIZE_LINEAR)
        cuda_resize_planes_launch_units<T, 2>(p, x, y, stream);
    else
        cuda_resize_planes_launch_units<T, 4>(p, x, y, stream);
}

/* Elements by their size alone. */
template <class T>
void cuda_resize_planes_pick(const cuda_resize_planes *p, const void *x, void *y, cudaStream_t stream)
{
    cuda_resize_planes_launch_units<T, 1>(p, x, y, stream);
}

/* True if the neighbours that count are as many as TAPS. */
bool cuda_resize_planes_reaches(const grt_resize *s, const grt_resize_axis *axis)
{
    return !axis->active || s->mode == GRT_RESIZE_NEAREST || !s->antialias || axis->scale >= 1;
}

} // namespace

bool cuda_resize_planes_plan(cuda_resize_planes *p, const grt_resize *resize, const grt_tensor *in,
                             const grt_resize_axis *axes)
{
    int32_t last = in->rank - 1;
    *p = {*resize, in->dtype, 1, 1, {1, 1, 1, 0, 0, false}, {1, 1, 1, 0, 0, false}};
    for (; last >= 0 && !axes[last].active; last--)
        p->inner *= axes[last].in;
    if (last < 0)
        return false;
    p->columns = axes[last--];
    if (last >= 0 && axes[last].active)
        p->rows = axes[last--];
    for (; last >= 0; last--) {
        if (axes[last].active)
            return false;
        p->outer *= axes[last].in;
    }
    const bool picks = resize->mode == GRT_RESIZE_NEAREST, crops = resize->coordinates == GRT_RESIZE_CROP;
    if (picks ? crops || grt_dtype_size(in->dtype) > 8
              : in->dtype != GRT_DTYPE_FLOAT && in->dtype != GRT_DTYPE_FLOAT16 &&
                    in->dtype != GRT_DTYPE_BFLOAT16)
        return false;
    /* 32 bits for places of a plane; launches for all. */
    const double in_plane = (double)p->rows.in * (double)p->columns.in * (double)p->inner,
                 out_plane = (double)p->rows.out * (double)p->columns.out * (double)p->inner;
    return in_plane < MOST_PLANES && out_plane < MOST_PLANES &&
           out_plane * (double)p->outer < (double)MOST_PLANES * THREADS &&
           cuda_resize_planes_reaches(resize, &p->rows) && cuda_resize_planes_reaches(resize, &p->columns);
}

void cuda_resize_planes_run(const cuda_resize_planes *p, const void *x, void *y, cudaStream_t stream)
{
    if (p->outer * p->inner * p->rows.out * p->columns.out <= 0)
        return;
    if (p->resize.mode == GRT_RESIZE_NEAREST) {
        switch (grt_dtype_size(p->dtype)) {
        case 1:
            cuda_resize_planes_pick<uint8_t>(p, x, y, stream);
            break;
        case 2:
            cuda_resize_planes_pick<uint16_t>(p, x, y, stream);
            break;
        case 4:
            cuda_resize_planes_pick<uint32_t>(p, x, y, stream);
            break;
        default:
            cuda_resize_planes_pick<uint64_t>(p, x, y, stream);
        }
    } else if (p->dtype == GRT_DTYPE_FLOAT) {
        cuda_resize_planes_blend<float>(p, x, y, stream);
    } else if (p->dtype == GRT_DTYPE_FLOAT16) {
        cuda_resize_planes_blend<__half>(p, x, y, stream);
    } else {
        cuda_resize_planes_blend<__nv_bfloat16>(p, x, y, stream);
    }
}
