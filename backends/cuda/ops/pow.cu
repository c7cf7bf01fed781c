/* SPDX-License-Identifier: Apache-2.0 */
/* Pow: floats to the power of floats of the same type in their own precision; all other pairs of types
 * through float64, or int64 where both are integers. */
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/walk.h"
#include "src/base/int64.h"

namespace
{

typedef cuda_walk<3, GRT_MAX_RANK> pair_walk;

/* An exponent of any number type. */
struct number {
    bool whole;
    int64_t i;
    double d;
};
__device__ __forceinline__ number number_at(grt_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        return {false, 0, (double)((const float *)data)[i]};
    case GRT_DTYPE_DOUBLE:
        return {false, 0, ((const double *)data)[i]};
    case GRT_DTYPE_FLOAT16:
        return {false, 0, (double)__half2float(((const __half *)data)[i])};
    case GRT_DTYPE_BFLOAT16:
        return {false, 0, (double)__bfloat162float(((const __nv_bfloat16 *)data)[i])};
    case GRT_DTYPE_INT8:
        return {true, ((const int8_t *)data)[i], (double)((const int8_t *)data)[i]};
    case GRT_DTYPE_INT16:
        return {true, ((const int16_t *)data)[i], (double)((const int16_t *)data)[i]};
    case GRT_DTYPE_INT32:
        return {true, ((const int32_t *)data)[i], (double)((const int32_t *)data)[i]};
    case GRT_DTYPE_INT64:
        return {true, ((const int64_t *)data)[i], (double)((const int64_t *)data)[i]};
    case GRT_DTYPE_UINT16:
        return {true, ((const uint16_t *)data)[i], (double)((const uint16_t *)data)[i]};
    case GRT_DTYPE_UINT32:
        return {true, ((const uint32_t *)data)[i], (double)((const uint32_t *)data)[i]};
    case GRT_DTYPE_UINT64:
        return {true, (int64_t)((const uint64_t *)data)[i], (double)((const uint64_t *)data)[i]};
    default:
        return {true, ((const uint8_t *)data)[i], (double)((const uint8_t *)data)[i]};
    }
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    power_kernel(const __grid_constant__ pair_walk walk, grt_dtype dtype, bool same, const S *base,
                 const void *exponent, S *out)
{
    typedef typename pw_storage<S>::T T;
    CUDA_ITEMS (i, walk.total) {
        int64_t at[3];
        cuda_walk_at(walk, i, at);
        T x = pw_widen<S>(base[at[1]]);
        if constexpr (std::is_floating_point<T>::value) {
            if (same)
                out[at[0]] = pw_narrow<S>(m_power(x, pw_widen<S>(((const S *)exponent)[at[2]])));
            else
                out[at[0]] = pw_narrow<S>((T)pow((double)x, number_at(dtype, exponent, at[2]).d));
        } else {
            number y = number_at(dtype, exponent, at[2]);
            double real = y.whole ? 0 : pow((double)x, y.d);
            out[at[0]] = (S)(y.whole                            ? grt_int64_power((int64_t)x, y.i)
                             : real >= -0x1p63 && real < 0x1p63 ? (int64_t)real
                                                                : INT64_MIN);
        }
    }
}

template <typename S> grt_status power(const grt_run *r)
{
    const pair_walk *walk = (const pair_walk *)r->shape;
    grt_dtype dtype = r->in[1]->dtype;
    power_kernel<S><<<cuda_grid(walk->total), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        *walk, dtype, dtype == r->in[0]->dtype, (const S *)r->in[0]->data, r->in[1]->data,
        (S *)r->out[0]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_pow_reshape(grt_reshape *r)
{
    pair_walk *walk;
    GRT_TRY(cuda_state(&walk));
    cuda_walk_broadcast(walk, r->out[0], 2, r->in);
    r->shape = walk;
    return GRT_OK;
}

grt_status cuda_pow_run(const grt_run *r)
{
    if (((const pair_walk *)r->shape)->total <= 0)
        return GRT_OK;
    switch (r->in[0]->dtype) {
    case GRT_DTYPE_FLOAT:
        return power<float>(r);
    case GRT_DTYPE_DOUBLE:
        return power<double>(r);
    case GRT_DTYPE_FLOAT16:
        return power<__half>(r);
    case GRT_DTYPE_BFLOAT16:
        return power<__nv_bfloat16>(r);
    case GRT_DTYPE_INT32:
        return power<int32_t>(r);
    default:
        return power<int64_t>(r);
    }
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Pow",
     .types = {GRT_SET_FLOATS | GRT_BIT(INT32) | GRT_BIT(INT64), GRT_SET_NUMBERS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .reshape = cuda_pow_reshape,
     .release_shape = free,
     .run = cuda_pow_run},
};

} // namespace
CUDA_KERNELS(pow, rows);
