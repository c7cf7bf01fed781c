/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes by a table of 256. */
#ifndef GRT_BACKENDS_CUDA_QTABLE_H
#define GRT_BACKENDS_CUDA_QTABLE_H

#include "backends/cuda/cuda.h"

/* y[i] = table[x[i] ^ flip], for n bytes. y may be x. */
grt_status cuda_qtable_enqueue(const cuda_device *device, const void *x, const uint8_t *table, uint8_t flip,
                               void *y, int64_t n, cudaStream_t stream);

#endif
