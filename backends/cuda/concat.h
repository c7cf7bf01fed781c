/* SPDX-License-Identifier: Apache-2.0 */
/* Joining tensors along an axis in one launch. */
#ifndef GRT_BACKENDS_CUDA_CONCAT_H
#define GRT_BACKENDS_CUDA_CONCAT_H

#include "backends/cuda/cuda.h"

enum { CUDA_CONCAT_MOST = 64 };

/* Each of `outer` rows of the result is a row of every part, one after the other; bytes of these rows. */
struct cuda_concat {
    int32_t n;
    uint32_t unit; /* bytes moved at once: 16, 8, 4 or 2 */
    uint32_t row;  /* of the result, in units */
    uint32_t total;
    uint32_t ends[CUDA_CONCAT_MOST]; /* of the parts in a row of the result, in units */
};

/* False if there are too many parts, or too much for 32-bit offsets. */
bool cuda_concat_plan(cuda_concat *c, int64_t outer, int32_t n, const int64_t *row_bytes);
/* False if a pointer is not aligned to the unit. */
bool cuda_concat_run(const cuda_concat *c, void *dst, const void *const *src, cudaStream_t stream);

#endif
