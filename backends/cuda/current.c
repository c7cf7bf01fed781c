/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/current.h"

#include <cuda.h>

#include <pthread.h>
#include <string.h>

static struct {
    CUresult (*get)(CUcontext *);
    CUresult (*push)(CUcontext);
    CUresult (*pop)(CUcontext *);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*device)(CUdevice *, int);
} driver;
static bool complete;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void cuda_current_find(const char *name, void *out_function)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult result;
    const bool found =
        cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &result) == cudaSuccess &&
        result == cudaDriverEntryPointSuccess;
    complete = complete && found;
    memcpy(out_function, &function, sizeof function);
}

static void find_all(void)
{
    complete = true;
    cuda_current_find("cuCtxGetCurrent", &driver.get);
    cuda_current_find("cuCtxPushCurrent", &driver.push);
    cuda_current_find("cuCtxPopCurrent", &driver.pop);
    cuda_current_find("cuDevicePrimaryCtxRetain", &driver.retain);
    cuda_current_find("cuDeviceGet", &driver.device);
}

static grt_status failed(const char *what, int32_t index, CUresult result)
{
    return grt_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? GRT_STATUS_OUT_OF_MEMORY : GRT_STATUS_DEVICE,
                    "cuda:%d: %s: error %d of the driver", index, what, (int)result);
}

grt_status cuda_current_open(int32_t index, void **out_context)
{
    CUdevice device;
    CUcontext context = NULL;
    pthread_once(&once, find_all);
    if (!complete)
        return grt_fail(GRT_STATUS_DEVICE, "cuda:%d: the NVIDIA driver lacks functions of CUDA 12", index);
    CUresult result = driver.device(&device, index);
    if (result == CUDA_SUCCESS)
        result = driver.retain(&context, device);
    if (result != CUDA_SUCCESS)
        return failed("no context can be made", index, result);
    *out_context = context;
    return GRT_OK;
}

grt_status cuda_enter(grt_device *base, bool *out_switched)
{
    const CUcontext own = ((cuda_device *)base)->context;
    CUcontext current = NULL;
    *out_switched = false;
    if (driver.get(&current) == CUDA_SUCCESS && current == own)
        return GRT_OK;
    const CUresult result = driver.push(own);
    if (result != CUDA_SUCCESS)
        return failed("its context cannot be made current", base->index, result);
    *out_switched = true;
    return GRT_OK;
}

void cuda_leave(grt_device *base, bool switched)
{
    CUcontext own;
    (void)base;
    if (switched)
        driver.pop(&own);
}
