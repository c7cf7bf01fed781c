/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/fold_repeats.h"

#include <string.h>

enum { MOST_INPUTS = 8 };

/* What of a value's elements is kept: the constant, and whether its first axis is cut to one slice. */
typedef struct repeated {
    const grt_tensor *constant;
    ir_value *value; /* whose elements they are, uncut */
    bool cut;
} repeated;

static bool slices_are_equal(const grt_tensor *t)
{
    const size_t slice = grt_tensor_bytes(t) / (size_t)t->dims[0];
    return t->dtype != GRT_DTYPE_STRING &&
           !memcmp(t->data, (const char *)t->data + slice, slice * (size_t)(t->dims[0] - 1));
}

/* The constant behind an Expand of it: element-wise nodes broadcast by themselves. */
static ir_value *fold_repeats_constant(ir_value *value)
{
    const ir_node *expand = rewrite_producer(value, "Expand");
    ir_value *x = expand ? ir_in(expand, 0) : value;
    return x && x->type.kind == GRT_KIND_TENSOR ? x : NULL;
}

/* `rank` is the result's: only an axis in front of all others is looked at, whose slices lie apart. */
static bool repeated_of(ir_value *value, int32_t rank, repeated *out)
{
    ir_value *x = value ? fold_repeats_constant(value) : NULL;
    const grt_tensor *t = x ? x->type.data : NULL;
    if (!t)
        return false;
    *out = (repeated){.constant = t, .value = x};
    out->cut =
        t->rank == rank && rank > 0 && t->dims[0] > 1 && grt_tensor_elements(t) > 0 && slices_are_equal(t);
    return true;
}

static ir_value *one_slice(ir_graph *graph, const repeated *r)
{
    if (!r->cut)
        return r->value;
    grt_tensor slice = *r->constant;
    slice.dims[0] = 1;
    const grt_tensor *kept = grt_arena_memdup(graph->module->arena, &slice, sizeof slice);
    return kept ? ir_constant(graph, NULL, kept) : NULL;
}

/* The dims of the result as Expand's input; NULL if they are not all known. */
static ir_value *shape_of(const ir_node *node)
{
    const ir_type *type = &node->out[0]->type;
    int64_t dims[GRT_MAX_RANK];
    for (int32_t i = 0; i < type->rank; i++)
        if (!grt_dim_is_const(node->graph->module->dims, type->dims[i], &dims[i]))
            return NULL;
    return ir_constant_ints(node->graph, NULL, dims, type->rank);
}

static ir_node *of_one_slice(ir_node *node, const repeated *inputs)
{
    ir_value *in[MOST_INPUTS];
    for (int32_t i = 0; i < node->n_in; i++)
        if (!(in[i] = one_slice(node->graph, &inputs[i])))
            return NULL;
    ir_node *made = ir_node_create(node->graph, node, node->desc.domain, node->desc.op, node->desc.name,
                                   node->n_in, in, 1);
    if (!made)
        return NULL;
    ir_attrs_copy(made, node);
    if (op_infer_node(made) == GRT_OK && !rewrite_same_shape(&made->out[0]->type, &node->out[0]->type))
        return made;
    ir_node_remove(made);
    return NULL;
}

ir_node *fold_repeats(ir_node *node)
{
    repeated inputs[MOST_INPUTS];
    if (!rewrite_has(node, OP_POINTWISE) || node->n_in < 1 || node->n_in > MOST_INPUTS || node->n_out != 1 ||
        node->out[0]->type.rank < 1)
        return NULL;
    for (int32_t i = 0; i < node->n_in; i++)
        if (!repeated_of(ir_in(node, i), node->out[0]->type.rank, &inputs[i]))
            return NULL;
    ir_value *shape = shape_of(node);
    ir_node *made = shape ? of_one_slice(node, inputs) : NULL, *expand;
    if (!made)
        return NULL;
    ir_value *in[] = {made->out[0], shape};
    expand = ir_node_create(node->graph, node, "", "Expand", node->desc.name, 2, in, 1);
    if (expand && op_infer_node(expand) == GRT_OK && rewrite_take_over_node(node, expand->out[0]))
        return made;
    if (expand)
        ir_node_remove(expand);
    ir_node_remove(made);
    return NULL;
}
