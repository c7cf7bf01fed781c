/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/pixel_filter.h"

#include "backends/shared/window.h"

#include <stdlib.h>

/* What the shape rule could not see while dims were unknown. */
static grt_status pixel_filter_check(const grt_reshape *r, const grt_pixel_filter *f, int32_t channel)
{
    const grt_tensor *x = r->in[0], *w = r->in[1], *y = r->out[0];
    const int32_t at = f->last ? 1 : 2;
    const int64_t taps = f->kernel[0] * f->kernel[1], numbers = w->dims[channel];
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    if (w->dims[0] == x->dims[0] && w->dims[at] == y->dims[at] && w->dims[at + 1] == y->dims[at + 1] &&
        numbers > 0 && numbers % taps == 0 && x->dims[channel] % (numbers / taps) == 0)
        return GRT_OK;
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "the filters are %s; expected %lld numbers for each of some groups that divide %lld "
                       "channels, for each pixel of the result, %s",
                       grt_tensor_text(w, found), (long long)taps, (long long)x->dims[channel],
                       grt_tensor_text(y, wanted));
}

grt_status grt_pixel_filter_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *w = r->in[1], *y = r->out[0];
    const bool last = grt_channels_last(r->desc);
    const int32_t at = last ? 1 : 2, channel = last ? 3 : 1;
    cpu_window window;
    grt_pixel_filter *f = calloc(1, sizeof *f);
    if (!f)
        return grt_fail_memory(sizeof *f);
    cpu_window_read(r->desc, 2, x->dims + at, y->dims + at, NULL, false, &window);
    f->last = last;
    f->batch = x->dims[0];
    f->channels = x->dims[channel];
    for (int k = 0; k < 2; k++) {
        f->in[k] = window.in[k];
        f->out[k] = window.out[k];
        f->kernel[k] = window.kernel[k];
        f->stride[k] = window.stride[k];
        f->dilation[k] = window.dilation[k];
        f->begin[k] = window.begin[k];
    }
    const grt_status status = pixel_filter_check(r, f, channel);
    if (status != GRT_OK) {
        free(f);
        return status;
    }
    f->groups = w->dims[channel] / (f->kernel[0] * f->kernel[1]);
    f->n = grt_tensor_elements(y);
    r->shape = f;
    return GRT_OK;
}
