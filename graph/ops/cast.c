/* SPDX-License-Identifier: Apache-2.0 */
/* Cast, CastLike, BitCast: elements of another type, the shape stays. */
#include "graph/ops/pointwise_rules.h"

#include <inttypes.h>
#include <string.h>

static grt_status target_dtype(const infer *inf, grt_dtype *out_dtype)
{
    int64_t to = grt_attr_int(inf->desc, "to", 0);
    if (to <= 0 || to >= GRT_DTYPE_COUNT)
        return infer_fail(inf, "attribute to is %" PRId64 ", which is no known element type", to);
    *out_dtype = (grt_dtype)to;
    return GRT_OK;
}

/* Integers stay what they are where the target holds sizes; bool is 0 or 1. */
static void cast_elems(infer *inf, grt_dtype to)
{
    const grt_dtype_set ints = GRT_BIT(INT64) | GRT_BIT(INT32);
    const ir_type *in = inf->in[0];
    const grt_dim *elems;
    int64_t n;
    if (in->rank < 0 || in->rank > 1 || !grt_dtype_in(in->dtype, ints | GRT_BIT(BOOL)) ||
        !grt_dtype_in(to, ints))
        return;
    if (!infer_elems(inf, 0, &elems, &n))
        return;
    inf->out[0].elems = elems;
    inf->out[0].n_elems = n;
}

static grt_status infer_cast(infer *inf)
{
    grt_dtype to = GRT_DTYPE_NONE;
    GRT_TRY(target_dtype(inf, &to));
    infer_set_like(inf, 0, to, inf->in[0]);
    cast_elems(inf, to);
    return GRT_OK;
}

static grt_status infer_cast_like(infer *inf)
{
    infer_set_like(inf, 0, inf->in[1]->dtype, inf->in[0]);
    cast_elems(inf, inf->in[1]->dtype);
    return GRT_OK;
}

static grt_status infer_bit_cast(infer *inf)
{
    grt_dtype to = GRT_DTYPE_NONE, from = inf->in[0]->dtype;
    GRT_TRY(target_dtype(inf, &to));
    if (from && grt_dtype_bits(from) != grt_dtype_bits(to))
        return infer_fail(inf, "%s has %zu bits an element, %s has %zu; BitCast needs the same number",
                          grt_dtype_name(from), grt_dtype_bits(from), grt_dtype_name(to), grt_dtype_bits(to));
    infer_set_like(inf, 0, to, inf->in[0]);
    return GRT_OK;
}

/* Opset 1 named the type by a string. */
static grt_status upgrade_cast(ir_node *node, int32_t opset)
{
    const grt_attr *to = grt_attr_find(&node->desc, "to");
    if (opset >= 6 || !to || to->kind != GRT_ATTR_STRING)
        return GRT_OK;
    static const struct {
        const char *name;
        grt_dtype dtype;
    } names[] = {{"FLOAT", GRT_DTYPE_FLOAT},   {"UINT8", GRT_DTYPE_UINT8},   {"INT8", GRT_DTYPE_INT8},
                 {"UINT16", GRT_DTYPE_UINT16}, {"INT16", GRT_DTYPE_INT16},   {"INT32", GRT_DTYPE_INT32},
                 {"INT64", GRT_DTYPE_INT64},   {"BOOL", GRT_DTYPE_BOOL},     {"FLOAT16", GRT_DTYPE_FLOAT16},
                 {"DOUBLE", GRT_DTYPE_DOUBLE}, {"UINT32", GRT_DTYPE_UINT32}, {"UINT64", GRT_DTYPE_UINT64}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == to->s.size && !memcmp(names[i].name, to->s.data, to->s.size)) {
            ir_attr_set_int(node, "to", names[i].dtype);
            return GRT_OK;
        }
    return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                       "attribute to is \"%.*s\", which is no known element type", (int)to->s.size,
                       to->s.data);
}

static const op_attr cast_attrs[] = {{"to", GRT_ATTR_INT, true},
                                     {"saturate", GRT_ATTR_INT, false},
                                     {"round_mode", GRT_ATTR_STRING, false},
                                     {0}};
static const op_attr like_attrs[] = {
    {"saturate", GRT_ATTR_INT, false}, {"round_mode", GRT_ATTR_STRING, false}, {0}};
static const op_attr bits_attrs[] = {{"to", GRT_ATTR_INT, true}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Cast",
     .since = 28,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = cast_attrs,
     .flags = OP_SMALL_INTS,
     .precision = OP_WIDE,
     .layout = OP_LAYOUT_FIRST,
     .cost = OP_COST_MOVE,
     .batch = OP_BATCH_UNARY,
     .infer = infer_cast,
     .upgrade = upgrade_cast},
    {.domain = "",
     .name = "CastLike",
     .since = 25,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = like_attrs,
     .flags = OP_SMALL_INTS,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .infer = infer_cast_like},
    {.domain = "",
     .name = "BitCast",
     .since = 26,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = bits_attrs,
     .precision = OP_WIDE,
     .infer = infer_bit_cast},
};
OP_TABLE(cast, rows);
