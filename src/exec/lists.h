/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the values that iterations of control flow make, and tensors that are stacked of them or cut into
 * them. */
#ifndef GRT_SRC_EXEC_LISTS_H
#define GRT_SRC_EXEC_LISTS_H

#include "src/exec/frame.h"

typedef struct grt_lists {
    grt_value *v; /* n sequences */
    int32_t n;
} grt_lists;

/* To be released in any case. */
grt_status grt_lists_create(grt_lists *l, int32_t n);
void grt_lists_release(grt_lists *l);

grt_status grt_list_append(grt_value *list, const grt_value *value);
/* Stacks the list's equal tensors along a new axis. */
grt_status grt_list_stack(const grt_plan_step *step, const grt_value *list, int64_t axis, bool reverse,
                          grt_value *out);
/* The same of a list without values: the shape of the body's output with 0 at the axis. Dims that inference
 * does not know are as the source declares them, else 0. */
grt_status grt_list_stack_none(grt_frame *frame, const grt_op_desc *desc, int32_t output, int64_t axis,
                               grt_value *out);
/* Slice `index` of a tensor along an axis, without that axis. */
grt_status grt_slice_take(const grt_plan_step *step, const grt_value *whole, int64_t axis, int64_t index,
                          grt_value *slot);

#endif
