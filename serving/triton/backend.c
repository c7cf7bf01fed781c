/* SPDX-License-Identifier: Apache-2.0 */
/* What Triton Inference Server calls in a backend: libtriton_graphrt.so. serving/triton/README.md is for its
 * users. */
#include "serving/triton/complete.h"
#include "serving/triton/execute.h"

#include <stdlib.h>
#include <unistd.h>

/* All models of the server share a runtime. */
typedef struct backend {
    grt_runtime *runtime;
    copiers *copiers;
    int64_t default_batch; /* --backend-config=default-max-batch-size=N; 0: models take no batches by
                              themselves */
} backend;

static TRITONSERVER_Error *triton_backend_check_version(void)
{
    uint32_t major, minor;
    TRITON_TRY(TRITONBACKEND_ApiVersion(&major, &minor));
    if (major == TRITON_MAJOR && minor >= TRITON_MINOR)
        return NULL;
    return error_new(TRITONSERVER_ERROR_UNSUPPORTED,
                     "the backend graphrt needs version %d.%d of the interface for backends or a later %d.x; "
                     "the server has %u.%u",
                     TRITON_MAJOR, TRITON_MINOR, TRITON_MAJOR, major, minor);
}

/* By default half of the processors, at most 8: more do not make memory faster. */
static size_t copy_threads(const json_t *said)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const char *text = json_string_value(json_object_get(said, "copy-threads"));
    const long long n = text ? atoll(text) : processors < 16 ? processors / 2 : 8;
    return n < 0 ? 0 : n > 64 ? 64 : (size_t)n;
}

/* What --backend-config=default-max-batch-size=N and --backend-config=graphrt,copy-threads=N say. */
static TRITONSERVER_Error *configure_backend(TRITONBACKEND_Backend *handle, backend *b)
{
    TRITONSERVER_Message *message;
    json_t *config;
    TRITON_TRY(TRITONBACKEND_BackendConfig(handle, &message));
    TRITON_TRY(settings_parse(message, &config));
    const json_t *said = json_object_get(config, "cmdline");
    const char *text = json_string_value(json_object_get(said, "default-max-batch-size"));
    b->default_batch = text ? atoll(text) : 0;
    b->copiers = copiers_create(copy_threads(said));
    json_decref(config);
    return b->copiers ? NULL : error_no_memory();
}

static void release_backend(backend *b)
{
    if (!b)
        return;
    copiers_release(b->copiers);
    grt_runtime_release(b->runtime);
    free(b);
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *handle)
{
    TRITON_TRY(triton_backend_check_version());
    backend *b = calloc(1, sizeof *b);
    if (!b)
        return error_no_memory();
    TRITONSERVER_Error *error = configure_backend(handle, b);
    if (!error)
        error = error_from_status(grt_runtime_create(&b->runtime), "graphrt");
    if (!error)
        error = TRITONBACKEND_BackendSetState(handle, b);
    if (error)
        release_backend(b);
    else
        log_line(TRITONSERVER_LOG_INFO, "libgraphrt %s, %zu threads help to copy large inputs for GPUs",
                 grt_version(), copiers_threads(b->copiers));
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *handle)
{
    void *state;
    TRITON_TRY(TRITONBACKEND_BackendState(handle, &state));
    release_backend(state);
    return NULL;
}

/* Where a configuration does not say: GPUs, if there are any that the library can use, else CPUs. On a GPU
 * four: copies of one overlap the computation of another. Instances may be made at once. */
TRITONSERVER_Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *handle,
                                                      TRITONBACKEND_BackendAttribute *attributes)
{
    int32_t gpus;
    (void)handle;
    if (grt_device_count("cuda", &gpus) == GRT_OK && gpus > 0)
        TRITON_TRY(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
            attributes, TRITONSERVER_INSTANCEGROUPKIND_GPU, 4, NULL, 0));
    TRITON_TRY(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, NULL, 0));
    return TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true);
}

static TRITONSERVER_Error *backend_of(TRITONBACKEND_Model *handle, const backend **out)
{
    TRITONBACKEND_Backend *owner;
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelBackend(handle, &owner));
    TRITON_TRY(TRITONBACKEND_BackendState(owner, &state));
    *out = state;
    return NULL;
}

/* The configuration is read again after it was completed: the server checks it, and adds its own defaults. */
static TRITONSERVER_Error *complete_and_check(TRITONBACKEND_Model *handle, served_model *m, const backend *b)
{
    bool wanted;
    TRITON_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &wanted));
    if (wanted) {
        TRITON_TRY(complete_config(handle, m, b->default_batch));
        settings_release(&m->settings);
        TRITON_TRY(settings_read(handle, &m->settings));
    }
    return check_config(m);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *handle)
{
    const backend *b;
    served_model *m;
    TRITON_TRY(backend_of(handle, &b));
    TRITON_TRY(served_model_create(handle, b->runtime, b->copiers, &m));
    TRITONSERVER_Error *error = complete_and_check(handle, m, b);
    if (!error)
        error = TRITONBACKEND_ModelSetState(handle, m);
    if (error)
        served_model_release(m);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *handle)
{
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelState(handle, &state));
    served_model_release(state);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle)
{
    TRITONBACKEND_Model *owner;
    void *state;
    instance *in;
    TRITON_TRY(TRITONBACKEND_ModelInstanceModel(handle, &owner));
    TRITON_TRY(TRITONBACKEND_ModelState(owner, &state));
    TRITON_TRY(instance_create(handle, state, &in));
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceSetState(handle, in);
    if (error)
        instance_release(in);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle)
{
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelInstanceState(handle, &state));
    instance_release(state);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *handle,
                                                       TRITONBACKEND_Request **requests, const uint32_t count)
{
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelInstanceState(handle, &state));
    return execute_requests(state, requests, count);
}
