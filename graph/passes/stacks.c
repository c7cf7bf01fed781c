/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `stacks`: values that are stacked along a new axis, which is folded at once, as ensembles and blocks
 * with several windows have it. What is folded are the values themselves, element by element. */
#include "graph/passes/rewrite.h"

#include <string.h>

enum { MOST = 8 }; /* what a pointwise group reads */

static const char *stacks_fold_of(const ir_node *node)
{
    static const char *const folds[][2] = {
        {"ReduceSum", "Add"}, {"ReduceMean", "Add"}, {"ReduceMax", "Max"}, {"ReduceMin", "Min"}};
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (rewrite_is(node, folds[i][0]))
            return folds[i][1];
    return NULL;
}

/* The one axis that an input names; -1 if it names another number of them. */
static int64_t stacks_axis(const ir_node *node, int32_t at, int32_t rank)
{
    int64_t axis;
    return ir_in(node, at) && ir_const_int(ir_in(node, at), &axis) ? grt_axis(axis, rank) : -1;
}

/* What was given the new axis; NULL if the value has others. */
static ir_value *stacks_source(const ir_value *value, int64_t axis)
{
    const ir_node *unsqueeze = value ? rewrite_producer(value, "Unsqueeze") : NULL;
    return unsqueeze && value->n_uses == 1 && stacks_axis(unsqueeze, 1, value->type.rank) == axis
               ? ir_in(unsqueeze, 0)
               : NULL;
}

static ir_value *stacks_put(ir_node *before, const char *op, ir_value *a, ir_value *b)
{
    ir_node *node =
        b ? ir_node_create(before->graph, before, "", op, before->desc.name, 2, (ir_value *[]){a, b}, 1)
          : NULL;
    return node && op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* What was made is left to `dce` if something fails. */
static void stacks_fold(pass_context *context, ir_node *reduce, const char *op)
{
    ir_value *stack = ir_in(reduce, 0), *terms[MOST];
    const ir_node *concat = ir_is_inner(stack) ? rewrite_producer(stack, "Concat") : NULL;
    if (!concat || concat->n_in < 2 || concat->n_in > MOST || grt_attr_int(&reduce->desc, "keepdims", 1) ||
        !grt_dtype_in(stack->type.dtype, GRT_SET_FLOATS))
        return;
    const int64_t axis = grt_axis(grt_attr_int(&concat->desc, "axis", 0), stack->type.rank);
    if (stacks_axis(reduce, 1, stack->type.rank) != axis)
        return;
    for (int32_t i = 0; i < concat->n_in; i++) {
        terms[i] = stacks_source(ir_in(concat, i), axis);
        if (!terms[i] || !rewrite_same_shape(&terms[i]->type, &terms[0]->type))
            return;
    }
    ir_value *made = terms[0];
    for (int32_t i = 1; made && i < concat->n_in; i++)
        made = stacks_put(reduce, op, made, terms[i]);
    if (made && rewrite_is(reduce, "ReduceMean"))
        made = stacks_put(
            reduce, "Mul", made,
            ir_constant_scalar(reduce->graph, reduce->desc.name, stack->type.dtype, 1.0 / concat->n_in));
    if (made && rewrite_take_over_node(reduce, made))
        context->changed++;
}

static void stacks_visit(pass_context *context, ir_node *node)
{
    if (stacks_fold_of(node))
        stacks_fold(context, node, stacks_fold_of(node));
}

grt_status pass_stacks(pass_context *context)
{
    return rewrite_each_node(context, stacks_visit);
}
