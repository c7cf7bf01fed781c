/* SPDX-License-Identifier: Apache-2.0 */
/* Trilu, OneHot, ReverseSequence, NonZero, Compress. */
#include "backends/cuda/indexed.cuh"
#include "backends/cuda/order.cuh"

namespace
{

/* V neighbours of a row a thread; n: how many such there are. */
template <typename T, int V>
__global__ void __launch_bounds__(CUDA_BLOCK)
    triangle_kernel(int64_t n, int64_t rows, int64_t cols, bool upper, const int64_t *shift, const T *in,
                    T *out)
{
    int64_t k = shift ? *shift : 0;
    k = k > cols ? cols : k < -rows ? -rows : k;
    CUDA_ITEMS (i, n) {
        const cuda_divided at = cuda_divide(i, cols / V);
        const int64_t diagonal = cuda_divide(at.q, rows).r + k, first = at.r * V;
        cuda_pack<T, V> pack = ((const cuda_pack<T, V> *)in)[i];
        const T zero = {};
#pragma unroll
        for (int v = 0; v < V; v++)
            pack.v[v] = (upper ? first + v >= diagonal : first + v <= diagonal) ? pack.v[v] : zero;
        ((cuda_pack<T, V> *)out)[i] = pack;
    }
}

template <typename T> grt_status triangle(const grt_run *r)
{
    constexpr int V = 16 / sizeof(T);
    const grt_tensor *in = r->in[0], *shift = r->n_in > 1 ? r->in[1] : NULL;
    const int64_t n = grt_tensor_elements(in), rows = in->dims[in->rank - 2], cols = in->dims[in->rank - 1];
    const int64_t *by = shift ? (const int64_t *)shift->data : NULL;
    const bool upper = *(const bool *)r->state;
    if (cols % V == 0 && cuda_aligned(in->data, 16) && cuda_aligned(r->out[0]->data, 16))
        triangle_kernel<T, V><<<cuda_grid(n / V), CUDA_BLOCK, 0, cuda_stream(r)>>>(
            n / V, rows, cols, upper, by, (const T *)in->data, (T *)r->out[0]->data);
    else
        triangle_kernel<T, 1><<<cuda_grid(n), CUDA_BLOCK, 0, cuda_stream(r)>>>(
            n, rows, cols, upper, by, (const T *)in->data, (T *)r->out[0]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_create_trilu(const grt_kernel_node *node, void **out_state)
{
    bool *upper;
    GRT_TRY(cuda_state(&upper));
    *upper = grt_attr_int(node->desc, "upper", 1) != 0;
    *out_state = upper;
    return GRT_OK;
}

grt_status cuda_run_trilu(const grt_run *r)
{
    if (grt_tensor_elements(r->in[0]) <= 0)
        return GRT_OK;
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), triangle, r);
}

/* Whether index `of` names place `at` of the axis. */
__device__ __forceinline__ bool one_hot_marks(const void *indices, grt_dtype dtype, int64_t of, int64_t at,
                                              int64_t depth)
{
    if (dtype == GRT_DTYPE_INT64 || dtype == GRT_DTYPE_INT32) {
        const int64_t number = cuda_index(indices, dtype == GRT_DTYPE_INT32, of);
        return (number < 0 ? number + depth : number) == at;
    }
    double number = grt_element_load(dtype, indices, of);
    number = number < 0 ? number + (double)depth : number;
    return number >= 0 && number < (double)depth && (int64_t)number == at;
}

/* V elements a thread; n: how many such there are. */
template <typename T, int V>
__global__ void __launch_bounds__(CUDA_BLOCK)
    one_hot_kernel(int64_t n, int64_t depth, int64_t inner, grt_dtype dtype, const void *indices,
                   const T *values, T *out)
{
    const T off = values[0], on = values[1];
    CUDA_ITEMS (i, n) {
        const cuda_divided in = cuda_divide(i * V, inner), at = cuda_divide(in.q, depth);
        int64_t outer = at.q, place = at.r, column = in.r;
        cuda_pack<T, V> pack;
#pragma unroll
        for (int v = 0; v < V; v++) {
            pack.v[v] = one_hot_marks(indices, dtype, outer * inner + column, place, depth) ? on : off;
            column = column + 1 < inner ? column + 1 : 0;
            place += column == 0;
            if (place == depth) {
                place = 0;
                outer++;
            }
        }
        ((cuda_pack<T, V> *)out)[i] = pack;
    }
}

struct one_hot_shape {
    int64_t n, depth, inner;
};

template <typename T> grt_status one_hot(const grt_run *r)
{
    enum { V = 4 };
    const one_hot_shape *s = (const one_hot_shape *)r->shape;
    const T *values = (const T *)r->in[2]->data;
    T *out = (T *)r->out[0]->data;
    if (sizeof(T) <= 4 && s->n % V == 0 && cuda_aligned(out, V * sizeof(T)))
        one_hot_kernel<T, sizeof(T) <= 4 ? V : 1><<<cuda_grid(s->n / V), CUDA_BLOCK, 0, cuda_stream(r)>>>(
            s->n / V, s->depth, s->inner, r->in[0]->dtype, r->in[0]->data, values, out);
    else
        one_hot_kernel<T, 1><<<cuda_grid(s->n), CUDA_BLOCK, 0, cuda_stream(r)>>>(
            s->n, s->depth, s->inner, r->in[0]->dtype, r->in[0]->data, values, out);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_create_one_hot(const grt_kernel_node *node, void **out_state)
{
    int64_t *axis;
    GRT_TRY(cuda_state(&axis));
    *axis = grt_attr_int(node->desc, "axis", -1);
    *out_state = axis;
    return GRT_OK;
}

grt_status reshape_one_hot(grt_reshape *r)
{
    const grt_tensor *out = r->out[0];
    int64_t axis = grt_axis(*(const int64_t *)r->state, out->rank);
    if (axis < 0 || grt_tensor_elements(r->in[2]) != 2)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "values must have 2 elements and axis must fit the output");
    one_hot_shape *s;
    GRT_TRY(cuda_state(&s));
    s->n = grt_tensor_elements(out);
    s->depth = out->dims[axis];
    s->inner = grt_dims_product(out->dims, (int32_t)axis + 1, out->rank);
    r->shape = s;
    return GRT_OK;
}

grt_status cuda_run_one_hot(const grt_run *r)
{
    if (((const one_hot_shape *)r->shape)->n <= 0)
        return GRT_OK;
    return CUDA_BY_SIZE(grt_dtype_size(r->out[0]->dtype), one_hot, r);
}

struct sequences {
    int64_t n, times, batch, time_step, batch_step, inner;
    bool is32;
};

/* Lengths out of range are reported and clamped. */
template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    reverse_kernel(sequences s, cuda_watch watch, const void *lens, const T *in, T *out)
{
    CUDA_ITEMS (i, s.n) {
        const cuda_divided cell = cuda_divide(i, s.inner);
        const int64_t at = cell.r, t = cuda_divide(cuda_divide(cell.q, s.time_step).q, s.times).r,
                      b = cuda_divide(cuda_divide(cell.q, s.batch_step).q, s.batch).r;
        int64_t n = cuda_index(lens, s.is32, b);
        if (!cuda_check(watch, n, b, 0, s.times))
            n = n < 0 ? 0 : n > s.times ? s.times : n;
        int64_t source = t < n ? n - 1 - t : t;
        out[i] = in[(b * s.batch_step + source * s.time_step) * s.inner + at];
    }
}

template <typename T> grt_status reverse(const grt_run *r, sequences s)
{
    cuda_watch watch;
    GRT_TRY(cuda_watch_begin(r, "sequence_lens", &watch));
    reverse_kernel<T><<<cuda_grid(s.n), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        s, watch, r->in[1]->data, (const T *)r->in[0]->data, (T *)r->out[0]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_create_reverse(const grt_kernel_node *node, void **out_state)
{
    bool *time_first;
    GRT_TRY(cuda_state(&time_first));
    *time_first = grt_attr_int(node->desc, "time_axis", 0) == 0;
    *out_state = time_first;
    return GRT_OK;
}

grt_status cuda_run_reverse(const grt_run *r)
{
    const grt_tensor *in = r->in[0];
    bool time_first = *(const bool *)r->state;
    sequences s = {};
    s.n = grt_tensor_elements(in);
    if (s.n <= 0)
        return GRT_OK;
    s.times = in->dims[time_first ? 0 : 1];
    s.batch = in->dims[time_first ? 1 : 0];
    s.time_step = time_first ? s.batch : 1;
    s.batch_step = time_first ? 1 : s.times;
    s.inner = grt_dims_product(in->dims, 2, in->rank);
    s.is32 = r->in[1]->dtype == GRT_DTYPE_INT32;
    const size_t size = grt_dtype_size(in->dtype);
    const int32_t unit = cuda_unit_bytes(s.inner, size, in->data, r->out[0]->data);
    s.n = s.n * (int64_t)size / unit;
    s.inner = s.inner * (int64_t)size / unit;
    return CUDA_BY_SIZE(unit, reverse, r, s);
}

grt_status reshape_non_zero(grt_reshape *r)
{
    r->workspace_bytes = ((size_t)cuda_chunks(grt_tensor_elements(r->in[0])) + 1) * sizeof(int64_t);
    return GRT_OK;
}

grt_status cuda_run_non_zero(const grt_run *r)
{
    const cuda_any in = cuda_any_in(r, 0);
    const int64_t total = grt_tensor_elements(r->in[0]);
    const auto picked = [=] __device__(int64_t i) { return in.get(i) != 0; };
    int64_t *counts = (int64_t *)r->workspace, n = 0;
    GRT_TRY(cuda_count(r, total, counts, picked));
    GRT_TRY(cuda_read(r, counts + cuda_chunks(total), &n));
    const cuda_dims dims = cuda_dims_of(r->in[0]);
    const int64_t found[] = {dims.rank, n};
    GRT_TRY(r->hooks->alloc_output(r, 0, 2, found));
    int64_t *out = (int64_t *)r->out[0]->data;
    const auto take = [=] __device__(int64_t i, int64_t before, bool is) {
        for (int32_t k = dims.rank - 1; k >= 0 && is; k--) {
            const cuda_divided at = cuda_divide(i, dims[k]);
            out[k * n + before] = at.r;
            i = at.q;
        }
    };
    return n > 0 ? cuda_number(r, total, counts, picked, take) : GRT_OK;
}

struct compress_state {
    bool flat;
    int64_t axis;
};

grt_status cuda_create_compress(const grt_kernel_node *node, void **out_state)
{
    compress_state *s;
    GRT_TRY(cuda_state(&s));
    s->flat = !grt_attr_find(node->desc, "axis");
    s->axis = grt_attr_int(node->desc, "axis", 0);
    *out_state = s;
    return GRT_OK;
}

grt_status reshape_compress(grt_reshape *r)
{
    const int64_t n = grt_tensor_elements(r->in[1]);
    r->workspace_bytes = (size_t)(n + cuda_chunks(n) + 1) * sizeof(int64_t);
    return GRT_OK;
}

/* Numbers of what is taken, -1 elsewhere, are in the workspace. */
template <typename T>
grt_status cuda_select_pick(const grt_run *r, int64_t outer, int64_t size, int64_t inner, int64_t n)
{
    const int64_t *places = (const int64_t *)r->workspace;
    const T *in = (const T *)r->in[0]->data;
    T *out = (T *)r->out[0]->data;
    const int64_t listed = grt_tensor_elements(r->in[1]), taken = listed < size ? listed : size;
    return cuda_each(r, outer * taken * inner, [=] __device__(int64_t i) {
        int64_t at = i % inner, k = i / inner % taken, o = i / inner / taken;
        if (places[k] >= 0)
            out[(o * n + places[k]) * inner + at] = in[(o * size + k) * inner + at];
    });
}

grt_status cuda_run_compress(const grt_run *r)
{
    const compress_state *s = (const compress_state *)r->state;
    const grt_tensor *in = r->in[0];
    const uint8_t *take = (const uint8_t *)r->in[1]->data;
    int64_t *places = (int64_t *)r->workspace, n = 0, dims[GRT_MAX_RANK];
    int32_t axis = s->flat ? 0 : (int32_t)grt_axis(s->axis, in->rank);
    int64_t size = s->flat ? grt_tensor_elements(in) : in->dims[axis], listed = grt_tensor_elements(r->in[1]);
    /* True values beyond the axis are ignored: the device cannot report them. */
    const auto picked = [=] __device__(int64_t i) { return i < size && take[i] != 0; };
    int64_t *counts = places + listed;
    GRT_TRY(cuda_count(r, listed, counts, picked));
    GRT_TRY(cuda_number(r, listed, counts, picked, [=] __device__(int64_t i, int64_t before, bool is) {
        places[i] = is ? before : -1;
    }));
    GRT_TRY(cuda_read(r, counts + cuda_chunks(listed), &n));
    for (int32_t k = 0; k < in->rank; k++)
        dims[k] = in->dims[k];
    dims[axis] = n;
    GRT_TRY(r->hooks->alloc_output(r, 0, s->flat ? 1 : in->rank, dims));
    int64_t outer = s->flat ? 1 : grt_dims_product(in->dims, 0, axis),
            inner = s->flat ? 1 : grt_dims_product(in->dims, axis + 1, in->rank);
    return CUDA_BY_SIZE(grt_dtype_size(in->dtype), cuda_select_pick, r, outer, size, inner, n);
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Trilu",
     .types = {CUDA_MOVABLE, GRT_BIT(INT64)},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = cuda_create_trilu,
     .destroy = free,
     .run = cuda_run_trilu},
    {.domain = "",
     .op = "OneHot",
     .types = {GRT_SET_NUMBERS, GRT_SET_NUMBERS, CUDA_MOVABLE},
     .create = cuda_create_one_hot,
     .destroy = free,
     .reshape = reshape_one_hot,
     .release_shape = free,
     .run = cuda_run_one_hot},
    {.domain = "",
     .op = "ReverseSequence",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .create = cuda_create_reverse,
     .destroy = free,
     .run = cuda_run_reverse},
    {.domain = "",
     .op = "NonZero",
     .types = {GRT_SET_NUMBERS | GRT_BIT(BOOL)},
     .flags = GRT_KERNEL_DYNAMIC,
     .reshape = reshape_non_zero,
     .run = cuda_run_non_zero},
    {.domain = "",
     .op = "Compress",
     .types = {CUDA_MOVABLE, GRT_BIT(BOOL)},
     .flags = GRT_KERNEL_DYNAMIC,
     .create = cuda_create_compress,
     .destroy = free,
     .reshape = reshape_compress,
     .run = cuda_run_compress},
};

} // namespace
CUDA_KERNELS(select, rows);
