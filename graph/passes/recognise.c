/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises exported decompositions of GELU, SiLU, HardSwish, RMS, layer and group normalisation, where the
 * target has a kernel for the fused op, products of rows that an optimiser has flattened, and steps of heads.
 * A pattern is matched from its last node; what it covers must not be used elsewhere. */
#include "graph/passes/recognise.h"

/* Gemm that is no more than x W (+ b). */
static bool recognise_is_plain_gemm(const ir_node *node)
{
    const ir_value *bias = ir_in(node, 2);
    return rewrite_is(node, "Gemm") && !grt_attr_int(&node->desc, "transA", 0) &&
           !grt_attr_int(&node->desc, "transB", 0) && grt_attr_float(&node->desc, "alpha", 1.0f) == 1.0f &&
           grt_attr_float(&node->desc, "beta", 1.0f) == 1.0f && (!bias || bias->type.rank == 1);
}

/* A Gemm whose rows get more dims behind it, where an Add reads them, as ONNX Runtime's MatMulAddFusion
 * leaves it: the rows get them in front, so that the Add can join the product. */
static void find_product_of_rows(pass_context *context, ir_node *node)
{
    const ir_type *out = &node->out[0]->type;
    ir_node *gemm =
        rewrite_is(node, "Reshape") && ir_is_inner(ir_in(node, 0)) ? ir_in(node, 0)->producer : NULL;
    const ir_node *user = rewrite_only_user(node->out[0]);
    grt_dim dims[GRT_MAX_RANK];
    if (!gemm || !recognise_is_plain_gemm(gemm) || !rewrite_is(user, "Add") || out->rank < 3 ||
        gemm->out[0]->type.rank != 2 || ir_in(gemm, 0)->type.rank != 2 ||
        out->dims[out->rank - 1] != gemm->out[0]->type.dims[1])
        return;
    for (int32_t i = 0; i < out->rank - 1; i++)
        dims[i] = out->dims[i];
    dims[out->rank - 1] = ir_in(gemm, 0)->type.dims[1];
    ir_value *in[] = {rewrite_reshaped(node, ir_in(gemm, 0), out->rank, dims), ir_in(gemm, 1)};
    ir_node *made = in[0] ? ir_node_create(node->graph, node, "", "MatMul", gemm->desc.name, 2, in, 1) : NULL;
    if (made && ir_in(gemm, 2) && op_infer_node(made) == GRT_OK)
        made = ir_node_create(node->graph, node, "", "Add", gemm->desc.name, 2,
                              (ir_value *[]){made->out[0], ir_in(gemm, 2)}, 1);
    recognise_put(context, node, made);
}

static void recognise_look(pass_context *context, selection_mask *last, ir_node *node)
{
    recognise_product p;
    if (recognise_group_norm(context, node) || recognise_wider_group_norm(context, node) ||
        recognise_unit_rows(context, node) || recognise_selection(context, last, node) ||
        !rewrite_is(node, "Mul"))
        return;
    if (recognise_factors_of(node->out[0], &p) &&
        (recognise_gelu(context, node, &p) || recognise_swish(context, node, &p) ||
         recognise_hard_swish(context, node, &p)))
        return;
    recognise_rms_norm(context, node);
}

/* A node that makes floats which somebody uses: what a pattern covered is dead. */
static bool is_live_float(const ir_node *node)
{
    return node->n_out && node->out[0] && node->out[0]->n_uses &&
           grt_dtype_in(node->out[0]->type.dtype, GRT_SET_FLOATS);
}

/* Layer normalisation first: it holds what looks like an RMS normalisation. */
static grt_status recognise_visit(pass_context *context, ir_graph *graph)
{
    selection_mask last = {NULL, NULL};
    IR_FOR_EACH_NODE (node, graph)
        if (is_live_float(node))
            recognise_layer_norm(context, node);
    IR_FOR_EACH_NODE (node, graph)
        if (is_live_float(node))
            recognise_look(context, &last, node);
    IR_FOR_EACH_NODE (node, graph)
        if (is_live_float(node))
            find_product_of_rows(context, node);
    IR_FOR_EACH_NODE (node, graph)
        if (is_live_float(node))
            recognise_row_of_head(context, node);
    return GRT_OK;
}

grt_status pass_recognise(pass_context *context)
{
    return rewrite_each_graph(context, recognise_visit);
}
