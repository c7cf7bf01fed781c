/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of a node. */
#include "graph/ir/flops.h"

#include "graph/ir/ir.h"
#include "src/base/einsum.h"
#include "src/base/rounded_attention.h"

/* Expressions share parts, and a hostile model may share many: looking at them is bounded. */
enum { MAX_VISITS = 1000 };

/* Value of a dim with every symbol 1; 1 if unknown. */
static int64_t flops_dim_value(const grt_dims *dims, grt_dim dim, int *visits)
{
    grt_dim_expr e = grt_dim_get(dims, dim);
    int64_t v;
    if (e.op == GRT_DIM_CONST)
        return e.value;
    if (e.op == GRT_DIM_SYMBOL || ++*visits > MAX_VISITS)
        return 1;
    const int64_t a = flops_dim_value(dims, e.a, visits), b = flops_dim_value(dims, e.b, visits);
    return grt_dim_apply(e.op, a, b, &v) ? v : 1;
}

/* A size that symbols of 1 make negative, as of a window that is longer than its input, cannot be said
 * either.
 */
static double flops_product(const ir_value *value, int32_t from, int32_t to)
{
    double n = 1;
    for (int32_t i = from; i < to; i++) {
        int visits = 0;
        const int64_t size = flops_dim_value(value->graph->module->dims, value->type.dims[i], &visits);
        n *= size < 0 ? 1 : (double)size;
    }
    return n;
}

static bool flops_known(const ir_value *value, int32_t min_rank)
{
    return value && value->type.kind == GRT_KIND_TENSOR && value->type.rank >= min_rank;
}

static double flops_elements_of(const ir_value *value)
{
    return flops_known(value, 0) ? flops_product(value, 0, value->type.rank) : 0;
}

double flops_conv(const ir_node *node)
{
    const ir_value *w = ir_in(node, 1), *y = node->out[0]; /* w: [M, C/group, k...] */
    return w->type.rank < 3 ? 0 : 2 * flops_product(y, 0, y->type.rank) * flops_product(w, 1, w->type.rank);
}

double flops_woven_conv(const ir_node *node)
{
    const ir_value *w = ir_in(node, 1), *y = node->out[0];
    size_t n = 0;
    const int64_t *block = grt_attr_ints(&node->desc, "block", &n);
    return w->type.rank < 3 || n != 2
               ? 0
               : 2 * flops_product(y, 0, y->type.rank - 1) / ((double)block[0] * (double)block[1]) *
                     flops_product(w, 0, w->type.rank);
}

double flops_conv_transpose(const ir_node *node)
{
    const ir_value *x = ir_in(node, 0), *w = ir_in(node, 1); /* w: [C, M/group, k...] */
    return w->type.rank < 3 ? 0 : 2 * flops_product(x, 0, x->type.rank) * flops_product(w, 1, w->type.rank);
}

double flops_matmul(const ir_node *node)
{
    const ir_value *x = ir_in(node, 0), *y = node->out[0];
    const bool transposed = grt_attr_int(&node->desc, "transA", 0) != 0;
    const int32_t k = x->type.rank - (transposed && x->type.rank >= 2 ? 2 : 1);
    return 2 * flops_product(y, 0, y->type.rank) * flops_product(x, k, k + 1);
}

/* Weights are input 3 of these. */
double flops_qconv(const ir_node *node)
{
    const ir_value *w = ir_in(node, 3), *y = node->out[0];
    return !flops_known(w, 3) ? 0 : 2 * flops_product(y, 0, y->type.rank) * flops_product(w, 1, w->type.rank);
}

double flops_qmatmul(const ir_node *node)
{
    const ir_value *x = ir_in(node, 0), *y = node->out[0];
    return 2 * flops_product(y, 0, y->type.rank) * flops_product(x, x->type.rank - 1, x->type.rank);
}

/* Inputs from 1 on are weights and biases by turns. */
double flops_networks(const ir_node *node)
{
    double weights = 0;
    for (int32_t i = 1; i < node->n_in; i += 2)
        weights += flops_known(ir_in(node, i), 3) ? flops_product(ir_in(node, i), 0, 3) : 0;
    return 2 * flops_product(node->out[0], 0, 1) * weights;
}

double flops_recurrence(const ir_node *node)
{
    const ir_value *x = ir_in(node, 0), *w = ir_in(node, 1), *r = ir_in(node, 2);
    if (!flops_known(x, 3) || !flops_known(w, 3) || !flops_known(r, 3)) /* w: [D, G*H, I], r: [D, G*H, H] */
        return 0;
    return 2 * flops_product(x, 0, x->type.rank - 1) * (flops_product(w, 0, 3) + flops_product(r, 0, 3));
}

