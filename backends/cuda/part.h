/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a GPU: green contexts of the driver, whose streams compute on their multiprocessors only. Memory,
 * kernels, events and graphs stay those of the device's one context. */
#ifndef GRT_BACKENDS_CUDA_PART_H
#define GRT_BACKENDS_CUDA_PART_H

#include "backends/cuda/cuda.h"

/* `priority` is CUDA's number. */
grt_status cuda_part_stream_create(const cuda_device *part, int priority, void **out_stream);

#endif
