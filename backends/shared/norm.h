/* SPDX-License-Identifier: Apache-2.0 */
/* The normalisations: rows, groups and channels, and the factors that belong to them. */
#ifndef GRT_BACKENDS_SHARED_NORM_H
#define GRT_BACKENDS_SHARED_NORM_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GRT_NORM_SCALE = 1, GRT_NORM_BIAS = 2, GRT_NORM_MEAN = 3, GRT_NORM_VARIANCE = 4 };

/* A scale or bias that broadcasts to the input. */
typedef struct grt_norm_factor {
    bool is_row; /* one value for each element of a row; true where there is no factor */
    int64_t strides[GRT_MAX_RANK];
} grt_norm_factor;

/* LayerNormalization, RMSNormalization. */
typedef struct grt_layer_norm {
    int64_t rows, size;
    double epsilon;
    bool rms;
    int32_t rank;
    int64_t dims[GRT_MAX_RANK];
    grt_norm_factor scale, bias;
} grt_layer_norm;

/* GroupNormalization, InstanceNormalization: a row is a group of channels of one image. */
typedef struct grt_group_norm {
    int64_t rows, groups, channels, pixels; /* channels: per group */
    double epsilon;
    bool last; /* channels are the last dim */
} grt_group_norm;

/* BatchNormalization; a vector has one channel. */
typedef struct grt_batch_norm {
    int64_t batch, channels, inner;
    double epsilon, momentum;
    bool training;
} grt_batch_norm;

typedef struct grt_lrn {
    int64_t batch, channels, pixels, before, after; /* channels of the window on either side */
    float alpha, beta, bias;                        /* alpha: already divided by the size */
} grt_lrn;

/* Errors of all: INVALID_ARGUMENT if a factor does not fit the input. */
grt_status grt_layer_norm_fit(const grt_reshape *reshape, grt_layer_norm *out_norm);
grt_status grt_group_norm_fit(const grt_reshape *reshape, grt_group_norm *out_norm);
grt_status grt_batch_norm_fit(const grt_reshape *reshape, grt_batch_norm *out_norm);
void grt_lrn_fit(const grt_reshape *reshape, grt_lrn *out_lrn);

#ifdef __cplusplus
}
#endif
#endif
