/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of small batched products, as batch_branches leaves independent networks, become one node
 * (graph/ops/networks.c):
 *
 *   Transpose, MatMul, MatMul, Transpose  ->  graphrt::Networks
 *
 * Each of these products does next to nothing for each matrix, so that a launch, and moving what passes
 * between them through memory, cost more than all arithmetic. One kernel reads the input where it is, keeps
 * the rest on the chip and writes the result where it belongs: the moves of the batch dim to the front and
 * back go as well. */
#include "graph/passes/rewrite.h"

#include "graph/ir/constant.h"
#include "src/base/activation.h"

#include <string.h>

enum { A, B, BIAS, RESIDUAL };
enum { BATCH, ROWS, COLUMNS, RANK }; /* dims */
/* Fewer or wider ones are left to the products' own kernels. */
enum { MOST_LAYERS = 6, MOST_WIDTH = 32, LEAST_NETWORKS = 16 };
/* Rows of weights begin where whole lines of a cache do. */
enum { LANES = 32 };

typedef struct chain {
    pass_context *context;
    ir_node *layers[MOST_LAYERS];
    int32_t n;
    ir_value *x;    /* [rows, count, features] */
    ir_node *moved; /* the Transpose behind the last layer; NULL: there is one row, and none */
} chain;

static const grt_tensor *constant_of_rank(const ir_value *value, int32_t rank)
{
    const bool plain = value && value->type.data && !value->producer && !value->is_input;
    return plain && value->type.data->rank == rank ? value->type.data : NULL;
}

static bool is_matmul(const ir_node *node)
{
    return node && (rewrite_is(node, "MatMul") || grt_op_is(&node->desc, "graphrt", "MatMul"));
}

/* [count, rows, in] by constants [count, in, out], or turned, with a bias of one row for each matrix or none.
 */
static bool is_layer(const ir_node *node)
{
    grt_act act;
    if (!is_matmul(node) || node->out[0]->type.rank != RANK || ir_in(node, A)->type.rank != RANK ||
        ir_in(node, RESIDUAL) || grt_attr_int(&node->desc, "transA", 0) ||
        grt_attr_float(&node->desc, "scale", 1) != 1 || !grt_act_read(&node->desc, &act, NULL))
        return false;
    const grt_tensor *w = constant_of_rank(ir_in(node, B), RANK),
                     *bias = constant_of_rank(ir_in(node, BIAS), RANK);
    int64_t count;
    return w && w->dims[BATCH] >= LEAST_NETWORKS && w->dims[1] <= MOST_WIDTH && w->dims[2] <= MOST_WIDTH &&
           (!ir_in(node, BIAS) || bias) &&
           grt_dim_is_const(node->graph->module->dims, ir_in(node, A)->type.dims[BATCH], &count) &&
           count == w->dims[BATCH];
}

static bool networks_is_one_row(const ir_value *value)
{
    return grt_dim_equals(value->graph->module->dims, value->type.dims[ROWS], 1);
}

/* A Transpose that exchanges the first two of three dims. */
static bool networks_is_move(const ir_node *node)
{
    size_t n;
    const int64_t *perm =
        node && rewrite_is(node, "Transpose") ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    return perm && n == RANK && perm[0] == 1 && perm[1] == 0 && perm[2] == 2;
}

/* What the chain reads, row by row. */
static ir_value *networks_input_of(ir_node *first)
{
    ir_value *a = ir_in(first, A);
    ir_node *move = rewrite_producer(a, "Transpose");
    if (networks_is_move(move))
        return ir_in(move, 0);
    if (!networks_is_one_row(a))
        return NULL;
    const grt_dim dims[RANK] = {a->type.dims[ROWS], a->type.dims[BATCH], a->type.dims[COLUMNS]};
    return rewrite_reshaped(first, a, RANK, dims);
}

static bool networks_find_layers(ir_node *first, chain *c)
{
    ir_node *next = first;
    do {
        c->layers[c->n++] = next;
        next = rewrite_only_user(c->layers[c->n - 1]->out[0]);
    } while (c->n < MOST_LAYERS && next && is_layer(next) && ir_in(next, A) == c->layers[c->n - 1]->out[0]);
    for (int32_t l = 0; l < c->n; l++)
        c->layers[l]->mark = 1;
    c->moved = networks_is_move(next) ? next : NULL;
    return c->moved || networks_is_one_row(c->layers[c->n - 1]->out[0]);
}

