/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/local.h"

#include "backends/cuda/current.h"

#include <stdlib.h>
#include <string.h>

grt_status cuda_local_get(const grt_run *run, cuda_local **out_local)
{
    void **place = run->hooks ? run->hooks->local : NULL;
    *out_local = NULL;
    if (!place)
        return GRT_OK;
    if (!*place) {
        cuda_local *made = calloc(1, sizeof *made);
        if (!made)
            return grt_fail_memory(sizeof *made);
        made->libraries = ((const cuda_device *)run->device)->libraries;
        *place = made;
    }
    *out_local = *place;
    return GRT_OK;
}

void cuda_local_release(grt_device *device, void *local)
{
    cuda_local *l = local;
    cuda_dnn_give(l->libraries, l->dnn);
    if (l->fault)
        CUDA_ON_QUIETLY(device, cudaFreeHost(l->fault));
    free(l);
}

/* The run may be captured into a graph, of which this memory is no part. */
static cudaError_t alloc_fault(void **out_fault)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaError_t error = cudaThreadExchangeStreamCaptureMode(&mode);
    if (error != cudaSuccess)
        return error;
    error = cudaHostAlloc(out_fault, sizeof(cuda_fault), cudaHostAllocPortable);
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    return error;
}

grt_status cuda_watch_begin(const grt_run *run, const char *what, cuda_watch *out_watch)
{
    cuda_local *local;
    *out_watch = (cuda_watch){NULL, run->desc, what};
    GRT_TRY(cuda_local_get(run, &local));
    if (!local)
        return GRT_OK;
    if (!local->fault) {
        void *fault;
        CUDA_TRY(alloc_fault(&fault));
        local->fault = memset(fault, 0, sizeof *local->fault);
    }
    out_watch->fault = local->fault;
    return GRT_OK;
}

grt_status cuda_local_check(grt_device *device, void *local)
{
    cuda_fault *fault = ((cuda_local *)local)->fault;
    (void)device;
    if (!fault || !__atomic_load_n(&fault->told, __ATOMIC_ACQUIRE))
        return GRT_OK;
    const cuda_fault found = *fault;
    fault->told = 0;
    __atomic_store_n(&fault->claimed, 0, __ATOMIC_RELEASE);
    return grt_fail_op(found.desc, GRT_STATUS_INVALID_ARGUMENT,
                       "input '%s' holds %lld at element %lld; %lld to %lld are there", found.what,
                       found.value, found.element, found.low, found.high);
}
