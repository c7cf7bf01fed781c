/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a convolution, apart from any use of them. */
#ifndef GRT_BACKENDS_CPU_DNNL_FILTER_H
#define GRT_BACKENDS_CPU_DNNL_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#define GRT_DNNL_MAX_SPATIAL 3

typedef struct grt_dnnl_filter {
    int spatial;
    bool transposed;
    int64_t groups, in_channels, out_channels, kernel[GRT_DNNL_MAX_SPATIAL];
} grt_dnnl_filter;

#endif
