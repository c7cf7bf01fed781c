/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `joined_products`: products of one left factor that are joined side by side are one product:
 *
 *   Concat(x A + a, x B + b)  ->  x [A B] + [a b]
 *
 * as of heads that a model computes one by one, or of softmax weights with values in two parts, which are no
 * attention while two products read them. */
#include "graph/passes/rewrite.h"

enum { MOST_PRODUCTS = 64 };

typedef struct joined_products {
    int32_t n, rank; /* rank: of the right factors */
    ir_value *left;
    ir_value *right[MOST_PRODUCTS], *bias[MOST_PRODUCTS]; /* bias: of all or of none */
} joined_products;

static bool joined_products_is_weight(const ir_value *value)
{
    return value->type.data && !value->producer && !value->is_input;
}

/* The product that makes the part, alone or below a constant bias. NULL if it is none. */
static ir_node *joined_products_find(const ir_value *part, ir_value **out_bias)
{
    ir_node *node = part && part->n_uses == 1 ? part->producer : NULL;
    *out_bias = NULL;
    for (int32_t i = 0; i < 2 && rewrite_is(node, "Add"); i++) {
        ir_value *x = ir_in(node, i), *bias = ir_in(node, 1 - i);
        ir_node *product = x && x->n_uses == 1 ? rewrite_producer(x, "MatMul") : NULL;
        if (product && bias && bias->type.rank == 1 && joined_products_is_weight(bias)) {
            *out_bias = bias;
            return product->graph == node->graph ? product : NULL;
        }
    }
    return rewrite_is(node, "MatMul") ? node : NULL;
}

/* True if the right factors differ in their columns only, and each bias has a number for each of these. */
static bool joined_products_fit(const joined_products *p, grt_dims *dims, int32_t i)
{
    const ir_type *first = &p->right[0]->type, *type = &p->right[i]->type;
    if (type->rank != p->rank || type->dtype != first->dtype || !p->bias[i] != !p->bias[0])
        return false;
    for (int32_t k = 0; k < p->rank - 1; k++)
        if (type->dims[k] != first->dims[k])
            return false;
    return !p->bias[i] || (p->bias[i]->type.dims[0] == type->dims[p->rank - 1] &&
                           grt_dim_is_const(dims, p->bias[i]->type.dims[0], NULL));
}

static bool joined_products_read(const ir_node *concat, joined_products *p)
{
    grt_dims *dims = concat->graph->module->dims;
    const int32_t rank = concat->out[0]->type.rank;
    if (rank < 2 || concat->n_in < 2 || concat->n_in > MOST_PRODUCTS ||
        grt_axis(grt_attr_int(&concat->desc, "axis", 0), rank) != rank - 1)
        return false;
    for (p->n = 0; p->n < concat->n_in; p->n++) {
        const ir_node *product = joined_products_find(ir_in(concat, p->n), &p->bias[p->n]);
        if (!product || product->graph != concat->graph || product->out[0]->type.rank != rank)
            return false;
        if (p->n == 0)
            p->left = ir_in(product, 0);
        p->right[p->n] = ir_in(product, 1);
        p->rank = p->right[0]->type.rank;
        if (ir_in(product, 0) != p->left || p->rank < 2 || p->left->type.rank < 2 ||
            !joined_products_fit(p, dims, p->n))
            return false;
    }
    return true;
}

/* True if all right factors are weights that nothing else reads. */
static bool joined_products_are_weights(const joined_products *p)
{
    for (int32_t i = 0; i < p->n; i++)
        if (!joined_products_is_weight(p->right[i]) || p->right[i]->n_uses != 1)
            return false;
    return true;
}

/* True if joining the right factors moves no more than joining the results does. */
static bool joined_products_move_less(const joined_products *p, const grt_dims *dims)
{
    const grt_dim inner = p->right[0]->type.dims[p->rank - 2],
                  rows = p->left->type.dims[p->left->type.rank - 2];
    int64_t n_inner, n_rows;
    for (int32_t i = 0; i < p->n; i++)
        if (joined_products_is_weight(p->right[i]))
            return false;
    return p->rank <= p->left->type.rank &&
           (inner == rows || (grt_dim_is_const(dims, inner, &n_inner) &&
                              grt_dim_is_const(dims, rows, &n_rows) && n_inner <= n_rows));
}

static ir_value *join_weights(ir_graph *graph, const joined_products *p, ir_value *const *parts, int32_t axis)
{
    const grt_tensor *tensors[MOST_PRODUCTS];
    for (int32_t i = 0; i < p->n; i++)
        tensors[i] = parts[i]->type.data;
    return rewrite_join(graph, tensors, p->n, axis);
}

static ir_value *join_computed(ir_node *before, const joined_products *p)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Concat", before->desc.name, p->n, p->right, 1);
    if (!node)
        return NULL;
    ir_attr_set_int(node, "axis", p->rank - 1);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

static ir_value *joined_products_put(ir_node *before, const char *op, ir_value *a, ir_value *b)
{
    ir_node *node =
        ir_node_create(before->graph, before, "", op, before->desc.name, 2, (ir_value *[]){a, b}, 1);
    return node && op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

static void joined_products_look(pass_context *context, ir_node *node)
{
    joined_products p;
    if (!rewrite_is(node, "Concat") || !joined_products_read(node, &p))
        return;
    const bool weights = joined_products_are_weights(&p);
    if (!weights && !joined_products_move_less(&p, context->module->dims))
        return;
    ir_value *bias = p.bias[0] ? join_weights(node->graph, &p, p.bias, 0) : NULL;
    if (p.bias[0] && !bias)
        return;
    ir_value *right = weights ? join_weights(node->graph, &p, p.right, p.rank - 1) : join_computed(node, &p);
    ir_value *y = right ? joined_products_put(node, "MatMul", p.left, right) : NULL;
    if (y && bias)
        y = joined_products_put(node, "Add", y, bias);
    if (y && rewrite_take_over_node(node, y)) /* the products are dead */
        context->changed++;
}

grt_status pass_joined_products(pass_context *context)
{
    return rewrite_each_node(context, joined_products_look);
}
