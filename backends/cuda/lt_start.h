/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt loads its code for a type of numbers when it is first asked about an algorithm for it: 70 to 120
 * ms on an H100, in one thread, while all others who ask wait. So it is asked as soon as a kernel is made
 * that will need it, in the background. */
#ifndef GRT_BACKENDS_CUDA_LT_START_H
#define GRT_BACKENDS_CUDA_LT_START_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_lt_start cuda_lt_start;

grt_status cuda_lt_start_create(cuda_lt_start **out_start);
/* Products of this type are about to be planned; from any thread, as often as one likes. */
void cuda_lt_start_type(cuda_device *device, grt_dtype dtype, bool tf32);
void cuda_lt_start_release(cuda_lt_start *start); /* waits; NULL-safe */

#ifdef __cplusplus
}
#endif
#endif
