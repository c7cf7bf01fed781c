/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt and cuDNN, opened only when a kernel asks: a plan without convolutions needs no cuDNN on the
 * machine.
 *
 * The cuBLASLt handle of a device may be used from any thread. cuDNN handles serve one thread at a time: take
 * and give back. */
#ifndef GRT_BACKENDS_CUDA_LIBRARIES_H
#define GRT_BACKENDS_CUDA_LIBRARIES_H

#include <cublasLt.h>
#include <cudnn.h>

#include "backends/cuda/cuda.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_BLAS_FUNCTIONS(X)              \
    X(cublasLtCreate)                       \
    X(cublasLtDestroy)                      \
    X(cublasLtGetVersion)                   \
    X(cublasLtMatmul)                       \
    X(cublasLtMatmulDescCreate)             \
    X(cublasLtMatmulDescDestroy)            \
    X(cublasLtMatmulDescSetAttribute)       \
    X(cublasLtMatrixLayoutCreate)           \
    X(cublasLtMatrixLayoutDestroy)          \
    X(cublasLtMatrixLayoutSetAttribute)     \
    X(cublasLtMatmulPreferenceCreate)       \
    X(cublasLtMatmulPreferenceDestroy)      \
    X(cublasLtMatmulPreferenceSetAttribute) \
    X(cublasLtMatmulAlgoCheck)              \
    X(cublasLtMatmulAlgoGetIds)             \
    X(cublasLtMatmulAlgoInit)               \
    X(cublasLtMatmulAlgoCapGetAttribute)    \
    X(cublasLtMatmulAlgoConfigSetAttribute) \
    X(cublasLtMatmulAlgoGetHeuristic)

#define CUDA_DNN_FUNCTIONS(X)        \
    X(cudnnGetVersion)               \
    X(cudnnGetErrorString)           \
    X(cudnnGetLastErrorString)       \
    X(cudnnCreate)                   \
    X(cudnnDestroy)                  \
    X(cudnnSetStream)                \
    X(cudnnBackendCreateDescriptor)  \
    X(cudnnBackendDestroyDescriptor) \
    X(cudnnBackendSetAttribute)      \
    X(cudnnBackendGetAttribute)      \
    X(cudnnBackendFinalize)          \
    X(cudnnBackendExecute)

#define X(function) __typeof__(&function) function;
typedef struct cuda_blas {
    cublasLtHandle_t handle;
    CUDA_BLAS_FUNCTIONS(X)
} cuda_blas;

typedef struct cuda_dnn {
    CUDA_DNN_FUNCTIONS(X)
} cuda_dnn;
#undef X

typedef struct cuda_libraries cuda_libraries;

/* A library of functions, opened once a process. */
typedef struct cuda_library {
    const char *what;         /* for messages, with the versions wanted */
    const char *const *names; /* of files, the best first; ends with NULL */
    /* fills in the functions (cuda_library_function); *missing is the first that is not there */
    void (*find)(void *opened, const char **missing);
    pthread_mutex_t lock;
    bool open;
} cuda_library;

/* DEVICE with the places that were searched, if it is not there. Later calls cost a lock. */
grt_status cuda_library_open(cuda_library *library);
void cuda_library_function(void *opened, const char *name, void *out_function, const char **missing);

/* True for a device that is only described, to choose algorithms for it. Nothing is uploaded. */
static inline bool cuda_is_described(const grt_device *device)
{
    return device && device->index < 0;
}

/* Sessions with these nodes are about to be made: what they need is loaded in the background, and devices
 * opened from now on make their first handles so. */
void cuda_libraries_expect(const grt_kernel_node *nodes, size_t n);
/* Waits for background loading. Exit handlers of the libraries crash if the process ends meanwhile, so
 * closing a device waits, and so does a failed open. */
void cuda_libraries_settle(void);
grt_status cuda_libraries_create(int device, const struct cudaDeviceProp *prop,
                                 cuda_libraries **out_libraries);
/* For a device that is not in this machine: plans can be made for it, nothing can run. `properties` is what
 * cuda_dnn_properties gives for such a device. Errors: DEVICE where cuDNN is missing or refuses the text. */
grt_status cuda_libraries_describe(const char *name, const char *properties, cuda_libraries **out_libraries);
void cuda_libraries_release(cuda_libraries *libraries); /* NULL-safe; the device must be current */

/* Open on first use; later calls return what there is. The table lives as long as the device. */
grt_status cuda_blas_get(cuda_libraries *libraries, const cuda_blas **out_blas);
grt_status cuda_dnn_get(cuda_libraries *libraries, const cuda_dnn **out_dnn);
/* cuDNN's own description of the device, as text: adds to out. */
grt_status cuda_dnn_properties(cuda_libraries *libraries, grt_text *out);
/* The same once for all, as long as the libraries live, with a handle that the caller has taken. NULL for
 * devices that are only described, and where cuDNN fails. */
const char *cuda_dnn_profile(cuda_libraries *libraries, cudnnHandle_t handle);
/* For devices that are only described; NULL for others. Finished, to be read by any thread. */
cudnnBackendDescriptor_t cuda_dnn_description(const cuda_libraries *libraries);
/* A handle for the calling thread until it is given back. cuda_dnn_get must have succeeded before. NULL for
 * devices that are only described. */
grt_status cuda_dnn_take(cuda_libraries *libraries, cudnnHandle_t *out_handle);
void cuda_dnn_give(cuda_libraries *libraries, cudnnHandle_t handle);

#ifdef __cplusplus
}
#endif
#endif
