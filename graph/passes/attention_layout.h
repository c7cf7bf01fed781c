/* SPDX-License-Identifier: Apache-2.0 */
/* How queries, keys and values lie in what they were made from, as batch, heads, sequence and size. */
#ifndef GRT_GRAPH_PASSES_ATTENTION_LAYOUT_H
#define GRT_GRAPH_PASSES_ATTENTION_LAYOUT_H

#include "graph/passes/attention_match.h"

/* Loops over the leading dims, outermost first; the same sizes for all that were aligned. */
typedef struct lead_list {
    int32_t n;
    index_part parts[INDEX_MAP_PARTS];
} lead_list;

enum { LEAD_LISTS = ATTENTION_SIDES + ATTENTION_TERMS };

/* The parts of the axes in front of the last two. */
void lead_list_of(const index_map *map, lead_list *out);
/* Splits parts that go on from one row of the source to the next, as batch and heads side by side do in
 * [sequence, batch, width], where a row ends. */
void lead_list_split_rows(const index_map *map, lead_list *list);
/* Splits the parts of n lists until all have the same sizes. False if there is no such split. */
bool lead_lists_align(grt_dims *dims, lead_list *lists, int32_t n);

/* Heads side by side in the rows of a tensor [batch, sequence, width], or [sequence, batch, width]. */
typedef struct head_rows {
    ir_value *source;
    grt_dim batch, sequence;
    int64_t heads, size, width, offset, step; /* the offset of head h is offset + h * step */
    bool sequence_first;
} head_rows;

typedef struct attention_layout {
    int32_t n_batch;      /* this many of the leading parts are the batch; the others are heads */
    grt_dim batch, heads; /* of queries */
    bool in_rows;         /* rows[] say where all are */
    head_rows rows[ATTENTION_SIDES];
} attention_layout;

/* How the heads of keys or values lie, of which those that are repeated for a group of queries' heads count
 * once. list: of the side, aligned. False if not in rows. */
bool attention_layout_find_heads(const attention_side *side, const lead_list *list, int32_t n_batch,
                                 head_rows *out);
/* True if the heads are all that the rows hold. */
bool attention_layout_is_bare(const head_rows *rows);
/* Chooses what is the batch, and the layout in which fewest elements are moved. lists: of the sides, aligned.
 */
void attention_layout_choose(const attention_side *sides, const lead_list *lists, attention_layout *out);
/* The layout in rows with the batch and heads that the queries' dims say; false if there is none in which
 * fewer elements are moved than in the model's. */
bool attention_layout_keep(const attention_side *sides, const lead_list *lists, attention_layout *out);
/* Where nothing is in rows: fewer of the leading parts are the batch, if that keeps n terms of the scores, as
 * masks of windows, from being repeated for it. terms: their lists, aligned. */
void attention_layout_spread(const attention_side *sides, const lead_list *lists, const lead_list *terms,
                             int32_t n, attention_layout *layout);
/* Queries, keys and values side by side in one tensor, as graphrt::Attention takes them. */
bool attention_layout_is_joined(const attention_layout *layout);
/* The same with the sequence in front of a batch of known size, so that it has to be turned: apart, queries,
 * keys and values of all of the batch are heads side by side. False where the model has turned the rows that
 * way before. */
bool attention_layout_is_turned(const grt_dims *dims, const attention_layout *layout);

/* x * constant matrix (+ constant bias). */
typedef struct attention_projection {
    const ir_node *product;
    ir_value *bias; /* may be NULL */
} attention_projection;

bool attention_projection_of(const ir_value *source, attention_projection *out);
/* Queries, keys and values of each head side by side, [..., heads, 3, size], made by a projection: its
 * columns can be sorted so that they are joined. */
bool attention_layout_is_sortable(const attention_layout *layout, attention_projection *out);

#endif
