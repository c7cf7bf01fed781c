/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the ops that pointwise.def lists, and of those beside them with any number of inputs, optional ones
 * or variants. Pow, Where and comparisons of more than numbers have files of their own. */
#include "graph/ops/pointwise.h"

#include "graph/ops/pointwise_rules.h"

#include <string.h>

static grt_status infer_prelu(infer *inf)
{
    int32_t rank;
    const grt_dim *dims;
    GRT_TRY(pw_infer_broadcast(inf, GRT_SET_NUMBERS, GRT_DTYPE_NONE));
    GRT_TRY(infer_broadcast(inf, 0, 2, &rank, &dims));
    if (inf->in[0]->rank >= 0 && rank > inf->in[0]->rank)
        return infer_fail(inf, "the slope has rank %d, more than the input's %d", rank, inf->in[0]->rank);
    return GRT_OK;
}

static grt_status infer_clip(infer *inf)
{
    GRT_TRY(pw_infer_dtype(inf, 0, GRT_SET_NUMBERS));
    for (int32_t i = 1; i < inf->n_in; i++) {
        GRT_TRY(infer_same_dtype(inf, 0, i));
        int64_t n;
        bool single = !infer_has(inf, i) || inf->in[i]->rank <= 0 ||
                      (inf->in[i]->rank == 1 && (!infer_const(inf, inf->in[i]->dims[0], &n) || n == 1));
        if (!single)
            return infer_fail(inf, "input %d (%s) must be a scalar", i, i == 1 ? "min" : "max");
    }
    infer_set_like(inf, 0, inf->in[0]->dtype, inf->in[0]);
    return GRT_OK;
}

/* B's dims followed by ones, so that they line up with A's from `axis` on. A's dims are only counted. */
static grt_status infer_align(infer *inf)
{
    const ir_type *b = inf->in[0], *a = inf->in[1];
    infer_set_unknown(inf, 0, b->dtype);
    if (a->rank < 0 || b->rank < 0)
        return GRT_OK;
    int32_t axis = 0;
    if (a->rank)
        GRT_TRY(infer_axis(inf, "axis", grt_attr_int(inf->desc, "axis", 0), a->rank, &axis));
    int32_t rank = a->rank - axis;
    if (b->rank > rank) {
        if (b->rank == 1 && grt_dim_equals(inf->dims, b->dims[0], 1)) {
            infer_set_like(inf, 0, b->dtype, b); /* one element fits anywhere */
            return GRT_OK;
        }
        return infer_fail(inf, "a tensor of rank %d does not fit into rank %d from axis %d on", b->rank,
                          a->rank, axis);
    }
    grt_dim *dims = infer_dims(inf, rank);
    for (int32_t i = 0; dims && i < rank; i++)
        dims[i] = i < b->rank ? b->dims[i] : grt_dim_const(inf->dims, 1);
    infer_set(inf, 0, b->dtype, rank, dims);
    if (!dims || !b->data)
        return GRT_OK;
    grt_tensor *data = grt_arena_memdup(inf->arena, b->data, sizeof *data);
    if (!data)
        return GRT_OK;
    data->rank = rank;
    for (int32_t i = 0; i < rank; i++)
        data->dims[i] = i < b->rank ? b->data->dims[i] : 1;
    inf->out[0].data = data;
    return GRT_OK;
}

/* Opset < 7: the slope has one element, or one per channel (dim 1). */
static grt_status upgrade_prelu(ir_node *node, int32_t opset)
{
    ir_attr_remove(node, "consumed_inputs");
    const ir_value *slope = ir_in(node, 1);
    bool one =
        slope && slope->type.rank == 1 && grt_dim_equals(node->graph->module->dims, slope->type.dims[0], 1);
    return opset < 7 && slope && !one ? pw_align(node, 1, 1) : GRT_OK;
}

/* Opset < 11: the bounds are attributes. */
static grt_status upgrade_clip(ir_node *node, int32_t opset)
{
    static const char *const names[] = {"min", "max"};
    ir_attr_remove(node, "consumed_inputs");
    if (opset >= 11)
        return GRT_OK;
    grt_dtype dtype = ir_in(node, 0) ? ir_in(node, 0)->type.dtype : GRT_DTYPE_NONE;
    for (int i = 0; i < 2; i++) {
        const grt_attr *attr = grt_attr_find(&node->desc, names[i]);
        ir_value *bound = NULL;
        if (attr) {
            bound =
                ir_constant_scalar(node->graph, names[i], dtype ? dtype : GRT_DTYPE_FLOAT, (double)attr->f);
            if (!bound)
                return grt_fail_memory(sizeof *bound);
        }
        if (bound && !dtype) {
            /* The type of the input is not known yet: follow it. */
            ir_node *cast = ir_node_create(node->graph, node, "", "CastLike", node->desc.name, 2,
                                           (ir_value *[]){bound, ir_in(node, 0)}, 1);
            bound = ir_node_out(cast);
        }
        ir_node_add_input(node, bound);
        ir_attr_remove(node, names[i]);
    }
    return GRT_OK;
}

