/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the ops that pointwise.def lists. Ops with more to say (mixed types, optional inputs, variants)
 * have files of their own. */
#include "graph/ops/pointwise.h"

#include "graph/ops/pointwise_rules.h"

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
#define TRAITS_Add                     OP_FOLLOWS, OP_COMMUTATIVE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_ZERO_IS_NEUTRAL
#define TRAITS_Sub                     OP_FOLLOWS, OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_ZERO_IS_NEUTRAL
#define TRAITS_Mul                     OP_FOLLOWS, OP_COMMUTATIVE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_ONE_IS_NEUTRAL
#define TRAITS_Div                     OP_FOLLOWS, OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_ONE_IS_NEUTRAL
#define TRAITS_Neg                     OP_FOLLOWS, OP_SMALL_INTS | OP_INVOLUTION
#define TRAITS_Abs                     OP_FOLLOWS, OP_SMALL_INTS
#define TRAITS_Sign                    OP_WIDE, 0
#define TRAITS_Reciprocal              OP_WIDE, 0
#define TRAITS_Sqrt                    OP_WIDE, 0
#define TRAITS_Exp                     OP_WIDE, 0
#define TRAITS_Log                     OP_WIDE, 0
#define TRAITS_Floor                   OP_WIDE, 0
#define TRAITS_Ceil                    OP_WIDE, 0
#define TRAITS_Round                   OP_WIDE, 0
#define TRAITS_Erf                     OP_FOLLOWS, 0
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
#define TRAITS_Relu                    OP_FOLLOWS, 0
#define TRAITS_Sigmoid                 OP_FOLLOWS, 0
#define TRAITS_Tanh                    OP_FOLLOWS, 0
#define TRAITS_Softplus                OP_WIDE, 0
#define TRAITS_Softsign                OP_FOLLOWS, 0
#define TRAITS_Elu                     OP_FOLLOWS, 0
#define TRAITS_Selu                    OP_FOLLOWS, 0
#define TRAITS_Celu                    OP_FOLLOWS, 0
#define TRAITS_LeakyRelu               OP_FOLLOWS, 0
#define TRAITS_ThresholdedRelu         OP_FOLLOWS, 0
#define TRAITS_HardSigmoid             OP_FOLLOWS, 0
#define TRAITS_HardSwish               OP_FOLLOWS, 0
#define TRAITS_Swish                   OP_FOLLOWS, 0
#define TRAITS_Mish                    OP_FOLLOWS, 0
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
};
OP_TABLE(pointwise, rows);
