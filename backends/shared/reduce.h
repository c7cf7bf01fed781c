/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: which ones backends have, what each folds, and which axes it reduces. */
#ifndef GRT_BACKENDS_SHARED_REDUCE_H
#define GRT_BACKENDS_SHARED_REDUCE_H

#include "backends/kernel.h"

/* ROW(op, dtypes) of each reduction. */
#define REDUCE_ROWS(ROW)                              \
    ROW("ReduceSum", GRT_SET_NUMBERS)                 \
    ROW("ReduceMean", GRT_SET_NUMBERS)                \
    ROW("ReduceProd", GRT_SET_NUMBERS)                \
    ROW("ReduceMax", GRT_SET_NUMBERS | GRT_BIT(BOOL)) \
    ROW("ReduceMin", GRT_SET_NUMBERS | GRT_BIT(BOOL)) \
    ROW("ReduceL1", GRT_SET_NUMBERS)                  \
    ROW("ReduceL2", GRT_SET_NUMBERS)                  \
    ROW("ReduceSumSquare", GRT_SET_NUMBERS)           \
    ROW("ReduceLogSum", GRT_SET_NUMBERS)              \
    ROW("ReduceLogSumExp", GRT_SET_NUMBERS)
/* ROW(op) of each whose result may be float32 where the data is narrower. */
#define REDUCE_WIDE_ROWS(ROW) ROW("ReduceSum") ROW("ReduceL1") ROW("ReduceL2") ROW("ReduceSumSquare")

#ifdef __cplusplus
extern "C" {
#endif

/* The fold over the elements, and the function applied to its result. */
typedef enum grt_fold { FOLD_SUM, FOLD_ABS, FOLD_SQUARE, FOLD_PROD, FOLD_MAX, FOLD_MIN, FOLD_EXP } grt_fold;
typedef enum grt_finish { FINISH_NONE, FINISH_MEAN, FINISH_SQRT, FINISH_LOG } grt_finish;

typedef struct grt_reduce {
    grt_fold fold;
    grt_finish finish;
    bool empty_is_none; /* without axes nothing is reduced */
} grt_reduce;

/* For kernel rows: the state is a grt_reduce, released with free. */
grt_status grt_reduce_create(const grt_kernel_node *node, void **out_state);

/* reduced[GRT_MAX_RANK]: as the input `axes` (may be NULL; host memory) says, all where it is empty and
 * `empty_is_none` is false. `out` was sized before the axes were read, by the shape rule or by what the model
 * declares. Errors: INVALID_ARGUMENT if an axis does not exist, or if they keep another number of elements
 * than `out` has. */
grt_status grt_reduce_axes(const grt_op_desc *desc, const grt_tensor *data, const grt_tensor *axes,
                           const grt_tensor *out, bool empty_is_none, bool *reduced);

#ifdef __cplusplus
}
#endif
#endif
