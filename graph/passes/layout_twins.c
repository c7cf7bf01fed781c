/* SPDX-License-Identifier: Apache-2.0 */
/* Values with channels last beside the ones that they stand for: see layout.h. */
#include "graph/passes/layout.h"
#include "src/base/grow.h"

int32_t layout_from_last(int32_t i, int32_t rank)
{
    return i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
}

int32_t layout_to_last(int32_t i, int32_t rank)
{
    return i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
}

ir_node *layout_transpose_before(layout *l, ir_node *before, ir_value *x, const char *name, bool make_last)
{
    int64_t perm[GRT_MAX_RANK];
    int32_t rank = x->type.rank;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = make_last ? layout_from_last(i, rank) : layout_to_last(i, rank);
    ir_node *node = ir_node_create(l->graph, before, "", "Transpose", name, 1, &x, 1);
    if (!node) {
        l->status = grt_fail_memory(0);
        return NULL;
    }
    ir_attr_set_ints(node, "perm", perm, (size_t)rank);
    const grt_status status = op_infer_node(node);
    if (status == GRT_OK)
        return node;
    l->status = status;
    return NULL;
}

void layout_remember(layout *l, ir_value *value, ir_value *last, ir_node *old)
{
    l->n = l->n ? l->n : 1;
    if (!GRT_GROW(l->twins, l->n, l->capacity)) {
        l->status = grt_fail_memory(2 * (size_t)l->capacity * sizeof *l->twins);
        return;
    }
    l->twins[l->n] = (twin){last, old};
    value->mark = l->n++;
}

bool layout_has_twin(const ir_value *value)
{
    return value && value->mark > 0;
}

bool layout_is_spatial(const layout *l, const ir_value *value)
{
    const int32_t most = l->context->target->traits->volumes_last ? 5 : 4;
    return value && value->type.kind == GRT_KIND_TENSOR && value->type.rank >= 3 && value->type.rank <= most;
}

ir_value *layout_twin_of(layout *l, ir_value *value, ir_node *before)
{
    if (layout_has_twin(value))
        return l->twins[value->mark].last;
    /* As early as possible, so that all later users find it. */
    ir_node *place = value->producer && value->graph == l->graph ? value->producer->next : l->graph->first;
    ir_node *transpose = layout_transpose_before(l, place ? place : before, value, before->desc.name, true);
    if (!transpose)
        return NULL;
    layout_remember(l, value, transpose->out[0], NULL);
    return transpose->out[0];
}

bool layout_take_inputs(layout *l, ir_node *node, ir_value **in, int32_t most)
{
    if (!layout_has_twin(ir_in(node, 0)) || node->n_in > most)
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = ir_in(node, i);
    in[0] = layout_twin_of(l, in[0], node);
    return true;
}

ir_node *layout_clone(const ir_node *node, const char *domain, int32_t n_in, ir_value *const *in)
{
    ir_node *made = ir_node_create(node->graph, (ir_node *)node, domain, node->desc.op, node->desc.name, n_in,
                                   in, node->n_out);
    if (!made)
        return NULL;
    ir_attrs_copy(made, node);
    for (int32_t i = 0; i < node->n_out; i++)
        if (!node->out[i])
            made->out[i] = NULL;
    return made;
}

/* True if what was made, with channels last, has the shape of the old value. */
static bool is_twin_shape(const layout *l, const ir_value *value, const ir_value *last)
{
    int32_t rank = value->type.rank;
    if (!layout_is_spatial(l, value) || last->type.rank != rank || last->type.dtype != value->type.dtype)
        return false;
    for (int32_t i = 0; i < rank; i++)
        if (last->type.dims[i] != value->type.dims[layout_from_last(i, rank)])
            return false;
    return true;
}

bool layout_adopt(layout *l, ir_node *node, ir_node *made)
{
    bool fine = made && op_infer_node(made) == GRT_OK && rewrite_supported(l->context, made, NULL);
    for (int32_t i = 0; fine && i < node->n_out; i++)
        fine = !node->out[i] || is_twin_shape(l, node->out[i], made->out[i]);
    if (!fine) {
        if (made)
            ir_node_remove(made);
        return false;
    }
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i])
            layout_remember(l, node->out[i], made->out[i], node);
    ir_node_drop_inputs(node, 0); /* it only stands for its old results now, until `finish` */
    l->context->changed++;
    return true;
}
