/* SPDX-License-Identifier: Apache-2.0 */
/* Which axes a reduction reduces. */
#ifndef GRT_BACKENDS_SHARED_REDUCE_H
#define GRT_BACKENDS_SHARED_REDUCE_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

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