static const op_attr mod_attrs[] = {{"fmod", GRT_ATTR_INT, false}, {0}};

static const op_attr gelu_attrs[] = {{"approximate", GRT_ATTR_STRING, false}, {0}};

static const op_attr shift_attrs[] = {{"direction", GRT_ATTR_STRING, true}, {0}};

static const op_attr align_attrs[] = {{"axis", GRT_ATTR_INT, true}, {0}};

#define ATTRS_0(p0, p1) NULL
#define ATTRS_1(p0, p1)               \
    (const op_attr[])                 \
    {                                 \
        {p0, GRT_ATTR_FLOAT, false},  \
        {                             \
            NULL, GRT_ATTR_INT, false \
        }                             \
    }
#define ATTRS_2(p0, p1)                                           \
    (const op_attr[])                                             \
    {                                                             \
        {p0, GRT_ATTR_FLOAT, false}, {p1, GRT_ATTR_FLOAT, false}, \
        {                                                         \
            NULL, GRT_ATTR_INT, false                             \
        }                                                         \
    }

/* What else is to be said of each op: what `precision` makes of it, flags. An op without such a line does not
 * compile. */
#define TRAITS_Add \
    OP_FOLLOWS, OP_COMMUTATIVE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_ZERO_IS_NEUTRAL | OP_FINITE
#define TRAITS_Sub OP_FOLLOWS, OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_ZERO_IS_NEUTRAL | OP_FINITE
#define TRAITS_Mul \
    OP_FOLLOWS, OP_COMMUTATIVE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_ONE_IS_NEUTRAL | OP_FINITE
#define TRAITS_Div                     OP_FOLLOWS, OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_ONE_IS_NEUTRAL
#define TRAITS_Neg                     OP_FOLLOWS, OP_SMALL_INTS | OP_INVOLUTION | OP_FINITE
#define TRAITS_Abs                     OP_FOLLOWS, OP_SMALL_INTS | OP_FINITE
#define TRAITS_Sign                    OP_WIDE, 0
#define TRAITS_Reciprocal              OP_WIDE, 0
#define TRAITS_Sqrt                    OP_WIDE, 0
#define TRAITS_Exp                     OP_WIDE, 0
#define TRAITS_Log                     OP_WIDE, 0
#define TRAITS_Floor                   OP_WIDE, 0
#define TRAITS_Ceil                    OP_WIDE, 0
#define TRAITS_Round                   OP_WIDE, 0
#define TRAITS_Erf                     OP_FOLLOWS, OP_FINITE
#define TRAITS_Sin                     OP_WIDE, 0
#define TRAITS_Cos                     OP_WIDE, 0
#define TRAITS_Tan                     OP_WIDE, 0
#define TRAITS_Asin                    OP_WIDE, 0
#define TRAITS_Acos                    OP_WIDE, 0
#define TRAITS_Atan                    OP_WIDE, 0
#define TRAITS_Sinh                    OP_WIDE, 0
#define TRAITS_Cosh                    OP_WIDE, 0
#define TRAITS_Asinh                   OP_WIDE, 0
#define TRAITS_Acosh                   OP_WIDE, 0
#define TRAITS_Atanh                   OP_WIDE, 0
#define TRAITS_Relu                    OP_FOLLOWS, OP_FINITE
#define TRAITS_Sigmoid                 OP_FOLLOWS, OP_FINITE
#define TRAITS_Tanh                    OP_FOLLOWS, OP_FINITE
#define TRAITS_Softplus                OP_WIDE, OP_FINITE
#define TRAITS_Softsign                OP_FOLLOWS, OP_FINITE
#define TRAITS_Elu                     OP_FOLLOWS, OP_FINITE
#define TRAITS_Selu                    OP_FOLLOWS, OP_FINITE
#define TRAITS_Celu                    OP_FOLLOWS, OP_FINITE
#define TRAITS_LeakyRelu               OP_FOLLOWS, OP_FINITE
#define TRAITS_ThresholdedRelu         OP_FOLLOWS, OP_FINITE
#define TRAITS_HardSigmoid             OP_FOLLOWS, OP_FINITE
#define TRAITS_HardSwish               OP_FOLLOWS, OP_FINITE
#define TRAITS_Swish                   OP_FOLLOWS, OP_FINITE
#define TRAITS_Mish                    OP_FOLLOWS, OP_FINITE
#define TRAITS_Shrink                  OP_WIDE, 0
#define TRAITS_SwiGLU                  OP_WIDE, 0
#define TRAITS_Less                    OP_WIDE, OP_ONE_FLOAT_TYPE
#define TRAITS_LessOrEqual             OP_WIDE, OP_ONE_FLOAT_TYPE
#define TRAITS_Greater                 OP_WIDE, OP_ONE_FLOAT_TYPE
#define TRAITS_GreaterOrEqual          OP_WIDE, OP_ONE_FLOAT_TYPE
#define TRAITS_And                     OP_UNSTATED, OP_COMMUTATIVE
#define TRAITS_Or                      OP_UNSTATED, OP_COMMUTATIVE
#define TRAITS_Xor                     OP_UNSTATED, OP_COMMUTATIVE
#define TRAITS_Not                     OP_UNSTATED, OP_INVOLUTION
#define TRAITS_BitwiseAnd              OP_UNSTATED, OP_COMMUTATIVE
#define TRAITS_BitwiseOr               OP_UNSTATED, OP_COMMUTATIVE
#define TRAITS_BitwiseXor              OP_UNSTATED, OP_COMMUTATIVE
#define TRAITS_BitwiseNot              OP_UNSTATED, 0
#define TRAITS(...)                    TRAITS_OF(__VA_ARGS__)
#define TRAITS_OF(conduct, more_flags) .precision = conduct, .flags = OP_POINTWISE | (more_flags)

