/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, as exporters write it out, becomes one Attention node:
 *
 *   MatMul(Softmax(scale * MatMul(Q, K^T) + mask), V)
 *
 * with the guard that PyTorch puts after Softmax for rows that are masked out altogether (NaN becomes 0), and
 * with keys and values that are repeated for groups of query heads. Where Q, K, V are transposed from [batch,
 * sequence, heads, size], and the result is transposed back, those moves are left to the kernel too. */
#include "graph/passes/rewrite.h"

#include <math.h>
#include <string.h>

typedef struct attention {
    ir_value *q, *k, *v, *mask; /* [batch, heads, sequence, size]; mask may be NULL */
    double scale;
} attention;

static bool is_inner(const ir_value *value)
{
    return value && value->producer && value->n_uses == 1;
}

/* ---- matching ---- */

/* Softmax over the last dim behind the guard Where(IsNaN(p), 0, p), or bare: its node. */
static ir_node *softmax_of(const ir_value *value)
{
    double zero;
    ir_node *where = is_inner(value) ? rewrite_producer(value, "Where") : NULL;
    if (where) {
        ir_value *p = ir_in(where, 2);
        ir_node *test = is_inner(ir_in(where, 0)) ? rewrite_producer(ir_in(where, 0), "IsNaN") : NULL;
        if (!p || p->n_uses != 2 || !test || ir_in(test, 0) != p || !ir_const_float(ir_in(where, 1), &zero) ||
            zero != 0)
            return NULL;
        value = p;
    } else if (!is_inner(value)) {
        return NULL;
    }
    ir_node *softmax = rewrite_producer(value, "Softmax");
    int32_t rank = value->type.rank;
    return softmax && rank == 4 && grt_axis(grt_attr_int(&softmax->desc, "axis", -1), 4) == 3 ? softmax
                                                                                              : NULL;
}

/* x of x * c or x / c, c a scalar constant; *scale is multiplied by the factor. */
static ir_value *unscaled(ir_value *value, double *scale)
{
    double c;
    ir_node *node = is_inner(value) ? value->producer : NULL;
    if (rewrite_is(node, "Div") && ir_const_float(ir_in(node, 1), &c) && c != 0) {
        *scale /= c;
        return ir_in(node, 0);
    }
    for (int32_t i = 0; i < 2 && rewrite_is(node, "Mul"); i++)
        if (ir_const_float(ir_in(node, i), &c)) {
            *scale *= c;
            return ir_in(node, 1 - i);
        }
    return value;
}

/* Does the mask say something for every key, and broadcast to the scores? */
static bool is_mask(const ir_value *mask, const ir_type *scores, const grt_dims *dims)
{
    const ir_type *type = &mask->type;
    if (type->rank < 2 || type->rank > 4 || type->dims[type->rank - 1] != scores->dims[3] ||
        type->dtype != scores->dtype)
        return false;
    for (int32_t i = 0; i < type->rank - 1; i++) {
        grt_dim dim = type->dims[i];
        if (dim != scores->dims[4 - type->rank + i] && !grt_dim_equals(dims, dim, 1))
            return false;
    }
    return true;
}

/* One Add of a mask: what the mask is added to, or NULL. */
static ir_value *without_mask(const ir_value *scores, ir_value **out_mask, double *out_scale)
{
    ir_node *add = is_inner(scores) ? rewrite_producer(scores, "Add") : NULL;
    const grt_dims *dims = scores->graph->module->dims;
    for (int32_t i = 0; add && i < 2; i++) {
        *out_scale = 1;
        ir_value *product = unscaled(ir_in(add, i), out_scale);
        *out_mask = ir_in(add, 1 - i);
        bool more = is_inner(product) && rewrite_is(product->producer, "Add") && *out_scale == 1;
        if ((more || (is_inner(product) && rewrite_is(product->producer, "MatMul"))) &&
            rewrite_same_shape(&ir_in(add, i)->type, &scores->type) &&
            is_mask(*out_mask, &scores->type, dims))
            return product;
    }
    return NULL;
}

/* The sum of two masks, in front of `before`. */
static ir_value *sum_of(ir_node *before, ir_value *a, ir_value *b)
{
    ir_node *add =
        ir_node_create(before->graph, before, "", "Add", before->desc.name, 2, (ir_value *[]){a, b}, 1);
    return add && op_infer_node(add) == GRT_OK ? add->out[0] : NULL;
}

