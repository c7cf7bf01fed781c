/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/batch_make.h"

struct batch_made {
    ir_node *node;
    struct batch_made *next;
};

ir_node *batch_make(batch *b, const char *op, int32_t n_in, ir_value *const *in)
{
    struct batch_made *made = GRT_ARENA_NEW(b->scratch, struct batch_made);
    ir_node *node = made ? ir_node_create(b->before->graph, b->before, "", op, b->name, n_in, in, 1) : NULL;
    if (!node)
        return NULL;
    *made = (struct batch_made){node, b->made};
    b->made = made;
    b->n_made++;
    return node;
}

ir_value *batch_finish(const batch *b, ir_node *node)
{
    const bool good = node && op_infer_node(node) == GRT_OK && rewrite_supported(b->context, node, NULL);
    return good ? node->out[0] : NULL;
}

ir_value *batch_binary(batch *b, const char *op, ir_value *x, ir_value *y)
{
    return x && y ? batch_finish(b, batch_make(b, op, 2, (ir_value *[]){x, y})) : NULL;
}

ir_value *batch_transposed(batch *b, ir_value *x, const int64_t *perm)
{
    ir_node *node = x ? batch_make(b, "Transpose", 1, &x) : NULL;
    if (node)
        ir_attr_set_ints(node, "perm", perm, (size_t)x->type.rank);
    return batch_finish(b, node);
}

ir_value *batch_moved_axis(batch *b, ir_value *x, int32_t from, int32_t to)
{
    int64_t perm[GRT_MAX_RANK];
    if (!x || from == to)
        return x;
    for (int32_t i = 0, other = 0; i < x->type.rank; i++) {
        if (other == from)
            other++;
        perm[i] = i == to ? from : other++;
    }
    return batch_transposed(b, x, perm);
}

ir_value *batch_reshaped(batch *b, ir_value *x, int32_t rank, const grt_dim *dims)
{
    ir_node *node = x && rank <= GRT_MAX_RANK ? batch_make(b, "Reshape", 1, &x) : NULL;
    if (!node)
        return NULL;
    node->out[0]->type = (ir_type){.dtype = x->type.dtype, .rank = rank, .dims = dims};
    return rewrite_become_reshape(node, x) && rewrite_supported(b->context, node, NULL) ? node->out[0] : NULL;
}

void batch_take_back(batch *b)
{
    for (struct batch_made *made = b->made; made; made = made->next)
        ir_node_remove(made->node);
    b->made = NULL;
    b->n_made = 0;
}

grt_dim *batch_new_dims(const batch *b, int32_t n)
{
    return GRT_ARENA_ARRAY(b->context->module->arena, grt_dim, n);
}
