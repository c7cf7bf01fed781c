/* SPDX-License-Identifier: Apache-2.0 */
/* Caches of keys and values that hold a window of a sequence, as GroupQueryAttention has them with
 * sliding_window_cache. Such a cache has a capacity C of at least the window W. With T positions behind it,
 * row i < L holds position T - L + i, where L = T while that fits, and else T less the next multiple of C - W
 * + 1 that makes it fit. */
#ifndef GRT_GRAPH_OPS_CONTRIB_WINDOW_H
#define GRT_GRAPH_OPS_CONTRIB_WINDOW_H

#include "graph/ops/foreign.h"

typedef struct kv_window {
    ir_node *node;
    int64_t width;      /* W */
    ir_value *capacity; /* C, int64[1]: of the cache, or W for one that is smaller, as an empty one is */
    ir_value *keys;     /* C and the new positions together, int64[1] */
    ir_value *begin;    /* per row, int64[batch]: where the new positions go, L of those before them */
    ir_value *drop;     /* per row: how many of the first are dropped after that */
} kv_window;

/* The cache holds `past` positions per row, gets `length` new ones (int64[1]), and then holds those of `all`
 * (per row). */
void kv_window_init(kv_window *w, ir_value *cache, ir_value *past, ir_value *length, ir_value *all);
/* [batch, heads, keys, size]: the cache, and the new ones behind what it holds. */
ir_value *kv_window_extend(const kv_window *w, ir_value *cache, ir_value *fresh);
/* The next cache, [batch, heads, capacity, size], of what kv_window_extend has made. */
ir_value *kv_window_keep(const kv_window *w, ir_value *extended);

#endif
