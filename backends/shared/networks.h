/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Networks (graph/ops/networks.c): its layers. All backends compute from these. */
#ifndef GRT_BACKENDS_SHARED_NETWORKS_H
#define GRT_BACKENDS_SHARED_NETWORKS_H

#include "backends/kernel.h"
#include "src/base/activation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What kernels take: what passes between layers is kept in registers. */
enum { GRT_NETWORKS_LAYERS = 6, GRT_NETWORKS_WIDTH = 32 };

typedef struct grt_networks {
    int32_t n_layers, most;                 /* most: the largest width */
    int32_t width[GRT_NETWORKS_LAYERS + 1]; /* of the input, then of each layer's result */
    bool bias[GRT_NETWORKS_LAYERS];
    grt_act act[GRT_NETWORKS_LAYERS];
} grt_networks;

/* Indices of inputs. */
static inline int32_t grt_networks_weights(int32_t layer)
{
    return 1 + 2 * layer;
}
static inline int32_t grt_networks_bias(int32_t layer)
{
    return 2 + 2 * layer;
}

/* For kernel rows: is it within these limits, with weights of known dims? The state is a grt_networks, free
 * releases it. */
bool grt_networks_supports(const grt_kernel_node *node, grt_text *why);
grt_status grt_networks_create(const grt_kernel_node *node, void **out_state);

#ifdef __cplusplus
}
#endif
#endif
