/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of cuDNN that a device's convolutions share. */
#ifndef GRT_BACKENDS_CUDA_DNN_PLANS_H
#define GRT_BACKENDS_CUDA_DNN_PLANS_H

#include "backends/cuda/shared_objects.h"

struct cuda_libraries;

/* Those of a device, also of one that is only described. */
cuda_shared_objects *cuda_libraries_plans(struct cuda_libraries *libraries);

#endif
