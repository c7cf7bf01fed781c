/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and ConvTranspose: what is added to their sums. */
#ifndef GRT_BACKENDS_SHARED_CONV_H
#define GRT_BACKENDS_SHARED_CONV_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GRT_CONV_BIAS = 2, GRT_CONV_RESIDUAL = 3 }; /* inputs */

/* Checks bias and residual, where they are, against the result; last: its channels are its last dim. Errors:
 * INVALID_ARGUMENT. */
grt_status grt_conv_check_addends(const grt_reshape *r, bool last);

#ifdef __cplusplus
}
#endif
#endif
