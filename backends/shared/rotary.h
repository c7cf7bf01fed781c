/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: its attributes, and how the dims of its inputs go together. All backends compute from
 * these. */
#ifndef GRT_BACKENDS_SHARED_ROTARY_H
#define GRT_BACKENDS_SHARED_ROTARY_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_rotary {
    int64_t heads, rotated; /* 0: as the input says */
    bool interleaved;
} grt_rotary;

/* Rows of the input are in memory order: [batch, heads, length] or, packed, [batch, length, heads]. */
typedef struct grt_rotary_dims {
    int64_t batch, heads, length, size, half; /* half: rotated pairs per head */
    int64_t positions;                        /* rows of the caches, with position_ids */
    bool packed;                              /* [batch, length, heads * size] */
} grt_rotary_dims;

/* For kernel rows: the state is a grt_rotary, the shape a grt_rotary_dims; free releases both. */
grt_status grt_rotary_create(const grt_kernel_node *node, void **out_state);
grt_status grt_rotary_reshape(grt_reshape *reshape);

#ifdef __cplusplus
}
#endif
#endif
