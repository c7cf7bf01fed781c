/* SPDX-License-Identifier: Apache-2.0 */
/* What comes before and after products by packed weights (weight_product.h) where their kernels do not do it
 * on the way. x is float16 or bfloat16, and so is all else. */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_STEPS_H
#define GRT_BACKENDS_CUDA_WEIGHT_STEPS_H

#include "backends/cuda/weight_product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* p's x, normalised, to [m][k] numbers. */
grt_status cuda_weight_normalise(const cuda_weight_product *p, grt_dtype dtype, bool overlaps, void *to,
                                 cudaStream_t stream);
/* p's y from [m][n] numbers. */
grt_status cuda_weight_gate(const cuda_weight_product *p, grt_dtype dtype, bool overlaps, const void *from,
                            cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
