/* SPDX-License-Identifier: Apache-2.0 */
/* Local response normalisation. */
#include "graph/ir/op.h"

static grt_status infer_lrn(infer *inf)
{
    if (grt_attr_int(inf->desc, "size", 0) < 1)
        return infer_fail(inf, "attribute size is %lld; it must be at least 1",
                          (long long)grt_attr_int(inf->desc, "size", 0));
    if (inf->in[0]->rank >= 0 && inf->in[0]->rank < 2)
        return infer_fail(inf, "the input has rank %d; expected batch, channels, ...", inf->in[0]->rank);
    return infer_same_as_first(inf);
}

static const op_attr lrn_attrs[] = {{"alpha", GRT_ATTR_FLOAT, false},
                                    {"beta", GRT_ATTR_FLOAT, false},
                                    {"bias", GRT_ATTR_FLOAT, false},
                                    {"size", GRT_ATTR_INT, true},
                                    {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "LRN",
     .since = 13,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = lrn_attrs,
     .precision = OP_WIDE,
     .infer = infer_lrn},
};
OP_TABLE(lrn, rows);
