/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `step_rows`: recurrent layers read and write rows where they lie.
 *
 * ONNX has the steps in front of the batch, and the directions between both. What comes from a batch of
 * sequences, or from the rows and columns of images, is moved there and back:
 *
 *   x [outer, steps, inner, C] -> Transpose -> LSTM -> Transpose [outer, steps, inner, directions, H]
 *
 * graphrt's forms have these dims, so that both moves are gone. The pass exchanges a node where that moves
 * fewer elements; a Transpose back to ONNX's order stands behind it until pass `moves` joins it with what
 * follows. */
#include "graph/passes/permutation.h"
#include "graph/passes/rewrite.h"
#include "src/base/checked.h"

enum { X_RANK = 3, R_RANK = 3, Y_RANK = 4, INSIDE_RANK = 4 };

/* A layer and where its rows are to lie. */
typedef struct step_layer {
    grt_dims *dims;
    ir_node *node;
    ir_value *x; /* what X was moved from, [outer, steps, inner, width] under whatever dims */
    grt_dim outer, steps, inner, width;
    grt_dim directions, hidden;
    int64_t x_width, y_width; /* of a row */
} step_layer;

/* True if the elements of the map's value, X, lie as [outer, steps, inner, width] in its source. */
static bool lies_around(const step_layer *l, const index_map *x)
{
    static const int64_t outer_first[] = {1, 0, 2, 3};
    index_map map = *x;
    return index_map_reshape(l->dims, &map, INSIDE_RANK,
                             (grt_dim[]){l->steps, l->outer, l->inner, l->width}) &&
           index_map_transpose(&map, outer_first) && index_map_is_whole(l->dims, &map);
}

/* Finds the source of X, and how its rows lie there. False: X was not moved, or differently; rows lie in X
 * itself as ONNX has them. */
static bool step_rows_find_source(step_layer *l)
{
    ir_value *x = ir_in(l->node, 0), *source = permutation_source(x);
    const grt_dim one = grt_dim_const(l->dims, 1), batch = x->type.dims[1];
    index_part parts[INDEX_MAP_PARTS];
    index_map map;
    l->x = x;
    l->outer = one;
    l->inner = batch;
    if (source == x || source->graph != x->graph || !index_map_onto(x, source, &map) ||
        index_map_is_whole(l->dims, &map))
        return false;
    const int32_t n = index_map_axis(l->dims, &map, 1, parts);
    l->outer = n == 2 ? parts[0].size : batch;
    l->inner = n == 2 ? parts[1].size : one;
    if (n <= 2 && lies_around(l, &map)) {
        l->x = source;
        return true;
    }
    l->outer = one;
    l->inner = batch;
    return false;
}

/* What moves alone make of the value for this use of it, and where that is used. */
static ir_value *moved_for(const ir_use *use, const ir_use **out_use)
{
    ir_value *value = use->value;
    *out_use = use;
    for (int32_t i = 0; i < PERMUTATION_CHAIN; i++) {
        const ir_node *node = use->node;
        if (!node || node->graph != value->graph || use->index != 0 || node->n_out != 1 || !node->out[0] ||
            !permutation_moves(node) || node->out[0]->n_uses != 1)
            break;
        value = node->out[0];
        *out_use = use = value->uses;
    }
    return value;
}

/* True if the map's value, moved from Y, is Y of graphrt's form in order. */
static bool is_inside_order(const step_layer *l, const index_map *moved)
{
    static const int64_t perm[] = {2, 0, 3, 1, 4};
    const grt_dim sizes[] = {l->steps, l->directions, l->outer, l->inner, l->hidden};
    index_map wanted, have = *moved;
    if (!grt_dim_equals(l->dims, moved->offset, 0) || !index_map_of_dims(l->dims, 5, sizes, &wanted) ||
        !index_map_transpose(&wanted, perm))
        return false;
    const int32_t n = index_parts_join(l->dims, wanted.parts, wanted.n);
    if (n != index_parts_join(l->dims, have.parts, have.n))
        return false;
    for (int32_t i = 0; i < n; i++)
        if (wanted.parts[i].size != have.parts[i].size || wanted.parts[i].stride != have.parts[i].stride)
            return false;
    return true;
}

