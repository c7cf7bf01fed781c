/* SPDX-License-Identifier: Apache-2.0 */
/* Unique: the elements, or slices along an axis, are sorted by content and then by place; equal neighbours
 * are one. Elements are sorted by digits, slices by comparing them. */
#include "backends/cuda/digits.cuh"
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

/* Whether slices are single elements, which are sorted by their digits. */
bool unique_is_flat(const void *state, const grt_tensor *in)
{
    const slices s = cuda_slices_of(state, in);
    return s.outer * s.inner == 1;
}

/* Elements whose keys and places take 32 bits. */
bool unique_is_narrow(grt_dtype dtype, int64_t n)
{
    return grt_dtype_size(dtype) <= sizeof(uint32_t) && n <= UINT32_MAX;
}

template <typename K> size_t unique_digits_bytes(int64_t n)
{
    return 2 * (size_t)n * sizeof(cuda_pair<K>) + cuda_digit_room<K>(n) * sizeof(int64_t);
}

/* What the sort wants. */
size_t unique_order_bytes(const void *state, const grt_tensor *in)
{
    const int64_t n = cuda_slices_of(state, in).n;
    return !unique_is_flat(state, in)       ? 2 * (size_t)n * sizeof(int64_t)
           : unique_is_narrow(in->dtype, n) ? unique_digits_bytes<uint32_t>(n)
                                            : unique_digits_bytes<uint64_t>(n);
}

/* The workspace. */
struct unique_room {
    void *order;
    int64_t *groups;  /* number of a slice's group */
    int64_t *first;   /* the first slice of a group */
    int64_t *numbers; /* of groups, by appearance */
    int64_t *counts;  /* of chunks, then how many groups there are */
};

grt_status cuda_reshape_unique(grt_reshape *r)
{
    const int64_t n = cuda_slices_of(r->state, r->in[0]).n;
    r->workspace_bytes =
        unique_order_bytes(r->state, r->in[0]) + (size_t)(3 * n + cuda_chunks(n) + 1) * sizeof(int64_t);
    return GRT_OK;
}

unique_room unique_room_of(const grt_run *r, int64_t n)
{
    int64_t *numbers = (int64_t *)((char *)r->workspace + unique_order_bytes(r->state, r->in[0]));
    return {r->workspace, numbers, numbers + n, numbers + 2 * n, numbers + 3 * n};
}

/* Groups of slices that are in order: slice(i) is the i-th, begins(i) says whether it is unlike the one
 * before. */
template <typename Slice, typename Begins>
grt_status unique_number(const grt_run *r, int64_t n, const unique_room &room, const Slice &slice,
                         const Begins &begins)
{
    int64_t *groups = room.groups, *first = room.first;
    GRT_TRY(cuda_count(r, n, room.counts, begins));
    return cuda_number(r, n, room.counts, begins, [=] __device__(int64_t i, int64_t before, bool is) {
        const int64_t at = slice(i);
        groups[at] = is ? before : before - 1;
        if (is)
            first[before] = at;
    });
}

struct slice_of_merge {
    const int64_t *sorted;
    __device__ int64_t operator()(int64_t i) const
    {
        return sorted[i];
    }
};
struct slice_begins {
    slices s;
    const int64_t *sorted;
    __device__ bool operator()(int64_t i) const
    {
        return i == 0 || s.compare(sorted[i - 1], sorted[i]) != 0;
    }
};

grt_status unique_by_merging(const grt_run *r, const slices &s, const unique_room &room)
{
    int64_t *order = (int64_t *)room.order, *spare = order + s.n, *places = order;
    GRT_TRY(cuda_each(r, s.n, [=] __device__(int64_t i) { places[i] = i; }));
    GRT_TRY(cuda_sort(r, 1, s.n, &order, &spare, before{s}));
    return unique_number(r, s.n, room, slice_of_merge{order}, slice_begins{s, order});
}

