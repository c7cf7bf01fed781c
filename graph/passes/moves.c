/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of nodes that move elements becomes the one Transpose that it is, or a Reshape if it moves none:
 * composed as index maps, a chain is known by what it does and not by its nodes. Where it cuts columns out of
 * what was transposed for that alone, the columns are cut out first: only they are moved then. */
#include "graph/passes/permutation.h"
#include "graph/passes/rewrite.h"

enum { MOST_MOVES = 24, MOST_RESULTS = 16 };

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

/* The number of uses of a node's results; -1 if these are too many to look at for each of them. */
static int32_t count_results_uses(const ir_node *node)
{
    int32_t n = 0;
    if (node->n_out > MOST_RESULTS)
        return -1;
    for (int32_t i = 0; i < node->n_out; i++)
        n += node->out[i] ? node->out[i]->n_uses : 0;
    return n;
}

/* True if a node between the value and its source cuts something out of what was transposed for it alone. */
static bool cuts_what_was_moved(const ir_value *value, const ir_value *source)
{
    bool cut = false, alone = true;
    for (int32_t i = 0; value != source && value->producer && i <= MOST_MOVES; i++) {
        const ir_node *node = value->producer;
        const bool transposes = rewrite_is(node, "Transpose");
        if (cut && (!alone || count_results_uses(node) != 1))
            return false;
        if (cut && transposes)
            return true;
        if (!cut && !transposes && !is_view(node)) {
            cut = true;
            alone = count_results_uses(node) == value->n_uses;
        }
        value = ir_in(node, 0);
    }
    return false;
}

/* Columns `first` to `end` of a value. */
static ir_value *moves_columns(ir_node *before, ir_value *value, int64_t first, int64_t end)
{
    const char *name = before->desc.name;
    const int64_t axis = value->type.rank - 1;
    ir_value *in[] = {value, ir_constant_ints(before->graph, name, &first, 1),
                      ir_constant_ints(before->graph, name, &end, 1),
                      ir_constant_ints(before->graph, name, &axis, 1)};
    ir_node *slice =
        in[1] && in[2] && in[3] ? ir_node_create(before->graph, before, "", "Slice", name, 4, in, 1) : NULL;
    return slice && op_infer_node(slice) == GRT_OK ? slice->out[0] : NULL;
}

/* Makes columns of a map's source its source, as nodes in front of `before` cut them out. False if the map is
 * not one of all rows and of columns that follow each other. */
static bool take_columns(ir_node *before, index_map *map)
{
    grt_dims *dims = before->graph->module->dims;
    const int32_t rank = map->source->type.rank;
    int64_t width, first, size, stride, n = 1;
    grt_dim rows;
    if (rank < 2 || !grt_dim_is_const(dims, map->source->type.dims[rank - 1], &width) ||
        !grt_dim_is_const(dims, map->offset, &first) || first < 0)
        return false;
    for (int32_t i = 0; i < map->n; i++)
        if (grt_dim_is_const(dims, map->parts[i].stride, &stride) && stride < width) {
            if (!grt_dim_is_const(dims, map->parts[i].size, &size) || size < 1 || size > width / n)
                return false;
            n *= size;
        }
    if (n == width || first > width - n)
        return false;
    for (int32_t i = 0; i < map->n; i++) {
        index_part *part = &map->parts[i];
        if (grt_dim_is_const(dims, part->stride, &stride) && stride < width)
            continue;
        if (!index_map_divide(dims, part->stride, grt_dim_const(dims, width), &rows))
            return false;
        part->stride = grt_dim_mulc(dims, rows, n);
    }
    map->source = moves_columns(before, map->source, first, first + n);
    map->offset = grt_dim_const(dims, 0);
    return map->source != NULL;
}

static void moves_replace(pass_context *context, ir_node *node, const index_map *map, const permutation *p)
{
    ir_value *value = node->out[0];
    ir_value *x = permutation_apply(node, map->source, p, value->type.rank, value->type.dims);
    if (x && rewrite_replace(value, x)) { /* unused nodes are dead */
        ir_node_remove(node);
        context->changed++;
    }
}

/* Replaces what the map says by one move, if there are more now. */
static bool moves_join(pass_context *context, ir_node *node, const index_map *map)
{
    permutation p;
    if (!permutation_of(context->module->dims, map, &p))
        return false;
    if (count_moving(node->out[0], map->source) >= (p.n > 1 ? 2 : 1))
        moves_replace(context, node, map, &p);
    return true;
}

static void moves_look(pass_context *context, ir_node *node)
{
    grt_dims *dims = context->module->dims;
    ir_value *value = node->out[0];
    index_map map;
    permutation p;
    if (!index_map_of(value, &map, NULL) || map.source == value || moves_join(context, node, &map))
        return;
    if (!cuts_what_was_moved(value, map.source)) {
        if (index_map_onto(value, permutation_source(value), &map))
            moves_join(context, node, &map);
    } else if (take_columns(node, &map) && permutation_of(dims, &map, &p)) {
        moves_replace(context, node, &map, &p);
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
