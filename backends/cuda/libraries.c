/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the vendor libraries on first use. */
#define _GNU_SOURCE /* secure_getenv */
#include "backends/cuda/libraries.h"

#include "backends/cuda/dnn_plans.h"
#include "backends/cuda/gemm_node.h"
#include "backends/cuda/wheels.h"
#include "src/base/exit_guard.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_HANDLES = 64, PATH_SIZE = 4096 };

struct cuda_libraries {
    int device;
    bool has_own; /* kernels of gemm_node.h */
    pthread_mutex_t lock;
    cuda_blas blas;
    int n_free;
    cudnnHandle_t free_handles[MAX_HANDLES];
    pthread_t warmer; /* makes the first handles */
    bool warms;
    cuda_shared_objects *plans;
    char *profile;                        /* cuDNN's text of the device, once asked for */
    cudnnBackendDescriptor_t description; /* the device is not in this machine; else NULL */
};

/* ---- finding ---- */

/* The one that the program has open already comes first: two copies in one process would not know of each
 * other. Then wheels beside this module, the loader's path, the toolkit's directory. Libraries stay open for
 * other devices. */
static grt_status open_any_library(const char *what, const char *const *names, void **out_library)
{
    const char *home = secure_getenv("CUDA_HOME"), *first = NULL;
    const char *roots[] = {home, "/usr/local/cuda"};
    char reason[512] = "", path[PATH_SIZE];
    for (int i = 0; names[i]; i++) {
        if ((*out_library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) ||
            (*out_library = cuda_wheels_open(names[i])) ||
            (*out_library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL)))
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
                    "%s (%s) was not found: looked for Python's packages of NVIDIA beside this module, where "
                    "the dynamic loader does (LD_LIBRARY_PATH, system directories), in "
                    "%s%s/usr/local/cuda/lib64; install it or add its directory to LD_LIBRARY_PATH (%s)",
                    what, names[0], home ? home : "", home ? "/lib64 and " : "", reason);
}

void cuda_library_function(void *opened, const char *name, void *out_function, const char **missing)
{
    void *symbol = dlsym(opened, name);
    memcpy(out_function, &symbol, sizeof symbol);
    if (!symbol && !*missing)
        *missing = name;
}

/* ---- loading, once a process ---- */

static cuda_blas blas_functions;
static cuda_dnn dnn_functions;

static void find_blas(void *opened, const char **missing)
{
#define X(function) cuda_library_function(opened, #function, &blas_functions.function, missing);
    CUDA_BLAS_FUNCTIONS(X)
#undef X
}

static void find_dnn(void *opened, const char **missing)
{
#define X(function) cuda_library_function(opened, #function, &dnn_functions.function, missing);
    CUDA_DNN_FUNCTIONS(X)
#undef X
    /* cuDNN opens its parts on demand; the one that runs most plans is loaded now. */
    static const char engines[] = "libcudnn_engines_precompiled.so.9";
    if (!*missing && !cuda_wheels_open(engines))
        (void)dlopen(engines, RTLD_NOW | RTLD_LOCAL);
}

static const char *const blas_names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
static const char *const dnn_names[] = {"libcudnn.so.9", NULL};
static cuda_library blas_library = {"cuBLASLt 13 or 12", blas_names, find_blas, PTHREAD_MUTEX_INITIALIZER,
                                    false};
static cuda_library dnn_library = {"cuDNN 9", dnn_names, find_dnn, PTHREAD_MUTEX_INITIALIZER, false};

