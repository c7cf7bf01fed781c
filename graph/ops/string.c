/* SPDX-License-Identifier: Apache-2.0 */
/* Text: StringConcat, StringNormalizer, StringSplit, RegexFullMatch. */
#include "graph/ir/op.h"

#include <string.h>

static const op_attr normalizer_attrs[] = {
    {"case_change_action", GRT_ATTR_STRING, false},
    {"is_case_sensitive", GRT_ATTR_INT, false},
    {"locale", GRT_ATTR_STRING, false},
    {"stopwords", GRT_ATTR_STRINGS, false},
    {0},
};
static const op_attr split_attrs[] = {
    {"delimiter", GRT_ATTR_STRING, false}, {"maxsplit", GRT_ATTR_INT, false}, {0}};
static const op_attr regex_attrs[] = {{"pattern", GRT_ATTR_STRING, false}, {0}};

/* Stop words vanish, so the number of elements depends on the data; rank 1, or 2 with one row. */
static grt_status infer_normalizer(infer *inf)
{
    const ir_type *x = inf->in[0];
    const char *action = grt_attr_string(inf->desc, "case_change_action", "NONE");
    if (strcmp(action, "NONE") && strcmp(action, "LOWER") && strcmp(action, "UPPER"))
        return infer_fail(inf, "attribute case_change_action is '%s'; it must be NONE, LOWER or UPPER",
                          action);
    if (x->rank < 0) {
        infer_set_unknown(inf, 0, x->dtype);
        return GRT_OK;
    }
    int64_t rows;
    if (x->rank != 1 && x->rank != 2)
        return infer_fail(inf, "the input has rank %d; it must be [C] or [1, C]", x->rank);
    if (x->rank == 2 && infer_const(inf, x->dims[0], &rows) && rows != 1)
        return infer_fail(inf, "the input has %lld rows; it must be [C] or [1, C]", (long long)rows);
    infer_set_fresh(inf, 0, x->dtype, x->rank);
    if (x->rank == 2 && inf->out[0].dims)
        ((grt_dim *)inf->out[0].dims)[0] = grt_dim_const(inf->dims, 1);
    return GRT_OK;
}

/* Each element becomes a row of as many parts as the longest has. */
static grt_status infer_string_split(infer *inf)
{
    const ir_type *x = inf->in[0];
    infer_set_like(inf, 1, GRT_DTYPE_INT64, x);
    if (x->rank >= GRT_MAX_RANK)
        return infer_fail(inf, "the result would have rank %d; at most %d is supported", x->rank + 1,
                          GRT_MAX_RANK);
    grt_dim *dims = x->rank < 0 ? NULL : infer_dims(inf, x->rank + 1);
    for (int32_t k = 0; dims && k < x->rank; k++)
        dims[k] = x->dims[k];
    if (dims)
        dims[x->rank] = grt_dim_fresh(inf->dims);
    infer_set(inf, 0, x->dtype, x->rank + 1, dims);
    return GRT_OK;
}

static grt_status infer_regex(infer *inf)
{
    infer_set_like(inf, 0, GRT_DTYPE_BOOL, inf->in[0]);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "StringConcat",
     .since = 20,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .infer = infer_elementwise},
    {.domain = "",
     .name = "StringNormalizer",
     .since = 10,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = normalizer_attrs,
     .infer = infer_normalizer},
    {.domain = "",
     .name = "StringSplit",
     .since = 20,
     .min_in = 1,
     .max_in = 1,
     .min_out = 2,
     .max_out = 2,
     .attrs = split_attrs,
     .infer = infer_string_split},
    {.domain = "",
     .name = "RegexFullMatch",
     .since = 20,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = regex_attrs,
     .infer = infer_regex},
};
OP_TABLE(string, rows);
