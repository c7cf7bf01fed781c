/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's current device. It belongs to the program: whoever changes it restores it. Contexts
 * are pushed and popped; cudaSetDevice would create a context on device 0 for a thread that had none (0.1 s,
 * 0.5 GB). */
#ifndef GRT_BACKENDS_CUDA_CURRENT_H
#define GRT_BACKENDS_CUDA_CURRENT_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The context that a device's memory, streams and kernels belong to, the one that the runtime library uses;
 * it lives until the process ends, as the runtime's own does. */
grt_status cuda_current_open(int32_t index, void **out_context);
/* Entries of the device's table. */
grt_status cuda_enter(grt_device *device, bool *out_switched);
void cuda_leave(grt_device *device, bool switched);

/* The expression with the device current; returns if it fails. */
#define CUDA_ON(device, expression)                                                                  \
    do {                                                                                             \
        bool cuda_on_switched_;                                                                      \
        GRT_TRY(cuda_enter(device, &cuda_on_switched_));                                             \
        const cudaError_t cuda_on_ = (expression);                                                   \
        const grt_status cuda_on_status_ =                                                           \
            cuda_on_ == cudaSuccess ? GRT_OK : cuda_fail(cuda_on_, #expression, __FILE__, __LINE__); \
        cuda_leave(device, cuda_on_switched_);                                                       \
        if (cuda_on_status_ != GRT_OK)                                                               \
            return cuda_on_status_;                                                                  \
    } while (0)
/* For calls whose failure cannot be reported. */
#define CUDA_ON_QUIETLY(device, expression)                     \
    do {                                                        \
        bool cuda_on_switched_;                                 \
        if (cuda_enter(device, &cuda_on_switched_) == GRT_OK) { \
            (void)(expression);                                 \
            cuda_leave(device, cuda_on_switched_);              \
        }                                                       \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
