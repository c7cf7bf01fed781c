/* SPDX-License-Identifier: Apache-2.0 */
/* Shape, Size, ConstantOfShape, EyeLike, Range. */
#include "backends/cuda/copy.h"
#include "backends/cuda/each.cuh"
#include "backends/cuda/number.cuh"
#include "backends/cuda/pointwise_eval.h"

namespace
{

grt_status cuda_run_shape(const grt_run *r)
{
    const cuda_dims dims = cuda_dims_of(r->in[0]);
    int64_t start = grt_attr_int(r->desc, "start", 0);
    start = start < 0 ? start + dims.rank : start;
    const int64_t from = start < 0 ? 0 : start;
    int64_t *out = (int64_t *)r->out[0]->data;
    return cuda_each(r, r->out[0]->dims[0], [=] __device__(int64_t i) {
        out[i] = from + i < dims.rank ? dims[(int32_t)(from + i)] : 0;
    });
}

grt_status cuda_run_size(const grt_run *r)
{
    const int64_t n = grt_tensor_elements(r->in[0]);
    int64_t *out = (int64_t *)r->out[0]->data;
    return cuda_each(r, 1, [=] __device__(int64_t) { *out = n; });
}

struct element {
    char bytes[16];
};

grt_status cuda_create_fill(const grt_kernel_node *node, void **out_state)
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

grt_status cuda_run_fill(const grt_run *r)
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

grt_status cuda_create_eye(const grt_kernel_node *node, void **out_state)
{
    int64_t *k;
    GRT_TRY(cuda_state(&k));
    *k = grt_attr_int(node->desc, "k", 0);
    *out_state = k;
    return GRT_OK;
}

bool cuda_supports_eye(const grt_kernel_node *node, grt_text *why)
{
    if (grt_dtype_in(node->out[0].dtype, GRT_SET_NUMBERS | GRT_BIT(BOOL)))
        return true;
    if (why)
        grt_text_add(why, "EyeLike makes numbers and bools, not %s", grt_dtype_name(node->out[0].dtype));
    return false;
}

grt_status cuda_run_eye(const grt_run *r)
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

const grt_kernel_row rows[] = {
    {.domain = "", .op = "Shape", .run = cuda_run_shape},
    {.domain = "", .op = "Size", .run = cuda_run_size},
    {.domain = "",
     .op = "ConstantOfShape",
     .types = {CUDA_INDEX},
     .supports = supports_fill,
     .create = cuda_create_fill,
     .destroy = free,
     .run = cuda_run_fill},
    {.domain = "",
     .op = "EyeLike",
     .supports = cuda_supports_eye,
     .create = cuda_create_eye,
     .destroy = free,
     .run = cuda_run_eye},
    {.domain = "",
     .op = "Range",
     .types = {GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS},
     .run = run_range},
};

} // namespace
CUDA_KERNELS(shape, rows);
