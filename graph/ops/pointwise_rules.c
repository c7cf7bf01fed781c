/* SPDX-License-Identifier: Apache-2.0 */
/* Inference and upgrade rules that the files of the pointwise family share. */
#include "graph/ops/pointwise_rules.h"

#include "graph/ir/dtype_set.h"

#include <string.h>

grt_status pw_infer_dtype(const infer *inf, int32_t i, grt_dtype_set set)
{
    if (!infer_has(inf, i) || !inf->in[i]->dtype || grt_dtype_in(inf->in[i]->dtype, set))
        return GRT_OK;
    grt_text wanted = {0};
    dtype_set_add_to(&wanted, set);
    grt_status status = infer_fail(inf, "input %d is %s; allowed are %s", i,
                                   grt_dtype_name(inf->in[i]->dtype), grt_text_get(&wanted));
    grt_text_release(&wanted);
    return status;
}

grt_status pw_infer_broadcast(infer *inf, grt_dtype_set set, grt_dtype dtype)
{
    int32_t rank;
    const grt_dim *dims;
    for (int32_t i = 0; i < inf->n_in; i++) {
        if (!infer_has(inf, i))
            return infer_fail(inf, "input %d is missing", i);
        GRT_TRY(pw_infer_dtype(inf, i, set));
        GRT_TRY(infer_same_dtype(inf, 0, i));
    }
    GRT_TRY(infer_broadcast(inf, 0, inf->n_in, &rank, &dims));
    infer_set(inf, 0, dtype ? dtype : inf->in[0]->dtype, rank, dims);
    return GRT_OK;
}

typedef enum elem_op {
    ELEM_ADD,
    ELEM_SUB,
    ELEM_MUL,
    ELEM_DIV,
    ELEM_MOD,
    ELEM_MAX,
    ELEM_MIN,
    ELEM_NEG,
    ELEM_ABS,
    ELEM_EQUAL,
    ELEM_NONE
} elem_op;

static elem_op elem_op_of(const grt_op_desc *desc)
{
    static const char *const names[ELEM_NONE] = {"Add", "Sub", "Mul", "Div", "Mod",
                                                 "Max", "Min", "Neg", "Abs", "Equal"};
    for (int i = 0; i < ELEM_NONE; i++)
        if (!strcmp(desc->op, names[i]))
            return (elem_op)i;
    return ELEM_NONE;
}

/* GRT_DIM_NONE where nothing is known. */
static grt_dim elem_apply(const infer *inf, elem_op op, grt_dim a, grt_dim b)
{
    grt_dims *t = inf->dims;
    int64_t x, y;
    bool known = grt_dim_is_const(t, a, &x) && grt_dim_is_const(t, b, &y);
    bool positive = grt_dim_is_size(t, a) && grt_dim_is_const(t, b, &y) && y > 0;
    switch (op) {
    case ELEM_ADD:
        return grt_dim_add(t, a, b);
    case ELEM_SUB:
        return grt_dim_sub(t, a, b);
    case ELEM_MUL:
        return grt_dim_mul(t, a, b);
    case ELEM_DIV: /* truncates, where the expression would round down */
        if (known && y != 0 && y != -1)
            return grt_dim_const(t, x / y);
        return positive || (!known && grt_dim_is_size(t, a) && grt_dim_is_size(t, b))
                   ? grt_dim_floordiv(t, a, b)
                   : GRT_DIM_NONE;
    case ELEM_MOD:
        return positive ? grt_dim_make(t, GRT_DIM_MOD, a, b) : GRT_DIM_NONE;
    case ELEM_MAX:
        return grt_dim_make(t, GRT_DIM_MAX, a, b);
    case ELEM_MIN:
        return grt_dim_make(t, GRT_DIM_MIN, a, b);
    case ELEM_NEG:
        return grt_dim_mulc(t, a, -1);
    case ELEM_ABS:
        return grt_dim_is_size(t, a) ? a : GRT_DIM_NONE;
    case ELEM_EQUAL:
        if (a == b)
            return grt_dim_const(t, 1);
        if (known)
            return grt_dim_const(t, x == y);
        /* A size is never negative: `shape == -1` is how exporters ask for "keep". */
        if ((grt_dim_is_const(t, a, &x) && x < 0 && grt_dim_is_size(t, b)) ||
            (grt_dim_is_const(t, b, &y) && y < 0 && grt_dim_is_size(t, a)))
            return grt_dim_const(t, 0);
        return GRT_DIM_NONE;
    default:
        return GRT_DIM_NONE;
    }
}

