/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces shape computations on intermediate values by Shape of a model input, or a Concat of several.
 * Intermediate values lose these uses, so that patterns match, and equal sizes are equal nodes. */
#include "graph/passes/rewrite.h"

#include <stdlib.h>

/* Source of a dim; input NULL: not a size of an input. */
typedef struct source {
    ir_value *input;
    int32_t axis;
} source;

typedef struct sizes {
    pass_context *context;
    source *of; /* per dim */
    int32_t n_dims;
} sizes;

enum { MOST = 8 }; /* elements of a shape that is written out */

static void symbolic_sizes_find_sources(const sizes *s, const ir_graph *graph)
{
    const grt_dims *dims = s->context->module->dims;
    int64_t value;
    for (int32_t i = 0; i < graph->n_inputs; i++) {
        const ir_type *type = &graph->inputs[i]->type;
        for (int32_t k = 0; type->kind == GRT_KIND_TENSOR && k < type->rank; k++)
            if (!s->of[type->dims[k]].input && !grt_dim_is_const(dims, type->dims[k], &value))
                s->of[type->dims[k]] = (source){graph->inputs[i], k};
    }
}

static bool symbolic_sizes_is_size(const ir_node *node)
{
    return rewrite_is(node, "Shape") && ir_in(node, 0) && ir_in(node, 0)->is_input;
}

/* In the form that this pass gives it, or made of such parts. */
static bool is_settled(const ir_node *node)
{
    if (symbolic_sizes_is_size(node) || rewrite_is(node, "Concat"))
        return true;
    return rewrite_is(node, "Squeeze") && ir_in(node, 0) && symbolic_sizes_is_size(ir_in(node, 0)->producer);
}

/* int64[1], in front of `before` */
static ir_value *make_part(const sizes *s, ir_node *before, grt_dim dim)
{
    int64_t value;
    if (grt_dim_is_const(s->context->module->dims, dim, &value))
        return ir_constant_ints(before->graph, before->desc.name, &value, 1);
    const source from = s->of[dim];
    ir_node *node = ir_node_create(before->graph, before, "", "Shape", before->desc.name, 1,
                                   (ir_value *[]){from.input}, 1);
    if (!node)
        return NULL;
    ir_attr_set_int(node, "start", from.axis);
    ir_attr_set_int(node, "end", from.axis + 1);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* True if all elements are constants or sizes of inputs, and not all constants, which folding takes. */
static bool is_made_of_sizes(const sizes *s, const ir_type *type)
{
    bool open = false;
    int64_t value;
    for (int64_t i = 0; i < type->n_elems; i++) {
        if (grt_dim_is_const(s->context->module->dims, type->elems[i], &value))
            continue;
        if (type->elems[i] < 0 || type->elems[i] >= s->n_dims || !s->of[type->elems[i]].input)
            return false;
        open = true;
    }
    return open;
}

static ir_value *symbolic_sizes_make(const sizes *s, ir_node *node, const ir_type *type)
{
    ir_value *parts[MOST];
    for (int64_t i = 0; i < type->n_elems; i++)
        if (!(parts[i] = make_part(s, node, type->elems[i])))
            return NULL;
    if (type->rank == 1 && type->n_elems == 1)
        return parts[0];
    ir_node *made = ir_node_create(node->graph, node, "", type->rank ? "Concat" : "Squeeze", node->desc.name,
                                   (int32_t)type->n_elems, parts, 1);
    if (made && type->rank)
        ir_attr_set_int(made, "axis", 0);
    return made && op_infer_node(made) == GRT_OK ? made->out[0] : NULL;
}

static void symbolic_sizes_look(const sizes *s, ir_node *node)
{
    ir_value *value = node->n_out == 1 ? node->out[0] : NULL;
    const ir_type *type = value ? &value->type : NULL;
    if (!value || !value->n_uses || !type->elems || type->dtype != GRT_DTYPE_INT64 || type->rank < 0 ||
        type->rank > 1 || type->n_elems < 1 || type->n_elems > MOST || is_settled(node) ||
        !is_made_of_sizes(s, type))
        return;
    ir_value *made = symbolic_sizes_make(s, node, type);
    if (made && rewrite_same_shape(&made->type, type) && rewrite_replace_node(node, made))
        s->context->changed++;
}

grt_status pass_symbolic_sizes(pass_context *context)
{
    ir_graph *graph = context->module->main;
    sizes s = {.context = context, .n_dims = grt_dims_count(context->module->dims)};
    s.of = calloc((size_t)s.n_dims + 1, sizeof *s.of);
    if (!s.of)
        return grt_fail_memory((size_t)s.n_dims * sizeof *s.of);
    symbolic_sizes_find_sources(&s, graph);
    IR_FOR_EACH_NODE (node, graph)
        symbolic_sizes_look(&s, node);
    free(s.of);
    return GRT_OK;
}
