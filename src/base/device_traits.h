/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of device a plan is for, as passes and sessions ask: constant, a part of its backend. */
#ifndef GRT_BASE_DEVICE_TRAITS_H
#define GRT_BASE_DEVICE_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct grt_device_traits {
    bool own_memory; /* devices have memory of their own, which weights are copied to */
    bool imitates;   /* no device at all: its choices go to a cache's file only if somebody named that file */
    bool channels_last;  /* convolution regions run better in NHWC */
    bool joins_products; /* one product of one row runs better than several of fewer columns */
    /* Products of at least so many multiply-adds gain nothing from being batched with others like them; 0:
     * batching always helps. */
    int64_t lone_product;
} grt_device_traits;

#endif
