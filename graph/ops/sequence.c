/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals. What is known of one is its kind and the dtype inside; shapes are only known at
 * run time. */
#include "graph/ir/op.h"

static const op_attr empty_attrs[] = {{"dtype", GRT_ATTR_INT, false}, {0}};
static const op_attr split_attrs[] = {{"axis", GRT_ATTR_INT, false}, {"keepdims", GRT_ATTR_INT, false}, {0}};
static const op_attr concat_attrs[] = {{"axis", GRT_ATTR_INT, true}, {"new_axis", GRT_ATTR_INT, false}, {0}};
static const op_attr optional_attrs[] = {{"type", GRT_ATTR_TYPE, false}, {0}};

static void set_sequence(infer *inf, grt_dtype dtype)
{
    inf->out[0] = (ir_type){.kind = GRT_KIND_SEQUENCE, .dtype = dtype, .rank = -1};
}

static grt_status need_sequence(const infer *inf)
{
    if (inf->in[0]->kind != GRT_KIND_SEQUENCE || inf->in[0]->element_kind == GRT_KIND_MAP)
        return infer_fail(inf, "input 0 must be a sequence of tensors");
    return GRT_OK;
}

static grt_status infer_empty(infer *inf)
{
    grt_dtype dtype;
    GRT_TRY(infer_dtype_attr(inf, "dtype", GRT_SET_ALL, GRT_DTYPE_FLOAT, &dtype));
    set_sequence(inf, dtype);
    return GRT_OK;
}

static grt_status infer_construct(infer *inf)
{
    for (int32_t i = 0; i < inf->n_in; i++) {
        if (!infer_has(inf, i))
            return infer_fail(inf, "input %d is missing", i);
        GRT_TRY(infer_same_dtype(inf, 0, i));
    }
    set_sequence(inf, inf->in[0]->dtype);
    return GRT_OK;
}

static grt_status infer_insert(infer *inf)
{
    GRT_TRY(need_sequence(inf));
    GRT_TRY(infer_tensor(inf, 1));
    GRT_TRY(infer_tensor(inf, 2));
    GRT_TRY(infer_same_dtype(inf, 0, 1));
    set_sequence(inf, inf->in[0]->dtype ? inf->in[0]->dtype : inf->in[1]->dtype);
    return GRT_OK;
}

static grt_status infer_erase(infer *inf)
{
    GRT_TRY(need_sequence(inf));
    GRT_TRY(infer_tensor(inf, 1));
    set_sequence(inf, inf->in[0]->dtype);
    return GRT_OK;
}

/* SequenceAt and ConcatFromSequence */
static grt_status infer_item(infer *inf)
{
    GRT_TRY(need_sequence(inf));
    GRT_TRY(infer_tensor(inf, 1));
    infer_set_unknown(inf, 0, inf->in[0]->dtype);
    return GRT_OK;
}

static grt_status infer_length(infer *inf)
{
    GRT_TRY(need_sequence(inf));
    infer_set(inf, 0, GRT_DTYPE_INT64, 0, infer_dims(inf, 0));
    return GRT_OK;
}

static grt_status sequence_infer_split(infer *inf)
{
    int32_t axis;
    if (inf->in[0]->rank >= 0)
        GRT_TRY(
            infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", 0), inf->in[0]->rank, &axis));
    set_sequence(inf, inf->in[0]->dtype);
    return GRT_OK;
}

static grt_status infer_optional(infer *inf)
{
    const grt_attr *type = grt_attr_find(inf->desc, "type");
    ir_type *out = &inf->out[0];
    *out = (ir_type){.kind = GRT_KIND_OPTIONAL, .rank = -1};
    if (infer_has(inf, 0) && (inf->in[0]->kind == GRT_KIND_MAP || inf->in[0]->element_kind == GRT_KIND_MAP))
        return infer_fail(inf, "input 0 is of maps; an optional holds a tensor or a sequence of tensors");
    if (infer_has(inf, 0)) {
        out->element_kind = inf->in[0]->kind;
        out->dtype = inf->in[0]->dtype;
    } else if (type && type->kind == GRT_ATTR_TYPE) {
        out->element_kind = type->type.kind;
        out->dtype = type->type.dtype;
    } else {
        return infer_fail(inf, "needs an input, or attribute type that says what it would hold");
    }
    return GRT_OK;
}

static grt_status infer_has_element(infer *inf)
{
    infer_set(inf, 0, GRT_DTYPE_BOOL, 0, infer_dims(inf, 0));
    return GRT_OK;
}

static grt_status infer_get_element(infer *inf)
{
    if (inf->in[0]->kind != GRT_KIND_OPTIONAL)
        return infer_same_as_first(inf);
    inf->out[0] = (ir_type){.kind = inf->in[0]->element_kind, .dtype = inf->in[0]->dtype, .rank = -1};
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "SequenceEmpty",
     .since = 11,
     .min_in = 0,
     .max_in = 0,
     .min_out = 1,
     .max_out = 1,
     .attrs = empty_attrs,
     .precision = OP_WIDE,
     .infer = infer_empty},
    {.domain = "",
     .name = "SequenceConstruct",
     .since = 11,
     .min_in = 1,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = 1,
     .precision = OP_WIDE,
     .infer = infer_construct},
    {.domain = "",
     .name = "SequenceInsert",
     .since = 11,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_ANY_KIND,
     .precision = OP_WIDE,
     .infer = infer_insert},
    {.domain = "",
     .name = "SequenceErase",
     .since = 11,
     .min_in = 1,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_ANY_KIND,
     .precision = OP_WIDE,
     .infer = infer_erase},
    {.domain = "",
     .name = "SequenceAt",
     .since = 11,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_ANY_KIND,
     .precision = OP_WIDE,
     .infer = infer_item},
    {.domain = "",
     .name = "SequenceLength",
     .since = 11,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_ANY_KIND,
     .precision = OP_WIDE,
     .infer = infer_length},
    {.domain = "",
     .name = "SplitToSequence",
     .since = 24,
     .min_in = 1,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = split_attrs,
     .precision = OP_WIDE,
     .infer = sequence_infer_split},
    {.domain = "",
     .name = "ConcatFromSequence",
     .since = 11,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = concat_attrs,
     .flags = OP_ANY_KIND,
     .precision = OP_WIDE,
     .infer = infer_item},
    {.domain = "",
     .name = "Optional",
     .since = 28,
     .min_in = 0,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = optional_attrs,
     .flags = OP_ANY_KIND,
     .precision = OP_WIDE,
     .infer = infer_optional},
    {.domain = "",
     .name = "OptionalHasElement",
     .since = 28,
     .min_in = 0,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_ANY_KIND,
     .precision = OP_WIDE,
     .infer = infer_has_element},
    {.domain = "",
     .name = "OptionalGetElement",
     .since = 28,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_ANY_KIND,
     .precision = OP_WIDE,
     .infer = infer_get_element},
};
OP_TABLE(sequence, rows);
