/* SPDX-License-Identifier: Apache-2.0 */
/* Cast and CastLike among floats, integers and bool. */
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/walk.h"
#include "src/base/int64.h"

#include <climits>

namespace
{

/* ---- converting one element ----
 * A float goes to an integer by way of int64, so that all values that fit there wrap like integers do; what
 * fits in no 64-bit integer gives the lowest one. */

struct truth {
    uint8_t value;
};

template <typename TO> struct narrowing {
    template <typename FROM> static __device__ __forceinline__ TO of(FROM x)
    {
        if constexpr (std::is_same<FROM, double>::value || std::is_same<FROM, float>::value) {
            if constexpr (std::is_floating_point<TO>::value)
                return (TO)x;
            else if constexpr (std::is_same<TO, uint64_t>::value)
                return x >= (FROM)0x1p63 && x < (FROM)0x1p64 ? (uint64_t)x
                                                             : (uint64_t)grt_int64_of((double)x);
            else
                return (TO)grt_int64_of((double)x);
        } else {
            return (TO)x;
        }
    }
};
template <> struct narrowing<truth> {
    template <typename FROM> static __device__ __forceinline__ truth of(FROM x)
    {
        return {(uint8_t)(x != FROM(0))};
    }
};
/* To 16-bit floats a double is rounded twice, so the first time to odd. */
__device__ __forceinline__ float float_odd(double d)
{
    float f = (float)d;
    double back = (double)f;
    uint32_t bits = __float_as_uint(f);
    if (back == d || f != f || (bits & 0x7fffffffu) == 0x7f800000u || (bits & 1u))
        return f;
    bool away = (back < d) == (d > 0.0);
    return __uint_as_float(away ? bits + 1u : bits - 1u);
}
template <typename FROM> __device__ __forceinline__ float cuda_float_of(FROM x)
{
    if constexpr (std::is_same<FROM, double>::value)
        return float_odd(x);
    else
        return (float)x;
}
template <> struct narrowing<__half> {
    template <typename FROM> static __device__ __forceinline__ __half of(FROM x)
    {
        return __float2half_rn(cuda_float_of(x));
    }
};
template <> struct narrowing<__nv_bfloat16> {
    template <typename FROM> static __device__ __forceinline__ __nv_bfloat16 of(FROM x)
    {
        return __float2bfloat16_rn(cuda_float_of(x));
    }
};

template <typename FROM, typename TO, int V>
__global__ void __launch_bounds__(CUDA_BLOCK) cast_kernel(int64_t n, const FROM *in, TO *out)
{
    CUDA_ITEMS (i, n) {
        cuda_pack<FROM, V> from = ((const cuda_pack<FROM, V> *)in)[i];
        cuda_pack<TO, V> to;
#pragma unroll
        for (int j = 0; j < V; j++)
            to.v[j] = narrowing<TO>::of(pw_widen<FROM>(from.v[j]));
        ((cuda_pack<TO, V> *)out)[i] = to;
    }
}

template <typename FROM, typename TO> grt_status cuda_cast(const grt_run *r, int64_t n)
{
    const FROM *in = (const FROM *)r->in[0]->data;
    TO *out = (TO *)r->out[0]->data;
    constexpr int V = 4;
    constexpr bool usual = sizeof(FROM) <= 8 && sizeof(TO) <= 8;
    int64_t done = 0;
    if (usual && cuda_aligned(in, V * sizeof(FROM) > 16 ? 16 : V * sizeof(FROM)) &&
        cuda_aligned(out, V * sizeof(TO) > 16 ? 16 : V * sizeof(TO)) && n >= V && sizeof(FROM) <= 4 &&
        sizeof(TO) <= 4) {
        done = n / V * V;
        cast_kernel<FROM, TO, sizeof(FROM) <= 4 && sizeof(TO) <= 4 ? V : 1>
            <<<cuda_grid(n / V), CUDA_BLOCK, 0, cuda_stream(r)>>>(n / V, in, out);
        CUDA_LAUNCHED();
    }
    if (done < n) {
        cast_kernel<FROM, TO, 1>
            <<<cuda_grid(n - done), CUDA_BLOCK, 0, cuda_stream(r)>>>(n - done, in + done, out + done);
        CUDA_LAUNCHED();
    }
    return GRT_OK;
}

template <typename FROM> grt_status cast_from(const grt_run *r, int64_t n)
{
    switch (r->out[0]->dtype) {
    case GRT_DTYPE_FLOAT:
        return cuda_cast<FROM, float>(r, n);
    case GRT_DTYPE_DOUBLE:
        return cuda_cast<FROM, double>(r, n);
    case GRT_DTYPE_FLOAT16:
        return cuda_cast<FROM, __half>(r, n);
    case GRT_DTYPE_BFLOAT16:
        return cuda_cast<FROM, __nv_bfloat16>(r, n);
    case GRT_DTYPE_INT8:
        return cuda_cast<FROM, int8_t>(r, n);
    case GRT_DTYPE_INT16:
        return cuda_cast<FROM, int16_t>(r, n);
    case GRT_DTYPE_INT32:
        return cuda_cast<FROM, int32_t>(r, n);
    case GRT_DTYPE_INT64:
        return cuda_cast<FROM, int64_t>(r, n);
    case GRT_DTYPE_UINT8:
        return cuda_cast<FROM, uint8_t>(r, n);
    case GRT_DTYPE_UINT16:
        return cuda_cast<FROM, uint16_t>(r, n);
    case GRT_DTYPE_UINT32:
        return cuda_cast<FROM, uint32_t>(r, n);
    case GRT_DTYPE_UINT64:
        return cuda_cast<FROM, uint64_t>(r, n);
    default:
        return cuda_cast<FROM, truth>(r, n);
    }
}

grt_status cuda_run_cast(const grt_run *r)
{
    int64_t n = grt_tensor_elements(r->in[0]);
    if (n <= 0)
        return GRT_OK;
    if (r->in[0]->dtype == r->out[0]->dtype) {
        CUDA_TRY(cudaMemcpyAsync(r->out[0]->data, r->in[0]->data, grt_tensor_bytes(r->in[0]),
                                 cudaMemcpyDeviceToDevice, cuda_stream(r)));
        return GRT_OK;
    }
    switch (r->in[0]->dtype) {
    case GRT_DTYPE_FLOAT:
        return cast_from<float>(r, n);
    case GRT_DTYPE_DOUBLE:
        return cast_from<double>(r, n);
    case GRT_DTYPE_FLOAT16:
        return cast_from<__half>(r, n);
    case GRT_DTYPE_BFLOAT16:
        return cast_from<__nv_bfloat16>(r, n);
    case GRT_DTYPE_INT8:
        return cast_from<int8_t>(r, n);
    case GRT_DTYPE_INT16:
        return cast_from<int16_t>(r, n);
    case GRT_DTYPE_INT32:
        return cast_from<int32_t>(r, n);
    case GRT_DTYPE_INT64:
        return cast_from<int64_t>(r, n);
    case GRT_DTYPE_UINT16:
        return cast_from<uint16_t>(r, n);
    case GRT_DTYPE_UINT32:
        return cast_from<uint32_t>(r, n);
    case GRT_DTYPE_UINT64:
        return cast_from<uint64_t>(r, n);
    default: /* UINT8, BOOL */
        return cast_from<uint8_t>(r, n);
    }
}

#define CASTABLE (GRT_SET_NUMBERS | GRT_BIT(BOOL))

bool supports_cast(const grt_kernel_node *node, grt_text *why)
{
    if (node->n_out > 0 && grt_dtype_in(node->out[0].dtype, CASTABLE))
        return true;
    if (why)
        grt_text_add(why, "the result must be a float, integer or bool of whole bytes");
    return false;
}

const grt_kernel_row rows[] = {
    {.domain = "", .op = "Cast", .types = {CASTABLE}, .supports = supports_cast, .run = cuda_run_cast},
    {.domain = "", .op = "CastLike", .types = {CASTABLE}, .supports = supports_cast, .run = cuda_run_cast},
};

} // namespace
CUDA_KERNELS(cast, rows);
