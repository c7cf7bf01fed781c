/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/col2im.h"

#include "backends/shared/window.h"
#include "src/base/tensor.h"

static void col2im_read_list(const grt_op_desc *desc, const char *name, int64_t fallback, int64_t *out,
                             size_t room)
{
    size_t n;
    const int64_t *list = grt_attr_ints(desc, name, &n);
    for (size_t k = 0; k < room; k++)
        out[k] = list && k < n ? list[k] : fallback;
}

void grt_col2im_read_attributes(const grt_op_desc *desc, grt_col2im *c)
{
    col2im_read_list(desc, "dilations", 1, c->dilations, GRT_MAX_RANK);
    col2im_read_list(desc, "strides", 1, c->strides, GRT_MAX_RANK);
    col2im_read_list(desc, "pads", 0, c->pads, 2 * GRT_MAX_RANK);
}

/* Positions of the window in dim k of an image of `size`, which a caller may claim of an empty one. */
static int64_t col2im_steps(const grt_col2im *c, int32_t k, int64_t size)
{
    const int64_t padded = grt_add_saturated(size, c->pads[k] + c->pads[c->spatial + k]),
                  room = grt_sub_saturated(padded, cpu_window_extent(c->kernel[k], c->dilations[k]));
    return room < 0 ? 0 : room / c->strides[k] + 1;
}

grt_status grt_col2im_fit(const grt_op_desc *desc, const grt_tensor *in, const grt_tensor *block,
                          const grt_tensor *out, grt_col2im *c)
{
    c->spatial = out->rank - 2;
    c->taps = c->places = 1;
    for (int32_t k = 0; k < c->spatial; k++) {
        c->kernel[k] = grt_tensor_int(block, k);
        if (c->kernel[k] < 1 || c->kernel[k] > INT32_MAX)
            return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                               "block_shape[%d] is %lld; it must be positive", k, (long long)c->kernel[k]);
        c->steps[k] = col2im_steps(c, k, out->dims[k + 2]);
        if (!grt_mul_i64(c->taps, c->kernel[k], &c->taps) || !grt_mul_i64(c->places, c->steps[k], &c->places))
            return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT, "image and block ask for too much");
    }
    int64_t rows;
    if (!grt_mul_i64(out->dims[1], c->taps, &rows) || in->dims[1] != rows || in->dims[2] != c->places)
        return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input is %lldx%lld where image and block ask for %lldx%lld",
                           (long long)in->dims[1], (long long)in->dims[2], (long long)rows,
                           (long long)c->places);
    return GRT_OK;
}
