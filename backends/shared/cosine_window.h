/* SPDX-License-Identifier: Apache-2.0 */
/* BlackmanWindow, HammingWindow and HannWindow: sums of cosines. */
#ifndef GRT_BACKENDS_SHARED_COSINE_WINDOW_H
#define GRT_BACKENDS_SHARED_COSINE_WINDOW_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a[0] - a[1] cos(t) + a[2] cos(2 t), t from 0 to 2 pi: in `size` steps if periodic, else in one less. */
typedef struct grt_cosine_window {
    double a[3];
    bool periodic;
} grt_cosine_window;

/* For kernel rows: the state is released with free. */
grt_status grt_cosine_window_create(const grt_kernel_node *node, void **out_state);

#ifdef __cplusplus
}
#endif
#endif
