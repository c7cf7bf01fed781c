/* SPDX-License-Identifier: Apache-2.0 */
/* Unique: the elements, or slices along an axis, are sorted by content and then by place; equal neighbours
 * are one. */
#include "backends/cuda/order.cuh"
#include "backends/shared/order.h"

namespace
{

struct unique_state {
    bool flat, sorted;
    int64_t axis;
};

grt_status cuda_create_unique(const grt_kernel_node *node, void **out_state)
{
    unique_state *state;
    GRT_TRY(cuda_state(&state));
    state->flat = !grt_attr_find(node->desc, "axis");
    state->axis = grt_attr_int(node->desc, "axis", 0);
    state->sorted = grt_attr_int(node->desc, "sorted", 1) != 0;
    *out_state = state;
    return GRT_OK;
}

/* n slices of outer x inner elements each. */
struct slices {
    const void *data;
    grt_dtype dtype;
    int64_t n, outer, inner;

    __device__ int compare(int64_t a, int64_t b) const
    {
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < inner; i++) {
                uint64_t x = cpu_order_key(dtype, data, (o * n + a) * inner + i),
                         y = cpu_order_key(dtype, data, (o * n + b) * inner + i);
                if (x != y)
                    return x < y ? -1 : 1;
            }
        return 0;
    }
};

struct before {
    slices s;

    __device__ bool operator()(int64_t a, int64_t b) const
    {
        int order = s.compare(a, b);
        return order ? order < 0 : a < b;
    }
};

slices cuda_slices_of(const void *state, const grt_tensor *in)
{
    const unique_state *s = (const unique_state *)state;
    if (s->flat || in->rank == 0)
        return {in->data, in->dtype, grt_tensor_elements(in), 1, 1};
    int32_t axis = (int32_t)grt_axis(s->axis, in->rank);
    return {in->data, in->dtype, in->dims[axis], grt_dims_product(in->dims, 0, axis),
            grt_dims_product(in->dims, axis + 1, in->rank)};
}

/* Numbers of slices twice, numbering, groups and their first slices. */
grt_status cuda_reshape_unique(grt_reshape *r)
{
    r->workspace_bytes = (5 * (size_t)cuda_slices_of(r->state, r->in[0]).n + 1) * sizeof(int64_t);
    return GRT_OK;
}

/* groups[i]: number of slice i's group in order of content; first[g]: its first slice; places[n]: how many
 * groups there are. */
grt_status cuda_unique_group(const grt_run *r, const slices &s, int64_t *order, int64_t *spare,
                             int64_t *places, int64_t *groups, int64_t *first)
{
    GRT_TRY(cuda_each(r, s.n, [=] __device__(int64_t i) { order[i] = i; }));
    GRT_TRY(cuda_sort(r, 1, s.n, &order, &spare, before{s}));
    const int64_t *sorted = order;
    GRT_TRY(cuda_number(r, s.n, places, [=] __device__(int64_t i) {
        return i == 0 || s.compare(sorted[i - 1], sorted[i]) != 0;
    }));
    return cuda_each(r, s.n, [=] __device__(int64_t i) {
        const int64_t place = places[i];
        groups[sorted[i]] = place >= 0 ? place : ~place - 1;
        if (place >= 0)
            first[place] = sorted[i];
    });
}

/* Number the groups by first appearance instead; uses up both numberings. */
grt_status cuda_by_appearance(const grt_run *r, int64_t n, int64_t *places, int64_t *groups, int64_t *first,
                              int64_t *old)
{
    GRT_TRY(cuda_number(r, n, places, [=] __device__(int64_t i) { return first[groups[i]] == i; }));
    GRT_TRY(cuda_each(r, n, [=] __device__(int64_t i) { old[i] = places[first[groups[i]]]; }));
    return cuda_each(r, n, [=] __device__(int64_t i) {
        groups[i] = old[i];
        if (places[i] >= 0)
            first[places[i]] = i;
    });
}

template <typename T>
grt_status cuda_unique_take(const grt_run *r, const slices &s, int64_t n, const int64_t *first)
{
    const T *in = (const T *)s.data;
    T *out = (T *)r->out[0]->data;
    const int64_t size = s.n, inner = s.inner;
    return cuda_each(r, s.outer * n * s.inner, [=] __device__(int64_t i) {
        int64_t at = i % inner, g = i / inner % n, o = i / inner / n;
        out[i] = in[(o * size + first[g]) * inner + at];
    });
}

grt_status cuda_run_unique(const grt_run *r)
{
    const unique_state *state = (const unique_state *)r->state;
    const grt_tensor *in = r->in[0];
    const slices s = cuda_slices_of(state, in);
    int64_t *order = (int64_t *)r->workspace, *spare = order + s.n, *groups = spare + s.n,
            *first = groups + s.n, *places = first + s.n;
    int64_t n = 0, dims[GRT_MAX_RANK];
    GRT_TRY(cuda_unique_group(r, s, order, spare, places, groups, first));
    GRT_TRY(cuda_read(r, places + s.n, &n));
    if (!state->sorted)
        GRT_TRY(cuda_by_appearance(r, s.n, places, groups, first, order));
    const int64_t all[] = {s.n}, some[] = {n};
    const bool flat = state->flat || in->rank == 0;
    memcpy(dims, in->dims, sizeof dims);
    dims[flat ? 0 : grt_axis(state->axis, in->rank)] = n;
    for (int32_t i = 0; i < r->n_out; i++)
        if (r->out[i] && i == 0)
            GRT_TRY(r->hooks->alloc_output(r, 0, flat ? 1 : in->rank, dims));
        else if (r->out[i])
            GRT_TRY(r->hooks->alloc_output(r, i, 1, i == 2 ? all : some));
    if (r->out[0])
        GRT_TRY(CUDA_BY_SIZE(grt_dtype_size(in->dtype), cuda_unique_take, r, s, n, first));
    const cuda_any indices = cuda_any_out(r, 1), inverse = cuda_any_out(r, 2), counts = cuda_any_out(r, 3);
    if (counts)
        CUDA_TRY(cudaMemsetAsync(counts.data, 0, (size_t)n * sizeof(int64_t), cuda_stream(r)));
    return cuda_each(r, s.n, [=] __device__(int64_t i) {
        if (indices && i < n)
            ((int64_t *)indices.data)[i] = first[i];
        if (inverse)
            ((int64_t *)inverse.data)[i] = groups[i];
        if (counts)
            atomicAdd((unsigned long long *)counts.data + groups[i], 1ull);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Unique",
     .types = {GRT_SET_NUMBERS | GRT_BIT(BOOL)},
     .flags = GRT_KERNEL_DYNAMIC,
     .create = cuda_create_unique,
     .destroy = free,
     .reshape = cuda_reshape_unique,
     .run = cuda_run_unique},
};

} // namespace
CUDA_KERNELS(unique, rows);