static bool match_scores(ir_node *last, ir_value *scores, attention *a)
{
    ir_value *mask, *product;
    double scale;
    if (scores->type.rank != 4)
        return false;
    for (int masks = 0; masks < 3 && (product = without_mask(scores, &mask, &scale)); masks++) {
        a->mask = a->mask ? sum_of(last, a->mask, mask) : mask;
        a->scale *= scale;
        scores = product;
        if (!a->mask)
            return false;
    }
    if (!a->mask)
        scores = unscaled(scores, &a->scale);
    ir_node *matmul = is_inner(scores) ? rewrite_producer(scores, "MatMul") : NULL;
    if (!matmul || scores->type.rank != 4)
        return false;
    a->q = unscaled(ir_in(matmul, 0), &a->scale);
    a->k = unscaled(ir_in(matmul, 1), &a->scale);
    return a->q->type.rank == 4 && a->k->type.rank == 4;
}

/* ---- keys and values ---- */

static bool is_permutation(const ir_node *node, const int64_t *wanted)
{
    size_t n;
    const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
    return perm && n == 4 && !memcmp(perm, wanted, 4 * sizeof *perm);
}

/* The keys before they were transposed: K^T's Transpose is taken back, or a second one put after it, which
 * the clean passes join with what it is made of. */
static ir_value *keys_of(ir_node *before, ir_value *transposed)
{
    static const int64_t swap[] = {0, 1, 3, 2};
    ir_node *node = rewrite_producer(transposed, "Transpose");
    if (node && is_permutation(node, swap))
        return ir_in(node, 0);
    if (node && transposed->n_uses == 1) {
        size_t n;
        const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
        if (perm && n == 4) {
            int64_t joined[4] = {perm[0], perm[1], perm[3], perm[2]};
            ir_value *x = ir_in(node, 0);
            ir_node *made = ir_node_create(before->graph, before, "", "Transpose", node->desc.name, 1, &x, 1);
            if (!made)
                return NULL;
            ir_attr_set_ints(made, "perm", joined, 4);
            return op_infer_node(made) == GRT_OK ? made->out[0] : NULL;
        }
    }
    return NULL;
}

/* Heads repeated for groups of queries, [B, h, S, D] -> [B, h, 1, S, D] -> [B, h, g, S, D] -> [B, h * g, S,
 * D]: what they were before. The value itself if it is no such thing. */
static ir_value *unrepeated(ir_value *value)
{
    ir_node *join = rewrite_producer(value, "Reshape");
    ir_node *expand = join ? rewrite_producer(ir_in(join, 0), "Expand") : NULL;
    const ir_value *split = expand ? ir_in(expand, 0) : NULL;
    const ir_node *unsqueeze = split ? split->producer : NULL;
    if (!unsqueeze || !(rewrite_is(unsqueeze, "Unsqueeze") || rewrite_is(unsqueeze, "Reshape")))
        return value;
    ir_value *x = ir_in(unsqueeze, 0);
    const ir_type *wide = &expand->out[0]->type, *narrow = &split->type;
    const grt_dims *dims = value->graph->module->dims;
    if (!x || x->type.rank != 4 || narrow->rank != 5 || wide->rank != 5 || value->type.rank != 4 ||
        !grt_dim_equals(dims, narrow->dims[2], 1))
        return value;
    for (int32_t i = 0; i < 5; i++) {
        bool kept =
            i == 2 || (wide->dims[i] == narrow->dims[i] && wide->dims[i] == x->type.dims[i < 2 ? i : i - 1]);
        bool joined = i == 1 || i == 2 || wide->dims[i] == value->type.dims[i < 2 ? i : i - 1];
        if (!kept || !joined)
            return value;
    }
    return x;
}

/* ---- moves that the kernel does ---- */

/* [B, S, H * D] of what a Transpose made [B, H, S, D] from [B, S, H, D]; NULL if it was made otherwise. */
static ir_value *packed(ir_node *before, const ir_value *value)
{
    static const int64_t heads_first[] = {0, 2, 1, 3};
    ir_node *transpose = rewrite_producer(value, "Transpose");
    ir_value *x = transpose && is_permutation(transpose, heads_first) ? ir_in(transpose, 0) : NULL;
    int64_t heads, size;
    const grt_dims *dims = value->graph->module->dims;
    if (!x || !grt_dim_is_const(dims, x->type.dims[2], &heads) ||
        !grt_dim_is_const(dims, x->type.dims[3], &size) || heads * size == 0)
        return NULL;
    ir_value *shape = ir_constant_ints(before->graph, before->desc.name, (int64_t[]){0, 0, heads * size}, 3);
    ir_node *join = shape ? ir_node_create(before->graph, before, "", "Reshape", transpose->desc.name, 2,
                                           (ir_value *[]){x, shape}, 1)
                          : NULL;
    return join && op_infer_node(join) == GRT_OK ? join->out[0] : NULL;
}

/* Is it [B * S, H * D] of [B, H, S, D]? */
static bool is_matrix_of(const ir_type *type, const ir_value *y)
{
    const grt_dims *dims = y->graph->module->dims;
    int64_t width, heads, size;
    return type->rank == 2 && grt_dim_is_const(dims, type->dims[1], &width) &&
           grt_dim_is_const(dims, y->type.dims[1], &heads) &&
           grt_dim_is_const(dims, y->type.dims[3], &size) && width == heads * size;
}

