/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: moves of 8-bit numbers, pairs that cancel, and element-wise steps.
 *
 * DequantizeLinear with one scale sinks through what only moves elements or takes the largest of them, which
 * gives the same values. A QuantizeLinear with the same scale then cancels it; others rise above what lays
 * elements out anew. */
#include "graph/passes/quantised.h"

#include <math.h>
#include <string.h>

/* ---- moves ---- */

/* A Resize that takes the nearest element, and nothing from outside. */
static bool is_nearest(const ir_node *node)
{
    return rewrite_is(node, "Resize") &&
           !strcmp(grt_attr_string(&node->desc, "mode", "nearest"), "nearest") &&
           strcmp(grt_attr_string(&node->desc, "coordinate_transformation_mode", ""), "tf_crop_and_resize") !=
               0;
}

/* Input 0 is moved; a scale greater than zero keeps the order that MaxPool asks for. */
static bool moves(const ir_node *node)
{
    return (rewrite_has(node, OP_VIEW | OP_PICKS) || is_nearest(node)) && (node->n_out == 1 || !node->out[1]);
}

/* As many elements as before, in another shape or order. */
static bool lays_out(const ir_node *node)
{
    return rewrite_has(node, OP_VIEW) || rewrite_is(node, "Transpose");
}

/* DequantizeLinear of `data` as `q` has it, in front of `before`. */
static ir_value *quantised_moves_dequantise(ir_node *before, const quantity *q, ir_value *data)
{
    ir_value *in[] = {data, q->scale, q->zero};
    ir_node *made = ir_node_create(before->graph, before, "", "DequantizeLinear", before->desc.name,
                                   q->zero ? 3 : 2, in, 1);
    return made && op_infer_node(made) == GRT_OK ? made->out[0] : NULL;
}

/* The node's copy on other inputs; NULL if the target has no kernel for it. */
static ir_node *copy_on(pass_context *context, ir_node *node, ir_value *const *in)
{
    ir_node *made = ir_node_create(node->graph, node, "", node->desc.op, node->desc.name, node->n_in, in, 1);
    if (!made)
        return NULL;
    ir_attrs_copy(made, node);
    return quantised_offer(context, made, in[0]) ? made : NULL;
}

static void quantised_moves_replace_by(pass_context *context, ir_value *old, ir_value *value)
{
    if (value && rewrite_take_over(old, value))
        context->changed++;
}

static void sink_move(pass_context *context, ir_node *node)
{
    enum { MOST = 8 };
    ir_value *in[MOST];
    quantity q;
    if (node->n_in > MOST || !quantised_read_single(ir_in(node, 0), &q) || !quantised_scale(&q))
        return;
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = i ? ir_in(node, i) : q.data;
    ir_node *made = copy_on(context, node, in);
    if (made)
        quantised_moves_replace_by(context, node->out[0], quantised_moves_dequantise(node, &q, made->out[0]));
}

/* What Pad fills with: zero is the zero point. NULL: another number, or one that is not known. */
static ir_value *padding_of(ir_node *pad, const quantity *q)
{
    double fill = 0, zero = 0;
    if ((ir_in(pad, 2) && !ir_const_float(ir_in(pad, 2), &fill)) || fill != 0 ||
        (q->zero && !ir_const_float(q->zero, &zero)))
        return NULL;
    return ir_constant_scalar(pad->graph, "padding", q->data->type.dtype, zero);
}

static void sink_pad(pass_context *context, ir_node *node)
{
    quantity q;
    if (!quantised_read_single(ir_in(node, 0), &q) || !quantised_scale(&q))
        return;
    const bool fills = !strcmp(grt_attr_string(&node->desc, "mode", "constant"), "constant");
    ir_value *in[] = {q.data, ir_in(node, 1), fills ? padding_of(node, &q) : NULL, ir_in(node, 3)};
    if (fills && !in[2])
        return;
    ir_node *made = ir_node_create(node->graph, node, "", "Pad", node->desc.name,
                                   in[3]   ? 4
                                   : in[2] ? 3
                                           : 2,
                                   in, 1);
    if (!made)
        return;
    ir_attrs_copy(made, node);
    if (quantised_offer(context, made, q.data))
        quantised_moves_replace_by(context, node->out[0], quantised_moves_dequantise(node, &q, made->out[0]));
}

/* Each part has the scale of the whole. */
static void sink_split(pass_context *context, ir_node *node)
{
    quantity q;
    if (!quantised_read_single(ir_in(node, 0), &q) || !quantised_scale(&q))
        return;
    ir_value *in[] = {q.data, ir_in(node, 1)};
    ir_node *made =
        ir_node_create(node->graph, node, "", "Split", node->desc.name, node->n_in, in, node->n_out);
    if (!made)
        return;
    ir_attrs_copy(made, node);
    if (!quantised_offer(context, made, q.data))
        return;
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            quantised_moves_replace_by(context, node->out[i],
                                       quantised_moves_dequantise(node, &q, made->out[i]));
}