#define ROW(op_name, version, least, most, conduct, more_flags, rule, ...)                                   \
    {                                                                                                        \
        .domain = "", .name = op_name, .since = version, .min_in = least, .max_in = most, .min_out = 1,      \
        .max_out = 1, .precision = conduct, .flags = OP_POINTWISE | (more_flags), .infer = rule, __VA_ARGS__ \
    }

static const op_row rows[] = {
#define PW_ROWS_ONLY
#define PW(opname, version, arity, kind, n_params, p0, d0, p1, d1, expr) \
    {.domain = "",                                                       \
     .name = #opname,                                                    \
     .since = version,                                                   \
     .min_in = arity,                                                    \
     .max_in = arity,                                                    \
     .min_out = 1,                                                       \
     .max_out = 1,                                                       \
     .attrs = ATTRS_##n_params(p0, p1),                                  \
     TRAITS(TRAITS_##opname),                                            \
     .infer = pw_infer_##kind,                                           \
     .upgrade = pw_upgrade},
#include "src/base/pointwise.def"
#undef PW
#undef PW_ROWS_ONLY
    ROW("Max", 13, 1, OP_VARIADIC, OP_FOLLOWS, OP_COMMUTATIVE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_SINGLE,
        pw_infer_NUMBER, .upgrade = pw_upgrade),
    ROW("Min", 13, 1, OP_VARIADIC, OP_FOLLOWS, OP_COMMUTATIVE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_SINGLE,
        pw_infer_NUMBER, .upgrade = pw_upgrade),
    ROW("Sum", 13, 1, OP_VARIADIC, OP_WIDE, OP_COMMUTATIVE | OP_SINGLE, pw_infer_FLOAT,
        .upgrade = pw_upgrade),
    ROW("Mean", 13, 1, OP_VARIADIC, OP_WIDE, OP_COMMUTATIVE | OP_SINGLE, pw_infer_FLOAT,
        .upgrade = pw_upgrade),
    ROW("Mod", 28, 2, 2, OP_WIDE, OP_SMALL_INTS, pw_infer_NUMBER, .attrs = mod_attrs),
    ROW("Gelu", 20, 1, 1, OP_FOLLOWS, OP_FINITE, pw_infer_FLOAT, .attrs = gelu_attrs),
    ROW("PRelu", 16, 2, 2, OP_FOLLOWS, OP_FINITE, infer_prelu, .upgrade = upgrade_prelu),
    ROW("Clip", 13, 1, 3, OP_FOLLOWS, OP_FINITE, infer_clip, .upgrade = upgrade_clip,
        .batch = OP_BATCH_PARAMETERS),
    ROW("BitShift", 28, 2, 2, OP_UNSTATED, 0, pw_infer_INT, .attrs = shift_attrs),
    {.domain = "graphrt",
     .name = "AlignDims",
     .since = 1,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = align_attrs,
     .flags = OP_VIEW,
     .infer = infer_align},
};
OP_TABLE(pointwise, rows);
