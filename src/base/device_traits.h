/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of device a plan is for, as passes and sessions ask: constant, a part of its backend. */
#ifndef GRT_BASE_DEVICE_TRAITS_H
#define GRT_BASE_DEVICE_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct grt_device_traits {
    bool own_memory; /* devices have memory of their own, which weights are copied to */
    bool simulated;  /* not a real device: its choices are written to a cache file only if that file was named
                       explicitly */
    bool channels_last;        /* convolution regions run better in NHWC */
    bool lines_in_groups_last; /* one-dimensional convolutions in groups of 16 channels and more run with
                                  channels last, if they have several taps and are not dilated */
    bool long_groups_last; /* so do one-dimensional convolutions in groups of many channels, with many taps */
    bool volumes_last;     /* so do those with three dims */
    bool transposed_last;  /* so do transposed ones whose input does not have it yet */
    bool dilated_lines_last; /* so do dilated convolutions along one dim with channels enough */
    bool merges_products;    /* one product of one row is faster than several with the same input and as many
                               columns in all */
    bool half_floats;        /* float16 is faster than float32 */
    bool bfloat16_products;  /* precision bf16 means products alone: their factors are rounded as they are
                                read,  values between stay float32 */
    bool joins_networks;     /* a chain of small batched products is faster as one kernel */
    bool filters_channels;   /* a filter for each channel is faster than one for images of a channel */
    bool folds_rows;         /* element-wise ops around sums of rows are faster as one kernel */
    bool loads_code; /* code and libraries' tables are loaded by what uses them first: sessions do so before
                        they are ready */
    bool merges_small_steps; /* starting a step costs more than a small one takes */
    bool splits_phases;      /* a convolution of all phases and DepthToSpace is faster than ConvTranspose */
    bool weight_rows;        /* float32 products are faster with constant weights that are stored as [n, k] */
    /* Products of at least so many multiply-adds gain nothing from being batched with others like them; 0:
     * batching always helps. */
    int64_t batch_limit;
} grt_device_traits;

#endif
