/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and LogSoftmax: how the input lies along the axis. */
#ifndef GRT_BACKENDS_SHARED_SOFTMAX_H
#define GRT_BACKENDS_SHARED_SOFTMAX_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_softmax {
    int64_t outer, size, inner; /* size elements along the axis, `inner` apart */
    bool log;
} grt_softmax;

/* For kernel rows: the shape is a grt_softmax, which free releases. */
grt_status grt_softmax_reshape(grt_reshape *reshape);

#ifdef __cplusplus
}
#endif
#endif
