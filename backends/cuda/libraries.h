/* cuBLASLt, cuDNN and NVRTC, opened only when a kernel asks: a plan without convolutions needs no cuDNN on the machine.
 *
 * Handles belong to a device, are made on first use, and may be used by one thread at a time: take and give back. */
#ifndef GRT_BACKENDS_CUDA_LIBRARIES_H
#define GRT_BACKENDS_CUDA_LIBRARIES_H

#include "src/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_libraries cuda_libraries;

grt_status cuda_libraries_create(int device, cuda_libraries **out_libraries);
void cuda_libraries_release(cuda_libraries *libraries);

#ifdef __cplusplus
}
#endif
#endif
