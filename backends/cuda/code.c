/* SPDX-License-Identifier: Apache-2.0 */
/* See code.h. */
#include "backends/cuda/code.h"

#include "backends/cuda/cubin.h"
#include "backends/cuda/nvrtc.h"

#include "src/base/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A loaded module, or a record that there is none. */
typedef struct entry {
    UT_hash_handle hh;
    cudaLibrary_t library;
    cudaKernel_t kernel;
    void *code; /* CUDA may read it as long as the library is loaded */
    char key[];
} entry;

struct cuda_codes {
    pthread_mutex_t lock;
    entry *entries;
};

grt_status cuda_codes_create(cuda_codes **out_codes)
{
    cuda_codes *codes = calloc(1, sizeof *codes);
    if (!codes)
        return grt_fail_memory(sizeof *codes);
    pthread_mutex_init(&codes->lock, NULL);
    *out_codes = codes;
    return GRT_OK;
}

static void release_entry(entry *e)
{
    if (e->library)
        (void)cudaLibraryUnload(e->library);
    free(e->code);
    free(e);
}

void cuda_codes_release(cuda_codes *codes)
{
    if (!codes)
        return;
    entry *e, *next;
    HASH_ITER (hh, codes->entries, e, next) {
        HASH_DEL(codes->entries, e);
        release_entry(e);
    }
    pthread_mutex_destroy(&codes->lock);
    free(codes);
}

/* What the plan brings, else what can be made here. */
static bool find_code(cuda_device *device, entry *e, const char *source, size_t *out_size)
{
    e->code = grt_device_code_find(&device->base, e->key, out_size);
    if (e->code || !source)
        return e->code;
    const int sm = 10 * device->prop.major + device->prop.minor;
    return cuda_nvrtc_compile("generated", source, sm, &e->code, out_size) == GRT_OK;
}

/* Failures are not errors: rejected code is replaced by the interpreter. */
static void cuda_code_load(cuda_device *device, entry *e, const char *name, const char *source)
{
    size_t size;
    if (!find_code(device, e, source, &size))
        return;
    if (!cuda_cubin_is_whole(e->code, size) ||
        cudaLibraryLoadData(&e->library, e->code, NULL, NULL, 0, NULL, NULL, 0) != cudaSuccess ||
        cudaLibraryGetKernel(&e->kernel, e->library, name) != cudaSuccess) {
        (void)cudaGetLastError();
        e->kernel = NULL;
        grt_device_algo_reject(&device->base, NULL, e->key);
    }
}

grt_status cuda_code_get(cuda_device *device, const char *key, const char *name, const char *source,
                         cudaKernel_t *out_kernel)
{
    cuda_codes *codes = device->codes;
    const size_t length = strlen(key);
    entry *e;
    *out_kernel = NULL;
    pthread_mutex_lock(&codes->lock);
    HASH_FIND(hh, codes->entries, key, length, e);
    if (!e && (e = calloc(1, sizeof *e + length + 1))) {
        memcpy(e->key, key, length + 1);
        cuda_code_load(device, e, name, source);
        HASH_ADD_KEYPTR(hh, codes->entries, e->key, length, e);
        if (!GRT_HASH_HAS(e)) {
            release_entry(e);
            e = NULL;
        }
    }
    if (e)
        *out_kernel = e->kernel;
    pthread_mutex_unlock(&codes->lock);
    return e ? GRT_OK : grt_fail_memory(sizeof *e + length + 1);
}
