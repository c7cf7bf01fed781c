/* SPDX-License-Identifier: Apache-2.0 */
/* Where, Trilu, OneHot, EyeLike, ReverseSequence, ConstantOfShape, Range, and Dropout when it is not
 * training. */
#include "backends/cuda/copy.h"
#include "backends/cuda/number.cuh"
#include "backends/cuda/pointwise_eval.h"
#include "src/base/element.h"

namespace
{

/* ---- Where ---- */

typedef cuda_walk<4, GRT_MAX_RANK> choose_walk;

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    choose_kernel(const __grid_constant__ choose_walk walk, const uint8_t *condition, const T *x, const T *y,
                  T *out)
{
    CUDA_ITEMS (i, walk.total) {
        int64_t at[4];
        cuda_walk_at(walk, i, at);
        out[at[0]] = condition[at[1]] ? x[at[2]] : y[at[3]];
    }
}

template <typename T> grt_status choose(const grt_run *r)
{
    const choose_walk *walk = (const choose_walk *)r->shape;
    choose_kernel<T><<<cuda_grid(walk->total), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        *walk, (const uint8_t *)r->in[0]->data, (const T *)r->in[1]->data, (const T *)r->in[2]->data,
        (T *)r->out[0]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status reshape_where(grt_reshape *r)
{
    choose_walk *walk;
    GRT_TRY(cuda_state(&walk));
    cuda_walk_broadcast(walk, r->out[0], 3, r->in);
    r->shape = walk;
    return GRT_OK;
}

grt_status run_where(const grt_run *r)
{
    if (((const choose_walk *)r->shape)->total <= 0)
        return GRT_OK;
    return CUDA_BY_SIZE(grt_dtype_size(r->out[0]->dtype), choose, r);
}

/* ---- Trilu ---- */

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    triangle_kernel(int64_t n, int64_t rows, int64_t cols, bool upper, const int64_t *shift, const T *in,
                    T *out)
{
    int64_t k = shift ? *shift : 0;
    k = k > cols ? cols : k < -rows ? -rows : k;
    CUDA_ITEMS (i, n) {
        int64_t row = i / cols, col = i - row * cols, diagonal = row % rows + k;
        T zero = {};
        out[i] = (upper ? col >= diagonal : col <= diagonal) ? in[i] : zero;
    }
}

template <typename T> grt_status triangle(const grt_run *r)
{
    const grt_tensor *in = r->in[0], *shift = r->n_in > 1 ? r->in[1] : NULL;
    int64_t n = grt_tensor_elements(in);
    triangle_kernel<T><<<cuda_grid(n), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        n, in->dims[in->rank - 2], in->dims[in->rank - 1], *(const bool *)r->state,
        shift ? (const int64_t *)shift->data : NULL, (const T *)in->data, (T *)r->out[0]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status create_trilu(const grt_kernel_node *node, void **out_state)
{
    bool *upper;
    GRT_TRY(cuda_state(&upper));
    *upper = grt_attr_int(node->desc, "upper", 1) != 0;
    *out_state = upper;
    return GRT_OK;
}

grt_status run_trilu(const grt_run *r)
{
    if (grt_tensor_elements(r->in[0]) <= 0)
        return GRT_OK;
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), triangle, r);
}

/* ---- OneHot ---- */

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    one_hot_kernel(int64_t n, int64_t depth, int64_t inner, grt_dtype dtype, const void *indices,
                   const T *values, T *out)
{
    T off = values[0], on = values[1];
    CUDA_ITEMS (i, n) {
        int64_t rest = i / inner, outer = rest / depth;
        double number = grt_element_load(dtype, indices, outer * inner + (i - rest * inner));
        number = number < 0 ? number + (double)depth : number;
        bool marked = number >= 0 && number < (double)depth && (int64_t)number == rest - outer * depth;
        out[i] = marked ? on : off;
    }
}

struct one_hot_shape {
    int64_t n, depth, inner;
};

template <typename T> grt_status one_hot(const grt_run *r)
{
    const one_hot_shape *s = (const one_hot_shape *)r->shape;
    one_hot_kernel<T><<<cuda_grid(s->n), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        s->n, s->depth, s->inner, r->in[0]->dtype, r->in[0]->data, (const T *)r->in[2]->data,
        (T *)r->out[0]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status create_one_hot(const grt_kernel_node *node, void **out_state)
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

grt_status run_one_hot(const grt_run *r)
{
    if (((const one_hot_shape *)r->shape)->n <= 0)
        return GRT_OK;
    return CUDA_BY_SIZE(grt_dtype_size(r->out[0]->dtype), one_hot, r);
}

/* ---- ConstantOfShape, EyeLike, Range ---- */

struct element {
    char bytes[16];
};

grt_status create_fill(const grt_kernel_node *node, void **out_state)
{
    const grt_tensor *value = grt_attr_tensor(node->desc, "value");
    element *e;
    GRT_TRY(cuda_state(&e));
    if (value)
        memcpy(e, value->data, grt_dtype_size(value->dtype));
    *out_state = e;
    return GRT_OK;
}

bool supports_fill(const grt_kernel_node *node, grt_text *why)
{
    if (grt_dtype_in(node->out[0].dtype, CUDA_MOVABLE))
        return true;
    if (why)
        grt_text_add(why, "elements of whole bytes");
    return false;
}

grt_status run_fill(const grt_run *r)
{
    const grt_tensor *out = r->out[0];
    return cuda_fill(out->data, grt_dtype_size(out->dtype), grt_tensor_elements(out), r->state, NULL,
                     cuda_stream(r));
}

/* Signed numbers are made by the kernels of unsigned ones: what wraps round has the same bits. */
template <typename S>
using wrapping = typename std::conditional<std::is_integral<S>::value, std::make_unsigned<S>,
                                           std::enable_if<true, S>>::type::type;

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK) eye_kernel(int64_t n, int64_t cols, int64_t k, S *out)
{
    CUDA_ITEMS (i, n) {
        int64_t row = i / cols;
        out[i] = pw_narrow<S>(i - row * cols - row == k ? 1 : 0);
    }
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK) range_kernel(int64_t n, const S *start, const S *delta, S *out)
{
    typedef typename pw_storage<S>::T T;
    T first = pw_widen<S>(*start), step = pw_widen<S>(*delta);
    CUDA_ITEMS (i, n)
        if constexpr (sizeof(S) == 2 && std::is_same<T, float>::value)
            out[i] = pw_narrow<S>((float)((double)first + (double)step * (double)i));
        else
            out[i] = pw_vocabulary<T>::add(first, pw_vocabulary<T>::mul(step, (T)i));
}

template <typename S> grt_status eye(const grt_run *r)
{
    const grt_tensor *out = r->out[0];
    int64_t n = grt_tensor_elements(out);
    typedef wrapping<S> W;
    eye_kernel<W><<<cuda_grid(n), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        n, out->dims[1], *(const int64_t *)r->state, (W *)out->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S> grt_status range(const grt_run *r)
{
    int64_t n = r->out[0]->dims[0];
    typedef wrapping<S> W;
    range_kernel<W><<<cuda_grid(n), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        n, (const W *)r->in[0]->data, (const W *)r->in[2]->data, (W *)r->out[0]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status create_eye(const grt_kernel_node *node, void **out_state)
{
    int64_t *k;
    GRT_TRY(cuda_state(&k));
    *k = grt_attr_int(node->desc, "k", 0);
    *out_state = k;
    return GRT_OK;
}

bool supports_eye(const grt_kernel_node *node, grt_text *why)
{
    if (grt_dtype_in(node->out[0].dtype, GRT_SET_NUMBERS | GRT_BIT(BOOL)))
        return true;
    if (why)
        grt_text_add(why, "EyeLike makes numbers and bools, not %s", grt_dtype_name(node->out[0].dtype));
    return false;
}

grt_status run_eye(const grt_run *r)
{
    if (grt_tensor_elements(r->out[0]) <= 0)
        return GRT_OK;
    CUDA_RETURN_BY_NUMBER(r->out[0]->dtype, eye, r)
}

grt_status run_range(const grt_run *r)
{
    if (r->out[0]->dims[0] <= 0)
        return GRT_OK;
    CUDA_RETURN_BY_NUMBER(r->out[0]->dtype, range, r)
}

/* ---- ReverseSequence ---- */

struct sequences {
    int64_t n, times, batch, time_step, batch_step, inner;
    bool is32;
};

/* Lengths out of range are told to the host and clamped. */
template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    reverse_kernel(sequences s, cuda_watch watch, const void *lens, const T *in, T *out)
{
    CUDA_ITEMS (i, s.n) {
        int64_t cell = i / s.inner, at = i - cell * s.inner;
        int64_t t = cell / s.time_step % s.times, b = cell / s.batch_step % s.batch;
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

grt_status create_reverse(const grt_kernel_node *node, void **out_state)
{
    bool *time_first;
    GRT_TRY(cuda_state(&time_first));
    *time_first = grt_attr_int(node->desc, "time_axis", 0) == 0;
    *out_state = time_first;
    return GRT_OK;
}

grt_status run_reverse(const grt_run *r)
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
    return CUDA_BY_SIZE(grt_dtype_size(in->dtype), reverse, r, s);
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Where",
     .types = {GRT_BIT(BOOL), CUDA_MOVABLE, CUDA_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(1) | GRT_KERNEL_IN_PLACE(2),
     .reshape = reshape_where,
     .release_shape = free,
     .run = run_where},
    {.domain = "",
     .op = "Trilu",
     .types = {CUDA_MOVABLE, GRT_BIT(INT64)},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = create_trilu,
     .destroy = free,
     .run = run_trilu},
    {.domain = "",
     .op = "OneHot",
     .types = {GRT_SET_NUMBERS, GRT_SET_NUMBERS, CUDA_MOVABLE},
     .create = create_one_hot,
     .destroy = free,
     .reshape = reshape_one_hot,
     .release_shape = free,
     .run = run_one_hot},
    {.domain = "",
     .op = "ConstantOfShape",
     .types = {CUDA_INDEX},
     .supports = supports_fill,
     .create = create_fill,
     .destroy = free,
     .run = run_fill},
    {.domain = "",
     .op = "EyeLike",
     .supports = supports_eye,
     .create = create_eye,
     .destroy = free,
     .run = run_eye},
    {.domain = "",
     .op = "Range",
     .types = {GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS},
     .run = run_range},
    {.domain = "",
     .op = "ReverseSequence",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .create = create_reverse,
     .destroy = free,
     .run = run_reverse},
};

} // namespace
CUDA_KERNELS(select, rows);
