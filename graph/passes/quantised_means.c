/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: means over images and over rows, and Softmax, between
 * DequantizeLinear and QuantizeLinear. */
#include "graph/passes/quantised.h"

#include <string.h>

static void offer_step(pass_context *context, ir_node *last, ir_node *made, ir_value *result)
{
    if (quantised_offer(context, made, last->out[0]) && rewrite_take_over(last->out[0], result))
        context->changed++;
}

/* The mean over all pixels of x in front of `last`. */
static ir_node *quantised_means_put(ir_node *last, const ir_node *of, const quantity *x, const quantity *to)
{
    ir_value *zero = x->zero ? x->zero : quantised_zero(last->graph, x->data->type.dtype);
    ir_value *in[] = {x->data, x->scale, zero, to->scale, to->zero};
    return zero ? ir_node_create(last->graph, last, "graphrt", "QGlobalAveragePool", of->desc.name, 5, in, 1)
                : NULL;
}

static void take_pool(pass_context *context, ir_node *last, ir_node *pool, const quantity *x,
                      const quantity *to)
{
    ir_node *made = quantised_means_put(last, pool, x, to);
    if (made)
        offer_step(context, last, made, made->out[0]);
}

static void take_softmax(pass_context *context, ir_node *last, ir_node *softmax, const quantity *x,
                         const quantity *to)
{
    ir_value *in[] = {x->data, x->scale, to->scale, to->zero};
    ir_node *made = ir_node_create(last->graph, last, "graphrt", "QSoftmax", softmax->desc.name, 4, in, 1);
    if (made)
        ir_attr_set_int(made, "axis", grt_attr_int(&softmax->desc, "axis", -1));
    if (made)
        offer_step(context, last, made, made->out[0]);
}

/* Axes [2, rank) or [1, rank - 1) of a mean: channels first or last. */
static bool are_pixels(const ir_node *mean, bool *out_last)
{
    const int64_t *axes;
    int64_t n;
    const int32_t rank = ir_in(mean, 0)->type.rank;
    uint32_t seen = 0;
    if (rank < 3 || rank > 31 || !ir_const_ints(ir_in(mean, 1), &axes, &n))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const int64_t axis = grt_axis(axes[i], rank);
        if (axis < 0)
            return false;
        seen |= 1u << axis;
    }
    const uint32_t all = (1u << rank) - 1, first = all & ~3u, last = all & ~1u & ~(1u << (rank - 1));
    *out_last = seen == last;
    return seen == first || seen == last;
}

static void take_mean(pass_context *context, ir_node *last, ir_node *mean, const quantity *x,
                      const quantity *to)
{
    bool channels_last;
    if (!are_pixels(mean, &channels_last))
        return;
    ir_node *made = quantised_means_put(last, mean, x, to);
    if (made && channels_last)
        ir_attr_set_string(made, "layout", "NHWC");
    if (!quantised_offer(context, made, last->out[0]))
        return;
    const ir_type *y = &last->out[0]->type;
    ir_value *result = rewrite_reshaped(last, made->out[0], y->rank, y->dims);
    if (result && rewrite_take_over(last->out[0], result))
        context->changed++;
}

grt_status quantised_means(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        quantity x, to;
        if (node->n_out != 1 || !node->out[0] || !node->out[0]->n_uses || !quantised_read_target(node, &to) ||
            !quantised_scale(&to))
            continue;
        ir_node *from = to.data->producer;
        if (!from || to.data->n_uses != 1 || from->graph != graph ||
            !quantised_read_single(ir_in(from, 0), &x) || !quantised_scale(&x))
            continue;
        if (rewrite_is(from, "GlobalAveragePool"))
            take_pool(context, node, from, &x, &to);
        else if (rewrite_is(from, "ReduceMean"))
            take_mean(context, node, from, &x, &to);
        else if (rewrite_is(from, "Softmax"))
            take_softmax(context, node, from, &x, &to);
    }
    return GRT_OK;
}
