/* SPDX-License-Identifier: Apache-2.0 */
/* A Pad with zeros in front of a convolution becomes its padding, as converters from TensorFlow leave it, and
 * models that pad on one side (causal ones, SAME with a stride). Channels may be moved in between, and dims
 * of 1 put in. */
#include "graph/passes/simplify.h"

#include <string.h>

enum { BATCH_AND_CHANNELS = 2, MOST_MOVES = 3 };

/* Zeros at both ends of each dim. */
typedef struct margins {
    int64_t begin[GRT_MAX_RANK], end[GRT_MAX_RANK];
    int32_t rank;
} margins;

static bool read_pad(const ir_node *pad, margins *m)
{
    const int64_t *pads;
    int64_t n;
    double value = 0;
    m->rank = pad->out[0]->type.rank;
    if (strcmp(grt_attr_string(&pad->desc, "mode", "constant"), "constant") || ir_in(pad, 3) ||
        !ir_const_ints(ir_in(pad, 1), &pads, &n) || m->rank < 1 || n != 2 * m->rank ||
        (ir_in(pad, 2) && !ir_const_float(ir_in(pad, 2), &value)) || value != 0)
        return false;
    memcpy(m->begin, pads, (size_t)m->rank * sizeof *pads);
    memcpy(m->end, pads + m->rank, (size_t)m->rank * sizeof *pads);
    return true;
}

static bool move_margins(margins *m, const ir_node *move)
{
    const margins from = *m;
    int64_t perm[GRT_MAX_RANK], n;
    const int64_t *axes;
    const int32_t rank = move->out[0]->type.rank;
    bool fresh[GRT_MAX_RANK] = {false};
    if (rewrite_is(move, "Transpose")) {
        if (!simplify_permutation(move, from.rank, perm))
            return false;
        for (int32_t k = 0; k < from.rank; k++) {
            m->begin[k] = from.begin[perm[k]];
            m->end[k] = from.end[perm[k]];
        }
        return true;
    }
    if (!ir_const_ints(ir_in(move, 1), &axes, &n) || rank != from.rank + n)
        return false;
    for (int64_t i = 0; i < n; i++)
        fresh[grt_axis(axes[i], rank)] = true;
    for (int32_t k = 0, at = 0; k < rank; k++) {
        m->begin[k] = fresh[k] ? 0 : from.begin[at];
        m->end[k] = fresh[k] ? 0 : from.end[at];
        at += !fresh[k];
    }
    m->rank = rank;
    return true;
}

/* The Pad above `x`, and the nodes that only move what it makes, the last first. */
static ir_node *find_pad(const ir_value *x, ir_node **moves, int32_t *out_n)
{
    ir_node *node = x ? x->producer : NULL;
    int32_t n = 0;
    while (node && n < MOST_MOVES && x->n_uses == 1 && x->graph == node->graph &&
           (rewrite_is(node, "Transpose") || rewrite_is(node, "Unsqueeze"))) {
        moves[n++] = node;
        x = ir_in(node, 0);
        node = x->producer;
    }
    *out_n = n;
    return rewrite_producer(x, "Pad");
}

/* The convolution's own padding and the margins. False if these are not around pixels alone. */
static bool add_margins(const ir_node *node, const margins *m, int64_t *pads)
{
    size_t n;
    const int64_t *own = grt_attr_ints(&node->desc, "pads", &n);
    const char *automatic = grt_attr_string(&node->desc, "auto_pad", "NOTSET");
    const int32_t spatial = m->rank - BATCH_AND_CHANNELS;
    if (spatial < 1 || (strcmp(automatic, "NOTSET") && strcmp(automatic, "VALID")) ||
        (own && n != 2 * (size_t)spatial))
        return false;
    for (int32_t k = 0; k < m->rank; k++)
        if (m->begin[k] < 0 || m->end[k] < 0 || (k < BATCH_AND_CHANNELS && (m->begin[k] || m->end[k])))
            return false;
    own = strcmp(automatic, "VALID") ? own : NULL;
    for (int32_t i = 0; i < 2 * spatial; i++) {
        const int64_t more = (i < spatial ? m->begin : m->end)[BATCH_AND_CHANNELS + i % spatial];
        if (__builtin_add_overflow(more, own ? own[i] : 0, &pads[i]))
            return false;
    }
    return true;
}

bool simplify_conv(simplify_work *w, ir_node *node)
{
    ir_node *moves[MOST_MOVES];
    int32_t n;
    margins m;
    int64_t pads[2 * GRT_MAX_RANK];
    ir_node *pad = find_pad(ir_in(node, 0), moves, &n);
    if (!pad || !read_pad(pad, &m))
        return false;
    for (int32_t i = n - 1; i >= 0; i--)
        if (!move_margins(&m, moves[i]))
            return false;
    if (!add_margins(node, &m, pads))
        return false;
    ir_attr_remove(node, "auto_pad");
    ir_attr_set_ints(node, "pads", pads, 2 * (size_t)(m.rank - BATCH_AND_CHANNELS));
    ir_node_set_input(n ? moves[n - 1] : node, 0, ir_in(pad, 0));
    simplify_drop_if_dead(pad);
    for (int32_t i = n - 1; i >= 0 && w->status == GRT_OK; i--)
        w->status = op_infer_node(moves[i]);
    return simplify_changed(w, node);
}
