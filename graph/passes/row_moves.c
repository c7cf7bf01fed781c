/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of whole rows that cancel around ops that treat all rows alike are dropped:
 *
 *   Transpose(MatMul(Transpose(x), W) + b)  ->  MatMul(x, W) + b
 *
 * So are Reshapes to matrices and back, which keep products from taking residuals. The moves are composed as
 * index maps of the dims in front of the last one. Moves of rows that do not cancel pass products of 8-bit
 * numbers, to be one with a Transpose on the other side. */
#include "graph/passes/index_map.h"
#include "graph/passes/quantised.h"
#include "graph/passes/row_wise.h"

#include <string.h>

enum { MOST_STEPS = 12 };

static bool row_moves_is_vector(const ir_value *value, grt_dim last, const grt_dims *dims)
{
    if (!value || !value->type.data || value->producer || value->is_input || value->type.rank < 0)
        return false;
    const int32_t rank = value->type.rank;
    for (int32_t i = 0; i < rank; i++)
        if (!grt_dim_equals(dims, value->type.dims[i], 1) && (i < rank - 1 || value->type.dims[i] != last))
            return false;
    return rank <= 1;
}

static bool row_moves_is_plain_gemm(const ir_node *node)
{
    const ir_value *c = ir_in(node, 2);
    return rewrite_is(node, "Gemm") && !grt_attr_int(&node->desc, "transA", 0) &&
           grt_attr_float(&node->desc, "alpha", 1) == 1.0f &&
           grt_attr_float(&node->desc, "beta", 1) == 1.0f && row_wise_is_matrix(ir_in(node, 1)) &&
           (!c || row_moves_is_vector(c, node->out[0]->type.dims[1], node->graph->module->dims));
}

/* A product of 8-bit numbers by one matrix, and rounding to them with one scale. */
static bool is_quantised_row(const ir_node *node)
{
    if (rewrite_is(node, "QuantizeLinear")) {
        const ir_value *scale = ir_in(node, 1);
        return scale && scale->type.data && grt_tensor_elements(scale->type.data) == 1;
    }
    return quantised_is_product(node) && !strcmp(node->desc.op, "QMatMul") &&
           ir_in(node, QP_X)->type.rank >= 2 && ir_in(node, QP_W)->type.rank == 2 &&
           !ir_in(node, QP_RESIDUAL);
}

/* The input that the node takes rows from, one by one; -1 if it is no such node. */
static int32_t row_input(const ir_node *node)
{
    const ir_type *out = &node->out[0]->type;
    const grt_dims *dims = node->graph->module->dims;
    if (node->n_out > 1 || out->rank < 1)
        return -1;
    if (rewrite_is(node, "MatMul"))
        return ir_in(node, 0)->type.rank >= 2 && row_wise_is_matrix(ir_in(node, 1)) ? 0 : -1;
    if (row_moves_is_plain_gemm(node) || is_quantised_row(node))
        return 0;
    if (rewrite_is(node, "LayerNormalization") || rewrite_is(node, "RMSNormalization"))
        return grt_axis(grt_attr_int(&node->desc, "axis", -1), out->rank) == out->rank - 1 ? 0 : -1;
    if (*node->desc.domain || !node->row || !(node->row->flags & OP_POINTWISE))
        return -1;
    if (node->n_in == 1)
        return rewrite_same_shape(&ir_in(node, 0)->type, out) ? 0 : -1;
    for (int32_t i = 0; i < 2 && node->n_in == 2; i++)
        if (ir_in(node, i) && rewrite_same_shape(&ir_in(node, i)->type, out) &&
            row_moves_is_vector(ir_in(node, 1 - i), out->dims[out->rank - 1], dims))
            return i;
    return -1;
}

/* Moves rows as a whole: the last dim stays what it is. */
static bool is_row_move(const ir_node *node)
{
    const ir_type *in = ir_in(node, 0) ? &ir_in(node, 0)->type : NULL, *out = &node->out[0]->type;
    size_t n;
    if (!in || in->rank < 2 || out->rank < 2 || in->dims[in->rank - 1] != out->dims[out->rank - 1])
        return false;
    const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
    return rewrite_is_reshape(node) ||
           (rewrite_is(node, "Transpose") && perm && perm[in->rank - 1] == in->rank - 1);
}

/* Applies the node to the map of all dims but the last. */
static bool move_rows(grt_dims *dims, const ir_node *node, index_map *map)
{
    const ir_type *out = &node->out[0]->type;
    size_t n;
    if (rewrite_is_reshape(node))
        return index_map_reshape(dims, map, out->rank - 1, out->dims);
    return index_map_transpose(map, grt_attr_ints(&node->desc, "perm", &n));
}

