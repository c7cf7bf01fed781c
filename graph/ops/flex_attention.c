/* SPDX-License-Identifier: Apache-2.0 */
/* FlexAttention: attention whose scores and probabilities pass through graphs of the model's. It has no
 * kernel: the op becomes matrix products and a softmax, with those graphs inlined between them. */
#include "graph/ir/ir.h"

#include <math.h>

static const op_attr attrs[] = {
    {"prob_mod", GRT_ATTR_GRAPH, false},
    {"scale", GRT_ATTR_FLOAT, false},
    {"score_mod", GRT_ATTR_GRAPH, false},
    {"softmax_precision", GRT_ATTR_INT, false},
    {0},
};

enum { Q, K, V };

static grt_status infer_flex(infer *inf)
{
    static const char *const names[] = {"Q", "K", "V"};
    const ir_type *q = inf->in[Q], *v = inf->in[V];
    grt_dtype precision;
    GRT_TRY(infer_dtype_attr(inf, "softmax_precision", GRT_SET_FLOATS, GRT_DTYPE_NONE, &precision));
    infer_set_fresh(inf, 0, v->dtype, 4);
    for (int32_t i = Q; i <= V; i++) {
        if (inf->in[i]->dtype && !grt_dtype_in(inf->in[i]->dtype, GRT_SET_FLOATS))
            return infer_fail(inf, "%s is %s; it must be floating-point", names[i],
                              grt_dtype_name(inf->in[i]->dtype));
        if (inf->in[i]->rank >= 0 && inf->in[i]->rank != 4)
            return infer_fail(inf, "%s has rank %d; it must be batch x heads x sequence x head size",
                              names[i], inf->in[i]->rank);
    }
    grt_dim *dims = q->rank == 4 && v->rank == 4 ? infer_dims(inf, 4) : NULL;
    if (!dims)
        return GRT_OK;
    for (int32_t k = 0; k < 3; k++)
        dims[k] = q->dims[k];
    dims[3] = v->dims[3];
    infer_set(inf, 0, v->dtype, 4, dims);
    return GRT_OK;
}

/* Where new nodes go. After a failure `status` says so and further values are NULL. */
typedef struct builder {
    ir_node *node; /* new nodes go before it and carry its name */
    grt_status status;
} builder;

static ir_value *infer_new(builder *b, ir_node *made)
{
    if (!made)
        b->status = grt_fail_memory(0);
    else
        b->status = op_infer_node(made);
    return b->status == GRT_OK ? made->out[0] : NULL;
}

static ir_node *flex_attention_add_node(builder *b, const char *op, ir_value *x, ir_value *y)
{
    if (b->status != GRT_OK || !x)
        return NULL;
    return ir_node_create(b->node->graph, b->node, "", op, b->node->desc.name, y ? 2 : 1,
                          (ir_value *[]){x, y}, 1);
}

static ir_value *flex_attention_add(builder *b, const char *op, ir_value *x, ir_value *y)
{
    return b->status == GRT_OK ? infer_new(b, flex_attention_add_node(b, op, x, y)) : NULL;
}

static ir_value *add_int(builder *b, const char *op, ir_value *x, const char *attr, int64_t value)
{
    if (b->status != GRT_OK)
        return NULL;
    ir_node *made = flex_attention_add_node(b, op, x, NULL);
    if (made)
        ir_attr_set_int(made, attr, value);
    return infer_new(b, made);
}

static ir_value *flex_attention_cast(builder *b, ir_value *x, grt_dtype dtype)
{
    return !x || x->type.dtype == dtype ? x : add_int(b, "Cast", x, "to", dtype);
}

static ir_value *swap_last(builder *b, ir_value *x)
{
    static const int64_t perm[] = {0, 1, 3, 2};
    if (b->status != GRT_OK)
        return NULL;
    ir_node *made = flex_attention_add_node(b, "Transpose", x, NULL);
    if (made)
        ir_attr_set_ints(made, "perm", perm, 4);
    return infer_new(b, made);
}

static ir_value *flex_attention_reshape(builder *b, ir_value *x, const int64_t *dims, int64_t n)
{
    return b->status == GRT_OK
               ? flex_attention_add(b, "Reshape", x, ir_constant_ints(b->node->graph, "shape", dims, n))
               : NULL;
}

/* Each head of K or V `group` times in a row, as the query heads that share it want it. */
static ir_value *repeat_heads(builder *b, ir_value *x, int64_t heads, int64_t group, int64_t size)
{
    if (group == 1)
        return x;
    x = flex_attention_reshape(b, x, (int64_t[]){0, heads, 1, -1, size}, 5);
    if (b->status == GRT_OK)
        x = flex_attention_add(b, "Expand", x,
                               ir_constant_ints(b->node->graph, "group", (int64_t[]){1, 1, group, 1, 1}, 5));
    return flex_attention_reshape(b, x, (int64_t[]){0, heads * group, -1, size}, 4);
}

