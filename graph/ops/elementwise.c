/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of pointwise ops that pointwise.def cannot describe: any number of inputs, mixed types, optional
 * inputs, variants. */
#include "graph/ops/pointwise_rules.h"

#include <string.h>

static grt_status infer_float_or_int_power(infer *inf)
{
    GRT_TRY(pw_infer_dtype(inf, 0, GRT_SET_FLOATS | GRT_BIT(INT32) | GRT_BIT(INT64)));
    GRT_TRY(pw_infer_dtype(inf, 1, GRT_SET_NUMBERS));
    int32_t rank;
    const grt_dim *dims;
    GRT_TRY(infer_broadcast(inf, 0, 2, &rank, &dims));
    infer_set(inf, 0, inf->in[0]->dtype, rank, dims);
    return GRT_OK;
}

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

static grt_status infer_equal(infer *inf)
{
    GRT_TRY(pw_infer_broadcast(inf, GRT_SET_NUMBERS | GRT_BIT(BOOL) | GRT_BIT(STRING), GRT_DTYPE_BOOL));
    pw_infer_elems(inf);
    return GRT_OK;
}

static grt_status infer_test(infer *inf)
{
    GRT_TRY(pw_infer_dtype(inf, 0, GRT_SET_FLOATS | (GRT_SET_FLOAT8 & ~GRT_BIT(FLOAT8E8M0))));
    infer_set_like(inf, 0, GRT_DTYPE_BOOL, inf->in[0]);
    return GRT_OK;
}

/* The branch that is known to be taken, element by element. */
static void where_elems(infer *inf)
{
    const grt_dim *from[3];
    int64_t n[3], length = 1, taken;
    ir_type *out = &inf->out[0];
    if (!grt_dtype_in(out->dtype, GRT_BIT(INT64) | GRT_BIT(INT32)) || out->rank < 0 || out->rank > 1)
        return;
    if (out->rank == 1 && !infer_const(inf, out->dims[0], &length))
        return;
    for (int32_t i = 0; i < 3; i++)
        if (!infer_elems(inf, i, &from[i], &n[i]))
            return;
    grt_dim *elems = infer_dims(inf, (int32_t)length);
    for (int64_t k = 0; elems && k < length; k++) {
        if (!infer_const(inf, from[0][n[0] == 1 ? 0 : k], &taken))
            return;
        int b = taken ? 1 : 2;
        elems[k] = from[b][n[b] == 1 ? 0 : k];
    }
    out->elems = elems;
    out->n_elems = length;
}

static grt_status infer_where(infer *inf)
{
    int32_t rank;
    const grt_dim *dims;
    GRT_TRY(pw_infer_dtype(inf, 0, GRT_BIT(BOOL)));
    GRT_TRY(infer_same_dtype(inf, 1, 2));
    GRT_TRY(infer_broadcast(inf, 0, 3, &rank, &dims));
    infer_set(inf, 0, inf->in[1]->dtype ? inf->in[1]->dtype : inf->in[2]->dtype, rank, dims);
    where_elems(inf);
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

/* ---- upgrades ---- */

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
static const op_attr inf_attrs[] = {
    {"detect_negative", GRT_ATTR_INT, false}, {"detect_positive", GRT_ATTR_INT, false}, {0}};
static const op_attr align_attrs[] = {{"axis", GRT_ATTR_INT, true}, {0}};

#define ROW(op_name, version, least, most, conduct, more_flags, rule, ...)                                   \
    {                                                                                                        \
        .domain = "", .name = op_name, .since = version, .min_in = least, .max_in = most, .min_out = 1,      \
        .max_out = 1, .precision = conduct, .flags = OP_POINTWISE | (more_flags), .infer = rule, __VA_ARGS__ \
    }

static const op_row rows[] = {
    ROW("Max", 13, 1, OP_VARIADIC, OP_FOLLOWS, OP_COMMUTATIVE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_SINGLE,
        pw_infer_NUMBER, .upgrade = pw_upgrade),
    ROW("Min", 13, 1, OP_VARIADIC, OP_FOLLOWS, OP_COMMUTATIVE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE | OP_SINGLE,
        pw_infer_NUMBER, .upgrade = pw_upgrade),
    ROW("Sum", 13, 1, OP_VARIADIC, OP_WIDE, OP_COMMUTATIVE | OP_SINGLE, pw_infer_FLOAT,
        .upgrade = pw_upgrade),
    ROW("Mean", 13, 1, OP_VARIADIC, OP_WIDE, OP_COMMUTATIVE | OP_SINGLE, pw_infer_FLOAT,
        .upgrade = pw_upgrade),
    ROW("Pow", 15, 2, 2, OP_WIDE, 0, infer_float_or_int_power, .upgrade = pw_upgrade),
    ROW("Mod", 28, 2, 2, OP_WIDE, OP_SMALL_INTS, pw_infer_NUMBER, .attrs = mod_attrs),
    ROW("Gelu", 20, 1, 1, OP_FOLLOWS, 0, pw_infer_FLOAT, .attrs = gelu_attrs),
    ROW("PRelu", 16, 2, 2, OP_FOLLOWS, 0, infer_prelu, .upgrade = upgrade_prelu),
    ROW("Clip", 13, 1, 3, OP_FOLLOWS, 0, infer_clip, .upgrade = upgrade_clip, .batch = OP_BATCH_PARAMETERS),
    ROW("BitShift", 28, 2, 2, OP_UNSTATED, 0, pw_infer_INT, .attrs = shift_attrs),
    ROW("Equal", 19, 2, 2, OP_WIDE, OP_COMMUTATIVE | OP_SMALL_INTS | OP_ONE_FLOAT_TYPE, infer_equal,
        .upgrade = pw_upgrade),
    ROW("IsNaN", 20, 1, 1, OP_WIDE, 0, infer_test),
    ROW("IsInf", 20, 1, 1, OP_WIDE, 0, infer_test, .attrs = inf_attrs),
    ROW("Where", 16, 3, 3, OP_FOLLOWS, OP_SMALL_INTS | OP_ONE_FLOAT_TYPE, infer_where),
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
OP_TABLE(elementwise, rows);