typedef struct chain {
    ir_node *nodes[MOST_STEPS]; /* from the last move to the first */
    int32_t n;
} chain;

/* True if the moves of the chain put every row back to where it was in x. */
static bool cancels(const chain *c, const ir_value *x)
{
    grt_dims *dims = x->graph->module->dims;
    index_map map;
    if (!index_map_of_dims(dims, x->type.rank - 1, x->type.dims, &map))
        return false;
    for (int32_t i = c->n - 1; i >= 0; i--)
        if (is_row_move(c->nodes[i]) && !move_rows(dims, c->nodes[i], &map))
            return false;
    const ir_type *out = &c->nodes[0]->out[0]->type;
    if (out->rank != x->type.rank || index_parts_join(dims, map.parts, map.n) > 1 ||
        (map.n && !grt_dim_equals(dims, map.parts[0].stride, 1)))
        return false;
    for (int32_t i = 0; i < out->rank - 1; i++)
        if (out->dims[i] != x->type.dims[i])
            return false;
    return true;
}

static ir_value *made(ir_node *node)
{
    return node && op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

static ir_node *row_moves_add_node(ir_node *before, const ir_node *old, const char *op, int32_t n_in,
                                   ir_value *const *in)
{
    return ir_node_create(before->graph, before, "", op, old->desc.name, n_in, in, 1);
}

static ir_value *without_gemm(ir_node *before, const ir_node *gemm, ir_value *x)
{
    ir_value *w = ir_in(gemm, 1);
    if (grt_attr_int(&gemm->desc, "transB", 0)) {
        ir_node *transpose = row_moves_add_node(before, gemm, "Transpose", 1, &w);
        if (!transpose)
            return NULL;
        ir_attr_set_ints(transpose, "perm", (int64_t[]){1, 0}, 2);
        w = made(transpose);
    }
    ir_value *y = w ? made(row_moves_add_node(before, gemm, "MatMul", 2, (ir_value *[]){x, w})) : NULL;
    return y && ir_in(gemm, 2)
               ? made(row_moves_add_node(before, gemm, "Add", 2, (ir_value *[]){y, ir_in(gemm, 2)}))
               : y;
}

/* What the node makes of the rows of x. */
static ir_value *applied(ir_node *before, const ir_node *node, ir_value *x)
{
    ir_value *in[QP_INPUTS];
    const int32_t at = row_input(node);
    if (rewrite_is(node, "Gemm"))
        return without_gemm(before, node, x);
    if (node->n_in > QP_INPUTS)
        return NULL;
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = i == at ? x : ir_in(node, i);
    ir_node *copy = ir_node_create(before->graph, before, node->desc.domain, node->desc.op, node->desc.name,
                                   node->n_in, in, 1);
    if (!copy)
        return NULL;
    ir_attrs_copy(copy, node);
    if (grt_attr_int(&node->desc, "axis", -1) != -1)
        ir_attr_set_int(copy, "axis", -1);
    return made(copy);
}

static void drop_moves(pass_context *context, const chain *c, ir_value *x)
{
    ir_node *last = c->nodes[0];
    ir_value *y = x;
    for (int32_t i = c->n - 1; i >= 0 && y; i--)
        if (!is_row_move(c->nodes[i]))
            y = applied(last, c->nodes[i], y);
    if (y && rewrite_same_shape(&y->type, &last->out[0]->type) && y->type.dtype == last->out[0]->type.dtype &&
        rewrite_replace(last->out[0], y)) {
        /* What is left over would count as a reader of what other chains end in. */
        for (int32_t i = 0; i < c->n && !c->nodes[i]->out[0]->n_uses; i++)
            ir_node_remove(c->nodes[i]);
        context->changed++;
    }
}

static void row_moves_look(pass_context *context, ir_node *last)
{
    chain c = {.nodes = {last}, .n = 1};
    bool works = false;
    for (const ir_value *at = ir_in(last, 0); c.n < MOST_STEPS && at->producer;) {
        ir_node *node = at->producer;
        if (node->n_out != 1) /* the first output may be left out */
            return;
        const bool moves = is_row_move(node), shared = at->n_uses != 1;
        if (shared && !moves) /* others may read what the first move makes, as keys and values do */
            return;
        const int32_t i = moves ? 0 : row_input(node);
        if (i < 0 || node->graph != last->graph)
            return;
        works |= !moves;
        c.nodes[c.n++] = node;
        ir_value *x = ir_in(node, i);
        if (moves && works && cancels(&c, x)) {
            drop_moves(context, &c, x);
            return;
        }
        if (shared)
            return;
        at = x;
    }
}

/* ---- moves that meet ---- */

/* A product of 8-bit numbers, whose rows are moved on either side. */
static bool is_quantised_product(const ir_node *node)
{
    return quantised_is_product(node) && is_quantised_row(node);
}

/* The node that reads the value alone, if it moves elements; NULL: there is none. */
static ir_node *move_behind(const ir_value *value)
{
    ir_node *node = rewrite_only_user(value);
    return node && node->graph == value->graph && node->n_out == 1 &&
                   (rewrite_is_reshape(node) || rewrite_is(node, "Transpose"))
               ? node
               : NULL;
}

static ir_node *move_in_front(const ir_value *value)
{
    ir_node *node = value->producer;
    return node && value->n_uses == 1 && node->n_out == 1 && node->graph == value->graph &&
                   (rewrite_is_reshape(node) || rewrite_is(node, "Transpose"))
               ? node
               : NULL;
}

/* The same move of rows of another length; NULL when out of memory. */
static ir_value *moved_again(ir_node *before, const ir_node *move, ir_value *x)
{
    const ir_type *out = &move->out[0]->type;
    if (rewrite_is_reshape(move)) {
        grt_dim dims[GRT_MAX_RANK];
        memcpy(dims, out->dims, (size_t)out->rank * sizeof *dims);
        dims[out->rank - 1] = x->type.dims[x->type.rank - 1];
        return rewrite_reshaped(before, x, out->rank, dims);
    }
    ir_node *copy = row_moves_add_node(before, move, "Transpose", 1, &x);
    if (copy)
        ir_attrs_copy(copy, move);
    return made(copy);
}

/* Moves of rows in front of a product whose result is transposed go behind it, where both become one. */
static bool sink_rows(pass_context *context, ir_node *product)
{
    chain front = {.n = 0};
    bool turns = false;
    ir_value *x = ir_in(product, QP_X);
    ir_node *behind = move_behind(product->out[0]);
    if (behind && rewrite_is_reshape(behind))
        behind = move_behind(behind->out[0]);
    for (ir_node *move; (move = move_in_front(x)) && is_row_move(move) && front.n < MOST_STEPS;
         x = ir_in(move, 0)) {
        turns |= rewrite_is(move, "Transpose");
        front.nodes[front.n++] = move;
    }
    if (!turns || !behind || !rewrite_is(behind, "Transpose"))
        return false;
    ir_value *y = applied(product, product, x);
    for (int32_t i = front.n - 1; i >= 0 && y; i--)
        y = moved_again(product, front.nodes[i], y);
    if (!y || !rewrite_replace(product->out[0], y))
        return false;
    context->changed++;
    return true;
}

/* Moves of rows behind a product whose rows come out of a Transpose go in front of it. */
static void raise_rows(pass_context *context, ir_node *product)
{
    chain behind = {.n = 0};
    bool turns = false;
    ir_value *x = ir_in(product, QP_X), *last = product->out[0];
    const ir_node *front = move_in_front(x);
    if (front && rewrite_is_reshape(front))
        front = move_in_front(ir_in(front, 0));
    for (ir_node *move; (move = move_behind(last)) && is_row_move(move) && behind.n < MOST_STEPS;
         last = move->out[0]) {
        turns |= rewrite_is(move, "Transpose");
        behind.nodes[behind.n++] = move;
    }
    if (!turns || !front || !rewrite_is(front, "Transpose"))
        return;
    ir_node *end = behind.nodes[behind.n - 1];
    for (int32_t i = 0; i < behind.n && x; i++)
        x = moved_again(end, behind.nodes[i], x);
    ir_value *y = x ? applied(end, product, x) : NULL;
    if (y && rewrite_same_shape(&y->type, &last->type) && rewrite_replace(last, y))
        context->changed++;
}

static grt_status row_moves_visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (node->n_out == 1 && node->out[0] && node->out[0]->n_uses && is_row_move(node))
            row_moves_look(context, node);
    IR_FOR_EACH_NODE (node, graph)
        if (is_quantised_product(node) && node->out[0]->n_uses && !sink_rows(context, node))
            raise_rows(context, node);
    return GRT_OK;
}

grt_status pass_row_moves(pass_context *context)
{
    return rewrite_each_graph(context, row_moves_visit);
}
