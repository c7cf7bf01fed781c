/* SPDX-License-Identifier: Apache-2.0 */
/* Identity: the same value under another name. */
#include "graph/ir/op.h"

static grt_status infer_identity(infer *inf)
{
    inf->out[0] = *inf->in[0]; /* content included */
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "Identity",
     .since = 25,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_VIEW | OP_SMALL_INTS | OP_ANY_KIND,
     .precision = OP_FOLLOWS,
     .infer = infer_identity},
};
OP_TABLE(identity, rows);
