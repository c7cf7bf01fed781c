/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of nodes that move elements becomes the one Transpose that it is, or a Reshape if it moves none:
 * composed as index maps, a chain is known by what it does and not by its nodes. */
#include "graph/passes/permutation.h"
#include "graph/passes/rewrite.h"

enum { MOST_MOVES = 24 };

static bool is_view(const ir_node *node)
{
    return node->row && node->row->flags & OP_VIEW;
}

/* Nodes between the value and its source that cost something. */
static int32_t count_moving(const ir_value *value, const ir_value *source)
{
    int32_t n = 0;
    for (int32_t i = 0; value != source && value->producer && i <= MOST_MOVES; i++) {
        n += !is_view(value->producer);
        value = ir_in(value->producer, 0);
    }
    return n;
}

static void moves_look(pass_context *context, ir_node *node)
{
    grt_dims *dims = context->module->dims;
    ir_value *value = node->out[0];
    index_map map;
    permutation p;
    if (!index_map_of(value, &map, NULL) || map.source == value || !permutation_of(dims, &map, &p))
        return;
    const int32_t moving = count_moving(value, map.source);
    if (moving < (p.n > 1 ? 2 : 1))
        return;
    ir_value *x = permutation_apply(node, map.source, &p, value->type.rank, value->type.dims);
    if (x && rewrite_replace(value, x)) { /* unused nodes are dead */
        ir_node_remove(node);
        context->changed++;
    }
}

/* True if a node other than a move reads the value, so that a chain ends here. */
static bool ends_chain(const ir_value *value)
{
    for (const ir_use *use = value->uses; use; use = use->next)
        if (!use->node || use->index != 0 || !(is_view(use->node) || rewrite_is(use->node, "Transpose")))
            return true;
    return false;
}

static void moves_visit(pass_context *context, ir_node *node)
{
    if (node->n_out == 1 && node->out[0] && (is_view(node) || rewrite_is(node, "Transpose")) &&
        ends_chain(node->out[0]))
        moves_look(context, node);
}

grt_status pass_moves(pass_context *context)
{
    return rewrite_each_node(context, moves_visit);
}