/* [count, a, b] to [a, b, lane], or [b, a, lane]; without the row of a bias, [b, lane]. */
static ir_value *batch_last(ir_graph *graph, const grt_tensor *from, bool turned, bool row)
{
    const int64_t count = from->dims[0], a = from->dims[1], b = from->dims[2];
    const int64_t lane = (count + LANES - 1) / LANES * LANES;
    const int64_t dims[RANK] = {turned ? b : a, turned ? a : b, lane};
    const size_t size = grt_dtype_size(from->dtype);
    grt_tensor *to =
        ir_constant_create(graph->module, from->dtype, row ? RANK - 1 : RANK, row ? dims + 1 : dims);
    if (!to)
        return NULL;
    for (int64_t e = 0; e < a * b; e++) {
        const int64_t at = turned ? e % b * a + e / b : e;
        memset((char *)to->data + (size_t)(at * lane + count) * size, 0, (size_t)(lane - count) * size);
        for (int64_t i = 0; i < count; i++)
            memcpy((char *)to->data + (size_t)(at * lane + i) * size,
                   (const char *)from->data + (size_t)(i * a * b + e) * size, size);
    }
    return ir_constant(graph, NULL, to);
}

static bool add_constants(const chain *c, ir_value **in)
{
    ir_graph *graph = c->layers[0]->graph;
    for (int32_t l = 0; l < c->n; l++) {
        const ir_node *layer = c->layers[l];
        in[1 + 2 * l] = batch_last(graph, ir_in(layer, B)->type.data,
                                   grt_attr_int(&layer->desc, "transB", 0) != 0, false);
        in[2 + 2 * l] =
            ir_in(layer, BIAS) ? batch_last(graph, ir_in(layer, BIAS)->type.data, false, true) : NULL;
        if (!in[1 + 2 * l] || (ir_in(layer, BIAS) && !in[2 + 2 * l]))
            return false;
    }
    return true;
}

static void set_activations(const chain *c, ir_node *made)
{
    grt_arena *arena = c->context->module->arena;
    grt_string *names = GRT_ARENA_ARRAY(arena, grt_string, c->n);
    float *alphas = GRT_ARENA_ARRAY(arena, float, c->n), *betas = GRT_ARENA_ARRAY(arena, float, c->n);
    if (!names || !alphas || !betas)
        return;
    for (int32_t l = 0; l < c->n; l++) {
        const grt_op_desc *desc = &c->layers[l]->desc;
        names[l].data = grt_attr_string(desc, "activation", "");
        names[l].size = strlen(names[l].data);
        alphas[l] = grt_attr_float(desc, "alpha", 0);
        betas[l] = grt_attr_float(desc, "beta", 0);
    }
    const size_t n = (size_t)c->n;
    ir_attr_set(made, (grt_attr){.name = "activations", .kind = GRT_ATTR_STRINGS, .strings = {names, n}});
    ir_attr_set(made, (grt_attr){.name = "alphas", .kind = GRT_ATTR_FLOATS, .floats = {alphas, n}});
    ir_attr_set(made, (grt_attr){.name = "betas", .kind = GRT_ATTR_FLOATS, .floats = {betas, n}});
}

static ir_node *make_networks(const chain *c)
{
    ir_value *in[1 + 2 * MOST_LAYERS] = {c->x};
    ir_node *last = c->layers[c->n - 1];
    if (!c->x || !add_constants(c, in))
        return NULL;
    ir_node *made = ir_node_create(last->graph, last, "graphrt", "Networks", c->layers[0]->desc.name,
                                   1 + 2 * c->n, in, 1);
    if (!made)
        return NULL;
    for (int32_t l = 1; l < c->n; l++)
        ir_node_absorb_name(made, c->layers[l]);
    set_activations(c, made);
    if (op_infer_node(made) == GRT_OK && rewrite_supported(c->context, made, NULL))
        return made;
    ir_node_remove(made);
    return NULL;
}

static bool networks_put_in_place(const chain *c, ir_node *made)
{
    ir_node *end = c->moved ? c->moved : c->layers[c->n - 1];
    ir_value *y = made->out[0];
    if (!c->moved) {
        const ir_type *type = &end->out[0]->type;
        y = rewrite_reshaped(end, y, type->rank, type->dims);
    }
    return y && rewrite_replace(end->out[0], y);
}

/* What has no reader any more is left to dce. */
static void join_chain(pass_context *context, ir_node *first)
{
    chain c = {.context = context};
    if (!networks_find_layers(first, &c))
        return;
    c.x = networks_input_of(first);
    ir_node *made = make_networks(&c);
    if (made && networks_put_in_place(&c, made))
        context->changed += c.n;
}

static grt_status networks_visit_graph(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        node->mark = 0;
    IR_FOR_EACH_NODE (node, graph)
        if (!node->mark && is_layer(node))
            join_chain(context, node);
    return GRT_OK;
}

grt_status pass_networks(pass_context *context)
{
    return context->target->traits->joins_networks ? rewrite_each_graph(context, networks_visit_graph)
                                                   : GRT_OK;
}
