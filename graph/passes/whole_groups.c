/* SPDX-License-Identifier: Apache-2.0 */
/* Whole groups: a 1 x 1 convolution in narrow groups becomes one of all channels, with zeros for the channels
 * of other groups. Tensor cores multiply tiles of channels, most of which a narrow group leaves empty, and
 * libraries take ten times as long for them as for the whole product, which takes little longer than reading
 * the image. So do few wide groups along a line, whose convolutions have channels first otherwise, with moves
 * around each. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { W = 1, WIDEST_GROUP = 32, MOST_WEIGHTS = 1 << 20, LEAST_PIXELS = 32 };
enum { LINE = 3, FEW_GROUPS = 4, WIDEST_OF_FEW = 1024, MOST_WEIGHTS_OF_FEW = 1 << 22 };

/* Pixels of all images; LEAST_PIXELS where they are not known. */
static int64_t count_pixels(const ir_value *x)
{
    const grt_dims *dims = x->graph->module->dims;
    int64_t n, all = 1;
    for (int32_t i = 0; i < x->type.rank; i++) {
        if (i == 1)
            continue;
        if (!grt_dim_is_const(dims, x->type.dims[i], &n))
            return LEAST_PIXELS;
        all = n > LEAST_PIXELS || all > LEAST_PIXELS ? LEAST_PIXELS : all * n;
    }
    return all;
}

/* Constant weights of one pixel for narrow or few groups, and pixels enough. Depthwise ones are fast as they
 * are. */
static bool has_costly_groups(const ir_node *node, int64_t *out_groups)
{
    const ir_value *x = ir_in(node, 0), *w = ir_in(node, W);
    const grt_tensor *t = rewrite_is(node, "Conv") && w ? w->type.data : NULL;
    *out_groups = t ? grt_attr_int(&node->desc, "group", 1) : 1;
    if (*out_groups < 2 || !x || x->type.rank != t->rank || t->rank < 3 || t->dims[0] % *out_groups ||
        !grt_dtype_in(t->dtype, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)) || t->dims[1] < 2)
        return false;
    const bool few = t->rank == LINE && *out_groups <= FEW_GROUPS;
    if (t->dims[1] > (few ? WIDEST_OF_FEW : WIDEST_GROUP) ||
        t->dims[0] > (few ? MOST_WEIGHTS_OF_FEW : MOST_WEIGHTS) / t->dims[1] / *out_groups)
        return false;
    for (int32_t i = 2; i < t->rank; i++)
        if (t->dims[i] != 1)
            return false;
    return count_pixels(x) >= LEAST_PIXELS;
}

/* [out, in of a group, 1...] as [out, in of all, 1...]. */
static ir_value *whole_weights(const ir_node *node, int64_t groups)
{
    const grt_tensor *narrow = ir_in(node, W)->type.data;
    int64_t dims[GRT_MAX_RANK];
    memcpy(dims, narrow->dims, (size_t)narrow->rank * sizeof *dims);
    dims[1] *= groups;
    grt_tensor *t = ir_constant_create(node->graph->module, narrow->dtype, narrow->rank, dims);
    if (!t)
        return NULL;
    const int64_t row = narrow->dims[1] * (int64_t)grt_dtype_size(narrow->dtype), filters = dims[0] / groups;
    memset(t->data, 0, (size_t)(dims[0] * row * groups));
    for (int64_t i = 0; i < dims[0]; i++)
        memcpy((char *)t->data + (i * groups + i / filters) * row, (const char *)narrow->data + i * row,
               (size_t)row);
    return ir_constant(node->graph, NULL, t);
}

static grt_status whole_groups_visit(pass_context *context, ir_graph *graph)
{
    int64_t groups;
    IR_FOR_EACH_NODE (node, graph) {
        ir_value *w = has_costly_groups(node, &groups) ? whole_weights(node, groups) : NULL;
        if (!w)
            continue;
        ir_node_set_input(node, W, w);
        ir_attr_set_int(node, "group", 1);
        context->changed++;
    }
    return GRT_OK;
}

/* Fast float16 stands for tensor cores. */
grt_status pass_whole_groups(pass_context *context)
{
    return context->target->traits->half_floats ? rewrite_each_graph(context, whole_groups_visit) : GRT_OK;
}
