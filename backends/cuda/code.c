/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/code.h"

#include "backends/cuda/cubin.h"
#include "backends/cuda/nvrtc.h"

#include <stdlib.h>

typedef struct cuda_code {
    cudaLibrary_t library;
    cudaKernel_t kernel;
} cuda_code;

static int architecture_of(const grt_device *device)
{
    const struct cudaDeviceProp *prop = &((const cuda_device *)device)->prop;
    return 10 * prop->major + prop->minor;
}

static void cuda_code_target(grt_device *device, grt_text *key)
{
    grt_text_add(key, "sm=%d;options=%s;", architecture_of(device), CUDA_NVRTC_OPTIONS);
}

static grt_status cuda_code_compile(grt_device *device, const char *name, const char *source,
                                    grt_text *compiler, void **out_code, size_t *out_size)
{
    GRT_TRY(cuda_nvrtc_compile(name, source, architecture_of(device), out_code, out_size));
    cuda_nvrtc_version(compiler);
    return GRT_OK;
}

static void cuda_code_unload(grt_device *device, void *loaded)
{
    (void)device;
    cuda_code *c = loaded;
    if (c->library)
        (void)cudaLibraryUnload(c->library);
    free(c);
}

/* The driver brings a kernel to the device when it is asked for its attributes, not before. A runtime that
 * knows attributes of symbols only has it loaded by its first launch. */
static bool bring_to_device(cudaKernel_t kernel)
{
    struct cudaFuncAttributes attributes;
    const cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)kernel);
    return error == cudaSuccess || error == cudaErrorInvalidDeviceFunction;
}

static void *cuda_code_load(grt_device *device, const void *code, size_t size, const char *function)
{
    cuda_code *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    const bool loaded = cuda_cubin_is_whole(code, size) &&
                        cudaLibraryLoadData(&c->library, code, NULL, NULL, 0, NULL, NULL, 0) == cudaSuccess &&
                        cudaLibraryGetKernel(&c->kernel, c->library, function) == cudaSuccess &&
                        bring_to_device(c->kernel);
    (void)cudaGetLastError();
    if (loaded)
        return c;
    cuda_code_unload(device, c);
    return NULL;
}

enum { GRANTED_SHARED = 48 << 10 }; /* bytes of shared memory that every kernel may ask for */

/* As much as a block can have: other shapes use the same kernel. What has enough is left alone, as the
 * first-level cache, from which it reads its weights, may be the smaller for it. */
static grt_status cuda_code_allow(grt_device *base, void *loaded, size_t block_memory)
{
    const cuda_device *device = (const cuda_device *)base;
    if (block_memory <= GRANTED_SHARED)
        return GRT_OK;
    CUDA_TRY(cudaKernelSetAttributeForDevice(((cuda_code *)loaded)->kernel,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             (int)device->prop.sharedMemPerBlockOptin, base->index));
    return GRT_OK;
}

const grt_code_maker cuda_code_maker = {.target = cuda_code_target,
                                        .compile = cuda_code_compile,
                                        .load = cuda_code_load,
                                        .unload = cuda_code_unload,
                                        .allow = cuda_code_allow};

cudaKernel_t cuda_code_kernel(const grt_code *code)
{
    const cuda_code *c = code ? grt_code_get(code) : NULL;
    return c ? c->kernel : NULL;
}
