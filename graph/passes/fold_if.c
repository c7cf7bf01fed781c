/* SPDX-License-Identifier: Apache-2.0 */
/* If with a condition that is known: the branch that is taken moves out, the other goes away. */
#include "graph/passes/rewrite.h"

static bool known_condition(const ir_node *node, bool *out_value)
{
    const ir_value *condition = ir_in(node, 0);
    const grt_tensor *t = condition ? condition->type.data : NULL;
    if (!t || t->dtype != GRT_DTYPE_BOOL || grt_tensor_elements(t) != 1)
        return false;
    *out_value = *(const uint8_t *)t->data != 0;
    return true;
}

/* A node of a body, made again in front of `before`. The old one loses its uses, but stays where it is. */
static bool move_out(ir_node *node, ir_node *before)
{
    grt_arena *arena = node->graph->module->arena;
    ir_value **in = GRT_ARENA_ARRAY(arena, ir_value *, node->n_in);
    if (!in)
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = node->in[i].value;
    ir_node *moved = ir_node_create(before->graph, before, node->desc.domain, node->desc.op, node->desc.name,
                                    node->n_in, in, node->n_out);
    if (!moved)
        return false;
    ir_attrs_copy(moved, node);
    moved->row = node->row;
    moved->opset = node->opset;
    for (size_t i = 0; i < moved->desc.n_attrs; i++)
        if (moved->desc.attrs[i].kind == GRT_ATTR_GRAPH)
            moved->desc.attrs[i].graph->parent = moved;
    node->desc.attrs = NULL; /* the bodies are the moved node's now */
    node->desc.n_attrs = 0;
    for (int32_t i = 0; i < node->n_out; i++) {
        ir_value *old = node->out[i], *made = moved->out[i];
        if (!old) {
            moved->out[i] = NULL;
            continue;
        }
        const char *name = made->name;
        made->name = old->name;
        old->name = name;
        made->type = old->type;
        ir_value_replace(old, made);
    }
    return true;
}

static grt_status take_branch(ir_node *node, ir_graph *branch)
{
    IR_FOR_EACH_NODE (inner, branch)
        if (!move_out(inner, node))
            return grt_fail_memory(0);
    for (int32_t i = 0; i < node->n_out && i < branch->n_outputs; i++) {
        ir_value *result = branch->outputs[i].value;
        if (!node->out[i] || rewrite_replace(node->out[i], result))
            continue;
        /* An output of the model that is a constant, an input or another output as well */
        ir_node *identity = ir_node_create(node->graph, node, "", "Identity", node->desc.name, 1, &result, 1);
        if (!identity)
            return grt_fail_memory(0);
        GRT_TRY(op_infer_node(identity));
        rewrite_replace(node->out[i], identity->out[0]);
    }
    ir_node_remove(node);
    return GRT_OK;
}

static grt_status fold_if_visit(pass_context *context, ir_graph *graph)
{
    /* What moves out of a branch is put in front of the If, so an If that was in there is looked at next. */
    for (ir_node *node = graph->first; node;) {
        bool condition;
        if (!rewrite_is(node, "If") || !known_condition(node, &condition)) {
            node = node->next;
            continue;
        }
        const grt_attr *attr = grt_attr_find(&node->desc, condition ? "then_branch" : "else_branch");
        ir_node *before = node->prev;
        GRT_TRY(take_branch(node, attr->graph));
        context->changed++;
        node = before ? before->next : graph->first;
    }
    return GRT_OK;
}

grt_status pass_fold_if(pass_context *context)
{
    return rewrite_each_graph(context, fold_if_visit);
}
