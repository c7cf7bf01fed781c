/* SPDX-License-Identifier: Apache-2.0 */
/* Removes shape inputs: if the dims of a Reshape's or Expand's result are expressions of input dims, the plan
 * has them and the computation of the shape is dead. Runs last, as such a node can no longer be inferred.
 * docs/decisions/shapes.md has the rules. */
#include "graph/passes/rewrite.h"

#include <string.h>

static int32_t inputs_kept(const ir_node *node)
{
    return node->row && node->row->flags & OP_SHAPED ? 1 : node->n_in;
}

/* Every symbol of an expression must be a dim of one of the model's inputs. Memoised: expressions share
 * operands. */
enum { UNKNOWN = 0, STATIC = 1, DYNAMIC = 2 };
typedef struct known_dims {
    const grt_dims *dims;
    char *state; /* per dim */
} known_dims;

static bool is_static_dim(const known_dims *k, grt_dim dim)
{
    if (k->state[dim] == UNKNOWN) {
        grt_dim_expr e = grt_dim_get(k->dims, dim);
        bool is_static = e.op == GRT_DIM_CONST ||
                         (e.op != GRT_DIM_SYMBOL && is_static_dim(k, e.a) && is_static_dim(k, e.b));
        k->state[dim] = is_static ? STATIC : DYNAMIC;
    }
    return k->state[dim] == STATIC;
}

static void mark_inputs(const known_dims *k, const ir_graph *graph)
{
    for (int32_t i = 0; i < graph->n_inputs; i++) {
        const ir_type *type = &graph->inputs[i]->type;
        for (int32_t d = 0; type->kind == GRT_KIND_TENSOR && d < type->rank; d++)
            if (grt_dim_get(k->dims, type->dims[d]).op == GRT_DIM_SYMBOL)
                k->state[type->dims[d]] = STATIC;
    }
}

static bool has_static_dims(const known_dims *k, const ir_type *type)
{
    if (type->kind != GRT_KIND_TENSOR || type->rank < 0 || !type->dtype || type->dtype == GRT_DTYPE_STRING)
        return false;
    for (int32_t i = 0; i < type->rank; i++)
        if (!is_static_dim(k, type->dims[i]))
            return false;
    return true;
}

/* value->mark: the lowering will find it static. The same rule as there: a result is static if its dims are
 * and all inputs of the node that makes it are. */
static bool is_static_value(const known_dims *k, const ir_value *value)
{
    if (!value || (value->type.data && !value->producer))
        return true;
    return value->producer ? value->mark == STATIC : has_static_dims(k, &value->type);
}

static bool is_static_node(const known_dims *k, const ir_node *node, int32_t n_in)
{
    if (!node->row || node->row->control)
        return false;
    for (int32_t i = 0; i < n_in; i++)
        if (!is_static_value(k, node->in[i].value))
            return false;
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i] && !has_static_dims(k, &node->out[i]->type))
            return false;
    return true;
}

/* True if the input of an Expand certainly fits its result, whatever the symbols turn out to be. Otherwise
 * the op's rule has to see the shape. */
static bool surely_expands(const grt_dims *dims, const ir_type *in, const ir_type *out)
{
    for (int32_t i = 0; i < in->rank; i++) {
        const grt_dim from = in->dims[i], to = out->dims[out->rank - in->rank + i];
        const grt_dim_expr e = grt_dim_get(dims, to);
        if (from != to && !grt_dim_equals(dims, from, 1) &&
            !(e.op == GRT_DIM_BROADCAST && (e.a == from || e.b == from)))
            return false;
    }
    return true;
}

static bool may_drop(const known_dims *k, const ir_node *node)
{
    const ir_type *in = &node->in[0].value->type, *out = &node->out[0]->type;
    return !rewrite_is(node, "Expand") || (in->rank <= out->rank && surely_expands(k->dims, in, out));
}

grt_status pass_drop_shape_inputs(pass_context *context)
{
    ir_graph *graph =
        context->module->main; /* bodies run with the dims of the moment: their shape inputs stay */
    grt_arena *scratch = grt_arena_create();
    known_dims k = {context->module->dims, NULL};
    k.state = scratch ? grt_arena_calloc(scratch, (size_t)grt_dims_count(k.dims) + 1, 1) : NULL;
    if (!k.state) {
        grt_arena_release(scratch);
        return grt_fail_memory(0);
    }
    mark_inputs(&k, graph);
    IR_FOR_EACH_NODE (node, graph) {
        int32_t kept = inputs_kept(node);
        bool is_static = is_static_node(&k, node, kept < node->n_in ? kept : node->n_in);
        for (int32_t i = 0; i < node->n_out; i++)
            if (node->out[i])
                node->out[i]->mark = is_static ? STATIC : DYNAMIC;
        if (is_static && kept < node->n_in && may_drop(&k, node)) {
            for (int32_t i = kept; i < node->n_in; i++)
                ir_node_set_input(node, i, NULL);
            context->changed++;
        }
    }
    grt_arena_release(scratch);
    return GRT_OK;
}
