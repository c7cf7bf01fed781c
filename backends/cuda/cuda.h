/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA backend's kernels share: error checks, launches, the device behind a run.
 *
 * Kernels enqueue on run->stream and return: no synchronisation, no allocation, no host round trip. Tensors'
 * data are device pointers at run time. In reshape and create, constants and small integer inputs have host
 * data (see kernel.h). */
#ifndef GRT_BACKENDS_CUDA_H
#define GRT_BACKENDS_CUDA_H

#ifdef __cplusplus
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstring>
using std::atomic_int; /* value.h has it from <stdatomic.h>, which C++17 lacks */
#endif

#include <cuda_runtime_api.h>

#include "backends/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_device {
    grt_device base;
    struct cudaDeviceProp prop;
    struct cuda_libraries *libraries; /* handles made on first use; see libraries.h */
    grt_codes *codes;                 /* generated kernels; NULL: the device is only described */
    void *context;                    /* see current.h */
    cudaStream_t stream;              /* of cuda_upload_now */
    struct cuda_lt_start *lt_start;   /* NULL: the device is only described */
    struct cuda_part *part;           /* that its streams are in; NULL: the whole GPU */
} cuda_device;

/* Host to device, done when it returns, whatever the program's other streams are at: while a session is
 * created. */
grt_status cuda_upload_now(grt_device *device, void *dst, const void *src, size_t bytes);
/* Memory of the device for what create keeps, with a copy of `host` (NULL: none): in the node's account for
 * as long as the session is there, as its kernels are. cudaFree gives it back. */
grt_status cuda_keep(const grt_kernel_node *node, const void *host, size_t bytes, void **out_data);
/* Turn a failed CUDA call into our status, with the expression and the place. */
grt_status cuda_fail(cudaError_t error, const char *expression, const char *file, int line);
#define CUDA_TRY(expression)                                              \
    do {                                                                  \
        cudaError_t cuda_try_ = (expression);                             \
        if (cuda_try_ != cudaSuccess)                                     \
            return cuda_fail(cuda_try_, #expression, __FILE__, __LINE__); \
    } while (0)
/* After a kernel launch. */
#define CUDA_LAUNCHED() CUDA_TRY(cudaGetLastError())

/* In backends/cuda/ops/<file>.cu, last thing: CUDA_KERNELS(file, rows). */
#ifdef __cplusplus
#define CUDA_KERNELS(file, row_array)                                   \
    extern "C" const grt_kernel_table cuda_kernels_##file = {row_array, \
                                                             sizeof(row_array) / sizeof *(row_array)}
#else
#define CUDA_KERNELS(file, row_array) \
    const grt_kernel_table cuda_kernels_##file = {row_array, sizeof(row_array) / sizeof *(row_array)}
#endif

#ifdef __cplusplus
}
#endif
#endif
