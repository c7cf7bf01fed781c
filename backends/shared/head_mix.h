/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of graphrt::HeadMix, once the inputs' are known. */
#ifndef GRT_BACKENDS_SHARED_HEAD_MIX_H
#define GRT_BACKENDS_SHARED_HEAD_MIX_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GRT_HEAD_MIX_BEFORE = 1, GRT_HEAD_MIX_AFTER, GRT_HEAD_MIX_BIAS };

/* Each of the batch has `heads` planes of `rows` by `keys`, which become `middle` and then `out` planes.
 * Without a softmax a plane is one row. */
typedef struct grt_head_mix {
    bool softmax;
    int64_t batch, heads, middle, out, rows, keys;
} grt_head_mix;

/* Errors: INVALID_ARGUMENT if matrices or bias do not fit. */
grt_status grt_head_mix_fit(const grt_reshape *reshape, grt_head_mix *out_mix);

#ifdef __cplusplus
}
#endif
#endif
