/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `whole_vectors`: a convolution whose result has no whole vectors of 16 bytes of channels, as of three
 * colours, 21 classes or 819 scores of boxes, gets filters of zeros until it has; they are cut off behind it.
 * Engines for tensor cores want whole vectors: without them, libraries take 2 to 10 times as long. */
#include "graph/ir/constant.h"
#include "graph/ops/window.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { W = 1, BIAS = 2, RESIDUAL = 3, LEAST_PIXELS = 256 };

/* Channels of a vector, where fewer are slow; 0: they are not, or not for this type. */
static int64_t whole_vectors_of(const ir_node *node, const grt_tensor *w)
{
    if (w->dtype == GRT_DTYPE_FLOAT)
        return strcmp(grt_attr_string(&node->desc, "math", ""), "tf32") ? 0 : 4;
    return w->dtype == GRT_DTYPE_FLOAT16 || w->dtype == GRT_DTYPE_BFLOAT16 ? 8 : 0;
}

/* Pixels of all images are many, or not known. */
static bool whole_vectors_has_pixels(const ir_value *y)
{
    int64_t n, all = 1;
    for (int32_t i = 0; i < y->type.rank - 1; i++) {
        if (!grt_dim_is_const(y->graph->module->dims, y->type.dims[i], &n) || n > LEAST_PIXELS)
            return true;
        all *= n;
        if (all > LEAST_PIXELS)
            return true;
    }
    return false;
}

/* How many filters are missing. Products of pixels have a kernel of their own, and single filters gain
 * nothing; nor do few in 16 bits. */
static int64_t whole_vectors_missing(const ir_node *node)
{
    const grt_tensor *w =
        grt_op_is(&node->desc, "graphrt", "Conv") && ir_in(node, W) ? ir_in(node, W)->type.data : NULL;
    const int64_t vector = w && w->rank >= 3 ? whole_vectors_of(node, w) : 0;
    if (!vector || !grt_channels_last(&node->desc) || grt_attr_int(&node->desc, "group", 1) != 1 ||
        (node->n_in > RESIDUAL && ir_in(node, RESIDUAL)) ||
        (node->n_in > BIAS && ir_in(node, BIAS) && !ir_in(node, BIAS)->type.data) || w->dims[0] < 2 ||
        w->dims[0] % vector == 0 || (vector == 8 && w->dims[0] < vector) || w->dims[1] % vector ||
        grt_dims_product(w->dims, 2, w->rank) == 1 || !whole_vectors_has_pixels(node->out[0]))
        return 0;
    return vector - w->dims[0] % vector;
}

/* The constant with `more` zeros, or rows of zeros, behind its first dim. */
static ir_value *whole_vectors_filled(const ir_value *value, int64_t more)
{
    const grt_tensor *t = value->type.data;
    int64_t dims[GRT_MAX_RANK];
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[0] += more;
    grt_tensor *filled = ir_constant_create(value->graph->module, t->dtype, t->rank, dims);
    if (!filled)
        return NULL;
    const size_t size = grt_tensor_bytes(t);
    memcpy(filled->data, t->data, size);
    memset((char *)filled->data + size, 0, grt_tensor_bytes(filled) - size);
    return ir_constant(value->graph, NULL, filled);
}

static ir_value *whole_vectors_ints(ir_node *node, int64_t value)
{
    return ir_constant_ints(node->graph, node->desc.name, &value, 1);
}

/* The first `channels` of a result. */
static ir_node *whole_vectors_cut(ir_node *conv, int64_t channels)
{
    const int32_t last = conv->out[0]->type.rank - 1;
    ir_value *in[] = {conv->out[0], whole_vectors_ints(conv, 0), whole_vectors_ints(conv, channels),
                      whole_vectors_ints(conv, last)};
    ir_node *slice = in[1] && in[2] && in[3]
                         ? ir_node_create(conv->graph, conv->next, "", "Slice", conv->desc.name, 4, in, 1)
                         : NULL;
    return slice && op_infer_node(slice) == GRT_OK ? slice : NULL;
}

static void whole_vectors_fill(pass_context *context, ir_node *node, int64_t more)
{
    ir_value *in[RESIDUAL] = {ir_in(node, 0), whole_vectors_filled(ir_in(node, W), more), NULL};
    const int64_t channels = ir_in(node, W)->type.data->dims[0];
    const bool has_bias = node->n_in > BIAS && ir_in(node, BIAS);
    if (has_bias)
        in[BIAS] = whole_vectors_filled(ir_in(node, BIAS), more);
    if (!in[W] || (has_bias && !in[BIAS]))
        return;
    ir_node *made =
        ir_node_create(node->graph, node, "graphrt", "Conv", node->desc.name, has_bias ? 3 : 2, in, 1);
    if (!made)
        return;
    ir_attrs_copy(made, node);
    ir_node *cut = op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL)
                       ? whole_vectors_cut(made, channels)
                       : NULL;
    if (cut && rewrite_take_over_node(node, cut->out[0]))
        context->changed++;
}

static grt_status whole_vectors_visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        const int64_t more = whole_vectors_missing(node);
        if (more)
            whole_vectors_fill(context, node, more);
    }
    return GRT_OK;
}

/* Fast float16 stands for tensor cores. */
grt_status pass_whole_vectors(pass_context *context)
{
    return context->target->traits->half_floats ? rewrite_each_graph(context, whole_vectors_visit) : GRT_OK;
}
