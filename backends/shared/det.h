/* SPDX-License-Identifier: Apache-2.0 */
/* Det: its matrices. */
#ifndef GRT_BACKENDS_SHARED_DET_H
#define GRT_BACKENDS_SHARED_DET_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Errors: INVALID_ARGUMENT if the matrices are not square. */
grt_status grt_det_check(const grt_reshape *reshape);

#ifdef __cplusplus
}
#endif
#endif
