/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one row by constant matrices: those with the same input become one, whose result is cut into
 * theirs:
 *
 *   x A + a, x B + b  ->  Split(x [A B] + [a b])
 *
 * Such a product does little but read its matrix, which a device with many multiprocessors does faster the
 * larger the matrix is. Of one row the parts are views (graph/ir/view.h), so that cutting is free; of more
 * rows they would be copies, and the products have enough to do as they are. */
#include "graph/passes/cse.h"
#include "graph/passes/rewrite.h"

#include "graph/ir/view.h"
#include "src/plan/plan.h"

enum { X, WEIGHTS, BIAS, N_IN };

typedef struct family {
    ir_node **members; /* in the graph's order */
    int32_t n;
} family;

static const grt_tensor *merge_products_constant(const ir_value *value, int32_t rank)
{
    const bool plain = value && value->type.data && !value->producer && !value->is_input;
    return plain && value->type.data->rank == rank ? value->type.data : NULL;
}

static bool merge_products_is_product(const ir_node *node)
{
    return rewrite_is(node, "MatMul") || rewrite_is(node, "Gemm") ||
           grt_op_is(&node->desc, "graphrt", "MatMul");
}

/* The axis of the weights that is the result's last one. */
static int32_t width_axis(const ir_node *node)
{
    return grt_attr_int(&node->desc, "transB", 0) ? 0 : 1;
}

static bool merge_products_is_one_row(const ir_node *node)
{
    const ir_type *type = &node->out[0]->type;
    for (int32_t i = 0; i + 1 < type->rank; i++)
        if (!grt_dim_equals(node->graph->module->dims, type->dims[i], 1))
            return false;
    return type->rank > 0;
}

/* A product that may be a part of a larger one, at any place in it. Weights that others read too would be
 * kept twice. */
static bool merge_products_may_join(const ir_node *node)
{
    if (!merge_products_is_product(node) || !node->out[0] || !merge_products_is_one_row(node) ||
        grt_attr_int(&node->desc, "transA", 0))
        return false;
    for (int32_t i = N_IN; i < node->n_in; i++)
        if (ir_in(node, i))
            return false;
    const grt_tensor *w = merge_products_constant(ir_in(node, WEIGHTS), 2),
                     *bias = merge_products_constant(ir_in(node, BIAS), 1);
    if (!w || ir_in(node, WEIGHTS)->n_uses != 1 || (ir_in(node, BIAS) && !bias))
        return false;
    const int64_t width = w->dims[width_axis(node)];
    return grt_elements_bytes(w->dtype, width) % GRT_VALUE_ALIGNMENT == 0 &&
           (!bias || bias->dims[0] == width);
}

/* True if two that may join differ in nothing but the constants' content and width. */
static bool are_siblings(const ir_node *a, const ir_node *b)
{
    const ir_value *bias_a = ir_in(a, BIAS), *bias_b = ir_in(b, BIAS);
    if (ir_in(a, X) != ir_in(b, X) || !grt_op_is(&a->desc, b->desc.domain, b->desc.op) ||
        a->out[0]->type.rank != b->out[0]->type.rank || !bias_a != !bias_b || !cse_same_attrs(a, b))
        return false;
    const grt_tensor *w_a = ir_in(a, WEIGHTS)->type.data, *w_b = ir_in(b, WEIGHTS)->type.data;
    return w_a->dtype == w_b->dtype && w_a->dims[1 - width_axis(a)] == w_b->dims[1 - width_axis(a)] &&
           (!bias_a || bias_a->type.dtype == bias_b->type.dtype);
}

