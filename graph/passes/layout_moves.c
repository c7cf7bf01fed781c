/* SPDX-License-Identifier: Apache-2.0 */
/* Layout: Transpose, Reshape, and DepthToSpace, which becomes both. */
#include "graph/passes/layout.h"

#include <string.h>

/* A Transpose that makes channels last is the twin; one that makes them second has its input as twin; others
 * start from the twin of their input. */
bool layout_switch_transpose(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    size_t n;
    const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
    int32_t rank = x ? x->type.rank : -1;
    if (!perm || !layout_is_spatial(l, x) || n != (size_t)rank)
        return false;
    if (layout_has_twin(x)) {
        int64_t moved[GRT_MAX_RANK];
        for (int32_t i = 0; i < rank; i++)
            moved[i] = layout_to_last((int32_t)perm[i], rank);
        ir_attr_set_ints(node, "perm", moved, n);
        ir_node_set_input(node, 0, l->twins[x->mark].last);
        l->context->changed++;
        return true;
    }
    bool to_usual = true;
    for (int32_t i = 0; i < rank; i++)
        to_usual &= perm[i] == layout_to_last(i, rank);
    if (to_usual)
        layout_remember(l, node->out[0], x, NULL);
    return to_usual;
}

static bool spatial_dims_are_one(const ir_node *node, const ir_type *type)
{
    for (int32_t i = 2; i < type->rank; i++)
        if (!grt_dim_equals(node->graph->module->dims, type->dims[i], 1))
            return false;
    return true;
}

/* [N, C, HW...] to [N, C, L] and then to [N, L, C], as vision transformers do with their patches. */
static bool switch_patches(layout *l, ir_node *node, ir_value *x)
{
    ir_value *flat = node->out[0];
    ir_node *transpose = rewrite_only_user(flat);
    if (flat->type.rank != 3 || flat->type.dims[0] != x->type.dims[0] ||
        flat->type.dims[1] != x->type.dims[1] || !rewrite_is(transpose, "Transpose"))
        return false;
    size_t n;
    const int64_t *perm = grt_attr_ints(&transpose->desc, "perm", &n);
    if (!perm || n != 3 || perm[0] != 0 || perm[1] != 2)
        return false;
    /* Reshape's 0 copies a dim: [0, -1, C] */
    int64_t channels;
    if (!grt_dim_is_const(node->graph->module->dims, x->type.dims[1], &channels) || channels < 1)
        return false;
    ir_value *shape = ir_constant_ints(node->graph, node->desc.name, (int64_t[]){0, -1, channels}, 3);
    ir_value *in[2] = {l->twins[x->mark].last, shape};
    ir_node *made =
        shape ? ir_node_create(node->graph, node, "", "Reshape", node->desc.name, 2, in, 1) : NULL;
    if (!made || op_infer_node(made) != GRT_OK ||
        !rewrite_same_shape(&made->out[0]->type, &transpose->out[0]->type) ||
        !rewrite_replace(transpose->out[0], made->out[0])) {
        if (made)
            ir_node_remove(made);
        return false;
    }
    l->context->changed++; /* the Transpose and this Reshape are dead now */
    return true;
}

/* Channel shuffle: [N, C, H, W] to [N, g, C/g, H, W], exchange the two, and back. */
static bool switch_shuffle(layout *l, ir_node *node, ir_value *x)
{
    ir_value *split = node->out[0];
    ir_node *transpose = rewrite_only_user(split);
    ir_node *join = rewrite_is(transpose, "Transpose") ? rewrite_only_user(transpose->out[0]) : NULL;
    int32_t rank = x->type.rank;
    size_t n;
    const int64_t *perm = transpose ? grt_attr_ints(&transpose->desc, "perm", &n) : NULL;
    if (!rewrite_is(join, "Reshape") || split->type.rank != rank + 1 || !perm || n != (size_t)rank + 1 ||
        perm[1] != 2 || perm[2] != 1 || !rewrite_same_shape(&join->out[0]->type, &x->type))
        return false;
    int64_t wide[GRT_MAX_RANK], swap[GRT_MAX_RANK], joined[GRT_MAX_RANK];
    for (int32_t i = 0; i <= rank; i++)
        if ((i != 1 && i != 2 && perm[i] != i) || (i > 2 && split->type.dims[i] != x->type.dims[i - 1]))
            return false;
    const grt_dims *dims = node->graph->module->dims;
    wide[0] = joined[0] = 0; /* batch is copied */
    if (split->type.dims[0] != x->type.dims[0] ||
        !grt_dim_is_const(dims, split->type.dims[1], &wide[rank - 1]) ||
        !grt_dim_is_const(dims, split->type.dims[2], &wide[rank]) ||
        !grt_dim_is_const(dims, x->type.dims[1], &joined[rank - 1]))
        return false;
    for (int32_t i = 1; i < rank - 1; i++)
        wide[i] = joined[i] = 0;
    for (int32_t i = 0; i <= rank; i++)
        swap[i] = i < rank - 1 ? i : i == rank - 1 ? rank : rank - 1;
    ir_value *last = l->twins[x->mark].last;
    ir_value *shape = ir_constant_ints(node->graph, node->desc.name, wide, rank + 1);
    ir_value *back = ir_constant_ints(node->graph, node->desc.name, joined, rank);
    ir_node *a = shape && back ? ir_node_create(node->graph, join, "", "Reshape", node->desc.name, 2,
                                                (ir_value *[]){last, shape}, 1)
                               : NULL;
    ir_node *b =
        a ? ir_node_create(node->graph, join, "", "Transpose", transpose->desc.name, 1, &a->out[0], 1) : NULL;
    ir_node *c = b ? ir_node_create(node->graph, join, "", "Reshape", join->desc.name, 2,
                                    (ir_value *[]){b->out[0], back}, 1)
                   : NULL;
    if (!c) {
        l->status = grt_fail_memory(0);
        return false;
    }
    ir_attr_set_ints(b, "perm", swap, (size_t)rank + 1);
    if (op_infer_node(a) != GRT_OK || op_infer_node(b) != GRT_OK || op_infer_node(c) != GRT_OK)
        return false;
    return layout_adopt(l, join, c);
}

