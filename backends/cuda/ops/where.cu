/* SPDX-License-Identifier: Apache-2.0 */
/* Where. */
#include "backends/cuda/walk.h"

namespace
{

typedef cuda_walk<4, GRT_MAX_RANK> choose_walk;

struct where_shape {
    choose_walk walk, grouped;
    int vector; /* elements of a group: of 16 bytes, or there are none */
};

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_choose_kernel(const __grid_constant__ choose_walk walk, const uint8_t *condition, const T *x,
                       const T *y, T *out)
{
    CUDA_ITEMS (i, walk.total) {
        int64_t at[4];
        cuda_walk_at(walk, i, at);
        out[at[0]] = condition[at[1]] ? x[at[2]] : y[at[3]];
    }
}

/* V elements at a time, neighbours or the same one; the walk is over groups of V. */
template <typename T, int V>
__device__ __forceinline__ cuda_pack<T, V> chosen_from(const T *data, int64_t at, int64_t stride)
{
    if (stride)
        return *(const cuda_pack<T, V> *)(data + at);
    cuda_pack<T, V> same;
#pragma unroll
    for (int k = 0; k < V; k++)
        same.v[k] = data[at];
    return same;
}

template <typename T, int V>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_choose_packs_kernel(const __grid_constant__ choose_walk walk, const uint8_t *condition, const T *x,
                             const T *y, T *out)
{
    const int32_t last = walk.rank - 1;
    CUDA_ITEMS (i, walk.total) {
        int64_t at[4];
        cuda_walk_at(walk, i, at);
        const cuda_pack<uint8_t, V> c = chosen_from<uint8_t, V>(condition, at[1], walk.strides[1][last]);
        cuda_pack<T, V> a = chosen_from<T, V>(x, at[2], walk.strides[2][last]);
        const cuda_pack<T, V> b = chosen_from<T, V>(y, at[3], walk.strides[3][last]);
#pragma unroll
        for (int k = 0; k < V; k++)
            a.v[k] = c.v[k] ? a.v[k] : b.v[k];
        *(cuda_pack<T, V> *)(out + at[0]) = a;
    }
}

template <typename T> grt_status cuda_where_choose(const grt_run *r)
{
    const where_shape *sh = (const where_shape *)r->shape;
    const choose_walk *walk = &sh->walk;
    constexpr int V = 16 / sizeof(T);
    if (V > 1 && sh->vector == V && cuda_aligned(r->in[0]->data, V) && cuda_aligned(r->in[1]->data, 16) &&
        cuda_aligned(r->in[2]->data, 16) && cuda_aligned(r->out[0]->data, 16)) {
        cuda_choose_packs_kernel<T, V><<<cuda_grid(sh->grouped.total), CUDA_BLOCK, 0, cuda_stream(r)>>>(
            sh->grouped, (const uint8_t *)r->in[0]->data, (const T *)r->in[1]->data,
            (const T *)r->in[2]->data, (T *)r->out[0]->data);
        CUDA_LAUNCHED();
        return GRT_OK;
    }
    cuda_choose_kernel<T><<<cuda_grid(walk->total), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        *walk, (const uint8_t *)r->in[0]->data, (const T *)r->in[1]->data, (const T *)r->in[2]->data,
        (T *)r->out[0]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status reshape_where(grt_reshape *r)
{
    where_shape *s;
    GRT_TRY(cuda_state(&s));
    cuda_walk_broadcast(&s->walk, r->out[0], 3, r->in);
    const int most = 16 / (int)grt_dtype_size(r->out[0]->dtype);
    s->vector = s->walk.total > 0 ? cuda_walk_vector(&s->walk, most) : 1;
    if (s->vector == most)
        s->grouped = cuda_walk_grouped(&s->walk, most);
    r->shape = s;
    return GRT_OK;
}

grt_status run_where(const grt_run *r)
{
    if (((const where_shape *)r->shape)->walk.total <= 0)
        return GRT_OK;
    return CUDA_BY_SIZE(grt_dtype_size(r->out[0]->dtype), cuda_where_choose, r);
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Where",
     .types = {GRT_BIT(BOOL), CUDA_MOVABLE, CUDA_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(1) | GRT_KERNEL_IN_PLACE(2),
     .reshape = reshape_where,
     .release_shape = free,
     .run = run_where},
};

} // namespace
CUDA_KERNELS(where, rows);