void pw_infer_elems(infer *inf)
{
    elem_op op = elem_op_of(inf->desc);
    ir_type *out = &inf->out[0];
    if (op == ELEM_NONE || out->rank < 0 || out->rank > 1)
        return;
    const grt_dim *dims[2] = {NULL, NULL};
    int64_t n[2] = {1, 1}, length = 1;
    for (int32_t i = 0; i < inf->n_in; i++) {
        if (!grt_dtype_in(inf->in[i]->dtype, GRT_BIT(INT64) | GRT_BIT(INT32)) || inf->in[i]->rank > 1)
            return;
        if (i < 2 && !infer_elems(inf, i, &dims[i], &n[i]))
            return;
    }
    if (inf->n_in > 2 || (out->rank == 1 && !infer_const(inf, out->dims[0], &length)))
        return;
    grt_dim *elems = infer_dims(inf, (int32_t)length);
    for (int64_t k = 0; elems && k < length; k++) {
        grt_dim a = dims[0][n[0] == 1 ? 0 : k], b = inf->n_in > 1 ? dims[1][n[1] == 1 ? 0 : k] : a;
        elems[k] = inf->n_in == 1 && op != ELEM_NEG && op != ELEM_ABS ? a : elem_apply(inf, op, a, b);
        if (elems[k] == GRT_DIM_NONE)
            return;
    }
    out->elems = elems;
    out->n_elems = length;
}

grt_status pw_infer_FLOAT(infer *inf)
{
    return pw_infer_broadcast(inf, GRT_SET_FLOATS, GRT_DTYPE_NONE);
}

grt_status pw_infer_SIGNED(infer *inf)
{
    GRT_TRY(pw_infer_broadcast(inf, GRT_SET_FLOATS | GRT_SET_SIGNED, GRT_DTYPE_NONE));
    pw_infer_elems(inf);
    return GRT_OK;
}

grt_status pw_infer_NUMBER(infer *inf)
{
    GRT_TRY(pw_infer_broadcast(inf, GRT_SET_NUMBERS, GRT_DTYPE_NONE));
    pw_infer_elems(inf);
    return GRT_OK;
}

grt_status pw_infer_INT(infer *inf)
{
    return pw_infer_broadcast(inf, GRT_SET_INTS, GRT_DTYPE_NONE);
}

grt_status pw_infer_COMPARE(infer *inf)
{
    return pw_infer_broadcast(inf, GRT_SET_NUMBERS, GRT_DTYPE_BOOL);
}

grt_status pw_infer_LOGIC(infer *inf)
{
    return pw_infer_broadcast(inf, GRT_BIT(BOOL), GRT_DTYPE_BOOL);
}

grt_status pw_align(ir_node *node, int32_t index, int64_t axis)
{
    ir_value *in[2] = {ir_in(node, index), ir_in(node, 0)};
    ir_node *align = ir_node_create(node->graph, node, "graphrt", "AlignDims", node->desc.name, 2, in, 1);
    if (!align)
        return grt_fail_memory(sizeof *align);
    ir_attr_set_int(align, "axis", axis);
    ir_node_set_input(node, index, ir_node_out(align));
    return GRT_OK;
}

grt_status pw_upgrade(ir_node *node, int32_t opset)
{
    if (opset >= 7)
        return GRT_OK;
    const grt_attr *axis = grt_attr_find(&node->desc, "axis");
    int64_t at = axis ? axis->i : 0;
    bool align = axis && node->n_in == 2 && grt_attr_int(&node->desc, "broadcast", 0);
    ir_attr_remove(node, "consumed_inputs");
    ir_attr_remove(node, "broadcast");
    ir_attr_remove(node, "axis");
    return align ? pw_align(node, 1, at) : GRT_OK;
}