/* All parts with one scale. */
static void sink_concat(pass_context *context, ir_node *node)
{
    quantity first, q;
    ir_value **in = GRT_ARENA_ARRAY(context->module->arena, ir_value *, node->n_in);
    if (!in || !node->n_in || !quantised_read_single(ir_in(node, 0), &first))
        return;
    for (int32_t i = 0; i < node->n_in; i++) {
        if (!quantised_read_single(ir_in(node, i), &q) || !quantised_same(&first, &q))
            return;
        in[i] = q.data;
    }
    ir_node *made = copy_on(context, node, in);
    if (made)
        quantised_moves_replace_by(context, node->out[0],
                                   quantised_moves_dequantise(node, &first, made->out[0]));
}

/* QuantizeLinear of what was dequantised with the same scale. */
static void cancel(pass_context *context, ir_node *node)
{
    quantity from, to;
    if (quantised_read_target(node, &to) && quantised_read_single(to.data, &from) &&
        quantised_same(&from, &to))
        quantised_moves_replace_by(context, node->out[0], from.data);
}

/* What was dequantised is a number: Where of IsNaN chooses it, as it is behind a Softmax that may have no
 * scores. */
static void choose_number(pass_context *context, ir_node *where)
{
    quantity q;
    const ir_node *asks = rewrite_producer(ir_in(where, 0), "IsNaN");
    ir_value *x = ir_in(where, 2);
    if (asks && x && ir_in(asks, 0) == x && quantised_read_single(x, &q) && isfinite(quantised_scale(&q)) &&
        quantised_scale(&q) && rewrite_same_shape(&x->type, &where->out[0]->type))
        quantised_moves_replace_by(context, where->out[0], x);
}

static ir_value *requantise(ir_node *before, ir_value *value, const quantity *to)
{
    ir_value *in[] = {value, to->scale, to->zero};
    ir_node *made = ir_node_create(before->graph, before, "", "QuantizeLinear", before->desc.name, 3, in, 1);
    return made && op_infer_node(made) == GRT_OK ? made->out[0] : NULL;
}

/* False behind a product whose factors are not quantised: it stays as it is, and moves of its result may
 * become part of it. */
static bool may_quantise(const ir_value *value)
{
    quantity x;
    const ir_node *node = value->producer;
    while (node && lays_out(node))
        node = ir_in(node, 0)->producer;
    return !rewrite_is(node, "MatMul") || quantised_read(ir_in(node, 0), &x);
}

/* QuantizeLinear of what was only laid out anew: bytes are moved instead, and what made the numbers sees its
 * QuantizeLinear. */
static void raise_quantise(pass_context *context, ir_node *node)
{
    enum { MOST = 8 };
    ir_value *in[MOST];
    quantity to;
    if (!quantised_read_target(node, &to) || !quantised_scale(&to) || !to.zero->type.data)
        return;
    ir_node *move = to.data->producer;
    if (!move || to.data->n_uses != 1 || move->graph != node->graph || !lays_out(move) || move->n_in > MOST ||
        ir_in(move, 0)->type.dtype != GRT_DTYPE_FLOAT || !may_quantise(ir_in(move, 0)))
        return;
    for (int32_t i = 0; i < move->n_in; i++)
        in[i] = ir_in(move, i);
    in[0] = requantise(move, in[0], &to);
    ir_node *made = in[0] ? copy_on(context, move, in) : NULL;
    if (made)
        quantised_moves_replace_by(context, node->out[0], made->out[0]);
}

grt_status quantised_moves(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        if (rewrite_is(node, "Split") && node->n_in <= 2)
            sink_split(context, node);
        if (node->n_out < 1 || !node->out[0] || !node->out[0]->n_uses)
            continue;
        if (rewrite_is(node, "Where"))
            choose_number(context, node);
        else if (rewrite_is(node, "Pad"))
            sink_pad(context, node);
        else if (moves(node))
            sink_move(context, node);
        else if (rewrite_is(node, "Concat"))
            sink_concat(context, node);
        else if (rewrite_is(node, "QuantizeLinear")) {
            cancel(context, node);
            if (node->out[0]->n_uses)
                raise_quantise(context, node);
        }
    }
    return GRT_OK;
}

/* ---- tables ---- */

