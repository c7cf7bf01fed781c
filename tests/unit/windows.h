/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over images, as of convolutions and pools: drawn ones, and where their taps lie by definition. */
#ifndef GRT_TESTS_UNIT_WINDOWS_H
#define GRT_TESTS_UNIT_WINDOWS_H

#include "tests/unit/op_runner.h"

enum { WINDOW_MOST = 3 /* spatial dims */ };

typedef struct window {
    int32_t spatial;
    int64_t batch, channels, filters, groups;
    int64_t in[WINDOW_MOST], kernel[WINDOW_MOST], stride[WINDOW_MOST], dilation[WINDOW_MOST],
        pads[2 * WINDOW_MOST];
} window;

/* Numbers from low to high, the same behind each window_begin with that seed. */
void window_begin(uint32_t seed);
int64_t window_pick(int64_t low, int64_t high);
/* A window that fits its image, by that seed. */
window window_random(uint32_t seed);
void window_attributes(op_runner *r, const window *w);
void window_unflatten(int64_t flat, const int64_t *dims, int32_t n, int64_t *index);
/* The next index, the last dim first; the first after the last. */
void window_advance(int64_t *index, const int64_t *dims, int32_t n);
/* Position in the input of tap k at output o; false if it is padding. */
bool window_position(const window *w, const int64_t *o, const int64_t *k, int64_t *at);
/* From batch, channels, pixels to batch, pixels, channels; to be freed. */
float *window_channels_last(const float *x, int64_t batch, int64_t channels, int64_t pixels);
/* Dims of a tensor with these channels and spatial dims. */
void window_dims(int64_t *dims, const window *w, int64_t channels, const int64_t *spatial, bool last);
/* Drawn numbers, to be freed. */
float *window_floats(int64_t n, uint32_t seed);

#endif
