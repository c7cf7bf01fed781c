/* SPDX-License-Identifier: Apache-2.0 */
/* Slice: which elements of the input a result is made of. graphrt::WriteSlice: which of the output come from
 * the updates. */
#ifndef GRT_BACKENDS_SHARED_SLICE_H
#define GRT_BACKENDS_SHARED_SLICE_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_slice {
    int64_t offset;              /* of the first element, in elements */
    int64_t steps[GRT_MAX_RANK]; /* in the input, from one element of the result to the next along a dim */
} grt_slice;

/* Inputs as Slice's; starts, axes and steps have their data in host memory unless the result is empty.
 * INVALID_ARGUMENT names the entry that does not fit. */
grt_status grt_slice_plan(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in,
                          const grt_tensor *out, grt_slice *slice);

/* The same for graphrt::WriteSlice: where the elements of the updates go in the output. */
grt_status grt_write_slice_plan(const grt_op_desc *desc, const grt_tensor *out, const grt_tensor *updates,
                                grt_slice *slice);

#ifdef __cplusplus
}
#endif
#endif
