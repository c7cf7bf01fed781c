/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/head_mix.h"

/* What the shape rule could not see while dims were unknown. */
static grt_status head_mix_pass(const grt_reshape *r, int32_t i, int64_t *heads)
{
    const grt_tensor *matrix = grt_reshape_in(r, i);
    char found[GRT_TYPE_TEXT_SIZE];
    if (matrix && (matrix->rank != 2 || matrix->dims[1] != *heads))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input %d is %s; expected a matrix of %lld columns", i,
                           grt_tensor_text(matrix, found), (long long)*heads);
    if (matrix)
        *heads = matrix->dims[0];
    return GRT_OK;
}

grt_status grt_head_mix_fit(const grt_reshape *r, grt_head_mix *out)
{
    const grt_tensor *x = r->in[0], *bias = grt_reshape_in(r, GRT_HEAD_MIX_BIAS);
    char found[GRT_TYPE_TEXT_SIZE];
    grt_head_mix mix = {.softmax = grt_attr_int(r->desc, "softmax", 0) != 0,
                        .batch = x->dims[0],
                        .heads = x->dims[1],
                        .middle = x->dims[1],
                        .rows = x->dims[2],
                        .keys = x->dims[3]};
    GRT_TRY(head_mix_pass(r, GRT_HEAD_MIX_BEFORE, &mix.middle));
    mix.out = mix.middle;
    GRT_TRY(head_mix_pass(r, GRT_HEAD_MIX_AFTER, &mix.out));
    if (bias && (bias->rank != 1 || bias->dims[0] != mix.out))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the bias is %s; expected %lld numbers, one for each head of the result",
                           grt_tensor_text(bias, found), (long long)mix.out);
    if (!mix.softmax) {
        mix.keys *= mix.rows;
        mix.rows = 1;
    }
    *out = mix;
    return GRT_OK;
}