/* Element-wise nodes of one input that is not constant, from DequantizeLinear to QuantizeLinear. */
typedef struct chain {
    enum { MOST_LINKS = 8 } most;
    ir_node *links[MOST_LINKS + 2]; /* last first */
    int32_t at[MOST_LINKS + 2];     /* the input that is not constant */
    int32_t n;
} chain;

/* The only input that is not a constant of one element; -1: there are others, or none. */
static int32_t open_input(const ir_node *node)
{
    int32_t found = -1;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = ir_in(node, i);
        if (!value || (value->type.data && grt_tensor_elements(value->type.data) == 1 &&
                       value->type.rank <= node->out[0]->type.rank))
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

static bool read_chain(ir_node *last, const quantity *to, chain *c)
{
    quantity from;
    c->links[0] = last;
    c->at[0] = 0;
    c->n = 1;
    for (const ir_value *value = to->data; c->n < MOST_LINKS + 2;) {
        ir_node *node = value->producer;
        if (quantised_read_single(value, &from)) {
            c->links[c->n] = node;
            c->at[c->n++] = 0;
            return quantised_scale(&from) > 0 && quantised_scale(to) > 0 && c->n > 1;
        }
        const int32_t at = node && node->row && node->row->flags & OP_POINTWISE && node->n_out == 1 &&
                                   node->graph == last->graph
                               ? open_input(node)
                               : -1;
        if (at < 0 || value->n_uses != 1)
            return false;
        c->links[c->n] = node;
        c->at[c->n++] = at;
        value = ir_in(node, at);
    }
    return false;
}

void quantised_all_bytes(grt_dtype dtype, uint8_t *bytes, grt_tensor *out)
{
    for (int32_t i = 0; i < 256; i++)
        bytes[i] = (uint8_t)(dtype == GRT_DTYPE_INT8 ? i - 128 : i);
    *out = (grt_tensor){.dtype = dtype, .rank = 1, .dims = {256}, .data = bytes};
}

bool quantised_changes_nothing(const grt_tensor *table, grt_dtype dtype)
{
    uint8_t bytes[256];
    grt_tensor all;
    quantised_all_bytes(dtype, bytes, &all);
    return table->dtype == dtype && grt_tensor_elements(table) == 256 &&
           !memcmp(table->data, bytes, sizeof bytes);
}

/* Runs the chain on all values. */
static grt_status evaluate_chain(pass_context *context, const chain *c, grt_value *out)
{
    enum { MOST_IN = 8, WORKSPACE = 1 << 20 };
    uint8_t bytes[256];
    grt_tensor start;
    grt_value values[2];
    const grt_tensor *now = &start;
    memset(values, 0, sizeof values);
    quantised_all_bytes(ir_in(c->links[c->n - 1], 0)->type.dtype, bytes, &start);
    grt_status status = GRT_OK;
    for (int32_t i = c->n - 1; i >= 0 && status == GRT_OK; i--) {
        const ir_node *node = c->links[i];
        const grt_tensor *in[MOST_IN];
        grt_value *to = &values[i % 2];
        if (node->n_in > MOST_IN) {
            status = grt_fail(GRT_STATUS_UNSUPPORTED, "too many inputs");
            break;
        }
        for (int32_t k = 0; k < node->n_in; k++)
            in[k] = k == c->at[i] ? now : ir_in(node, k) ? ir_in(node, k)->type.data : NULL;
        grt_value_clear(to);
        status = context->target->evaluate(context->target, &node->desc, in, node->n_in, to, 1, WORKSPACE);
        now = &to->t;
    }
    grt_value_clear(&values[1]);
    if (status == GRT_OK)
        *out = values[0];
    else
        grt_value_clear(&values[0]);
    return status;
}

static bool constants_known(const chain *c)
{
    for (int32_t i = 0; i < c->n; i++)
        for (int32_t k = 0; k < c->links[i]->n_in; k++)
            if (k != c->at[i] && ir_in(c->links[i], k) && !ir_in(c->links[i], k)->type.data)
                return false;
    return true;
}

static grt_status make_table(pass_context *context, ir_node *node, const quantity *to)
{
    chain c;
    grt_value table;
    memset(&table, 0, sizeof table);
    if (!context->target->evaluate || !read_chain(node, to, &c) || !constants_known(&c))
        return GRT_OK;
    ir_value *x = ir_in(c.links[c.n - 1], 0);
    if (!rewrite_same_shape(&x->type, &node->out[0]->type))
        return GRT_OK;
    const grt_status status = evaluate_chain(context, &c, &table);
    if (status != GRT_OK) /* it may fail when it runs */
        return status == GRT_STATUS_OUT_OF_MEMORY ? status : GRT_OK;
    if (quantised_changes_nothing(&table.t, x->type.dtype)) {
        grt_value_clear(&table);
        quantised_moves_replace_by(context, node->out[0], x);
        return GRT_OK;
    }
    const grt_tensor *kept = rewrite_adopt(context->module, &table);
    grt_value_clear(&table);
    if (!kept)
        return GRT_OK;
    ir_value *in[] = {x, ir_constant(node->graph, NULL, kept)};
    ir_node *made =
        in[1] ? ir_node_create(node->graph, node, "graphrt", "QTable", node->desc.name, 2, in, 1) : NULL;
    if (quantised_offer(context, made, node->out[0]))
        quantised_moves_replace_by(context, node->out[0], made->out[0]);
    return GRT_OK;
}

/* ---- sums and products of two ---- */

/* True if each dim of b, aligned at the end, is 1 or a's. Which of them may be 1 the target says. */
static bool quantised_moves_repeats(const ir_graph *graph, const ir_type *a, const ir_type *b)
{
    bool fits = b->rank >= 0 && b->rank <= a->rank;
    for (int32_t i = 0; fits && i < b->rank; i++)
        fits = grt_dim_equals(graph->module->dims, b->dims[i], 1) ||
               b->dims[i] == a->dims[a->rank - b->rank + i];
    return fits;
}

static void make_binary(pass_context *context, ir_node *node, const quantity *to)
{
    ir_node *act = to->data->producer, *sum = act;
    quantity a, b;
    if (!sum || to->data->n_uses != 1)
        return;
    if ((rewrite_is(sum, "Relu") || rewrite_is(sum, "Clip")) && ir_in(sum, 0)->producer)
        sum = ir_in(sum, 0)->producer;
    if (sum != act && quantised_activation(sum->out[0]) != act)
        return;
    if ((!rewrite_is(sum, "Add") && !rewrite_is(sum, "Mul")) || !quantised_read_single(ir_in(sum, 0), &a) ||
        !quantised_read_single(ir_in(sum, 1), &b))
        return;
    if (!quantised_moves_repeats(node->graph, &a.data->type, &b.data->type)) {
        const quantity swap = a;
        a = b;
        b = swap;
    }
    if (!quantised_moves_repeats(node->graph, &a.data->type, &b.data->type) ||
        !rewrite_same_shape(&a.data->type, &node->out[0]->type))
        return;
    ir_value *none_a = a.zero ? a.zero : quantised_zero(node->graph, a.data->type.dtype),
             *none_b = b.zero ? b.zero : quantised_zero(node->graph, b.data->type.dtype);
    ir_value *in[] = {a.data, a.scale, none_a, b.data, b.scale, none_b, to->scale, to->zero};
    ir_node *made = ir_node_create(node->graph, node, "graphrt", rewrite_is(sum, "Add") ? "QAdd" : "QMul",
                                   sum->desc.name, 8, in, 1);
    if (made && sum != act)
        quantised_set_activation(made, act);
    if (quantised_offer(context, made, node->out[0]))
        quantised_moves_replace_by(context, node->out[0], made->out[0]);
}

/* ---- parts of different scales ---- */

/* Each part takes the result's scale: by a table, which the sweep makes of the pair. */
static void requantise_parts(pass_context *context, ir_node *node, const quantity *to)
{
    ir_node *concat = rewrite_producer(to->data, "Concat");
    quantity q;
    ir_value **in = concat ? GRT_ARENA_ARRAY(context->module->arena, ir_value *, concat->n_in) : NULL;
    if (!in || to->data->n_uses != 1 || !quantised_scale(to))
        return;
    for (int32_t i = 0; i < concat->n_in; i++)
        if (!quantised_read_single(ir_in(concat, i), &q) || !quantised_scale(&q))
            return;
    for (int32_t i = 0; i < concat->n_in; i++) {
        quantised_read_single(ir_in(concat, i), &q);
        in[i] = quantised_same(&q, to) ? q.data : requantise(concat, ir_in(concat, i), to);
        if (!in[i])
            return;
    }
    ir_node *made = copy_on(context, concat, in);
    if (made)
        quantised_moves_replace_by(context, node->out[0], made->out[0]);
    for (int32_t i = 0; made && i < concat->n_in; i++)
        if (quantised_read_target(made->in[i].value->producer, &q))
            make_table(context, made->in[i].value->producer, &q);
}

grt_status quantised_pointwise(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        quantity to;
        if (node->n_out != 1 || !node->out[0] || !node->out[0]->n_uses || !quantised_read_target(node, &to))
            continue;
        GRT_TRY(make_table(context, node, &to));
        if (node->out[0]->n_uses)
            make_binary(context, node, &to);
        if (node->out[0]->n_uses)
            requantise_parts(context, node, &to);
    }
    return GRT_OK;
}