/* Elements of a row of Y that are moved no more for this use. What another layer reads, that one reads where
 * it lies. */
static int64_t gain_of_use(const step_layer *l, const ir_use *use)
{
    const ir_use *last;
    ir_value *y = l->node->out[0], *moved = moved_for(use, &last);
    index_map map;
    if (!index_map_onto(moved, y, &map))
        return -l->y_width;
    const bool before = !index_map_is_whole(l->dims, &map),
               after = !is_inside_order(l, &map) &&
                       !(last->node && last->index == 0 && rewrite_has(last->node, OP_STEPS));
    return ((int64_t)before - (int64_t)after) * l->y_width;
}

static bool step_rows_gains(const step_layer *l, bool x_was_moved)
{
    const ir_value *y = l->node->out[0];
    int64_t gain = x_was_moved ? l->x_width : 0;
    for (const ir_use *use = y ? y->uses : NULL; use; use = use->next)
        gain = grt_add_saturated(gain, gain_of_use(l, use));
    return gain > 0;
}

/* ---- the other form ---- */

static ir_node *step_rows_put(const pass_context *context, const step_layer *l)
{
    ir_node *node = l->node;
    ir_value *in[8];
    if (node->n_in > (int32_t)(sizeof in / sizeof *in))
        return NULL;
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = ir_in(node, i);
    in[0] = rewrite_reshaped(node, l->x, INSIDE_RANK, (grt_dim[]){l->outer, l->steps, l->inner, l->width});
    ir_node *made = in[0] ? ir_node_create(node->graph, node, "graphrt", node->desc.op, node->desc.name,
                                           node->n_in, in, node->n_out)
                          : NULL;
    if (!made)
        return NULL;
    ir_attrs_copy(made, node);
    ir_attr_remove(made, "layout");
    return rewrite_offered(context, made) ? made : NULL;
}

/* Y of graphrt's form as ONNX has it. */
static ir_value *step_rows_put_back(const step_layer *l, ir_value *y)
{
    static const int64_t perm[] = {1, 3, 0, 2, 4};
    ir_node *node = l->node,
            *turned = ir_node_create(node->graph, node, "", "Transpose", node->desc.name, 1, &y, 1);
    if (!turned)
        return NULL;
    ir_attr_set_ints(turned, "perm", perm, sizeof perm / sizeof *perm);
    return op_infer_node(turned) == GRT_OK
               ? rewrite_reshaped(node, turned->out[0], Y_RANK, node->out[0]->type.dims)
               : NULL;
}

static bool step_rows_read(step_layer *l)
{
    const ir_node *node = l->node;
    const ir_value *x = ir_in(node, 0), *r = ir_in(node, 2);
    if (!x || !r || x->type.rank != X_RANK || r->type.rank != R_RANK || !node->n_out ||
        grt_attr_int(&node->desc, "layout", 0))
        return false;
    l->steps = x->type.dims[0];
    l->width = x->type.dims[2];
    l->directions = r->type.dims[0];
    l->hidden = r->type.dims[2];
    return grt_dim_is_const(l->dims, l->width, &l->x_width) &&
           grt_dim_is_const(l->dims, grt_dim_mul(l->dims, l->directions, l->hidden), &l->y_width);
}

static void step_rows_look(pass_context *context, ir_node *node)
{
    step_layer l = {.dims = context->module->dims, .node = node};
    if (!rewrite_has(node, OP_STEPS) || !step_rows_read(&l))
        return;
    const bool was_moved = step_rows_find_source(&l);
    ir_node *made = step_rows_gains(&l, was_moved) ? step_rows_put(context, &l) : NULL;
    bool all = made != NULL;
    for (int32_t i = 0; i < node->n_out && all; i++) {
        ir_value *to = !node->out[i] ? NULL : i ? made->out[i] : step_rows_put_back(&l, made->out[i]);
        all = !node->out[i] || (to && rewrite_replace(node->out[i], to));
    }
    if (all) {
        ir_node_remove(node);
        context->changed++;
    }
}

grt_status pass_step_rows(pass_context *context)
{
    return rewrite_each_node(context, step_rows_look);
}
