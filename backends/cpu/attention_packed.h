/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of one head as packed matrices, which a thread makes once for all blocks of query rows and
 * all heads of queries that read them. Keys are packed as they are asked for: a window or causality may leave
 * most of them out. */
#ifndef GRT_BACKENDS_CPU_ATTENTION_PACKED_H
#define GRT_BACKENDS_CPU_ATTENTION_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One head's keys and values where they are: `total` rows of `size` and `v_size` floats. */
typedef struct attention_head {
    int64_t id; /* tells heads apart, 0 or more */
    const float *k, *v;
    int64_t k_row, v_row; /* distance of rows */
    int64_t total, size, v_size;
} attention_head;

typedef struct attention_packed {
    float *keys,
        *values;      /* key j's panel starts at keys + j * size if j is a multiple of the panel's width */
    int64_t id;       /* the head, -1 at first */
    int64_t from, to; /* the keys that are packed; whole panels */
} attention_packed;

/* Floats of both matrices. False: they do not fit. */
bool attention_packed_floats(int64_t total, int64_t size, int64_t v_size, size_t *out_keys,
                             size_t *out_values);

/* Keys [from, to) of a head, `from` a multiple of a panel's width. */
void attention_pack(attention_packed *packed, const attention_head *head, int64_t from, int64_t to);

#endif
