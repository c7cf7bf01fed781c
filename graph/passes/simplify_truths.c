/* SPDX-License-Identifier: Apache-2.0 */
/* What depends on truths: layers in half clamp to the largest finite number only if an element is infinite.
 */
#include "graph/passes/simplify.h"

static bool is_bool(const ir_value *value)
{
    return value && value->type.kind == GRT_KIND_TENSOR && value->type.dtype == GRT_DTYPE_BOOL;
}

/* All dims are known, and none is 0: of nothing, the largest integer is another truth than that of no truths.
 */
static bool truths_have_elements(const ir_value *value)
{
    int64_t n;
    for (int32_t i = 0; i < value->type.rank; i++)
        if (!grt_dim_is_const(value->graph->module->dims, value->type.dims[i], &n) || n < 1)
            return false;
    return value->type.rank >= 0;
}

/* A node like this one in front of `before`, on other inputs, inferred and supported; NULL: there is none. */
static ir_node *truths_clone(simplify_work *w, const ir_node *like, ir_node *before, ir_value *const *in)
{
    ir_node *made = ir_node_create(before->graph, before, like->desc.domain, like->desc.op, like->desc.name,
                                   like->n_in, in, 1);
    if (made)
        ir_attrs_copy(made, like);
    return rewrite_offered(w->context, made) ? made : NULL;
}

static bool truths_take_over(simplify_work *w, ir_node *node, ir_node *made)
{
    if (made->out[0]->type.dtype != node->out[0]->type.dtype ||
        !rewrite_same_shape(&made->out[0]->type, &node->out[0]->type) ||
        !rewrite_take_over_node(node, made->out[0])) {
        ir_node_remove(made);
        return false;
    }
    simplify_queue(w, made);
    w->context->changed++;
    return true;
}

/* Nodes that were read by what went, if nothing else reads them. */
static void truths_drop(ir_node *reduce, ir_node *cast)
{
    const bool last = reduce->out[0]->n_uses == 0 && cast->out[0]->n_uses == 1;
    simplify_drop_if_dead(reduce);
    if (last)
        simplify_drop_if_dead(cast);
}

/* Cast(ReduceMax(Cast(truths))) to bool is ReduceMax(truths), and so for ReduceMin. */
bool simplify_reduced_truths(simplify_work *w, ir_node *node)
{
    enum { MOST_INPUTS = 2 };
    ir_value *in = ir_in(node, 0), *inputs[MOST_INPUTS] = {NULL};
    ir_node *reduce = is_bool(node->out[0]) && in ? rewrite_producer(in, "ReduceMax") : NULL;
    if (!reduce && is_bool(node->out[0]) && in)
        reduce = rewrite_producer(in, "ReduceMin");
    ir_node *cast = reduce && reduce->n_in <= MOST_INPUTS ? rewrite_producer(ir_in(reduce, 0), "Cast") : NULL;
    if (!cast || !is_bool(ir_in(cast, 0)) || !truths_have_elements(ir_in(cast, 0)))
        return false;
    inputs[0] = ir_in(cast, 0);
    if (reduce->n_in > 1)
        inputs[1] = ir_in(reduce, 1);
    ir_node *made = truths_clone(w, reduce, node, inputs);
    if (!made || !truths_take_over(w, node, made))
        return false;
    truths_drop(reduce, cast);
    return true;
}

/* ReduceSum(Cast(truths)) > 0, where no sum can wrap, is ReduceMax(truths). */
bool simplify_counted_truths(simplify_work *w, ir_node *node)
{
    enum { MOST_INPUTS = 2 };
    int64_t zero;
    ir_node *sum = ir_in(node, 0) ? rewrite_producer(ir_in(node, 0), "ReduceSum") : NULL,
            *cast = sum && sum->n_in <= MOST_INPUTS ? rewrite_producer(ir_in(sum, 0), "Cast") : NULL;
    if (!cast || !is_bool(ir_in(cast, 0)) || cast->out[0]->type.dtype != GRT_DTYPE_INT64 ||
        !ir_const_int(ir_in(node, 1), &zero) || zero != 0)
        return false;
    ir_value *in[] = {ir_in(cast, 0), ir_in(sum, 1)};
    ir_node *made = ir_node_create(node->graph, node, "", "ReduceMax", sum->desc.name, sum->n_in, in, 1);
    if (made)
        ir_attrs_copy(made, sum);
    if (!rewrite_offered(w->context, made) || !truths_take_over(w, node, made))
        return false;
    truths_drop(sum, cast);
    return true;
}

static bool is_one_constant(const ir_value *value)
{
    return value && value->type.data && grt_tensor_elements(value->type.data) == 1;
}

/* f(Where(truth, a, b)) of single constants is Where(truth, f(a), f(b)), of which both are folded. */
bool simplify_choice(simplify_work *w, ir_node *node)
{
    const ir_value *in = ir_in(node, 0);
    const ir_node *where = in && in->type.rank == 0 ? rewrite_producer(in, "Where") : NULL;
    if (!where || node->n_in != 1 || !is_one_constant(ir_in(where, 1)) || !is_one_constant(ir_in(where, 2)))
        return false;
    ir_node *a = truths_clone(w, node, node, (ir_value *[]){ir_in(where, 1)}),
            *b = a ? truths_clone(w, node, node, (ir_value *[]){ir_in(where, 2)}) : NULL;
    ir_value *chosen[] = {ir_in(where, 0), a ? a->out[0] : NULL, b ? b->out[0] : NULL};
    ir_node *made = b ? truths_clone(w, where, node, chosen) : NULL;
    if (made && truths_take_over(w, node, made))
        return true;
    if (b)
        ir_node_remove(b);
    if (a)
        ir_node_remove(a);
    return false;
}
