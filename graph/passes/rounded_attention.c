/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `rounded_attention`: an attention of 8-bit numbers that a quantiser rounded behind each node becomes
 * one step with the same roundings, for targets that have it. Transposes between heads and tokens in front of
 * it and behind it are part of the step. It runs when moves are what they will be. */
#include "graph/passes/quantised.h"

#include "src/base/rounded_attention.h"

#include <string.h>

/* Inputs of graphrt::QAdd, QSoftmax and QTable. */
enum { SUM_A, SUM_B = 3, SUM_B_SCALE, SUM_B_ZERO, SUM_SCALE, SUM_ZERO };
enum { SHARES_OF, SHARES_OF_SCALE, SHARE_SCALE, SHARE_ZERO };
enum { RANK = 4 };

typedef struct rounded_nodes {
    ir_node *scores, *sum, *softmax, *table, *product; /* sum, table NULL: there is none */
} rounded_nodes;

/* The node of ours that makes the value for one node alone; NULL: there is none. */
static ir_node *rounded_maker_of(const ir_value *value, const char *op)
{
    ir_node *node = value ? value->producer : NULL;
    return node && value->n_uses == 1 && !rewrite_is_output(value) && node->out[0] == value &&
                   grt_op_is(&node->desc, "graphrt", op)
               ? node
               : NULL;
}

/* True of scores that add a mask of their own dims behind their rounding. */
static bool adds_mask(const ir_node *scores)
{
    return ir_in(scores, QP_RESIDUAL) && ir_in(scores, QP_R_SCALE) && ir_in(scores, QP_SUM_SCALE) &&
           ir_in(scores, QP_SUM_ZERO);
}

/* True for a product of two tensors that is rounded, and perhaps adds a mask, and nothing more. */
static bool rounded_is_plain(const ir_node *product, bool transposed, bool masked)
{
    for (int32_t i = QP_BIAS; i < product->n_in; i++)
        if (ir_in(product, i) && !(masked && i >= QP_RESIDUAL && i <= QP_SUM_ZERO))
            return false;
    return grt_op_is(&product->desc, "graphrt", "QMatMul") && ir_in(product, QP_Y_SCALE) &&
           !ir_in(product, QP_W)->type.data &&
           (grt_attr_int(&product->desc, "transB", 0) != 0) == transposed &&
           !*grt_attr_string(&product->desc, "activation", "") &&
           !*grt_attr_string(&product->desc, "sum_activation", "");
}

/* True if the value's only scale is this one: the step has it once. */
static bool rounded_is_scale(const ir_value *a, const ir_value *b)
{
    const grt_tensor *x = a->type.data, *y = b->type.data;
    return x && y && x->dtype == GRT_DTYPE_FLOAT && y->dtype == GRT_DTYPE_FLOAT &&
           grt_tensor_elements(x) == 1 && grt_tensor_elements(y) == 1 &&
           !memcmp(x->data, y->data, sizeof(float));
}

static bool rounded_is_zero(const ir_value *a, const ir_value *b)
{
    const grt_tensor *x = a->type.data, *y = b->type.data;
    return x && y && x->dtype == y->dtype && grt_dtype_in(x->dtype, GRT_SET_BYTES) &&
           grt_tensor_elements(x) == 1 && grt_tensor_elements(y) == 1 && !memcmp(x->data, y->data, 1);
}

/* The sum of the scores and a mask that it repeats. */
static bool read_mask(const ir_node *sum)
{
    const ir_value *a = ir_in(sum, SUM_A), *mask = ir_in(sum, SUM_B);
    return mask->type.rank >= 0 && mask->type.rank <= RANK &&
           rewrite_same_shape(&a->type, &sum->out[0]->type) &&
           !*grt_attr_string(&sum->desc, "activation", "") && a->type.data == NULL;
}

/* Scales and zero points of scores between their makers and readers are the same. */
static bool rounded_agrees(const rounded_nodes *n)
{
    enum { A_SCALE = 1, A_ZERO };
    const ir_value *scale = ir_in(n->scores, QP_Y_SCALE), *zero = ir_in(n->scores, QP_Y_ZERO);
    if (n->sum) {
        if (!rounded_is_scale(scale, ir_in(n->sum, A_SCALE)) || !zero ||
            !rounded_is_zero(zero, ir_in(n->sum, A_ZERO)))
            return false;
        scale = ir_in(n->sum, SUM_SCALE);
    }
    if (ir_in(n->scores, QP_SUM_SCALE))
        scale = ir_in(n->scores, QP_SUM_SCALE);
    return rounded_is_scale(scale, ir_in(n->softmax, SHARES_OF_SCALE));
}

