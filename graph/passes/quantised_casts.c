/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: constant integers that Cast, Sub and Mul make floats of, as scripts write them that
 * shrink the weights of a file, are DequantizeLinear's. Its result has the same bits: (float(w) - zero) *
 * scale. */
#include "graph/passes/quantised.h"

#include "graph/ir/constant.h"
#include "src/base/element.h"

typedef struct casts {
    ir_value *data, *scale, *zero; /* zero: floats, or NULL */
    int32_t axis;                  /* of the scales; -1: there is one */
} casts;

static bool casts_is_constant(const ir_value *value, grt_dtype_set dtypes)
{
    return value && value->type.data && value->type.data->data &&
           grt_dtype_in(value->type.data->dtype, dtypes);
}

/* The constant that a Cast of it to float32 makes `value` of; NULL: none. */
static ir_value *casts_source(const ir_value *value)
{
    const ir_node *cast = rewrite_producer(value, "Cast");
    ir_value *data = cast ? ir_in(cast, 0) : NULL;
    return casts_is_constant(data, GRT_BIT(UINT8) | GRT_BIT(INT8)) && value->type.dtype == GRT_DTYPE_FLOAT
               ? data
               : NULL;
}

/* The axis of `t`'s dims along which numbers of these dims differ once broadcast to them: -1 where there is
 * one number. False where they differ along several, or make `t` larger. */
static bool levels_axis(const grt_tensor *levels, const grt_tensor *t, int32_t *out_axis)
{
    *out_axis = -1;
    if (levels->rank > t->rank)
        return false;
    for (int32_t k = 0; k < levels->rank; k++) {
        const int32_t axis = t->rank - levels->rank + k;
        if (levels->dims[k] == 1)
            continue;
        if (*out_axis >= 0 || levels->dims[k] != t->dims[axis])
            return false;
        *out_axis = axis;
    }
    return true;
}

static bool read_casts(const ir_node *mul, casts *out)
{
    for (int32_t side = 0; rewrite_is(mul, "Mul") && side < 2; side++) {
        ir_value *made = ir_in(mul, side);
        const ir_node *sub = rewrite_producer(made, "Sub");
        int32_t zero_axis = -1;
        *out = (casts){casts_source(sub ? ir_in(sub, 0) : made), ir_in(mul, 1 - side),
                       sub ? ir_in(sub, 1) : NULL, -1};
        if (out->data && casts_is_constant(out->scale, GRT_BIT(FLOAT)) &&
            levels_axis(out->scale->type.data, out->data->type.data, &out->axis) &&
            (!sub || (casts_is_constant(out->zero, GRT_BIT(FLOAT)) &&
                      levels_axis(out->zero->type.data, out->data->type.data, &zero_axis) &&
                      (zero_axis < 0 || zero_axis == out->axis))))
            return true;
    }
    return false;
}

/* As many levels as there are scales, in the dtype; NULL where a number is none of it. */
static ir_value *casts_levels(const ir_node *mul, const ir_value *from, grt_dtype dtype, int64_t n,
                              bool single)
{
    const grt_tensor *t = from->type.data;
    grt_tensor *made = ir_constant_create(mul->graph->module, dtype, single ? 0 : 1, &n);
    for (int64_t i = 0; made && i < n; i++) {
        const double level = grt_tensor_double(t, grt_tensor_elements(t) == 1 ? 0 : i);
        grt_element_put(made, i, level);
        if (grt_element_get(made, i) != level)
            return NULL;
    }
    return made ? ir_constant(mul->graph, NULL, made) : NULL;
}

static ir_node *casts_dequantise(ir_node *mul, const casts *c)
{
    const int64_t n = grt_tensor_elements(c->scale->type.data);
    const bool single = c->axis < 0;
    ir_value *in[] = {c->data, casts_levels(mul, c->scale, GRT_DTYPE_FLOAT, n, single),
                      c->zero ? casts_levels(mul, c->zero, c->data->type.dtype, n, single) : NULL};
    if (!in[1] || (c->zero && !in[2]))
        return NULL;
    ir_node *made =
        ir_node_create(mul->graph, mul, "", "DequantizeLinear", mul->desc.name, c->zero ? 3 : 2, in, 1);
    if (made && !single)
        ir_attr_set_int(made, "axis", c->axis);
    return made;
}

grt_status quantised_casts(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        casts c;
        if (!node->out[0] || !node->out[0]->n_uses || rewrite_is_output(node->out[0]) ||
            !read_casts(node, &c))
            continue;
        ir_node *made = casts_dequantise(node, &c);
        if (!quantised_offer(context, made, node->out[0]))
            continue;
        ir_value_replace(node->out[0], made->out[0]);
        context->changed++;
    }
    return GRT_OK;
}
