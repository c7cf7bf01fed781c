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

/* What else is to be said of single ops. */
#define FLAGS(name)                                                                               \
    ((PW_##name == PW_Add || PW_##name == PW_Mul || PW_##name == PW_And || PW_##name == PW_Or ||  \
              PW_##name == PW_Xor || PW_##name == PW_BitwiseAnd || PW_##name == PW_BitwiseOr ||   \
              PW_##name == PW_BitwiseXor                                                          \
          ? OP_COMMUTATIVE                                                                        \
          : 0) |                                                                                  \
     (PW_##name == PW_Add || PW_##name == PW_Sub || PW_##name == PW_Mul || PW_##name == PW_Div || \
              PW_##name == PW_Neg || PW_##name == PW_Abs                                          \
          ? OP_SMALL_INTS                                                                         \
          : 0))

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
     .flags = OP_POINTWISE | FLAGS(opname),                              \
     .infer = pw_infer_##kind,                                           \
     .upgrade = pw_upgrade},
#include "src/base/pointwise.def"
#undef PW
#undef PW_ROWS_ONLY
};
OP_TABLE(pointwise, rows);
