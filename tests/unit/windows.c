/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/windows.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state;

void window_begin(uint32_t seed)
{
    state = seed * 2654435761u + 1;
}

int64_t window_pick(int64_t low, int64_t high)
{
    state = state * 1664525u + 1013904223u;
    return low + (int64_t)(state >> 8) % (high - low + 1);
}

window window_random(uint32_t seed)
{
    window_begin(seed);
    window w = {.spatial = (int32_t)window_pick(1, 3), .batch = window_pick(1, 2)};
    const int64_t kinds[] = {1, 1, 2, 3, 8}, per_in = kinds[window_pick(0, 4)],
                  per_out = kinds[window_pick(0, 4)];
    w.groups = window_pick(0, 2) ? 1 : window_pick(2, 4);
    w.channels = w.groups * per_in;
    w.filters = w.groups * per_out;
    for (int32_t i = 0; i < w.spatial; i++) {
        w.kernel[i] = window_pick(1, 4);
        w.stride[i] = window_pick(1, 3);
        w.dilation[i] = window_pick(1, 2);
        w.pads[i] = window_pick(0, 2);
        w.pads[w.spatial + i] = window_pick(0, 2);
        w.in[i] = window_pick(1, 7) + (w.kernel[i] - 1) * w.dilation[i];
    }
    return w;
}

void window_attributes(op_runner *r, const window *w)
{
    op_ints(r, "strides", w->stride, (size_t)w->spatial);
    op_ints(r, "dilations", w->dilation, (size_t)w->spatial);
    op_ints(r, "pads", w->pads, 2 * (size_t)w->spatial);
}

void window_unflatten(int64_t flat, const int64_t *dims, int32_t n, int64_t *index)
{
    for (int32_t i = n - 1; i >= 0; i--) {
        index[i] = flat % dims[i];
        flat /= dims[i];
    }
}

void window_advance(int64_t *index, const int64_t *dims, int32_t n)
{
    for (int32_t i = n - 1; i >= 0; i--) {
        if (++index[i] < dims[i])
            return;
        index[i] = 0;
    }
}

static int64_t window_flatten(const int64_t *index, const int64_t *dims, int32_t n)
{
    int64_t flat = 0;
    for (int32_t i = 0; i < n; i++)
        flat = flat * dims[i] + index[i];
    return flat;
}

bool window_position(const window *w, const int64_t *o, const int64_t *k, int64_t *at)
{
    int64_t p[WINDOW_MOST];
    for (int32_t i = 0; i < w->spatial; i++) {
        p[i] = o[i] * w->stride[i] + k[i] * w->dilation[i] - w->pads[i];
        if (p[i] < 0 || p[i] >= w->in[i])
            return false;
    }
    *at = window_flatten(p, w->in, w->spatial);
    return true;
}

float *window_channels_last(const float *x, int64_t batch, int64_t channels, int64_t pixels)
{
    float *y = malloc((size_t)(batch * channels * pixels + 1) * sizeof *y);
    ck_assert_ptr_nonnull(y);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < pixels; p++)
                y[(b * pixels + p) * channels + c] = x[(b * channels + c) * pixels + p];
    return y;
}

void window_dims(int64_t *dims, const window *w, int64_t channels, const int64_t *spatial, bool last)
{
    dims[0] = w->batch;
    dims[last ? w->spatial + 1 : 1] = channels;
    memcpy(dims + (last ? 1 : 2), spatial, (size_t)w->spatial * sizeof *dims);
}

float *window_floats(int64_t n, uint32_t seed)
{
    float *data = malloc((size_t)(n + 1) * sizeof *data);
    ck_assert_ptr_nonnull(data);
    fill_floats(data, n, seed);
    return data;
}