static bool rounded_read(ir_node *product, rounded_nodes *out)
{
    *out = (rounded_nodes){.product = product};
    if (!rounded_is_plain(product, false, false))
        return false;
    ir_value *shares = ir_in(product, QP_X);
    out->table = rounded_maker_of(shares, "QTable");
    out->softmax = rounded_maker_of(out->table ? ir_in(out->table, 0) : shares, "QSoftmax");
    if (!out->softmax || ir_in(out->softmax, 0)->type.rank != RANK ||
        grt_axis(grt_attr_int(&out->softmax->desc, "axis", -1), RANK) != RANK - 1)
        return false;
    out->sum = rounded_maker_of(ir_in(out->softmax, 0), "QAdd");
    out->scores = rounded_maker_of(out->sum ? ir_in(out->sum, SUM_A) : ir_in(out->softmax, 0), "QMatMul");
    if (!out->scores || (out->sum && !read_mask(out->sum)))
        return false;
    return rounded_is_plain(out->scores, true, !out->sum && adds_mask(out->scores)) && rounded_agrees(out);
}

/* Batches and heads are provably those of q, and there are as many values as keys, all heads of one size. */
static bool rounded_dims_fit(const ir_value *q, const ir_value *k, const ir_value *v)
{
    const grt_dim *a = q->type.dims, *b = k->type.dims, *c = v->type.dims;
    if (q->type.rank != RANK || k->type.rank != RANK || v->type.rank != RANK)
        return false;
    for (int32_t i = 0; i < 2; i++)
        if (a[i] != b[i] || a[i] != c[i])
            return false;
    return b[2] == c[2] && a[3] == b[3] && a[3] == c[3];
}

/* A tensor of the step as it is read: table NULL if levels are, part -1 if it is no part. */
typedef struct rounded_source {
    ir_value *value, *table;
    bool tokens;
    int32_t part;
} rounded_source;

static bool rounded_has_perm(const ir_node *node, const int64_t *expected, size_t rank)
{
    size_t n;
    const int64_t *perm = rewrite_is(node, "Transpose") ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    return perm && n == rank && !memcmp(perm, expected, rank * sizeof *expected);
}

/* True for a Transpose that exchanges heads and tokens. */
static bool turns_heads(const ir_node *node)
{
    static const int64_t heads[RANK] = {0, 2, 1, 3};
    return rounded_has_perm(node, heads, RANK);
}

/* [batch, tokens, parts, heads, size], of which a Split behind a Transpose cuts parts, one each; NULL: the
 * value is none. */
static ir_value *rounded_whole_of(const ir_value *value, int32_t *out_part)
{
    enum { OF_PARTS = RANK + 1 };
    static const int64_t parts[OF_PARTS] = {2, 0, 3, 1, 4};
    const ir_graph *graph = value->graph;
    const ir_node *view = value->producer;
    if (!view || view->graph != graph || !rewrite_is_reshape(view) || ir_in(view, 0)->type.rank != OF_PARTS ||
        value->type.rank != RANK)
        return NULL;
    const ir_value *part = ir_in(view, 0);
    const ir_node *split = rewrite_producer(part, "Split");
    if (!split || split->graph != graph || grt_attr_int(&split->desc, "axis", 0) != 0)
        return NULL;
    for (int32_t i = 0; i < split->n_out; i++)
        if (!split->out[i] || split->out[i]->type.rank != OF_PARTS ||
            !grt_dim_equals(graph->module->dims, split->out[i]->type.dims[0], 1))
            return NULL;
    for (int32_t i = 0; i < RANK; i++)
        if (part->type.dims[i + 1] != value->type.dims[i])
            return NULL;
    const ir_node *turn = rewrite_producer(ir_in(split, 0), "Transpose");
    if (!turn || turn->graph != graph || !rounded_has_perm(turn, parts, OF_PARTS))
        return NULL;
    *out_part = part->out_index;
    return ir_in(turn, 0);
}

/* What lies in front of the products: a table, where the step has one for it, and moves of heads. */
static rounded_source rounded_source_of(const ir_node *near, ir_value *value, bool has_table)
{
    rounded_source s = {.value = value, .part = -1};
    ir_node *node = value->producer;
    if (has_table && node && node->graph == near->graph && grt_op_is(&node->desc, "graphrt", "QTable") &&
        ir_in(node, 1)->type.data) {
        s.table = ir_in(node, 1);
        s.value = ir_in(node, 0);
        node = s.value->producer;
    }
    ir_value *whole = rounded_whole_of(s.value, &s.part);
    if (!whole && node && node->graph == near->graph && turns_heads(node)) {
        s.tokens = true;
        whole = ir_in(node, 0);
    }
    s.value = whole ? whole : s.value;
    return s;
}

