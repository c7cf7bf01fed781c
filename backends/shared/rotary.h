/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: its attributes, and how the dims of its inputs go together. All backends compute from
 * these. graphrt::RotaryEmbeddings(q, cos, sin, ids, k) rotates two inputs by the same angles,
 * graphrt::RotaryEmbedding the first rotated_heads of its input's heads. */
#ifndef GRT_BACKENDS_SHARED_ROTARY_H
#define GRT_BACKENDS_SHARED_ROTARY_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_rotary {
    int64_t heads[2], rotated; /* 0: as the input says. Heads of each input that is rotated */
    int64_t first;             /* heads that are rotated; 0: all */
    bool interleaved;
    int32_t n; /* inputs that are rotated, and results */
} grt_rotary;

/* Number of the input that result i is of. */
static inline int32_t grt_rotary_input(int32_t i)
{
    enum { SECOND = 4 };
    return i == 0 ? 0 : SECOND;
}

/* Rows of the input are in memory order: [batch, heads, length] or, packed, [batch, length, all_heads], of
 * which the first `heads` are rotated. */
typedef struct grt_rotary_dims {
    int64_t batch, heads, all_heads, length, size, half; /* half: rotated pairs per head */
    int64_t positions;                                   /* rows of the caches, with position_ids */
    bool packed;                                         /* [batch, length, heads * size] */
} grt_rotary_dims;

/* Which row of the input is the i-th of those that are rotated. */
GRT_INLINE int64_t grt_rotary_row(const grt_rotary_dims *dims, int64_t i)
{
    return dims->heads == dims->all_heads ? i : i / dims->heads * dims->all_heads + i % dims->heads;
}

/* For kernel rows: the state is a grt_rotary, the shape a grt_rotary_dims for each result; free
 * releases both. */
grt_status grt_rotary_create(const grt_kernel_node *node, void **out_state);
grt_status grt_rotary_reshape(grt_reshape *reshape);

#ifdef __cplusplus
}
#endif
#endif
