/* SPDX-License-Identifier: Apache-2.0 */
/* Pools on concrete sizes. backends/cpu/ops/pool.c chooses. */
#ifndef GRT_BACKENDS_CPU_POOL_H
#define GRT_BACKENDS_CPU_POOL_H

#include "backends/shared/window.h"
#include "src/base/tensor.h"

/* How pool_tiles.h cuts the last two dims of an output; cols is 0 where it does not. */
typedef struct cpu_pool_tiles {
    int64_t rows, cols, line; /* outputs of a tile; floats from one of its lines to the next */
    bool copied;
} cpu_pool_tiles;

typedef struct cpu_pool {
    cpu_window w;
    cpu_pool_tiles tiles;
    bool last, max, count_padding, column_major;
    int64_t batch, channels;
    int32_t threads;
} cpu_pool;

/* Images that are pooled whole. */
typedef struct cpu_images {
    bool last;
    int64_t batch, channels, pixels;
} cpu_images;

static inline cpu_images cpu_images_of(const grt_op_desc *desc, const grt_tensor *x)
{
    const bool last = grt_channels_last(desc);
    return (cpu_images){.last = last,
                        .batch = x->dims[0],
                        .channels = x->dims[last ? x->rank - 1 : 1],
                        .pixels = last ? grt_dims_product(x->dims, 1, x->rank - 1)
                                       : grt_dims_product(x->dims, 2, x->rank)};
}

/* MaxPool of uint8 or int8 with channels last. */
void cpu_pool_largest_bytes(const cpu_pool *p, grt_dtype dtype, const uint8_t *x, uint8_t *y);

/* float32, channels last, any window. */
void cpu_pool_pixels(const cpu_pool *p, const float *x, float *y);
/* Any type, channels first, and the positions of maxima if indices is not NULL. */
void cpu_pool_exact(const cpu_pool *p, grt_dtype dtype, const void *x, void *y, int64_t *indices);

/* Elements that the average of the window at output position o divides by, in dim i. */
static inline int64_t cpu_pool_count(const cpu_pool *p, int32_t i, int64_t o)
{
    const cpu_window *w = &p->w;
    int64_t from, to, first;
    if (!p->count_padding) {
        cpu_window_taps(w, i, o, &from, &to, &first);
        return to - from;
    }
    /* Padding counts, but not what lies behind it. */
    const int64_t start = o * w->stride[i] - w->begin[i], room = w->in[i] + w->end[i] - start;
    const int64_t taps = room > 0 ? (room + w->dilation[i] - 1) / w->dilation[i] : 0;
    return taps < w->kernel[i] ? taps : w->kernel[i];
}

#endif