grt_status cuda_library_open(cuda_library *l)
{
    grt_status status = GRT_OK;
    pthread_mutex_lock(&l->lock);
    if (!l->open) {
        void *opened;
        const char *missing = NULL;
        status = open_any_library(l->what, l->names, &opened);
        if (status == GRT_OK)
            l->find(opened, &missing);
        if (missing)
            status = grt_fail(GRT_STATUS_DEVICE, "the library found for %s lacks %s", l->what, missing);
        l->open = status == GRT_OK;
        grt_exit_guard_register();
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* ---- loading in the background ---- */

/* What nodes need: on any device, or where our own kernels (gemm_node.h) do not take them. */
typedef struct wanted {
    atomic_bool blas, dnn;
} wanted;

static wanted everywhere, elsewhere;

static bool wants_blas_on(bool has_own)
{
    return atomic_load(&everywhere.blas) || (!has_own && atomic_load(&elsewhere.blas));
}

static bool wants_dnn_on(bool has_own)
{
    return atomic_load(&everywhere.dnn) || (!has_own && atomic_load(&elsewhere.dnn));
}

static pthread_mutex_t loading_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loading_changed = PTHREAD_COND_INITIALIZER;
static int loading;
static pid_t loading_process; /* a child made by fork() has no such threads */

void cuda_libraries_settle(void)
{
    pthread_mutex_lock(&loading_lock);
    while (loading && getpid() == loading_process)
        pthread_cond_wait(&loading_changed, &loading_lock);
    pthread_mutex_unlock(&loading_lock);
}

static void count_loading(int more)
{
    pthread_mutex_lock(&loading_lock);
    loading_process = getpid();
    loading += more;
    pthread_cond_broadcast(&loading_changed);
    pthread_mutex_unlock(&loading_lock);
}

/* True if all devices have our own kernels. Waits for the driver's start. */
static bool all_have_own(void)
{
    int n = 0;
    bool own = cudaGetDeviceCount(&n) == cudaSuccess;
    for (int i = 0; i < n && own; i++) {
        struct cudaDeviceProp prop = {0};
        own = cudaDeviceGetAttribute(&prop.major, cudaDevAttrComputeCapabilityMajor, i) == cudaSuccess &&
              cudaDeviceGetAttribute(&prop.minor, cudaDevAttrComputeCapabilityMinor, i) == cudaSuccess &&
              cuda_gemm_on(&prop);
    }
    return own;
}

static void *load_wanted(void *unused)
{
    (void)unused;
    const bool own = all_have_own();
    /* Errors are reported when a kernel needs them. */
    if (!grt_exit_guard_ends() && wants_blas_on(own))
        (void)cuda_library_open(&blas_library);
    if (!grt_exit_guard_ends() && wants_dnn_on(own))
        (void)cuda_library_open(&dnn_library);
    count_loading(-1);
    return NULL;
}

static bool expects_blas(const grt_op_desc *op)
{
    return grt_op_is(op, "graphrt", "MatMul") || grt_op_is(op, "", "MatMul") || grt_op_is(op, "", "Gemm") ||
           !strcmp(op->op, "LSTM") || !strcmp(op->op, "GRU") || !strcmp(op->op, "RNN");
}

static bool expects_dnn(const grt_op_desc *op)
{
    return grt_op_is(op, "graphrt", "Conv") || grt_op_is(op, "graphrt", "WovenConv") ||
           grt_op_is(op, "", "Conv") || grt_op_is(op, "", "ConvTranspose");
}

/* True if it was not wanted before. */
static bool libraries_want(atomic_bool *flag, bool wants)
{
    return wants && !atomic_exchange(flag, true);
}

void cuda_libraries_expect(const grt_kernel_node *nodes, size_t n)
{
    bool fresh = false;
    for (size_t i = 0; i < n; i++) {
        const bool blas = expects_blas(nodes[i].desc), dnn = expects_dnn(nodes[i].desc);
        if (!blas && !dnn)
            continue;
        wanted *w = cuda_gemm_takes(&nodes[i]) ? &elsewhere : &everywhere;
        fresh |= libraries_want(&w->blas, blas);
        fresh |= libraries_want(&w->dnn, dnn);
    }
    /* Sequential: the loader has a lock. */
    pthread_t thread;
    if (!fresh)
        return;
    count_loading(1);
    if (!grt_exit_guard_start(&thread, load_wanted, NULL))
        pthread_detach(thread);
    else
        count_loading(-1);
}

/* The first handles of a device take as long as uploading weights: create them in parallel. */
static void *make_handles(void *data)
{
    cuda_libraries *libraries = data;
    const cuda_blas *blas;
    const cuda_dnn *dnn;
    cudnnHandle_t handle;
    if (grt_exit_guard_ends() || cudaSetDevice(libraries->device) != cudaSuccess)
        return NULL;
    if (wants_blas_on(libraries->has_own))
        (void)cuda_blas_get(libraries, &blas);
    if (wants_dnn_on(libraries->has_own) && cuda_dnn_get(libraries, &dnn) == GRT_OK &&
        cuda_dnn_take(libraries, &handle) == GRT_OK)
        cuda_dnn_give(libraries, handle);
    return NULL;
}

static grt_status make_libraries(int device, cuda_libraries **out_libraries)
{
    cuda_libraries *libraries = calloc(1, sizeof *libraries);
    if (!libraries)
        return grt_fail_memory(sizeof *libraries);
    const grt_status status = cuda_shared_objects_create(&libraries->plans);
    if (status != GRT_OK) {
        free(libraries);
        return status;
    }
    libraries->device = device;
    pthread_mutex_init(&libraries->lock, NULL);
    *out_libraries = libraries;
    return GRT_OK;
}

cuda_shared_objects *cuda_libraries_plans(cuda_libraries *libraries)
{
    return libraries->plans;
}

grt_status cuda_libraries_create(int device, const struct cudaDeviceProp *prop,
                                 cuda_libraries **out_libraries)
{
    cuda_libraries *libraries;
    GRT_TRY(make_libraries(device, &libraries));
    libraries->has_own = cuda_gemm_on(prop);
    if (wants_blas_on(libraries->has_own) || wants_dnn_on(libraries->has_own))
        libraries->warms = !grt_exit_guard_start(&libraries->warmer, make_handles, libraries);
    *out_libraries = libraries;
    return GRT_OK;
}

void cuda_libraries_release(cuda_libraries *libraries)
{
    if (!libraries)
        return;
    cuda_libraries_settle();
    if (libraries->warms)
        pthread_join(libraries->warmer, NULL);
    if (libraries->description)
        dnn_functions.cudnnBackendDestroyDescriptor(libraries->description);
    for (int i = 0; i < libraries->n_free; i++)
        dnn_functions.cudnnDestroy(libraries->free_handles[i]);
    if (libraries->blas.handle)
        blas_functions.cublasLtDestroy(libraries->blas.handle);
    cuda_shared_objects_release(libraries->plans);
    pthread_mutex_destroy(&libraries->lock);
    free(libraries->profile);
    free(libraries);
}

/* ---- cuBLASLt ---- */

/* Handles take memory of the device. */
static grt_status no_handle(const cuda_libraries *libraries, const char *name, bool memory, const char *why)
{
    size_t left = 0, total = 0;
    if (!memory)
        return grt_fail(GRT_STATUS_DEVICE, "%s gave no handle for cuda:%d: %s", name, libraries->device, why);
    cudaMemGetInfo(&left, &total);
    return grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                    "cuda:%d is out of memory: %s has no room for a handle, %zu of %zu bytes free",
                    libraries->device, name, left, total);
}

grt_status cuda_blas_get(cuda_libraries *libraries, const cuda_blas **out_blas)
{
    *out_blas = NULL;
    GRT_TRY(cuda_library_open(&blas_library));
    grt_status status = GRT_OK;
    pthread_mutex_lock(&libraries->lock);
    if (!libraries->blas.handle) {
        cublasLtHandle_t handle = NULL;
        const cublasStatus_t failed = blas_functions.cublasLtCreate(&handle);
        if (failed != CUBLAS_STATUS_SUCCESS) {
            char why[32];
            snprintf(why, sizeof why, "status %d", (int)failed);
            status = no_handle(libraries, "cuBLASLt", failed == CUBLAS_STATUS_ALLOC_FAILED, why);
        } else {
            libraries->blas = blas_functions;
            libraries->blas.handle = handle;
        }
    }
    pthread_mutex_unlock(&libraries->lock);
    if (status == GRT_OK)
        *out_blas = &libraries->blas;
    return status;
}

/* ---- cuDNN ---- */

grt_status cuda_dnn_get(cuda_libraries *libraries, const cuda_dnn **out_dnn)
{
    (void)libraries;
    *out_dnn = NULL;
    GRT_TRY(cuda_library_open(&dnn_library));
    *out_dnn = &dnn_functions;
    return GRT_OK;
}

grt_status cuda_dnn_take(cuda_libraries *libraries, cudnnHandle_t *out_handle)
{
    *out_handle = NULL;
    if (libraries->description)
        return GRT_OK;
    pthread_mutex_lock(&libraries->lock);
    if (libraries->n_free > 0)
        *out_handle = libraries->free_handles[--libraries->n_free];
    pthread_mutex_unlock(&libraries->lock);
    if (*out_handle)
        return GRT_OK;
    const cudnnStatus_t status = dnn_functions.cudnnCreate(out_handle);
    if (status == CUDNN_STATUS_SUCCESS)
        return GRT_OK;
    *out_handle = NULL;
    return no_handle(libraries, "cuDNN", status == CUDNN_STATUS_ALLOC_FAILED,
                     dnn_functions.cudnnGetErrorString(status));
}

void cuda_dnn_give(cuda_libraries *libraries, cudnnHandle_t handle)
{
    if (!handle)
        return;
    pthread_mutex_lock(&libraries->lock);
    const bool keep = libraries->n_free < MAX_HANDLES;
    if (keep)
        libraries->free_handles[libraries->n_free++] = handle;
    pthread_mutex_unlock(&libraries->lock);
    if (!keep)
        dnn_functions.cudnnDestroy(handle);
}

/* ---- devices as descriptions ---- */

static grt_status fail_dnn(cudnnStatus_t status, const char *what, const char *name)
{
    char reason[512] = "";
    dnn_functions.cudnnGetLastErrorString(reason, sizeof reason);
    return grt_fail(GRT_STATUS_DEVICE, "cuDNN %zu %s %s: %s%s%s%s", dnn_functions.cudnnGetVersion(), what,
                    name, dnn_functions.cudnnGetErrorString(status), *reason ? " (" : "", reason,
                    *reason ? ")" : "");
}

static grt_status cuda_library_properties(const cuda_dnn *dnn, cudnnHandle_t handle, char **out_text)
{
    const cudnnBackendAttributeName_t json = CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION;
    cudnnBackendDescriptor_t d = NULL;
    int64_t size = 0, n = 0;
    char *text = NULL;
    cudnnStatus_t status = dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d);
    if (status == CUDNN_STATUS_SUCCESS)
        status =
            dnn->cudnnBackendSetAttribute(d, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendFinalize(d);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendGetAttribute(d, json, CUDNN_TYPE_CHAR, 0, &size, NULL);
    if (status == CUDNN_STATUS_SUCCESS && size > 0 && (text = calloc((size_t)size + 1, 1)))
        status = dnn->cudnnBackendGetAttribute(d, json, CUDNN_TYPE_CHAR, size, &n, text);
    if (d)
        dnn->cudnnBackendDestroyDescriptor(d);
    if (status == CUDNN_STATUS_SUCCESS && text) {
        *out_text = text;
        return GRT_OK;
    }
    free(text);
    return status == CUDNN_STATUS_SUCCESS ? grt_fail_memory((size_t)size)
                                          : fail_dnn(status, "does not describe", "the device");
}

grt_status cuda_dnn_properties(cuda_libraries *libraries, grt_text *out)
{
    const cuda_dnn *dnn;
    cudnnHandle_t handle;
    char *text = NULL;
    GRT_TRY(cuda_dnn_get(libraries, &dnn));
    GRT_TRY(cuda_dnn_take(libraries, &handle));
    const grt_status status = cuda_library_properties(dnn, handle, &text);
    cuda_dnn_give(libraries, handle);
    if (status == GRT_OK)
        grt_text_add(out, "%s", text);
    free(text);
    return status;
}

const char *cuda_dnn_profile(cuda_libraries *libraries, cudnnHandle_t handle)
{
    if (libraries->description)
        return NULL;
    pthread_mutex_lock(&libraries->lock);
    if (!libraries->profile && cuda_library_properties(&dnn_functions, handle, &libraries->profile) != GRT_OK)
        libraries->profile = NULL; /* plans are then taken as they are, or made anew */
    const char *profile = libraries->profile;
    pthread_mutex_unlock(&libraries->lock);
    return profile;
}

cudnnBackendDescriptor_t cuda_dnn_description(const cuda_libraries *libraries)
{
    return libraries->description;
}

grt_status cuda_libraries_describe(const char *name, const char *properties, cuda_libraries **out_libraries)
{
    cuda_libraries *libraries;
    const cuda_dnn *dnn;
    GRT_TRY(make_libraries(-1, &libraries));
    grt_status status = cuda_dnn_get(libraries, &dnn);
    if (status == GRT_OK) {
        cudnnStatus_t said =
            dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &libraries->description);
        if (said == CUDNN_STATUS_SUCCESS)
            said = dnn->cudnnBackendSetAttribute(libraries->description,
                                                 CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                                 (int64_t)strlen(properties), properties);
        if (said == CUDNN_STATUS_SUCCESS)
            said = dnn->cudnnBackendFinalize(libraries->description);
        if (said != CUDNN_STATUS_SUCCESS)
            status = fail_dnn(said, "does not take the description of", name);
    }
    if (status != GRT_OK) {
        cuda_libraries_release(libraries);
        return status;
    }
    *out_libraries = libraries;
    return GRT_OK;
}
