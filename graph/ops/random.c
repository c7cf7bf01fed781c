/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: Bernoulli, Multinomial, RandomNormal, RandomNormalLike, RandomUniform, RandomUniformLike.
 */
#include "graph/ir/op.h"

#define COMMON                        \
    {"dtype", GRT_ATTR_INT, false},   \
    {                                 \
        "seed", GRT_ATTR_FLOAT, false \
    }
#define UNIFORM                      \
    {"high", GRT_ATTR_FLOAT, false}, \
    {                                \
        "low", GRT_ATTR_FLOAT, false \
    }
#define NORMAL                         \
    {"mean", GRT_ATTR_FLOAT, false},   \
    {                                  \
        "scale", GRT_ATTR_FLOAT, false \
    }
static const op_attr bernoulli_attrs[] = {COMMON, {0}};
static const op_attr multinomial_attrs[] = {COMMON, {"sample_size", GRT_ATTR_INT, false}, {0}};
static const op_attr uniform_attrs[] = {COMMON, UNIFORM, {"shape", GRT_ATTR_INTS, true}, {0}};
static const op_attr uniform_like_attrs[] = {COMMON, UNIFORM, {0}};
static const op_attr normal_attrs[] = {COMMON, NORMAL, {"shape", GRT_ATTR_INTS, true}, {0}};
static const op_attr normal_like_attrs[] = {COMMON, NORMAL, {0}};

static grt_status infer_random(infer *inf)
{
    size_t rank;
    grt_dtype dtype;
    GRT_TRY(infer_dtype_attr(inf, "dtype", GRT_SET_FLOATS, GRT_DTYPE_FLOAT, &dtype));
    const int64_t *shape = grt_attr_ints(inf->desc, "shape", &rank);
    if (rank > GRT_MAX_RANK)
        return infer_fail(inf, "attribute shape has %zu dims; at most %d are supported", rank, GRT_MAX_RANK);
    grt_dim *dims = infer_dims(inf, (int32_t)rank);
    for (size_t i = 0; dims && i < rank; i++) {
        if (shape[i] < 0)
            return infer_fail(inf, "dim %zu of attribute shape is %lld; expected a size", i,
                              (long long)shape[i]);
        dims[i] = grt_dim_const(inf->dims, shape[i]);
    }
    infer_set(inf, 0, dtype, (int32_t)rank, dims);
    return GRT_OK;
}

static grt_status infer_like(infer *inf)
{
    grt_dtype dtype;
    GRT_TRY(infer_dtype_attr(inf, "dtype", GRT_SET_NUMBERS | GRT_BIT(BOOL), inf->in[0]->dtype, &dtype));
    infer_set_like(inf, 0, dtype, inf->in[0]);
    return GRT_OK;
}

static grt_status infer_multinomial(infer *inf)
{
    const ir_type *x = inf->in[0];
    grt_dtype dtype;
    GRT_TRY(infer_dtype_attr(inf, "dtype", GRT_SET_INTS, GRT_DTYPE_INT32, &dtype));
    int64_t samples = grt_attr_int(inf->desc, "sample_size", 1);
    if (x->rank >= 0 && x->rank != 2)
        return infer_fail(inf, "the input has rank %d; it must be batch x classes", x->rank);
    if (samples < 0)
        return infer_fail(inf, "attribute sample_size is %lld; it must be positive", (long long)samples);
    grt_dim *dims = infer_dims(inf, 2);
    if (dims) {
        dims[0] = x->rank == 2 ? x->dims[0] : grt_dim_fresh(inf->dims);
        dims[1] = grt_dim_const(inf->dims, samples);
    }
    infer_set(inf, 0, dtype, 2, dims);
    return GRT_OK;
}

#define ROW(op, n_in, attr_list, rule)                                                                     \
    {                                                                                                      \
        .domain = "", .name = op, .since = 22, .min_in = n_in, .max_in = n_in, .min_out = 1, .max_out = 1, \
        .attrs = attr_list, .flags = OP_RANDOM, .precision = OP_WIDE, .infer = rule                        \
    }
static const op_row rows[] = {
    ROW("Bernoulli", 1, bernoulli_attrs, infer_like),
    ROW("Multinomial", 1, multinomial_attrs, infer_multinomial),
    ROW("RandomNormal", 0, normal_attrs, infer_random),
    ROW("RandomNormalLike", 1, normal_like_attrs, infer_like),
    ROW("RandomUniform", 0, uniform_attrs, infer_random),
    ROW("RandomUniformLike", 1, uniform_like_attrs, infer_like),
};
OP_TABLE(random, rows);