static void rounded_fill_levels(const rounded_nodes *n, ir_value **in)
{
    in[QR_Q_SCALE] = ir_in(n->scores, QP_X_SCALE);
    in[QR_Q_ZERO] = ir_in(n->scores, QP_X_ZERO);
    in[QR_K_SCALE] = ir_in(n->scores, QP_W_SCALE);
    in[QR_K_ZERO] = ir_in(n->scores, QP_W_ZERO);
    in[QR_SCORE_SCALE] = ir_in(n->scores, QP_Y_SCALE);
    in[QR_SCORE_ZERO] = ir_in(n->scores, QP_Y_ZERO);
    if (n->sum) {
        in[QR_MASK] = ir_in(n->sum, SUM_B);
        in[QR_MASK_SCALE] = ir_in(n->sum, SUM_B_SCALE);
        in[QR_MASK_ZERO] = ir_in(n->sum, SUM_B_ZERO);
        in[QR_SUM_SCALE] = ir_in(n->sum, SUM_SCALE);
        in[QR_SUM_ZERO] = ir_in(n->sum, SUM_ZERO);
    }
    if (ir_in(n->scores, QP_RESIDUAL)) {
        in[QR_MASK] = ir_in(n->scores, QP_RESIDUAL);
        in[QR_MASK_SCALE] = ir_in(n->scores, QP_R_SCALE);
        in[QR_MASK_ZERO] = ir_in(n->scores, QP_R_ZERO);
        in[QR_SUM_SCALE] = ir_in(n->scores, QP_SUM_SCALE);
        in[QR_SUM_ZERO] = ir_in(n->scores, QP_SUM_ZERO);
    }
    in[QR_SHARE_SCALE] = ir_in(n->softmax, SHARE_SCALE);
    in[QR_SHARE_ZERO] = ir_in(n->softmax, SHARE_ZERO);
    in[QR_TABLE] = n->table ? ir_in(n->table, 1) : NULL;
    in[QR_READ_SCALE] = ir_in(n->product, QP_X_SCALE);
    in[QR_READ_ZERO] = ir_in(n->product, QP_X_ZERO);
    in[QR_V_SCALE] = ir_in(n->product, QP_W_SCALE);
    in[QR_V_ZERO] = ir_in(n->product, QP_W_ZERO);
    in[QR_Y_SCALE] = ir_in(n->product, QP_Y_SCALE);
    in[QR_Y_ZERO] = ir_in(n->product, QP_Y_ZERO);
}

/* The step in the place of `last`, whose result it makes. */
static bool rounded_put(pass_context *context, const rounded_nodes *n, ir_node *last)
{
    static const char *const tokens[] = {"q_tokens", "k_tokens", "v_tokens"}, *const parts[] = {"q_part",
                                                                                                "k_part",
                                                                                                "v_part"};
    static const int32_t at[] = {QR_Q, QR_K, QR_V};
    ir_value *in[QR_INPUTS] = {NULL};
    const rounded_source sources[] = {rounded_source_of(n->product, ir_in(n->scores, QP_X), true),
                                      rounded_source_of(n->product, ir_in(n->scores, QP_W), true),
                                      rounded_source_of(n->product, ir_in(n->product, QP_W), false)};
    rounded_fill_levels(n, in);
    in[QR_Q_TABLE] = sources[0].table;
    in[QR_K_TABLE] = sources[1].table;
    for (int32_t i = 0; i < 3; i++)
        in[at[i]] = sources[i].value;
    ir_node *made = ir_node_create(last->graph, last, "graphrt", "QRoundedAttention", n->product->desc.name,
                                   QR_INPUTS, in, 1);
    if (!made)
        return false;
    for (int32_t i = 0; i < 3; i++) {
        if (sources[i].tokens)
            ir_attr_set_int(made, tokens[i], 1);
        if (sources[i].part >= 0)
            ir_attr_set_int(made, parts[i], sources[i].part);
    }
    if (last != n->product)
        ir_attr_set_int(made, "y_tokens", 1);
    if (!quantised_offer(context, made, last->out[0]))
        return false;
    if (!rewrite_take_over(last->out[0], made->out[0])) {
        ir_node_remove(made);
        return false;
    }
    context->changed++;
    return true;
}

static void rounded_attention_join(pass_context *context, ir_node *product)
{
    rounded_nodes n;
    if (!rounded_read(product, &n) ||
        !rounded_dims_fit(ir_in(n.scores, QP_X), ir_in(n.scores, QP_W), ir_in(product, QP_W)))
        return;
    ir_node *turn = rewrite_is_output(product->out[0]) ? NULL : rewrite_only_user(product->out[0]);
    if (!turns_heads(turn) || !rounded_put(context, &n, turn))
        rounded_put(context, &n, product);
}

static grt_status rounded_attention_visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (node->n_out == 1 && node->out[0] && node->out[0]->n_uses &&
            grt_op_is(&node->desc, "graphrt", "QMatMul"))
            rounded_attention_join(context, node);
    return GRT_OK;
}

grt_status pass_rounded_attention(pass_context *context)
{
    return rewrite_each_graph(context, rounded_attention_visit);
}
