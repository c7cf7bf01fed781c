/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that quantises its result. */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_LEVELS_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_LEVELS_CUH

#include "backends/cuda/attention.cuh"
#include "backends/cuda/levels.cuh"

/* As attention_warpgroup, whose y means nothing then: elements of levels.to lie as its would. */
cudaError_t attention_warpgroup_quantised(const attention_shape *s, const attention_data *d,
                                          const cuda_levels *levels, grt_dtype dtype, int multiprocessors,
                                          cudaStream_t stream);

#endif
