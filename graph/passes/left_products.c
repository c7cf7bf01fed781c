/* SPDX-License-Identifier: Apache-2.0 */
/* Products that mix tokens with each other by a constant matrix (MLP-Mixer, gMLP, ResMLP) are written as
 * those that mix channels, between two Transposes. The matrix multiplies from the left instead:
 *
 *   transpose(x w + bias)   ->   transpose(w) transpose(x) + bias as a column
 *
 * where x is made row by row of what was transposed for it: the last Transpose is gone then, and the first
 * one cancels, or is how the product reads x. What lies beside it, norms and residuals, has channels last on
 * both sides, but images have not: there, other passes let Transposes cancel (pass `layout`). */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/row_wise.h"

#include <string.h>

enum { MOST_STEPS = 12, IMAGE_RANK = 4 };

typedef struct mixed_tokens {
    ir_value *x;
    const grt_tensor *w, *bias; /* [in, out]; bias [out], or NULL */
} mixed_tokens;

static bool left_is_turn(const ir_node *node)
{
    size_t n;
    const int64_t *perm = rewrite_is(node, "Transpose") ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    const int32_t rank = perm ? (int32_t)n : 0;
    if (rank < 3)
        return false;
    for (int32_t i = 0; i < rank; i++)
        if (perm[i] != (i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2))
            return false;
    return true;
}

static bool is_image(const ir_value *value)
{
    return value->type.rank >= IMAGE_RANK;
}

/* True if the tokens of an image are rows here, whose pixels were or will be. */
static bool comes_from_image(const ir_value *value)
{
    return is_image(value) ||
           (value->producer && rewrite_is_reshape(value->producer) && is_image(ir_in(value->producer, 0)));
}

static bool goes_to_image(const ir_value *value)
{
    const ir_node *user = rewrite_only_user(value);
    return user && rewrite_is_reshape(user) && user->out[0] && is_image(user->out[0]);
}

/* True if the value is made row by row of columns. */
static bool has_columns_as_rows(const ir_value *value)
{
    for (int32_t step = 0; step < MOST_STEPS; step++) {
        const ir_node *node = value->producer;
        int32_t from = 0;
        if (!node || node->graph != value->graph)
            return false;
        if (left_is_turn(node))
            return !comes_from_image(ir_in(node, 0));
        if (!row_wise_makes(node))
            return false;
        while (!row_wise_reads(node, from))
            from++;
        value = ir_in(node, from);
    }
    return false;
}

static const ir_node *left_producer(const ir_value *value, const char *op)
{
    const ir_node *node = rewrite_producer(value, op);
    return node && value->n_uses == 1 && !rewrite_is_output(value) ? node : NULL;
}

static const grt_tensor *left_constant(const ir_value *value, int32_t rank)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    return t && t->rank == rank ? t : NULL;
}

static bool read_mixed(const ir_node *transpose, mixed_tokens *out)
{
    const ir_node *sum = left_producer(ir_in(transpose, 0), "Add");
    *out = (mixed_tokens){0};
    if (sum) {
        const int32_t at = left_constant(ir_in(sum, 1), 1) ? 1 : 0;
        out->bias = left_constant(ir_in(sum, at), 1);
        if (!out->bias)
            return false;
        sum = left_producer(ir_in(sum, 1 - at), "MatMul");
    } else {
        sum = left_producer(ir_in(transpose, 0), "MatMul");
    }
    /* a matrix with other readers would be stored twice */
    out->w = sum && ir_in(sum, 1)->n_uses == 1 ? left_constant(ir_in(sum, 1), 2) : NULL;
    out->x = sum ? ir_in(sum, 0) : NULL;
    return out->w && out->x->type.rank == ir_in(transpose, 0)->type.rank &&
           (!out->bias || out->bias->dims[0] == out->w->dims[1]);
}

/* [in, out] as [out, in]. */
static ir_value *left_matrix(ir_graph *graph, const grt_tensor *w)
{
    const int64_t in = w->dims[0], out = w->dims[1];
    const size_t size = grt_dtype_size(w->dtype);
    grt_tensor *t = ir_constant_create(graph->module, w->dtype, 2, (int64_t[]){out, in});
    char *to = t ? t->data : NULL;
    for (int64_t o = 0; t && o < out; o++)
        for (int64_t i = 0; i < in; i++, to += size)
            memcpy(to, (const char *)w->data + (i * out + o) * (int64_t)size, size);
    return t ? ir_constant(graph, NULL, t) : NULL;
}

static ir_value *bias_column(ir_graph *graph, const grt_tensor *bias)
{
    const grt_tensor column = {
        .dtype = bias->dtype, .rank = 2, .dims = {bias->dims[0], 1}, .data = bias->data};
    const grt_tensor *kept = grt_arena_memdup(graph->module->arena, &column, sizeof column);
    return kept ? ir_constant(graph, NULL, kept) : NULL;
}

static ir_value *left_put(ir_node *before, const char *op, ir_value *a, ir_value *b)
{
    ir_node *node = a && (b || !strcmp(op, "Transpose"))
                        ? ir_node_create(before->graph, before, "", op, before->desc.name, b ? 2 : 1,
                                         (ir_value *[]){a, b}, 1)
                        : NULL;
    if (!node)
        return NULL;
    if (!b) {
        int64_t perm[GRT_MAX_RANK];
        const int32_t rank = a->type.rank;
        for (int32_t i = 0; i < rank; i++)
            perm[i] = i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2;
        ir_attr_set_ints(node, "perm", perm, (size_t)rank);
    }
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* What is transposed to this is read in front of that. */
static ir_value *turned_x(ir_node *before, ir_value *x)
{
    return left_is_turn(x->producer) && ir_in(x->producer, 0)->graph == before->graph
               ? ir_in(x->producer, 0)
               : left_put(before, "Transpose", x, NULL);
}

static void left_products_visit(pass_context *context, ir_node *node)
{
    mixed_tokens m;
    if (!left_is_turn(node) || !node->out[0] || goes_to_image(node->out[0]) || !read_mixed(node, &m) ||
        !has_columns_as_rows(m.x))
        return;
    ir_node *const previous = node->prev;
    ir_value *w = left_matrix(node->graph, m.w);
    ir_value *y = w ? left_put(node, "MatMul", w, turned_x(node, m.x)) : NULL;
    if (y && m.bias)
        y = left_put(node, "Add", y, bias_column(node->graph, m.bias));
    if (y && rewrite_same_shape(&y->type, &node->out[0]->type) && rewrite_take_over_node(node, y)) {
        context->changed++;
        return;
    }
    while (node->prev != previous) /* it stays: what was begun goes */
        ir_node_remove(node->prev);
}

grt_status pass_left_products(pass_context *context)
{
    return rewrite_each_node(context, left_products_visit);
}
