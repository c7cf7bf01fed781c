/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/code.h"

#include "backends/cuda/cubin.h"
#include "backends/cuda/nvrtc.h"

#include "backends/cuda/shared_objects.h"

#include <stdlib.h>

/* A loaded module, or a record that there is none. */
typedef struct cuda_code {
    cudaLibrary_t library;
    cudaKernel_t kernel;
    void *code; /* CUDA may read it as long as the library is loaded */
} cuda_code;

typedef struct code_request {
    cuda_device *device;
    const char *key, *name, *source;
} code_request;

/* What the plan brings, else what can be made here. */
static bool find_code(const code_request *wanted, cuda_code *c, size_t *out_size)
{
    const struct cudaDeviceProp *prop = &wanted->device->prop;
    c->code = grt_device_code_find(&wanted->device->base, wanted->key, out_size);
    if (c->code || !wanted->source)
        return c->code;
    return cuda_nvrtc_compile("generated", wanted->source, 10 * prop->major + prop->minor, &c->code,
                              out_size) == GRT_OK;
}

/* Failures but of memory are not errors: rejected code is replaced by the interpreter. */
static grt_status cuda_code_load(void *user, void **out_data)
{
    const code_request *wanted = user;
    cuda_code *c = *out_data = calloc(1, sizeof *c);
    size_t size;
    if (!c)
        return grt_fail_memory(sizeof *c);
    if (!find_code(wanted, c, &size))
        return GRT_OK;
    if (!cuda_cubin_is_whole(c->code, size) ||
        cudaLibraryLoadData(&c->library, c->code, NULL, NULL, 0, NULL, NULL, 0) != cudaSuccess ||
        cudaLibraryGetKernel(&c->kernel, c->library, wanted->name) != cudaSuccess) {
        (void)cudaGetLastError();
        c->kernel = NULL;
        grt_device_algo_reject(&wanted->device->base, NULL, wanted->key);
    }
    return GRT_OK;
}

static void cuda_code_unload(void *data)
{
    cuda_code *c = data;
    if (c->library)
        (void)cudaLibraryUnload(c->library);
    free(c->code);
    free(c);
}

grt_status cuda_code_get(cuda_device *device, const char *key, const char *name, const char *source,
                         cudaKernel_t *out_kernel)
{
    static const cuda_object_kind kind = {cuda_code_load, cuda_code_unload};
    code_request wanted = {device, key, name, source};
    cuda_shared_object *held; /* while the device is open */
    *out_kernel = NULL;
    GRT_TRY(cuda_shared_object_take(device->codes, key, &kind, &wanted, &held));
    *out_kernel = ((const cuda_code *)cuda_shared_object_data(held))->kernel;
    return GRT_OK;
}