/* Products of queries with keys and of weights with values: rows of either size, the queries' and the
 * result's, with every key. Keys that a causal mask or a window hides are counted too. Without input 1, input
 * 0 holds queries, keys and values side by side, whose heads of queries are as wide as the result. */
double flops_attention(const ir_node *node)
{
    enum { PAST_KEY = 4 };
    const ir_value *q = ir_in(node, 0), *k = ir_in(node, 1), *past = ir_in(node, PAST_KEY), *y = node->out[0];
    const ir_value *rows = k ? q : y, *tokens = k ? k : q;
    if (!flops_known(rows, 3) || !flops_known(tokens, 3))
        return 0;
    const int32_t sequence = tokens->type.rank - 2;
    double keys = flops_product(tokens, sequence, sequence + 1);
    keys += flops_known(past, 4) ? flops_product(past, 2, 3) : 0;
    return 2 * keys * (flops_elements_of(rows) + flops_elements_of(y));
}

/* The same of levels: Q may hold other parts too, K may have its tokens in front of its heads. */
double flops_rounded_attention(const ir_node *node)
{
    enum { OF_PARTS = 5 };
    const ir_value *k = ir_in(node, QR_K), *y = node->out[0];
    if (!flops_known(k, 4) || !flops_known(y, 4))
        return 0;
    const int32_t tokens = k->type.rank == OF_PARTS || grt_attr_int(&node->desc, "k_tokens", 0) ? 1 : 2;
    return 4 * flops_product(k, tokens, tokens + 1) * flops_elements_of(y);
}

double op_flops(const ir_node *node)
{
    if (!node->row || !node->row->flops || !node->n_out)
        return 0;
    const bool quantised = node->row->flops == flops_qconv || node->row->flops == flops_qmatmul ||
                           node->row->flops == flops_rounded_attention;
    const int32_t weights = node->row->flops == flops_attention ? 0 : quantised ? 3 : 1;
    const bool counted = flops_known(node->out[0], 0) && flops_known(ir_in(node, 0), 1) &&
                         flops_known(ir_in(node, weights), 1);
    return counted ? node->row->flops(node) : 0;
}

/* 0: not known. */
static int cost_of_element(const op_row *row)
{
    if (!row || row->flags & (OP_VIEW | OP_POINTWISE))
        return !row ? OP_COST_UNKNOWN : row->flags & OP_VIEW ? OP_COST_MOVE : OP_COST_COMPUTE;
    return (int)row->cost;
}

static double attribute_elements(const grt_op_desc *desc)
{
    size_t n = desc->n_attrs;
    for (size_t i = 0; i < desc->n_attrs; i++) {
        const grt_attr *a = &desc->attrs[i];
        n += a->kind == GRT_ATTR_INTS      ? a->ints.n
             : a->kind == GRT_ATTR_FLOATS  ? a->floats.n
             : a->kind == GRT_ATTR_STRINGS ? a->strings.n
             : a->kind == GRT_ATTR_STRING  ? a->s.size
                                           : 0;
    }
    return (double)n;
}

/* Each combination of the labels' values is one step. */
double flops_einsum(const ir_node *node)
{
    double size[GRT_EINSUM_LABELS], work = 1;
    for (int i = 0; i < GRT_EINSUM_LABELS; i++)
        size[i] = 1;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *x = ir_in(node, i);
        int8_t labels[GRT_MAX_RANK];
        int32_t ellipsis;
        if (!flops_known(x, 0) ||
            grt_einsum_input(&node->desc, i, node->n_in, x->type.rank, labels, &ellipsis))
            return 0; /* the shape rule says what is wrong */
        for (int32_t k = 0; k < x->type.rank; k++) {
            const double n = flops_product(x, k, k + 1);
            size[labels[k]] = n > size[labels[k]] ? n : size[labels[k]];
        }
    }
    for (int i = 0; i < GRT_EINSUM_LABELS; i++)
        work *= size[i];
    return work * node->n_in;
}

double op_work(const ir_node *node)
{
    const double flops = op_flops(node), samples = (double)grt_attr_int(&node->desc, "sampling_ratio", 1);
    const int cost = cost_of_element(node->row);
    double elements = attribute_elements(&node->desc);
    for (int32_t i = 0; i < node->n_in; i++)
        elements += flops_elements_of(node->in[i].value);
    for (int32_t i = 0; i < node->n_out; i++)
        elements += flops_elements_of(node->out[i]);
    if (node->row && node->row->work)
        return node->row->work(node) + elements;
    if (flops > 0) /* products of float32 have fast kernels */
        return (ir_in(node, 0)->type.dtype == GRT_DTYPE_FLOAT ? flops / 4 : flops) + elements;
    return cost ? cost * elements : elements * elements * (samples > 1 ? samples * samples : 1);
}
