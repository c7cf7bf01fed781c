/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that are described, not there: plans are made for them on machines without a GPU. */
#ifndef GRT_BACKENDS_CUDA_DESCRIPTION_H
#define GRT_BACKENDS_CUDA_DESCRIPTION_H

#include "backends/backend.h"

extern const grt_device_api cuda_description_api;
/* For grt_backend.open_description. The device has the properties by which kernels choose their forms, so
 * that what is chosen and generated for it is what the GPU itself would ask for. INVALID_ARGUMENT: one is
 * missing. */
grt_status cuda_open_description(const grt_device_description *d, grt_device **out_device);

#endif
