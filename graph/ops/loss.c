/* SPDX-License-Identifier: Apache-2.0 */
/* Classification losses: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss. */
#include "graph/ir/op.h"

#include <string.h>

static const op_attr attrs[] = {
    {"ignore_index", GRT_ATTR_INT, false},
    {"reduction", GRT_ATTR_STRING, false},
    {0},
};

/* input [N, C, d1...], target [N, d1...], weight [C]. */
static grt_status check_shapes(const infer *inf)
{
    const ir_type *input = inf->in[0], *target = inf->in[1];
    GRT_TRY(infer_same_dtype(inf, 0, 2));
    if (input->rank >= 0 && input->rank < 2)
        return infer_fail(inf, "input 0 has rank %d; it must be N x C x d1 x ..., rank 2 or more",
                          input->rank);
    if (input->rank >= 0 && target->rank >= 0 && target->rank != input->rank - 1)
        return infer_fail(inf, "target has rank %d; for an input of rank %d it must be N x d1 x ..., rank %d",
                          target->rank, input->rank, input->rank - 1);
    for (int32_t i = 0; i < input->rank && i < target->rank; i++) {
        int64_t want, found;
        if (infer_const(inf, input->dims[i ? i + 1 : 0], &want) &&
            infer_const(inf, target->dims[i], &found) && want != found)
            return infer_fail(inf, "dim %d of target is %lld; the input has %lld there", i, (long long)found,
                              (long long)want);
    }
    if (infer_has(inf, 2) && inf->in[2]->rank >= 0) {
        const ir_type *weight = inf->in[2];
        int64_t want, found;
        if (weight->rank != 1)
            return infer_fail(inf, "weight has rank %d; it must be 1, one weight per class", weight->rank);
        if (input->rank >= 0 && infer_const(inf, input->dims[1], &want) &&
            infer_const(inf, weight->dims[0], &found) && want != found)
            return infer_fail(inf, "weight has %lld elements; the input has %lld classes", (long long)found,
                              (long long)want);
    }
    return GRT_OK;
}

static grt_status infer_loss(infer *inf)
{
    const ir_type *input = inf->in[0];
    const char *reduction = grt_attr_string(inf->desc, "reduction", "mean");
    GRT_TRY(check_shapes(inf));
    if (!strcmp(reduction, "none"))
        infer_set_like(inf, 0, input->dtype, inf->in[1]);
    else if (!strcmp(reduction, "mean") || !strcmp(reduction, "sum"))
        infer_set(inf, 0, input->dtype, 0, infer_dims(inf, 0));
    else
        return infer_fail(inf, "attribute reduction is '%s'; it must be none, mean or sum", reduction);
    infer_set_like(inf, 1, input->dtype, input); /* log_prob, where the op has it */
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "NegativeLogLikelihoodLoss",
     .since = 22,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = attrs,
     .precision = OP_WIDE,
     .infer = infer_loss},
    {.domain = "",
     .name = "SoftmaxCrossEntropyLoss",
     .since = 13,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 2,
     .attrs = attrs,
     .precision = OP_WIDE,
     .infer = infer_loss},
};
OP_TABLE(loss, rows);
