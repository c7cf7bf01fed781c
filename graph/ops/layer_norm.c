/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation over the last dims: LayerNormalization, RMSNormalization.
 *
 * graphrt::QLayerNormalization, which pass `quantised_norms` makes: x, scale, bias, y's scale and zero point.
 * Results: y quantised; y. Attributes: as of LayerNormalization, and rms: as RMSNormalization. */
#include "graph/ir/ir.h"

/* Dims from..rank of x are normalised; scale and bias broadcast to x in one direction. */
static grt_status check_broadcasts(const infer *inf, int32_t i, const char *what)
{
    const ir_type *x = inf->in[0], *p = infer_has(inf, i) ? inf->in[i] : NULL;
    if (!p || p->rank < 0 || x->rank < 0)
        return GRT_OK;
    if (p->rank > x->rank)
        return infer_fail(inf, "%s has rank %d, the input %d; it must broadcast to the input", what, p->rank,
                          x->rank);
    for (int32_t k = 0; k < p->rank; k++) {
        int64_t have, want;
        if (infer_const(inf, p->dims[k], &have) && infer_const(inf, x->dims[x->rank - p->rank + k], &want) &&
            have != want && have != 1)
            return infer_fail(inf, "dim %d of %s is %lld; it must be 1 or %lld to broadcast to the input", k,
                              what, (long long)have, (long long)want);
    }
    return GRT_OK;
}

static grt_status infer_layer_norm(infer *inf)
{
    const ir_type *x = inf->in[0];
    int32_t axis = 0;
    if (x->rank >= 0)
        GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", -1), x->rank, &axis));
    GRT_TRY(check_broadcasts(inf, 1, "the scale"));
    GRT_TRY(check_broadcasts(inf, 2, "the bias"));
    infer_set_like(inf, 0, x->dtype, x);
    grt_dtype stash;
    GRT_TRY(infer_dtype_attr(inf, "stash_type", GRT_SET_FLOATS, GRT_DTYPE_FLOAT, &stash));
    grt_dim *dims = x->rank >= 0 && inf->n_out > 1 ? infer_dims(inf, x->rank) : NULL;
    for (int32_t k = 0; dims && k < x->rank; k++)
        dims[k] = k < axis ? x->dims[k] : grt_dim_const(inf->dims, 1);
    infer_set(inf, 1, stash, x->rank, dims);
    infer_set(inf, 2, stash, x->rank, dims);
    return GRT_OK;
}

static grt_status infer_rms_norm(infer *inf)
{
    const ir_type *x = inf->in[0];
    int32_t axis = 0;
    if (x->rank >= 0)
        GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", -1), x->rank, &axis));
    GRT_TRY(check_broadcasts(inf, 1, "the scale"));
    /* The result has the scale's dtype: it multiplies last. */
    infer_set_like(inf, 0, inf->in[1]->dtype ? inf->in[1]->dtype : x->dtype, x);
    return GRT_OK;
}

static grt_status infer_quantised_norm(infer *inf)
{
    enum { Y_ZERO = 4 };
    const ir_type *x = inf->in[0];
    GRT_TRY(check_broadcasts(inf, 1, "the scale"));
    GRT_TRY(check_broadcasts(inf, 2, "the bias"));
    infer_set_like(inf, 0, inf->in[Y_ZERO]->dtype, x);
    if (inf->n_out > 1)
        infer_set_like(inf, 1, x->dtype, x);
    return GRT_OK;
}

/* Before opset 17 the operator was ONNX Runtime's own one, whose scale may have another type than its input
 * (contrib_norm.c). */
static grt_status upgrade_layer_norm(ir_node *node, int32_t opset)
{
    (void)opset;
    ir_node_become(node, "graphrt", "OldLayerNormalization");
    return GRT_OK;
}

static const op_attr layer_attrs[] = {{"axis", GRT_ATTR_INT, false},
                                      {"epsilon", GRT_ATTR_FLOAT, false},
                                      {"stash_type", GRT_ATTR_INT, false},
                                      {0}};

static const op_attr quantised_attrs[] = {{"axis", GRT_ATTR_INT, false},
                                          {"epsilon", GRT_ATTR_FLOAT, false},
                                          {"stash_type", GRT_ATTR_INT, false},
                                          {"rms", GRT_ATTR_INT, false},
                                          {0}};

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "QLayerNormalization",
     .since = 1,
     .min_in = 5,
     .max_in = 5,
     .min_out = 1,
     .max_out = 2,
     .attrs = quantised_attrs,
     .cost = OP_COST_COMPUTE,
     .infer = infer_quantised_norm},
    {.domain = "",
     .name = "LayerNormalization",
     .since = 17,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 3,
     .attrs = layer_attrs,
     .flags = OP_ONE_FLOAT_TYPE,
     .precision = OP_NARROW,
     .cost = OP_COST_COMPUTE,
     .batch = OP_BATCH_NORM,
     .infer = infer_layer_norm,
     .upgrade = upgrade_layer_norm},
    {.domain = "",
     .name = "RMSNormalization",
     .since = 23,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = layer_attrs,
     .precision = OP_NARROW,
     .cost = OP_COST_COMPUTE,
     .batch = OP_BATCH_NORM,
     .infer = infer_rms_norm},
};
OP_TABLE(layer_norm, rows);