template <typename K> struct slice_of_pair {
    const cuda_pair<K> *sorted;
    __device__ int64_t operator()(int64_t i) const
    {
        return (int64_t)sorted[i].at;
    }
};
template <typename K> struct pair_begins {
    const cuda_pair<K> *sorted;
    __device__ bool operator()(int64_t i) const
    {
        return i == 0 || sorted[i - 1].key != sorted[i].key;
    }
};

/* The order of cpu_order_key in 32 bits, of elements that have no more: signed integers, which it widens,
 * have their sign there. */
template <typename K> __device__ __forceinline__ K unique_key(grt_dtype dtype, const void *data, int64_t i)
{
    if (sizeof(K) == sizeof(uint64_t))
        return (K)cpu_order_key(dtype, data, i);
    switch (dtype) {
    case GRT_DTYPE_FLOAT16:
        return (K)cpu_order_float(grt_half_to_float(((const uint16_t *)data)[i]));
    case GRT_DTYPE_BFLOAT16:
        return (K)cpu_order_float(grt_bfloat16_to_float(((const uint16_t *)data)[i]));
    case GRT_DTYPE_INT32:
    case GRT_DTYPE_INT16:
    case GRT_DTYPE_INT8:
        return (K)cpu_order_key(dtype, data, i) ^ (K)1 << 31;
    default:
        return (K)cpu_order_key(dtype, data, i);
    }
}

template <typename K> grt_status unique_by_digits(const grt_run *r, const slices &s, const unique_room &room)
{
    cuda_pair<K> *v = (cuda_pair<K> *)room.order, *spare = v + s.n, *pairs = v;
    const void *data = s.data;
    const grt_dtype dtype = s.dtype;
    GRT_TRY(cuda_each(r, s.n, [=] __device__(int64_t i) {
        pairs[i] = {unique_key<K>(dtype, data, i), (K)i};
    }));
    GRT_TRY(cuda_sort_by_digits<K>(r, s.n, 8 * sizeof(K), &v, &spare, (int64_t *)(spare + s.n)));
    return unique_number(r, s.n, room, slice_of_pair<K>{v}, pair_begins<K>{v});
}

grt_status cuda_unique_group(const grt_run *r, const slices &s, const unique_room &room)
{
    return !unique_is_flat(r->state, r->in[0]) ? unique_by_merging(r, s, room)
           : unique_is_narrow(s.dtype, s.n)    ? unique_by_digits<uint32_t>(r, s, room)
                                               : unique_by_digits<uint64_t>(r, s, room);
}

/* Number the groups by first appearance instead. */
grt_status cuda_by_appearance(const grt_run *r, int64_t n, const unique_room &room)
{
    int64_t *groups = room.groups, *first = room.first, *numbers = room.numbers;
    const auto appears = [=] __device__(int64_t i) { return first[groups[i]] == i; };
    GRT_TRY(cuda_count(r, n, room.counts, appears));
    GRT_TRY(cuda_number(r, n, room.counts, appears, [=] __device__(int64_t i, int64_t before, bool is) {
        if (is)
            numbers[groups[i]] = before;
    }));
    /* The complement is that of the group's first slice. */
    GRT_TRY(cuda_each(r, n, [=] __device__(int64_t i) {
        const int64_t number = numbers[groups[i]];
        groups[i] = first[groups[i]] == i ? ~number : number;
    }));
    return cuda_each(r, n, [=] __device__(int64_t i) {
        if (groups[i] >= 0)
            return;
        groups[i] = ~groups[i];
        first[groups[i]] = i;
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
    const unique_room room = unique_room_of(r, s.n);
    const int64_t *first = room.first, *groups = room.groups;
    int64_t n = 0, dims[GRT_MAX_RANK];
    GRT_TRY(cuda_unique_group(r, s, room));
    GRT_TRY(cuda_read(r, room.counts + cuda_chunks(s.n), &n));
    if (!state->sorted)
        GRT_TRY(cuda_by_appearance(r, s.n, room));
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