/* The Reshape that ends Transpose and Reshape back to [B, S, H * D], or further to [B * S, H * D], as
 * products that want matrices have it. */
static ir_node *unpacking(const ir_value *y)
{
    static const int64_t heads_second[] = {0, 2, 1, 3};
    ir_node *transpose = rewrite_only_user(y);
    if (!rewrite_is(transpose, "Transpose") || !is_permutation(transpose, heads_second))
        return NULL;
    ir_node *reshape = rewrite_only_user(transpose->out[0]);
    const ir_type *type = rewrite_is(reshape, "Reshape") ? &reshape->out[0]->type : NULL;
    return type && (type->rank == 3 || is_matrix_of(type, y)) ? reshape : NULL;
}

/* ---- replacing ---- */

static ir_node *create(ir_node *before, const attention *a, int32_t n_in, ir_value *const *in)
{
    ir_node *made = ir_node_create(before->graph, before, "", "Attention", before->desc.name, n_in, in, 1);
    if (made)
        ir_attr_set_float(made, "scale", (float)a->scale);
    return made;
}

static bool put(pass_context *context, ir_node *last, ir_node *made)
{
    if (!made)
        return false;
    if (op_infer_node(made) != GRT_OK || !rewrite_same_shape(&made->out[0]->type, &last->out[0]->type) ||
        made->out[0]->type.dtype != last->out[0]->type.dtype || !rewrite_supported(context, made, NULL) ||
        !rewrite_replace(last->out[0], made->out[0])) {
        ir_node_remove(made);
        return false;
    }
    ir_node_remove(last);
    context->changed++;
    return true;
}

/* The same in front of a Reshape to a matrix, which stays. */
static bool put_before(pass_context *context, ir_node *reshape, ir_node *made)
{
    if (!made)
        return false;
    if (op_infer_node(made) != GRT_OK || made->out[0]->type.dtype != reshape->out[0]->type.dtype ||
        made->out[0]->type.rank != 3 || !rewrite_supported(context, made, NULL)) {
        ir_node_remove(made);
        return false;
    }
    ir_node_set_input(reshape, 0, made->out[0]);
    context->changed++;
    return true;
}

static bool put_packed(pass_context *context, ir_node *matmul, const attention *a)
{
    ir_node *last = unpacking(matmul->out[0]);
    int64_t q_heads, kv_heads;
    const grt_dims *dims = context->module->dims;
    if (!last)
        return false;
    /* A Reshape that is made in vain is dead. */
    ir_value *in[4] = {packed(last, a->q), packed(last, a->k), packed(last, a->v), a->mask};
    if (!in[0] || !in[1] || !in[2] || !grt_dim_is_const(dims, a->q->type.dims[1], &q_heads) ||
        !grt_dim_is_const(dims, a->k->type.dims[1], &kv_heads))
        return false;
    ir_node *made = create(last, a, a->mask ? 4 : 3, in);
    if (!made)
        return false;
    ir_attr_set_int(made, "q_num_heads", q_heads);
    ir_attr_set_int(made, "kv_num_heads", kv_heads);
    return last->out[0]->type.rank == 3 ? put(context, last, made) : put_before(context, last, made);
}

static void look(pass_context *context, ir_node *matmul)
{
    attention a = {.scale = 1};
    ir_node *softmax = softmax_of(ir_in(matmul, 0));
    if (!softmax || !ir_in(softmax, 0) || !match_scores(matmul, ir_in(softmax, 0), &a))
        return;
    a.v = ir_in(matmul, 1);
    if (!a.v || a.v->type.rank != 4 || !isfinite(a.scale) || a.scale == 0)
        return;
    a.k = keys_of(matmul, a.k);
    if (!a.k || a.k->type.rank != 4)
        return;
    ir_value *k = unrepeated(a.k), *v = unrepeated(a.v);
    if (k->type.dims[1] == v->type.dims[1]) { /* both or neither */
        a.k = k;
        a.v = v;
    }
    /* A product with a kernel of its own would broadcast; Attention does not. */
    if (a.q->type.dims[0] != a.k->type.dims[0] || a.k->type.dims[0] != a.v->type.dims[0] ||
        a.k->type.dims[1] != a.v->type.dims[1])
        return;
    if (!put_packed(context, matmul, &a))
        put(context, matmul, create(matmul, &a, a.mask ? 4 : 3, (ir_value *[]){a.q, a.k, a.v, a.mask}));
}

static grt_status visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (rewrite_is(node, "MatMul") && node->out[0]->type.rank == 4)
            look(context, node);
    return GRT_OK;
}

grt_status pass_attention(pass_context *context)
{
    return rewrite_each_graph(context, visit);
}