/* [N, C, L] to [N, C, H, W] or back, as transformers do that convolve over their tokens: with channels last
 * it moves nothing. */
static bool switch_grid(layout *l, ir_node *node, ir_value *x)
{
    const ir_type *y = &node->out[0]->type;
    grt_dim dims[GRT_MAX_RANK];
    if (!layout_is_spatial(l, x) || !layout_is_spatial(l, node->out[0]) || y->dims[0] != x->type.dims[0] ||
        y->dims[1] != x->type.dims[1])
        return false;
    for (int32_t i = 0; i < y->rank; i++)
        dims[i] = y->dims[layout_from_last(i, y->rank)];
    ir_value *last = rewrite_reshaped(node, l->twins[x->mark].last, y->rank, dims);
    if (!last || last->producer == l->twins[x->mark].last->producer)
        return false;
    return layout_adopt(l, node, last->producer);
}

bool layout_switch_reshape(layout *l, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    if (!layout_has_twin(x) || node->out[0]->type.rank < 0)
        return false;
    if (spatial_dims_are_one(node, &x->type) && node->out[0]->type.rank != x->type.rank &&
        !grt_attr_int(&node->desc, "allowzero", 0)) {
        /* the same elements in the same order; but a shape that copies dims would copy others */
        const int64_t *shape;
        int64_t n;
        bool copies = !rewrite_is(node, "Reshape") || !ir_const_ints(ir_in(node, 1), &shape, &n);
        for (int64_t i = 0; !copies && i < n; i++)
            copies = shape[i] == 0 && i > 0;
        if (!copies) {
            ir_node_set_input(node, 0, l->twins[x->mark].last);
            l->context->changed++;
            return true;
        }
    }
    return switch_patches(l, node, x) || switch_shuffle(l, node, x) || switch_grid(l, node, x);
}

/* A Reshape or Transpose of `x` in front of `before`, to the dims or by the permutation in `numbers`. NULL:
 * see l->status. */
static ir_value *moved_by(layout *l, ir_node *before, ir_value *x, const char *op, const int64_t *numbers,
                          int32_t n)
{
    const bool is_reshape = !strcmp(op, "Reshape");
    ir_value *in[2] = {x, is_reshape ? ir_constant_ints(l->graph, before->desc.name, numbers, n) : NULL};
    ir_node *node = is_reshape && !in[1] ? NULL
                                         : ir_node_create(l->graph, before, "", op, before->desc.name,
                                                          is_reshape ? 2 : 1, in, 1);
    if (!node) {
        l->status = grt_fail_memory(0);
        return NULL;
    }
    if (!is_reshape)
        ir_attr_set_ints(node, "perm", numbers, (size_t)n);
    const grt_status status = op_infer_node(node);
    l->status = l->status == GRT_OK ? status : l->status;
    return status == GRT_OK ? node->out[0] : NULL;
}

/* [N, H, W, blocks and channels] to [N, H, block, W, block, C]. Rows and columns are known, or one of both is
 * found from the rest. */
bool layout_switch_depth(layout *l, ir_node *node)
{
    enum { RANK = 4, APART = 6 };
    ir_value *x = ir_in(node, 0);
    const ir_type *y = &node->out[0]->type;
    const grt_dims *dims = node->graph->module->dims;
    const int64_t block = grt_attr_int(&node->desc, "blocksize", 0);
    const bool blocks_first = strcmp(grt_attr_string(&node->desc, "mode", "DCR"), "CRD") != 0;
    int64_t channels, joined[RANK] = {0, -1, -1, 0};
    if (!layout_has_twin(x) || y->rank != RANK || !grt_dim_is_const(dims, y->dims[1], &channels) ||
        channels < 1)
        return false;
    const bool has_rows = grt_dim_is_const(dims, y->dims[2], &joined[1]),
               has_columns = grt_dim_is_const(dims, y->dims[3], &joined[2]);
    if ((!has_rows && (!has_columns || !grt_dim_is_const(dims, y->dims[0], NULL))) || joined[1] == 0 ||
        joined[2] == 0 || (!has_columns && !grt_dim_is_const(dims, y->dims[0], NULL)))
        return false;
    joined[3] = channels;
    const int64_t apart[APART] = {
        0, 0, 0, blocks_first ? block : channels, block, blocks_first ? channels : block};
    const int64_t first[APART] = {0, 1, 3, 2, 4, 5}, last[APART] = {0, 1, 4, 2, 5, 3};
    ir_value *v = moved_by(l, node, l->twins[x->mark].last, "Reshape", apart, APART);
    v = v ? moved_by(l, node, v, "Transpose", blocks_first ? first : last, APART) : NULL;
    v = v ? moved_by(l, node, v, "Reshape", joined, RANK) : NULL;
    return v && layout_adopt(l, node, v->producer);
}
