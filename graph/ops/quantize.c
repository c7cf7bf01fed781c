/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. */
#include "graph/ops/pointwise_rules.h"

#include <inttypes.h>

#define QUANTIZED                                                                          \
    (GRT_BIT(UINT8) | GRT_BIT(INT8) | GRT_BIT(UINT16) | GRT_BIT(INT16) | GRT_SET_SUBBYTE | \
     (GRT_SET_FLOAT8 & ~GRT_BIT(FLOAT8E8M0)))
#define SCALES (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16) | GRT_BIT(FLOAT8E8M0))

/* The zero point has the scale's dims; one element may be a scalar or a vector. */
static grt_status check_zero_point(const infer *inf)
{
    const ir_type *scale = inf->in[1], *zero = infer_has(inf, 2) ? inf->in[2] : NULL;
    int64_t a, b;
    if (!zero || zero->rank < 0 || scale->rank < 0)
        return GRT_OK;
    const ir_type *vector = zero->rank ? zero : scale;
    if (zero->rank + scale->rank == 1)
        return !infer_const(inf, vector->dims[0], &a) || a == 1
                   ? GRT_OK
                   : infer_fail(inf,
                                "of the scale and the zero point one is a scalar, the other has %" PRId64
                                " elements; they must have as many",
                                a);
    if (zero->rank != scale->rank)
        return infer_fail(inf, "the zero point has rank %d, the scale %d; they must be equal", zero->rank,
                          scale->rank);
    for (int32_t i = 0; i < scale->rank; i++)
        if (infer_const(inf, zero->dims[i], &a) && infer_const(inf, scale->dims[i], &b) && a != b)
            return infer_fail(inf,
                              "dim %d of the zero point is %" PRId64 ", that of the scale %" PRId64
                              "; they must be equal",
                              i, a, b);
    return GRT_OK;
}

/* Scale: one element, one per index of `axis`, or one per block of `block_size` along it. */
static grt_status check_scale(const infer *inf)
{
    const ir_type *x = inf->in[0], *scale = inf->in[1];
    int64_t block = grt_attr_int(inf->desc, "block_size", 0), a, b;
    if (block < 0)
        return infer_fail(inf, "attribute block_size is %" PRId64 "; it must not be negative", block);
    GRT_TRY(check_zero_point(inf));
    if (x->rank < 0 || scale->rank < 1 || (scale->rank == 1 && grt_dim_equals(inf->dims, scale->dims[0], 1)))
        return GRT_OK;
    int32_t axis = 0;
    GRT_TRY(infer_axis(inf, "axis", x->rank == 1 ? 0 : grt_attr_int(inf->desc, "axis", 1), x->rank, &axis));
    if (!block) {
        if (scale->rank != 1)
            return infer_fail(inf,
                              "the scale has rank %d; without block_size it must be a scalar or a vector",
                              scale->rank);
        if (infer_const(inf, scale->dims[0], &a) && infer_const(inf, x->dims[axis], &b) && a != b)
            return infer_fail(inf, "the scale has %" PRId64 " elements, dim %d of the input has %" PRId64, a,
                              axis, b);
        return GRT_OK;
    }
    if (scale->rank != x->rank)
        return infer_fail(inf, "the scale has rank %d; with block_size it must have the input's, %d",
                          scale->rank, x->rank);
    for (int32_t i = 0; i < x->rank; i++) {
        if (!infer_const(inf, scale->dims[i], &a) || !infer_const(inf, x->dims[i], &b))
            continue;
        int64_t wanted = i == axis ? b / block + (b % block != 0) : b;
        if (a != wanted)
            return infer_fail(inf, "dim %d of the scale is %" PRId64 ", expected %" PRId64, i, a, wanted);
    }
    return GRT_OK;
}

static grt_status infer_quantize(infer *inf)
{
    grt_dtype dtype = GRT_DTYPE_NONE, precision = GRT_DTYPE_NONE;
    GRT_TRY(pw_infer_dtype(inf, 0, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16) | GRT_BIT(INT32)));
    GRT_TRY(pw_infer_dtype(inf, 1, SCALES | GRT_BIT(INT32)));
    GRT_TRY(pw_infer_dtype(inf, 2, QUANTIZED));
    GRT_TRY(infer_dtype_attr(inf, "output_dtype", QUANTIZED, GRT_DTYPE_NONE, &dtype));
    GRT_TRY(infer_dtype_attr(inf, "precision", GRT_SET_FLOATS, GRT_DTYPE_NONE, &precision));
    GRT_TRY(check_scale(inf));
    grt_dtype zero = infer_has(inf, 2) ? inf->in[2]->dtype : GRT_DTYPE_NONE;
    if (dtype && zero && dtype != zero)
        return infer_fail(inf, "output_dtype is %s, but the zero point is %s", grt_dtype_name(dtype),
                          grt_dtype_name(zero));
    infer_set_like(inf, 0, zero ? zero : dtype ? dtype : GRT_DTYPE_UINT8, inf->in[0]);
    return GRT_OK;
}

static grt_status infer_dequantize(infer *inf)
{
    grt_dtype dtype = GRT_DTYPE_NONE;
    GRT_TRY(pw_infer_dtype(inf, 0, QUANTIZED | GRT_BIT(INT32)));
    GRT_TRY(pw_infer_dtype(inf, 1, SCALES));
    GRT_TRY(infer_same_dtype(inf, 0, 2));
    GRT_TRY(infer_dtype_attr(inf, "output_dtype", GRT_SET_FLOATS, GRT_DTYPE_NONE, &dtype));
    GRT_TRY(check_scale(inf));
    infer_set_like(inf, 0, dtype ? dtype : inf->in[1]->dtype, inf->in[0]);
    return GRT_OK;
}

static grt_status infer_dynamic(infer *inf)
{
    GRT_TRY(pw_infer_dtype(inf, 0, GRT_BIT(FLOAT)));
    infer_set_like(inf, 0, GRT_DTYPE_UINT8, inf->in[0]);
    infer_set(inf, 1, GRT_DTYPE_FLOAT, 0, infer_dims(inf, 0));
    infer_set(inf, 2, GRT_DTYPE_UINT8, 0, infer_dims(inf, 0));
    return GRT_OK;
}

static const op_attr quantize_attrs[] = {
    {"axis", GRT_ATTR_INT, false},         {"block_size", GRT_ATTR_INT, false},
    {"output_dtype", GRT_ATTR_INT, false}, {"precision", GRT_ATTR_INT, false},
    {"saturate", GRT_ATTR_INT, false},     {0}};
static const op_attr dequantize_attrs[] = {{"axis", GRT_ATTR_INT, false},
                                           {"block_size", GRT_ATTR_INT, false},
                                           {"output_dtype", GRT_ATTR_INT, false},
                                           {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "QuantizeLinear",
     .since = 28,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = quantize_attrs,
     .precision = OP_READS_NARROW,
     .layout = OP_LAYOUT_SCALED,
     .cost = OP_COST_COMPUTE,
     .infer = infer_quantize},
    {.domain = "",
     .name = "DequantizeLinear",
     .since = 28,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = dequantize_attrs,
     .precision = OP_WIDE,
     .layout = OP_LAYOUT_SCALED,
     .cost = OP_COST_COMPUTE,
     .infer = infer_dequantize},
    {.domain = "",
     .name = "DynamicQuantizeLinear",
     .since = 11,
     .min_in = 1,
     .max_in = 1,
     .min_out = 3,
     .max_out = 3,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = infer_dynamic},
};
OP_TABLE(quantize, rows);
