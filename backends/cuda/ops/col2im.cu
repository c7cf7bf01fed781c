/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im: a thread per output element gathers what makes it. */
#include "backends/cuda/each.cuh"
#include "backends/shared/col2im.h"

namespace
{

struct fold {
    grt_col2im c;
    bool is_plane; /* two dims, no dilation, sizes and pads that are small and not negative */
};

bool is_plane_fold(const grt_col2im &c, const grt_tensor *out)
{
    enum { MOST = 1 << 20 };
    bool plane = out->rank == 4 && out->dims[2] * out->dims[3] <= INT32_MAX / 2;
    for (int32_t k = 0; k < 2; k++)
        plane = plane && c.dilations[k] == 1 && c.pads[k] >= 0 && c.pads[k] <= MOST && c.kernel[k] <= MOST &&
                c.strides[k] >= 1 && c.strides[k] <= MOST && c.steps[k] <= INT32_MAX / 2 &&
                out->dims[k + 2] <= INT32_MAX / 2;
    return plane;
}

grt_status reshape_fold(grt_reshape *r)
{
    const grt_tensor *block = r->in[2], *out = r->out[0];
    if (!block->data || grt_tensor_elements(block) != out->rank - 2)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "input block_shape must be known before the run, a number per axis");
    fold f = {};
    grt_col2im_read_attributes(r->desc, &f.c);
    GRT_TRY(grt_col2im_fit(r->desc, r->in[0], block, out, &f.c));
    f.is_plane = is_plane_fold(f.c, out);
    fold *kept;
    GRT_TRY(cuda_state(&kept));
    *kept = f;
    r->shape = kept;
    return GRT_OK;
}

/* Images of two dims: of each result only the taps that reach it, which are a stride apart. */
grt_status run_plane_fold(const grt_run *r, const grt_col2im &c)
{
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const int height = (int)r->out[0]->dims[2], width = (int)r->out[0]->dims[3];
    const int kernel[2] = {(int)c.kernel[0], (int)c.kernel[1]},
              stride[2] = {(int)c.strides[0], (int)c.strides[1]}, pad[2] = {(int)c.pads[0], (int)c.pads[1]},
              steps[2] = {(int)c.steps[0], (int)c.steps[1]};
    const int64_t taps = c.taps, places = c.places;
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        const int64_t channel = i / (height * width);
        const int pixel = (int)(i - channel * (height * width)), y = pixel / width + pad[0],
                  x = pixel % width + pad[1];
        double sum = 0;
        for (int down = y % stride[0]; down < kernel[0] && down <= y; down += stride[0])
            for (int right = x % stride[1]; right < kernel[1] && right <= x; right += stride[1]) {
                const int row = (y - down) / stride[0], column = (x - right) / stride[1];
                if (row < steps[0] && column < steps[1])
                    sum += in.get((channel * taps + down * kernel[1] + right) * places + row * steps[1] +
                                  column);
            }
        out.put(i, sum);
    });
}

grt_status run_fold(const grt_run *r)
{
    const fold &f = *(const fold *)r->shape;
    const grt_col2im c = f.c;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    if (f.is_plane)
        return run_plane_fold(r, c);
    const cuda_dims dims = cuda_dims_of(r->out[0], 2);
    const int64_t pixels = grt_dims_product(r->out[0]->dims, 2, r->out[0]->rank);
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        double sum = 0;
        for (int64_t tap = 0; tap < c.taps; tap++) {
            int64_t rest = tap, at = i % pixels, place = 0, scale = 1;
            bool hit = true;
            for (int32_t k = dims.rank - 1; k >= 0 && hit; k--) {
                int64_t y = at % dims[k] + c.pads[k] - rest % c.kernel[k] * c.dilations[k];
                at /= dims[k];
                rest /= c.kernel[k];
                hit = y >= 0 && y % c.strides[k] == 0 && y / c.strides[k] < c.steps[k];
                place += y / c.strides[k] * scale;
                scale *= c.steps[k];
            }
            if (hit)
                sum += in.get((i / pixels * c.taps + tap) * c.places + place);
        }
        out.put(i, sum);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Col2Im",
     .types = {GRT_SET_NUMBERS, GRT_BIT(INT64), GRT_BIT(INT64)},
     .flags = GRT_KERNEL_READS(2),
     .reshape = reshape_fold,
     .release_shape = free,
     .run = run_fold},
};

} // namespace
CUDA_KERNELS(col2im, rows);
