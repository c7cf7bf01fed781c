/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul: 8-bit numbers less their zero points, summed in
 * int32 that wraps. A thread per output element. */
#include "backends/cuda/each.cuh"
#include "backends/shared/integer.h"

namespace
{

/* A zero point or scale: one for all, or one each; per matrix or per row of all matrices. */
struct levels {
    cuda_any t;
    int64_t n;

    __device__ double get(int64_t per_matrix, int64_t matrix, int64_t i) const
    {
        return t.get(grt_integer_level(n, per_matrix, matrix, i));
    }
    __device__ int32_t zero(int64_t per_matrix, int64_t matrix, int64_t i) const
    {
        return t ? (int32_t)get(per_matrix, matrix, i) : 0;
    }
};

levels levels_of(const grt_run *r, int32_t i)
{
    const grt_tensor *t = grt_integer_in(r->in, r->n_in, i);
    return {cuda_any_of(t), t ? grt_tensor_elements(t) : 0};
}

__device__ int32_t load(const cuda_any &t, int64_t i)
{
    return t.dtype == GRT_DTYPE_INT8 ? ((const int8_t *)t.data)[i] : ((const uint8_t *)t.data)[i];
}

grt_status cuda_integer_run_conv(const grt_run *r)
{
    const grt_integer_places at = *grt_integer_places_of(r->desc);
    const grt_integer_conv s = *(const grt_integer_conv *)r->shape;
    const cuda_any x = cuda_any_in(r, 0), weight = cuda_any_in(r, at.b), y = cuda_any_out(r, 0);
    const cuda_any bias = at.bias ? cuda_any_in(r, at.bias) : cuda_any_of(NULL);
    const levels za = levels_of(r, at.zero_a), zb = levels_of(r, at.zero_b), zy = levels_of(r, at.zero_y);
    const levels sa = levels_of(r, at.scale_a), sb = levels_of(r, at.scale_b), sy = levels_of(r, at.scale_y);
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        const cpu_window &w = s.w;
        int64_t place = i % w.out_pixels, channel = i / w.out_pixels % s.out_channels,
                batch = i / w.out_pixels / s.out_channels;
        int64_t first = (batch * s.groups + channel / (s.out_channels / s.groups)) * s.in_channels;
        int32_t x_zero = za.zero(1, 0, 0), w_zero = zb.zero(s.out_channels, 0, channel);
        uint32_t sum = 0;
        for (int64_t tap = 0; tap < w.taps; tap++) {
            int64_t rest = tap, left = place, from = 0, scale = 1;
            bool inside = true;
            for (int32_t k = w.spatial - 1; k >= 0 && inside; k--) {
                int64_t p = left % w.out[k] * w.stride[k] - w.begin[k] + rest % w.kernel[k] * w.dilation[k];
                left /= w.out[k];
                rest /= w.kernel[k];
                inside = p >= 0 && p < w.in[k];
                from += p * scale;
                scale *= w.in[k];
            }
            for (int64_t c = 0; inside && c < s.in_channels; c++)
                sum += (uint32_t)(load(x, (first + c) * w.in_pixels + from) - x_zero) *
                       (uint32_t)(load(weight, (channel * s.in_channels + c) * w.taps + tap) - w_zero);
        }
        if (!sy.t) {
            ((int32_t *)y.data)[i] = (int32_t)sum;
            return;
        }
        double scale = sa.get(1, 0, 0) * sb.get(s.out_channels, 0, channel) / sy.get(1, 0, 0);
        int64_t add = bias ? bias.whole(channel) : 0;
        y.put(i, rint((double)((int32_t)sum + add) * scale) + zy.zero(1, 0, 0));
    });
}

grt_status run_matrix(const grt_run *r)
{
    const grt_integer_places at = *grt_integer_places_of(r->desc);
    const grt_integer_matmul s = *(const grt_integer_matmul *)r->shape;
    const cuda_any a = cuda_any_in(r, 0), b = cuda_any_in(r, at.b), y = cuda_any_out(r, 0);
    const levels za = levels_of(r, at.zero_a), zb = levels_of(r, at.zero_b), zy = levels_of(r, at.zero_y);
    const levels sa = levels_of(r, at.scale_a), sb = levels_of(r, at.scale_b), sy = levels_of(r, at.scale_y);
    return cuda_each(r, s.batch * s.m * s.n, [=] __device__(int64_t i) {
        const int64_t j = i % s.n, row = i / s.n % s.m, item = i / s.n / s.m,
                      a_item = grt_strided_offset(s.dims, s.lead, s.a, item),
                      b_item = grt_strided_offset(s.dims, s.lead, s.b, item);
        int32_t a_zero = za.zero(s.m, a_item, row), b_zero = zb.zero(s.n, b_item, j);
        uint32_t sum = 0;
        for (int64_t k = 0; k < s.k; k++)
            sum += (uint32_t)(load(a, (a_item * s.m + row) * s.k + k) - a_zero) *
                   (uint32_t)(load(b, (b_item * s.k + k) * s.n + j) - b_zero);
        if (!sy.t) {
            ((int32_t *)y.data)[i] = (int32_t)sum;
            return;
        }
        double scale = sa.get(s.m, a_item, row) / sy.get(s.m, item, row);
        y.put(i, rint((double)(int32_t)sum * scale * sb.get(s.n, b_item, j)) + zy.zero(s.m, item, row));
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "ConvInteger",
     .types = {GRT_SET_BYTES, GRT_SET_BYTES, GRT_SET_BYTES, GRT_SET_BYTES},
     .reshape = grt_integer_conv_reshape,
     .release_shape = free,
     .run = cuda_integer_run_conv},
    {.domain = "",
     .op = "MatMulInteger",
     .types = {GRT_SET_BYTES, GRT_SET_BYTES, GRT_SET_BYTES, GRT_SET_BYTES},
     .reshape = grt_integer_matmul_reshape,
     .release_shape = free,
     .run = run_matrix},
    {.domain = "",
     .op = "QLinearConv",
     .supports = grt_qlinear_supports,
     .reshape = grt_integer_conv_reshape,
     .release_shape = free,
     .run = cuda_integer_run_conv},
    {.domain = "",
     .op = "QLinearMatMul",
     .supports = grt_qlinear_supports,
     .reshape = grt_integer_matmul_reshape,
     .release_shape = free,
     .run = run_matrix},
};

} // namespace
CUDA_KERNELS(integer, rows);
