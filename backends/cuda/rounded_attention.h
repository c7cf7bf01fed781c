/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of bytes that is rounded behind each of its products and its softmax, in one kernel: the bits of
 * the steps by themselves. */
#ifndef GRT_BACKENDS_CUDA_ROUNDED_ATTENTION_H
#define GRT_BACKENDS_CUDA_ROUNDED_ATTENTION_H

#include "backends/cuda/rounded_task.h"

/* True if there is a kernel for heads of this size and so many keys, whatever the device. */
bool cuda_rounded_attention_fits(int64_t size, int64_t keys);
/* True if all numbers that are rounded are in the range of roundings by an addition. */
bool cuda_rounded_attention_is_bounded(const cuda_rounded_attention *a, int64_t size, int64_t keys);
grt_status cuda_rounded_attention_enqueue(const cuda_rounded_attention *a, bool overlaps,
                                          cudaStream_t stream);

#endif