/* The family of its first member; marked as visited. */
static bool merge_products_find_family(ir_node *first, family *out)
{
    int32_t n = 0;
    for (const ir_use *use = ir_in(first, X)->uses; use; use = use->next)
        if (use->node && use->index == X && use->graph == first->graph && !use->node->mark &&
            merge_products_may_join(use->node) && are_siblings(first, use->node)) {
            use->node->mark = 1;
            n++;
        }
    out->members = GRT_ARENA_ARRAY(first->graph->module->arena, ir_node *, n + 1);
    out->n = 0;
    if (!out->members || n < 2)
        return false;
    for (ir_node *node = first; out->n < n; node = node->next)
        if (node->mark == 1) {
            node->mark = 2;
            out->members[out->n++] = node;
        }
    return true;
}

static ir_value *merge_products_join(const family *f, int32_t input, int32_t axis)
{
    ir_graph *graph = f->members[0]->graph;
    const grt_tensor **parts = GRT_ARENA_ARRAY(graph->module->arena, const grt_tensor *, f->n);
    if (!parts)
        return NULL;
    for (int32_t i = 0; i < f->n; i++)
        parts[i] = ir_in(f->members[i], input)->type.data;
    return rewrite_join(graph, parts, f->n, axis);
}

static ir_node *merge_products_make_product(const family *f)
{
    ir_node *first = f->members[0];
    ir_value *in[N_IN] = {ir_in(first, X), merge_products_join(f, WEIGHTS, width_axis(first))};
    const bool bias = ir_in(first, BIAS);
    if (bias)
        in[BIAS] = merge_products_join(f, BIAS, 0);
    if (!in[WEIGHTS] || (bias && !in[BIAS]))
        return NULL;
    ir_node *made = ir_node_create(first->graph, first, first->desc.domain, first->desc.op, first->desc.name,
                                   bias ? N_IN : BIAS, in, 1);
    if (!made)
        return NULL;
    ir_attrs_copy(made, first);
    for (int32_t i = 1; i < f->n; i++)
        ir_node_absorb_name(made, f->members[i]);
    return made;
}

static ir_node *make_split(const family *f, ir_node *product)
{
    int64_t *sizes = GRT_ARENA_ARRAY(product->graph->module->arena, int64_t, f->n);
    if (!sizes)
        return NULL;
    for (int32_t i = 0; i < f->n; i++)
        sizes[i] = ir_in(f->members[i], WEIGHTS)->type.data->dims[width_axis(product)];
    ir_value *in[] = {product->out[0], ir_constant_ints(product->graph, "split", sizes, f->n)};
    ir_node *made =
        in[1] ? ir_node_create(product->graph, f->members[0], "", "Split", product->desc.name, 2, in, f->n)
              : NULL;
    if (made)
        ir_attr_set_int(made, "axis", -1);
    return made;
}

static void merge_products_merge(pass_context *context, const family *f)
{
    ir_node *product = merge_products_make_product(f), *split = NULL;
    bool good = product && op_infer_node(product) == GRT_OK && rewrite_supported(context, product, NULL);
    if (good)
        split = make_split(f, product);
    good = split && op_infer_node(split) == GRT_OK && ir_is_view(split);
    for (int32_t i = 0; good && i < f->n; i++)
        good = rewrite_same_shape(&split->out[i]->type, &f->members[i]->out[0]->type);
    for (int32_t i = 0; good && i < f->n; i++)
        if (rewrite_replace_node(f->members[i], split->out[i]))
            context->changed++;
    if (good)
        return;
    if (split)
        ir_node_remove(split);
    if (product)
        ir_node_remove(product);
}

static grt_status merge_products_visit_graph(pass_context *context, ir_graph *graph)
{
    family f;
    IR_FOR_EACH_NODE (node, graph)
        node->mark = 0;
    for (ir_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (node->mark || !merge_products_may_join(node) || !merge_products_find_family(node, &f))
            continue;
        while (next && next->mark) /* members go */
            next = next->next;
        merge_products_merge(context, &f);
    }
    return GRT_OK;
}

grt_status pass_merge_products(pass_context *context)
{
    return context->target->traits->merges_products ? rewrite_each_graph(context, merge_products_visit_graph)
                                                    : GRT_OK;
}
