/* SPDX-License-Identifier: Apache-2.0 */
/* Joining tensors along an axis, and cutting one into parts, in one launch. */
#ifndef GRT_BACKENDS_CUDA_CONCAT_H
#define GRT_BACKENDS_CUDA_CONCAT_H

#include "backends/cuda/cuda.h"

enum { CUDA_CONCAT_MOST = 64 };

/* Each of `outer` rows of the whole is a row of every part, one after the other; bytes of these rows. */
struct cuda_concat {
    int32_t n;
    uint32_t unit; /* bytes moved at once: 16, 8, 4 or 2 */
    uint32_t row;  /* of the whole, in units */
    uint32_t total;
    uint32_t ends[CUDA_CONCAT_MOST]; /* of the parts in a row of the whole, in units */
};

/* False if there are too many parts, or too much for 32-bit offsets. */
bool cuda_concat_plan(cuda_concat *c, int64_t outer, int32_t n, const int64_t *row_bytes);
/* The parts become the whole; or, `cut`, the whole becomes the parts, of which those that are NULL are left
 * out. early: the device can begin kernels early (overlap.cuh). *out_done is false, with nothing done, if a
 * pointer is not aligned to the unit. */
grt_status cuda_concat_run(const cuda_concat *c, void *whole, void *const *parts, bool cut, bool early,
                           cudaStream_t stream, bool *out_done);

#endif
