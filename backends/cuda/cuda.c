/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the CUDA runtime as ours. */
#include "backends/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

/* Errors after which the driver refuses everything to this process on this GPU. */
static bool ends_context(cudaError_t error)
{
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice:
    case cudaErrorContextIsDestroyed:
        return true;
    default:
        return false;
    }
}

grt_status cuda_fail(cudaError_t error, const char *expression, const char *file, int line)
{
    const char *base = strrchr(file, '/');
    bool memory = error == cudaErrorMemoryAllocation;
    char lost[256] = "";
    int device = -1;
    cudaGetLastError(); /* what was reported here is not found again behind the next launch */
    if (ends_context(error)) {
        cudaGetDevice(&device);
        snprintf(
            lost, sizeof lost,
            "; the process's context on cuda:%d is lost: start a new process to use that GPU again, and "
            "others too "
            "if they refuse; the CPU goes on; GRAPHRT_DEBUG=1 in the environment names the node that does it",
            device);
    }
    return grt_fail(memory ? GRT_STATUS_OUT_OF_MEMORY : GRT_STATUS_DEVICE, "%s: %s (%s) at %s:%d%s",
                    cudaGetErrorName(error), cudaGetErrorString(error), expression, base ? base + 1 : file,
                    line, lost);
}
