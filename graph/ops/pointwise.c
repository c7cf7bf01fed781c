/* Rows of the ops that pointwise.def lists, and what passes ask about them. */
#include "graph/ops/pointwise.h"

#include "graph/ops/pointwise_rules.h"

#include <math.h>
#include <string.h>

#define KIND_FLOAT   true, false
#define KIND_SIGNED  true, false
#define KIND_NUMBER  true, false
#define KIND_INT     false, false
#define KIND_COMPARE true, true
#define KIND_EQUAL   true, true
#define KIND_TEST    true, true
#define KIND_LOGIC   true, true
#define KIND_SELECT  true, false

static const struct {
    pw_info info;
    const char *p[PW_MAX_PARAMS];
    float d[PW_MAX_PARAMS];
} functions[PW_COUNT] = {
#define PW(name, since, arity, kind, n_params, p0, d0, p1, d1, expr)                                                   \
    [PW_##name] = {{#name, arity, n_params, KIND_##kind}, {p0, p1}, {d0, d1}},
#include "graph/ops/pointwise.def"
#undef PW
};

const pw_info *pw_info_at(int32_t opcode)
{
    return &functions[opcode].info;
}

int32_t pw_opcode_of(const grt_op_desc *desc, int32_t n_in)
{
    if (*desc->domain)
        return -1;
    const char *op = desc->op;
    if (!strcmp(op, "Sum"))
        op = "Add";
    for (int32_t i = 0; i < PW_COUNT; i++) {
        const pw_info *info = &functions[i].info;
        if (info->name[0] != op[0] || strcmp(info->name, op))
            continue;
        if (i == PW_Gelu && !strcmp(grt_attr_string(desc, "approximate", "none"), "tanh"))
            i = PW_GeluTanh;
        if (i == PW_Mod && grt_attr_int(desc, "fmod", 0))
            i = PW_FMod;
        bool fits = n_in == info->arity || (i == PW_Clip && n_in >= 1 && n_in <= 3);
        return info->fusible && fits ? i : -1;
    }
    return -1;
}

int32_t pw_params(const grt_op_desc *desc, int32_t opcode, float out_params[PW_MAX_PARAMS])
{
    int32_t n = functions[opcode].info.n_params;
    for (int32_t i = 0; i < n; i++) {
        const grt_attr *attr = grt_attr_find(desc, functions[opcode].p[i]);
        out_params[i] = !attr ? functions[opcode].d[i] : attr->kind == GRT_ATTR_INT ? (float)attr->i : attr->f;
    }
    return n;
}

/* ---- rows ---- */

#define ATTRS_0(p0, p1) NULL
#define ATTRS_1(p0, p1) (const op_attr[]){{p0, GRT_ATTR_FLOAT, false}, {NULL, GRT_ATTR_INT, false}}
#define ATTRS_2(p0, p1)                                                                                                \
    (const op_attr[]){{p0, GRT_ATTR_FLOAT, false}, {p1, GRT_ATTR_FLOAT, false}, {NULL, GRT_ATTR_INT, false}}

/* What else is to be said of single ops. */
#define FLAGS(name)                                                                                                    \
    ((PW_##name == PW_Add || PW_##name == PW_Mul || PW_##name == PW_And || PW_##name == PW_Or ||                       \
      PW_##name == PW_Xor || PW_##name == PW_BitwiseAnd || PW_##name == PW_BitwiseOr || PW_##name == PW_BitwiseXor     \
          ? OP_COMMUTATIVE                                                                                             \
          : 0) |                                                                                                       \
     (PW_##name == PW_Add || PW_##name == PW_Sub || PW_##name == PW_Mul || PW_##name == PW_Div ||                      \
      PW_##name == PW_Neg || PW_##name == PW_Abs                                                                       \
          ? OP_SMALL_INTS                                                                                              \
          : 0))

static const op_row rows[] = {
#define PW_ROWS_ONLY
#define PW(opname, version, arity, kind, n_params, p0, d0, p1, d1, expr)                                               \
    {.domain = "", .name = #opname, .since = version, .min_in = arity, .max_in = arity, .min_out = 1, .max_out = 1,    \
     .attrs = ATTRS_##n_params(p0, p1), .flags = OP_POINTWISE | FLAGS(opname), .infer = pw_infer_##kind,               \
     .upgrade = pw_upgrade},
#include "graph/ops/pointwise.def"
#undef PW
#undef PW_ROWS_ONLY
};
OP_TABLE(pointwise, rows);
