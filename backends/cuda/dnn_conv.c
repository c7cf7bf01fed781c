/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of cuDNN's that convolutions share, and their runs. */
#include "backends/cuda/dnn_conv.h"

#include "backends/cuda/dnn_plans.h"
#include "backends/cuda/dnn_search.h"
#include "backends/cuda/local.h"

#include <stdlib.h>
#include <string.h>

enum { POINTERS = 5 };

struct cuda_dnn_plan {
    cuda_dnn_execution *execution;
    cuda_shared_object *shared;    /* its holder; NULL: it is this plan's alone */
    cudnnBackendDescriptor_t pack; /* for the pointers of the last run */
    cuda_dnn_args args;            /* of the last run */
};

/* Parameters of make_execution. */
typedef struct order {
    cuda_device *device;
    const cuda_dnn_conv *conv;
    grt_algo_trial *trial;
    const char *key;
} order;

static void release_execution(void *data)
{
    cuda_dnn_execution *e = data;
    if (e->plan)
        e->dnn->cudnnBackendDestroyDescriptor(e->plan);
    for (int i = e->n_descriptors - 1; i >= 0; i--)
        e->dnn->cudnnBackendDestroyDescriptor(e->descriptors[i]);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

/* NULL: cuDNN has no engine. */
static grt_status make_execution(void *user, void **out_execution)
{
    const order *o = user;
    cuda_libraries *libraries = o->device->libraries;
    cudnnHandle_t handle;
    const cuda_dnn *dnn;
    GRT_TRY(cuda_dnn_get(libraries, &dnn));
    GRT_TRY(cuda_dnn_take(libraries, &handle));
    cuda_dnn_execution *e = calloc(1, sizeof *e);
    if (!e) {
        cuda_dnn_give(libraries, handle);
        return grt_fail_memory(sizeof *e);
    }
    pthread_mutex_init(&e->lock, NULL);
    e->dnn = dnn;
    e->libraries = libraries;
    e->description = cuda_dnn_description(libraries);
    cuda_dnn_question q = {o->device, o->conv, handle, o->trial, o->key, false};
    const bool found = cuda_dnn_search(&q, e);
    cuda_dnn_give(libraries, handle);
    if (found)
        *out_execution = e;
    else
        release_execution(e);
    return GRT_OK;
}

/* Candidates that are compared are plans of their own. */
static grt_status find_execution(order *o, cuda_dnn_plan *plan)
{
    static const cuda_object_kind kind = {make_execution, release_execution};
    void *made = NULL;
    if (o->trial) {
        GRT_TRY(make_execution(o, &made));
    } else {
        GRT_TRY(cuda_shared_object_take(cuda_libraries_plans(o->device->libraries), o->key, &kind, o,
                                        &plan->shared));
        made = cuda_shared_object_data(plan->shared);
    }
    plan->execution = made;
    return GRT_OK;
}

grt_status cuda_dnn_plan_create(cuda_device *device, const cuda_dnn_conv *conv, grt_algo_trial *trial,
                                cuda_dnn_plan **out_plan)
{
    const cuda_dnn *dnn;
    *out_plan = NULL;
    GRT_TRY(cuda_dnn_get(device->libraries, &dnn));
    cuda_dnn_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return grt_fail_memory(sizeof *plan);
    grt_text key = {0};
    grt_device_algo_key(&device->base, conv->transposed ? "ConvTranspose" : "Conv", &key);
    cuda_dnn_search_key(dnn, conv, &key);
    order o = {device, conv, trial, grt_text_get(&key)};
    const grt_status status = key.failed ? grt_fail_memory(key.size) : find_execution(&o, plan);
    grt_text_release(&key);
    if (plan->execution) {
        *out_plan = plan;
        return GRT_OK;
    }
    if (plan->shared)
        cuda_shared_object_give(cuda_libraries_plans(device->libraries), plan->shared);
    free(plan);
    return status;
}

void cuda_dnn_plan_release(cuda_dnn_plan *plan)
{
    if (!plan)
        return;
    if (plan->pack)
        plan->execution->dnn->cudnnBackendDestroyDescriptor(plan->pack);
    if (plan->shared)
        cuda_shared_object_give(cuda_libraries_plans(plan->execution->libraries), plan->shared);
    else
        release_execution(plan->execution);
    free(plan);
}

size_t cuda_dnn_plan_workspace(const cuda_dnn_plan *plan)
{
    return plan->execution->workspace;
}

/* Made again only when a pointer has changed. */
static cudnnStatus_t dnn_conv_bind(cuda_dnn_plan *p, const cuda_dnn_args *args)
{
    const cuda_dnn *dnn = p->execution->dnn;
    if (p->pack && !memcmp(&p->args, args, sizeof *args))
        return CUDNN_STATUS_SUCCESS;
    if (p->pack)
        dnn->cudnnBackendDestroyDescriptor(p->pack);
    p->pack = NULL;
    int64_t uids[POINTERS] = {CUDA_DNN_X, CUDA_DNN_W, CUDA_DNN_Y}, n = 3;
    const void *pointers[POINTERS] = {args->x, args->w,
                                      args->y}; /* cuDNN asks for void *; it does not write the inputs */
    if (args->bias) {
        uids[n] = CUDA_DNN_BIAS;
        pointers[n++] = args->bias;
    }
    if (args->residual) {
        uids[n] = CUDA_DNN_RESIDUAL;
        pointers[n++] = args->residual;
    }
    cudnnStatus_t status = dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &p->pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendSetAttribute(p->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                               CUDNN_TYPE_VOID_PTR, n, pointers);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendSetAttribute(p->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                               n, uids);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendSetAttribute(p->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                               CUDNN_TYPE_VOID_PTR, 1, &args->workspace);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendFinalize(p->pack);
    if (status == CUDNN_STATUS_SUCCESS) {
        p->args = *args;
    } else if (p->pack) {
        dnn->cudnnBackendDestroyDescriptor(p->pack);
        p->pack = NULL;
    }
    return status;
}

/* A context keeps its first handle: creating one allocates device memory, which a capture forbids. */
static grt_status take_handle(const grt_run *run, cuda_libraries *libraries, cudnnHandle_t *out,
                              bool *out_kept)
{
    cuda_local *local;
    GRT_TRY(cuda_local_get(run, &local));
    *out_kept = local != NULL;
    if (!local)
        return cuda_dnn_take(libraries, out);
    if (!local->dnn)
        GRT_TRY(cuda_dnn_take(libraries, &local->dnn));
    *out = local->dnn;
    return GRT_OK;
}

static cudnnStatus_t cuda_dnn_conv_execute(cuda_dnn_execution *e, cudnnHandle_t handle,
                                           cudnnBackendDescriptor_t pack, void *stream)
{
    cudnnStatus_t status = e->dnn->cudnnSetStream(handle, stream);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    pthread_mutex_lock(&e->lock);
    status = e->dnn->cudnnBackendExecute(handle, e->plan, pack);
    pthread_mutex_unlock(&e->lock);
    return status;
}

grt_status cuda_dnn_plan_run(cuda_dnn_plan *plan, const grt_run *run, const cuda_dnn_args *args)
{
    cuda_dnn_execution *e = plan->execution;
    cudnnHandle_t handle;
    bool kept;
    cudnnStatus_t status = dnn_conv_bind(plan, args);
    if (status == CUDNN_STATUS_SUCCESS) {
        GRT_TRY(take_handle(run, e->libraries, &handle, &kept));
        status = cuda_dnn_conv_execute(e, handle, plan->pack, run->stream);
        if (!kept)
            cuda_dnn_give(e->libraries, handle);
    }
    if (status == CUDNN_STATUS_SUCCESS)
        return GRT_OK;
    return grt_fail_op(run->desc, GRT_STATUS_DEVICE, "cuDNN %zu: %s", e->dnn->cudnnGetVersion(),
                       e->dnn->cudnnGetErrorString(status));
}