/* Move what a body computes from `x` before the node. The body is empty afterwards. */
static ir_value *inline_body(builder *b, const char *attr_name, ir_value *x)
{
    const grt_attr *attr = grt_attr_find(&b->node->desc, attr_name);
    if (b->status != GRT_OK || !attr)
        return x;
    ir_graph *body = attr->graph;
    if (body->n_inputs != 1 || body->n_outputs != 1) {
        b->status = grt_fail_op(&b->node->desc, GRT_STATUS_INVALID_MODEL,
                                "%s has %d inputs and %d outputs; it must have one each", attr_name,
                                body->n_inputs, body->n_outputs);
        return NULL;
    }
    ir_value_replace(body->inputs[0], x);
    IR_FOR_EACH_NODE (old, body) {
        ir_value **in = GRT_ARENA_ARRAY(body->module->arena, ir_value *, old->n_in);
        for (int32_t i = 0; in && i < old->n_in; i++) {
            in[i] = old->in[i].value;
            if (in[i] && in[i]->graph == body)
                in[i]->graph = b->node->graph; /* a constant of the body */
        }
        ir_node *made = in ? ir_node_create(b->node->graph, b->node, old->desc.domain, old->desc.op,
                                            old->desc.name, old->n_in, in, old->n_out)
                           : NULL;
        if (!made) {
            b->status = grt_fail_memory(0);
            return NULL;
        }
        ir_attrs_copy(made, old);
        for (size_t i = 0; i < made->desc.n_attrs; i++)
            if (made->desc.attrs[i].kind == GRT_ATTR_GRAPH)
                made->desc.attrs[i].graph->parent = made;
        for (int32_t i = 0; i < old->n_out; i++)
            if (old->out[i])
                ir_value_replace(old->out[i], made->out[i]);
        old->desc.n_attrs = 0; /* its bodies live on in `made` */
        ir_node_remove(old);
        b->status = op_infer_node(made);
        if (b->status != GRT_OK)
            return NULL;
    }
    ir_value *result = body->outputs[0].value;
    if (result->graph == body)
        result->graph = b->node->graph;
    return result;
}

static bool const_dim(const ir_value *value, int32_t i, int64_t *out)
{
    return value->type.rank == 4 && grt_dim_is_const(value->graph->module->dims, value->type.dims[i], out);
}

static grt_status expand_flex(ir_node *node, bool *out_done)
{
    builder b = {node, GRT_OK};
    ir_value *q = ir_in(node, Q), *k = ir_in(node, K), *v = ir_in(node, V);
    int64_t q_heads, kv_heads, size, v_size;
    *out_done = const_dim(q, 1, &q_heads) && const_dim(k, 1, &kv_heads) && const_dim(q, 3, &size) &&
                const_dim(v, 3, &v_size) && q->type.dtype && v->type.dtype;
    if (!*out_done)
        return GRT_OK;
    if (kv_heads <= 0 || q_heads % kv_heads)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                           "Q has %lld heads, which is no multiple of the %lld heads of K",
                           (long long)q_heads, (long long)kv_heads);
    grt_dtype dtype = q->type.dtype, v_dtype = v->type.dtype;
    grt_dtype compute = dtype == GRT_DTYPE_DOUBLE ? dtype : GRT_DTYPE_FLOAT;
    const grt_dtype precision = (grt_dtype)grt_attr_int(&node->desc, "softmax_precision", GRT_DTYPE_NONE);
    compute = precision ? precision : compute;
    float scale = grt_attr_float(&node->desc, "scale", (float)(1 / sqrt((double)size)));
    ir_value *root = ir_constant_scalar(node->graph, "scale", dtype, (double)sqrtf(scale));
    q = flex_attention_add(&b, "Mul", q, root);
    k = swap_last(
        &b, flex_attention_add(&b, "Mul", repeat_heads(&b, k, kv_heads, q_heads / kv_heads, size), root));
    v = flex_attention_cast(&b, repeat_heads(&b, v, kv_heads, q_heads / kv_heads, v_size), compute);
    ir_value *scores = inline_body(&b, "score_mod",
                                   flex_attention_cast(&b, flex_attention_add(&b, "MatMul", q, k), compute));
    ir_value *probs = inline_body(&b, "prob_mod", add_int(&b, "Softmax", scores, "axis", -1));
    ir_value *y = flex_attention_cast(&b, flex_attention_add(&b, "MatMul", probs, v), v_dtype);
    if (b.status == GRT_OK) {
        ir_value_replace(node->out[0], y);
        ir_node_remove(node);
    }
    return b.status;
}

static const op_row rows[] = {
    {.domain = "ai.onnx.preview",
     .name = "FlexAttention",
     .since = 1,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = attrs,
     .infer = infer_flex,
     .expand = expand_flex},
};
OP_TABLE(flex_attention, rows);
