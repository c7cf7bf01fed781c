/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/reduce.h"

#include "src/base/checked.h"
#include "src/base/tensor.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *op;
    grt_fold fold;
    grt_finish finish;
} kinds[] = {
    {"ReduceSum", FOLD_SUM, FINISH_NONE},   {"ReduceMean", FOLD_SUM, FINISH_MEAN},
    {"ReduceProd", FOLD_PROD, FINISH_NONE}, {"ReduceMax", FOLD_MAX, FINISH_NONE},
    {"ReduceMin", FOLD_MIN, FINISH_NONE},   {"ReduceL1", FOLD_ABS, FINISH_NONE},
    {"ReduceL2", FOLD_SQUARE, FINISH_SQRT}, {"ReduceSumSquare", FOLD_SQUARE, FINISH_NONE},
    {"ReduceLogSum", FOLD_SUM, FINISH_LOG}, {"ReduceLogSumExp", FOLD_EXP, FINISH_LOG},
};

grt_status grt_reduce_create(const grt_kernel_node *node, void **out_state)
{
    grt_reduce *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(node->desc->op, kinds[k].op)) {
            state->fold = kinds[k].fold;
            state->finish = kinds[k].finish;
        }
    state->empty_is_none = grt_attr_int(node->desc, "noop_with_empty_axes", 0) != 0;
    *out_state = state;
    return GRT_OK;
}

static grt_status reduce_check_kept(const grt_op_desc *desc, const grt_tensor *data, const grt_tensor *out,
                                    const bool *reduced)
{
    int64_t kept = 1;
    for (int32_t k = 0; k < data->rank; k++)
        kept = reduced[k] ? kept : grt_mul_saturated(kept, data->dims[k]);
    if (kept == grt_tensor_elements(out))
        return GRT_OK;
    char text[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(
        desc, GRT_STATUS_INVALID_ARGUMENT,
        "the axes keep %lld elements, but the output is declared as %s; give axes that fit, or "
        "declare its shape as unknown",
        (long long)kept, grt_tensor_text(out, text));
}

grt_status grt_reduce_axes(const grt_op_desc *desc, const grt_tensor *data, const grt_tensor *axes,
                           const grt_tensor *out, bool empty_is_none, bool *reduced)
{
    const int64_t n = axes ? grt_tensor_elements(axes) : 0;
    memset(reduced, n == 0 && !empty_is_none, GRT_MAX_RANK * sizeof *reduced);
    for (int64_t k = 0; k < n; k++) {
        const int64_t found = grt_tensor_int(axes, k), axis = grt_axis(found, data->rank);
        if (data->rank == 0 && (found == 0 || found == -1))
            continue; /* all of a scalar, see graph/ir/infer_reduction.c */
        if (axis < 0)
            return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                               "axes[%lld] is %lld; for rank %d it must lie in [%d, %d]", (long long)k,
                               (long long)found, data->rank, -data->rank, data->rank - 1);
        reduced[axis] = true;
    }
    return reduce_check_kept(desc, data, out, reduced);
}
