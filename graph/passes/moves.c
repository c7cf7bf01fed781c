/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of nodes that move elements becomes the one Transpose that it is, or a Reshape if it moves none:
 * composed as index maps, a chain is known by what it does and not by its nodes. */
#include "graph/passes/index_map.h"
#include "graph/passes/rewrite.h"

#include <string.h>

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

typedef struct permutation {
    int32_t n;
    grt_dim dims[INDEX_MAP_PARTS]; /* of the source, its elements grouped as they move */
    int64_t perm[INDEX_MAP_PARTS];
} permutation;

/* The part behind which, in the source, the next one of stride `stride` lies; -1 if there is none. */
static int32_t part_of_stride(const index_part *parts, int32_t n, const bool *taken, grt_dim stride)
{
    for (int32_t i = 0; i < n; i++)
        if (!taken[i] && parts[i].stride == stride)
            return i;
    return -1;
}

/* The map as a permutation of all of its source; false if it is none. */
static bool find_permutation(grt_dims *dims, const index_map *map, permutation *out)
{
    index_part parts[INDEX_MAP_PARTS];
    bool taken[INDEX_MAP_PARTS] = {false};
    memcpy(parts, map->parts, sizeof parts);
    const int32_t n = index_parts_join(dims, parts, map->n);
    grt_dim stride = grt_dim_const(dims, 1), all = stride;
    out->n = n;
    for (int32_t k = n - 1; k >= 0; k--) {
        const int32_t i = part_of_stride(parts, n, taken, stride);
        if (i < 0)
            return false;
        taken[i] = true;
        out->dims[k] = parts[i].size;
        out->perm[i] = k;
        stride = grt_dim_mul(dims, stride, parts[i].size);
    }
    for (int32_t i = 0; i < map->source->type.rank; i++)
        all = grt_dim_mul(dims, all, map->source->type.dims[i]);
    return grt_dim_equals(dims, map->offset, 0) && all == stride;
}

static ir_value *moves_transposed(ir_node *before, ir_value *value, const permutation *p)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &value, 1);
    if (!node)
        return NULL;
    ir_attr_set_ints(node, "perm", p->perm, (size_t)p->n);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

static void moves_look(pass_context *context, ir_node *node)
{
    grt_dims *dims = context->module->dims;
    ir_value *value = node->out[0];
    index_map map;
    permutation p;
    if (!index_map_of(value, &map, NULL) || map.source == value || !find_permutation(dims, &map, &p))
        return;
    const int32_t moving = count_moving(value, map.source);
    if (moving < (p.n > 1 ? 2 : 1))
        return;
    ir_value *x = map.source;
    if (p.n > 1) {
        x = rewrite_reshaped(node, x, p.n, p.dims);
        x = x ? moves_transposed(node, x, &p) : NULL;
    }
    x = x ? rewrite_reshaped(node, x, value->type.rank, value->type.dims) : NULL;
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

static grt_status moves_visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (node->n_out == 1 && node->out[0] && (is_view(node) || rewrite_is(node, "Transpose")) &&
            ends_chain(node->out[0]))
            moves_look(context, node);
    return GRT_OK;
}

grt_status pass_moves(pass_context *context)
{
    return rewrite_each_graph(context, moves_visit);
}
