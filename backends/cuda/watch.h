/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels report invalid data, such as an index out of range, in page-locked memory that the host reads after
 * the run. They continue with a safe value. The first fault of a run is kept. */
#ifndef GRT_BACKENDS_CUDA_WATCH_H
#define GRT_BACKENDS_CUDA_WATCH_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_fault {
    unsigned claimed, told; /* set by the thread that writes the rest; set when it is written */
    const grt_op_desc *desc;
    const char *what;
    long long value, element, low, high;
} cuda_fault;

/* Passed to kernels by value. */
typedef struct cuda_watch {
    cuda_fault *fault; /* NULL: faults are not reported */
    const grt_op_desc *desc;
    const char *what; /* the input, by the operator's name for it: a text that lives on */
} cuda_watch;

grt_status cuda_watch_begin(const grt_run *run, const char *what, cuda_watch *out_watch);

#ifdef __cplusplus
}
#endif

#ifdef __CUDACC__
/* Element `element` is not what it should be: in [low, high]. */
static __device__ __forceinline__ void cuda_tell(const cuda_watch &watch, int64_t value, int64_t element,
                                                 int64_t low, int64_t high)
{
    cuda_fault *fault = watch.fault;
    if (!fault || atomicCAS(&fault->claimed, 0u, 1u) != 0u)
        return;
    fault->desc = watch.desc;
    fault->what = watch.what;
    fault->value = value;
    fault->element = element;
    fault->low = low;
    fault->high = high;
    __threadfence_system();
    *(volatile unsigned *)&fault->told = 1;
}

/* Reports a value that is not in [low, high]. */
static __device__ __forceinline__ bool cuda_check(const cuda_watch &watch, int64_t value, int64_t element,
                                                  int64_t low, int64_t high)
{
    const bool good = value >= low && value <= high;
    if (!good)
        cuda_tell(watch, value, element, low, high);
    return good;
}

/* Element k of indices, made non-negative; one out of range is reported and clamped. */
static __device__ __forceinline__ int64_t cuda_check_index(const cuda_watch &watch, int64_t index, int64_t k,
                                                           int64_t size)
{
    if (!cuda_check(watch, index, k, -size, size - 1))
        return index < 0 ? 0 : size - 1;
    return index < 0 ? index + size : index;
}
#endif

#endif
