/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's Tokenizer, which text pipelines of scikit-learn are exported with. */
#include "graph/ops/foreign.h"

static const op_attr tokenizer_attrs[] = {
    {"mark", GRT_ATTR_INT, true},         {"mincharnum", GRT_ATTR_INT, true},
    {"pad_value", GRT_ATTR_STRING, true}, {"separators", GRT_ATTR_STRINGS, false},
    {"tokenexp", GRT_ATTR_STRING, false}, {0},
};

/* Each element becomes a row of as many tokens as the longest has. */
static grt_status infer_tokenizer(infer *inf)
{
    const ir_type *x = inf->in[0];
    size_t n_separators;
    grt_attr_strings(inf->desc, "separators", &n_separators);
    if ((n_separators > 0) == (*grt_attr_string(inf->desc, "tokenexp", "") != 0))
        return infer_fail(inf, "exactly one of the attributes separators and tokenexp must be given");
    if (grt_attr_int(inf->desc, "mincharnum", 1) < 1)
        return infer_fail(inf, "attribute mincharnum is %lld; it must be positive",
                          (long long)grt_attr_int(inf->desc, "mincharnum", 1));
    if (x->rank >= 0 && x->rank != 1 && x->rank != 2)
        return infer_fail(inf, "the input has rank %d; it must be [C] or [N, C]", x->rank);
    grt_dim *dims = x->rank < 0 ? NULL : infer_dims(inf, x->rank + 1);
    if (!dims) {
        infer_set_unknown(inf, 0, x->dtype);
        return GRT_OK;
    }
    for (int32_t k = 0; k < x->rank; k++)
        dims[k] = x->dims[k];
    dims[x->rank] = grt_dim_fresh(inf->dims);
    infer_set(inf, 0, x->dtype, x->rank + 1, dims);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "Tokenizer",
     .since = 1,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = tokenizer_attrs,
     .infer = infer_tokenizer},
    FOREIGN(MS, "Tokenizer", 1, 1, 1, 1, tokenizer_attrs, foreign_own),
};
OP_TABLE(tokenizer, rows);
