/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's MurmurHash3, which scikit-learn's feature hashing is exported with. */
#include "graph/ops/foreign.h"

static const op_attr hash_attrs[] = {{"positive", GRT_ATTR_INT, false}, {"seed", GRT_ATTR_INT, false}, {0}};

static grt_status infer_hash(infer *inf)
{
    const bool positive = grt_attr_int(inf->desc, "positive", 1) != 0;
    infer_set_like(inf, 0, positive ? GRT_DTYPE_UINT32 : GRT_DTYPE_INT32, inf->in[0]);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "MurmurHash3",
     .since = 1,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = hash_attrs,
     .precision = OP_WIDE,
     .infer = infer_hash},
    FOREIGN(MS, "MurmurHash3", 1, 1, 1, 1, hash_attrs, foreign_own),
};
OP_TABLE(murmur_hash, rows);
