/* Opening the vendor libraries on first use. */
#include "backends/cuda/libraries.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HANDLES = 64, PATH_SIZE = 4096 };

struct cuda_libraries {
    int device;
    pthread_mutex_t lock;
    bool has_blas, has_dnn;
    cuda_blas blas;
    cuda_dnn dnn;
    int n_free;
    cudnnHandle_t free_handles[MAX_HANDLES];
};

grt_status cuda_libraries_create(int device, cuda_libraries **out_libraries)
{
    cuda_libraries *libraries = calloc(1, sizeof *libraries);
    if (!libraries)
        return grt_fail_memory(sizeof *libraries);
    libraries->device = device;
    pthread_mutex_init(&libraries->lock, NULL);
    *out_libraries = libraries;
    return GRT_OK;
}

void cuda_libraries_release(cuda_libraries *libraries)
{
    if (!libraries)
        return;
    for (int i = 0; i < libraries->n_free; i++)
        libraries->dnn.cudnnDestroy(libraries->free_handles[i]);
    if (libraries->has_blas)
        libraries->blas.cublasLtDestroy(libraries->blas.handle);
    pthread_mutex_destroy(&libraries->lock);
    free(libraries);
}

/* ---- finding ---- */

/* Where the loader looks by itself, then the toolkit's directory. Libraries stay open: other devices use them
 * too. */
static grt_status open_library(const char *what, const char *const *names, void **out_library)
{
    const char *home = getenv("CUDA_HOME"), *first = NULL;
    const char *roots[] = {home, "/usr/local/cuda"};
    char reason[512] = "", path[PATH_SIZE];
    for (int i = 0; names[i]; i++) {
        if ((*out_library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL)))
            return GRT_OK;
        const char *said = dlerror();
        if (!first && said) {
            first = names[i];
            snprintf(reason, sizeof reason, "%s", said);
        }
        for (size_t k = 0; k < sizeof roots / sizeof *roots; k++) {
            if (!roots[k])
                continue;
            const int n = snprintf(path, sizeof path, "%s/lib64/%s", roots[k], names[i]);
            if (n > 0 && (size_t)n < sizeof path && (*out_library = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
                return GRT_OK;
        }
    }
    return grt_fail(GRT_STATUS_DEVICE,
                    "%s (%s) was not found: looked where the dynamic loader does (LD_LIBRARY_PATH, system "
                    "directories), in "
                    "%s%s/usr/local/cuda/lib64; install it or add its directory to LD_LIBRARY_PATH (%s)",
                    what, names[0], home ? home : "", home ? "/lib64 and " : "", reason);
}

static bool load(void *library, const char *name, void *out_function, const char **missing)
{
    void *symbol = dlsym(library, name);
    memcpy(out_function, &symbol, sizeof symbol);
    if (!symbol && !*missing)
        *missing = name;
    return symbol != NULL;
}

/* ---- cuBLASLt ---- */

static grt_status open_blas(cuda_libraries *libraries)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    cuda_blas *blas = &libraries->blas;
    void *library;
    const char *missing = NULL;
    GRT_TRY(open_library("cuBLASLt 13 or 12", names, &library));
#define X(function) load(library, #function, &blas->function, &missing);
    CUDA_BLAS_FUNCTIONS(X)
#undef X
    if (missing)
        return grt_fail(GRT_STATUS_DEVICE, "the cuBLASLt library found lacks %s; version 13 or 12 is wanted",
                        missing);
    const cublasStatus_t status = blas->cublasLtCreate(&blas->handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        return grt_fail(GRT_STATUS_DEVICE, "cuBLASLt gave no handle for cuda:%d: status %d",
                        libraries->device, (int)status);
    return GRT_OK;
}

grt_status cuda_blas_get(cuda_libraries *libraries, const cuda_blas **out_blas)
{
    grt_status status = GRT_OK;
    pthread_mutex_lock(&libraries->lock);
    if (!libraries->has_blas && (status = open_blas(libraries)) == GRT_OK)
        libraries->has_blas = true;
    pthread_mutex_unlock(&libraries->lock);
    *out_blas = status == GRT_OK ? &libraries->blas : NULL;
    return status;
}

/* ---- cuDNN ---- */

static grt_status open_dnn(cuda_libraries *libraries)
{
    static const char *const names[] = {"libcudnn.so.9", NULL};
    cuda_dnn *dnn = &libraries->dnn;
    void *library;
    const char *missing = NULL;
    GRT_TRY(open_library("cuDNN 9", names, &library));
#define X(function) load(library, #function, &dnn->function, &missing);
    CUDA_DNN_FUNCTIONS(X)
#undef X
    if (missing)
        return grt_fail(GRT_STATUS_DEVICE, "the cuDNN library found lacks %s; version 9 is wanted", missing);
    return GRT_OK;
}

grt_status cuda_dnn_get(cuda_libraries *libraries, const cuda_dnn **out_dnn)
{
    grt_status status = GRT_OK;
    pthread_mutex_lock(&libraries->lock);
    if (!libraries->has_dnn && (status = open_dnn(libraries)) == GRT_OK)
        libraries->has_dnn = true;
    pthread_mutex_unlock(&libraries->lock);
    *out_dnn = status == GRT_OK ? &libraries->dnn : NULL;
    return status;
}

grt_status cuda_dnn_take(cuda_libraries *libraries, cudnnHandle_t *out_handle)
{
    *out_handle = NULL;
    pthread_mutex_lock(&libraries->lock);
    if (libraries->n_free > 0)
        *out_handle = libraries->free_handles[--libraries->n_free];
    pthread_mutex_unlock(&libraries->lock);
    if (*out_handle)
        return GRT_OK;
    const cudnnStatus_t status = libraries->dnn.cudnnCreate(out_handle);
    if (status != CUDNN_STATUS_SUCCESS)
        return grt_fail(GRT_STATUS_DEVICE, "cuDNN gave no handle for cuda:%d: %s", libraries->device,
                        libraries->dnn.cudnnGetErrorString(status));
    return GRT_OK;
}

void cuda_dnn_give(cuda_libraries *libraries, cudnnHandle_t handle)
{
    pthread_mutex_lock(&libraries->lock);
    const bool keep = libraries->n_free < MAX_HANDLES;
    if (keep)
        libraries->free_handles[libraries->n_free++] = handle;
    pthread_mutex_unlock(&libraries->lock);
    if (!keep)
        libraries->dnn.cudnnDestroy(handle);
}
