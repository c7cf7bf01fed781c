/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: why nodes between DequantizeLinear and QuantizeLinear stay in float32, as near misses. */
#include "graph/passes/quantised.h"

#include <stdio.h>

/* Of float8 there are products of matrices, on CUDA devices. */
static const char *reason_of_float8(const ir_node *node)
{
    quantity x, w;
    if (rewrite_is(node, "Conv"))
        return "its input is of float8, of which there are products of matrices alone";
    if (!quantised_read_float8(ir_in(node, 0), &x) || x.axis >= 0)
        return "its input is of float8, but not e4m3fn or e5m2 with one float32 scale and zero points of 0";
    if (!quantised_read_float8(ir_in(node, 1), &w) || !w.data->type.data)
        return "its input is of float8, its weights are no constant of that";
    return "its input is of float8, of which the device has no such product: CUDA devices have those of "
           "constant scales by weights whose dims are multiples of 16, one of both of e4m3fn";
}

/* What keeps a product or convolution from reading `value` as 8-bit numbers; NULL: nothing. */
static const char *reason_of_factor(const ir_node *node, int32_t i)
{
    const ir_value *value = ir_in(node, i);
    const ir_node *dequantise = rewrite_producer(value, "DequantizeLinear");
    quantity q;
    if (!dequantise)
        return i == 0 ? "its input is not quantised" : "its weights are not quantised";
    if (grt_attr_int(&dequantise->desc, "block_size", 0))
        return i == 0 ? "its input has scales for blocks" : "its weights have scales for blocks";
    if (i == 0 && grt_dtype_in(ir_in(dequantise, 0)->type.dtype, GRT_SET_FLOAT8))
        return reason_of_float8(node);
    if (!quantised_read(value, &q))
        return i == 0 ? "its input is not of 8 bits with float32 scales"
                      : "its weights are not of 8 bits with float32 scales";
    if (i == 0 && q.axis >= 0)
        return "its input has several scales";
    if (i == 1 && rewrite_is(node, "Conv") && !q.data->type.data)
        return "its weights are not constant";
    return i == 1 && q.axis >= 0
               ? "its weights' scales lie along another axis than its outputs, or the device has "
                 "no kernel for it"
               : NULL;
}

/* Of an op that is no product: such steps go by scales greater than zero. */
static const char *reason_of_others(const ir_node *node)
{
    quantity q;
    ir_node *quantise = rewrite_only_user(node->out[0]);
    for (int32_t i = 0; i < node->n_in; i++) {
        if (!rewrite_producer(ir_in(node, i), "DequantizeLinear"))
            continue;
        if (!quantised_read_single(ir_in(node, i), &q))
            return "an input is not of 8 bits with one float32 scale";
        if (!q.scale->type.data)
            return "the scale of an input is known only when the model runs";
    }
    if (quantise && rewrite_is(quantise, "QuantizeLinear") && !ir_in(quantise, 1)->type.data)
        return "the scale of its result is known only when the model runs";
    if (rewrite_is(node, "AveragePool") || rewrite_is(node, "Resize"))
        return "windows and blends of a few bytes are no faster than of float32";
    if (rewrite_is(node, "Pad"))
        return "it fills with another number than zero, or with one that is not known";
    if (!node->row || !(node->row->flags & OP_POINTWISE))
        return "there is no step of 8-bit numbers for this op";
    return rewrite_is(rewrite_only_user(node->out[0]), "QuantizeLinear")
               ? "its other input is neither constant nor quantised, or of another shape"
               : "its result is not quantised, or has several readers";
}

static const char *reason_of(const ir_node *node)
{
    if (!rewrite_has(node, OP_TAKES_EPILOGUE))
        return reason_of_others(node);
    const char *why = reason_of_factor(node, 0);
    why = why ? why : reason_of_factor(node, 1);
    return why ? why : "its attributes, or a kernel that the device lacks, keep it from being one step";
}

/* True if the node reads an activation that DequantizeLinear made. */
static bool reads_dequantised(const ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_node *dequantise = rewrite_producer(ir_in(node, i), "DequantizeLinear");
        if (dequantise && !ir_in(dequantise, 0)->type.data)
            return true;
    }
    return false;
}

grt_status quantised_reasons(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        char text[256];
        if (!node->n_out || !node->out[0] || rewrite_is(node, "QuantizeLinear") || !reads_dequantised(node))
            continue;
        snprintf(text, sizeof text, "stays in float32: %s", reason_of(node));
        ir_warnings_tell(&context->near_misses, node->desc.name, node->desc.op, node->opset, text);
    }
    return GRT_OK;
}
