/* SPDX-License-Identifier: Apache-2.0 */
/* Heads: what the shapes of an attention's inputs say. */
#ifndef GRT_GRAPH_OPS_HEADS_H
#define GRT_GRAPH_OPS_HEADS_H

#include "graph/ir/op.h"

/* What the shapes of queries, keys and values say: [batch, heads, sequence, head size] each. */
typedef struct heads {
    grt_dim batch, n, sequence, size;
} heads;

/* Split a packed [batch, sequence, heads * size] or take a [batch, heads, sequence, size] apart. */
grt_status heads_split(const infer *inf, int32_t i, const char *attr, heads *out);
grt_status heads_same(const infer *inf, const char *what, grt_dim a, grt_dim b);
grt_status heads_check(const infer *inf, const heads *q, const heads *k, const heads *v);
void heads_set_4d(infer *inf, int32_t i, grt_dtype dtype, grt_dim a, grt_dim b, grt_dim c, grt_dim d);
void heads_set_3d(infer *inf, int32_t i, grt_dtype dtype, grt_dim a, grt_dim b, grt_dim c);

#endif
