/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: a copy, unless the model says at run time that it is being trained. */
#include "graph/ops/pointwise_rules.h"

static grt_status infer_dropout(infer *inf)
{
    GRT_TRY(pw_infer_dtype(inf, 0, GRT_SET_FLOATS | (GRT_SET_FLOAT8 & ~GRT_BIT(FLOAT8E8M0))));
    GRT_TRY(pw_infer_dtype(inf, 2, GRT_BIT(BOOL)));
    infer_set_like(inf, 0, inf->in[0]->dtype, inf->in[0]);
    infer_set_like(inf, 1, GRT_DTYPE_BOOL, inf->in[0]);
    return GRT_OK;
}

/* Opset < 12: the ratio is an attribute and only says what training would do. Opset < 7: is_test = 0 asks for
 * training, which is never done here: runtimes have always treated such models as trained. */
static grt_status upgrade_dropout(ir_node *node, int32_t opset)
{
    if (opset >= 12)
        return GRT_OK;
    ir_attr_remove(node, "ratio");
    ir_attr_remove(node, "is_test");
    ir_attr_remove(node, "consumed_inputs");
    return GRT_OK;
}

static const op_attr dropout_attrs[] = {{"seed", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Dropout",
     .since = 22,
     .min_in = 1,
     .max_in = 3,
     .min_out = 1,
     .max_out = 2,
     .attrs = dropout_attrs,
     .flags = OP_RANDOM,
     .precision = OP_WIDE,
     .infer = infer_dropout,
     .upgrade = upgrade_dropout},
};
OP_TABLE(dropout, rows);
