/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions through cuDNN's graph API. Residuals are added before the bias: only in that order has cuDNN
 * precompiled engines. */
#include "backends/cuda/dnn_conv.h"

#include "backends/cuda/dnn_plans.h"
#include "backends/cuda/dnn_profile.h"
#include "backends/cuda/json.h"
#include "backends/cuda/local.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_RANK = 2 + CUDA_DNN_SPATIAL,
    MAX_DESCRIPTORS = 32,
    MAX_OPERATIONS = 4,
    MOST_ANSWERS = 32,
    POINTERS = 5,
    ALIGNMENT = 16, /* of every tensor */
};

enum { UID_X = 1, UID_W, UID_Y, UID_BIAS, UID_RESIDUAL, UID_VIRTUAL };

/* The library's plan, which equal convolutions of a device share. */
typedef struct execution {
    const cuda_dnn *dnn;
    cuda_libraries *libraries;
    cudnnBackendDescriptor_t plan;
    cudnnBackendDescriptor_t description; /* of a device that is not here; NULL: the handle's */
    size_t workspace;
    int64_t engine;
    bool unsure;  /* the library failed for a reason other than the convolution */
    bool decided; /* there is an engine, though no plan was made of it */
    pthread_mutex_t
        lock; /* the library does not promise that all engines can be run by two threads at once */
    int n_descriptors;
    cudnnBackendDescriptor_t descriptors[MAX_DESCRIPTORS]; /* what the plan was made from, in order */
} execution;

struct cuda_dnn_plan {
    execution *execution;
    cuda_shared_object *shared;    /* its holder; NULL: it is this plan's alone */
    cudnnBackendDescriptor_t pack; /* for the pointers of the last run */
    cuda_dnn_args args;            /* of the last run */
};

/* A step of building: the first failure makes the rest do nothing. */
typedef struct builder {
    const cuda_dnn *dnn;
    execution *plan;
    cudnnStatus_t status;
    int n_operations, n_virtual;
    cudnnBackendDescriptor_t operations[MAX_OPERATIONS];
} builder;

/* True for a missing part of the library or lack of memory, false for an unsupported convolution. */
static void note(execution *p, cudnnStatus_t status)
{
    if ((int)status >= CUDNN_STATUS_NOT_INITIALIZED && (int)status < CUDNN_STATUS_BAD_PARAM)
        p->unsure = true;
}

static void check(builder *b, cudnnStatus_t status)
{
    note(b->plan, status);
    if (b->status == CUDNN_STATUS_SUCCESS)
        b->status = status;
}

static cudnnBackendDescriptor_t dnn_conv_make(builder *b, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    if (b->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    if (b->plan->n_descriptors == MAX_DESCRIPTORS) {
        b->status = CUDNN_STATUS_INTERNAL_ERROR;
        return NULL;
    }
    check(b, b->dnn->cudnnBackendCreateDescriptor(type, &made));
    if (made)
        b->plan->descriptors[b->plan->n_descriptors++] = made;
    return made;
}

static void dnn_conv_set(builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    if (b->status == CUDNN_STATUS_SUCCESS)
        check(b, b->dnn->cudnnBackendSetAttribute(d, name, type, n, values));
}

static void set_int(builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int64_t value)
{
    dnn_conv_set(b, d, name, CUDNN_TYPE_INT64, 1, &value);
}

static void set_float(builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, float value)
{
    dnn_conv_set(b, d, name, CUDNN_TYPE_FLOAT, 1, &value);
}

static void set_descriptor(builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                           cudnnBackendDescriptor_t value)
{
    dnn_conv_set(b, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void dnn_conv_set_type(builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                              cudnnDataType_t value)
{
    dnn_conv_set(b, d, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

/* Which device an object is for. */
static cudnnStatus_t set_device(const execution *p, cudnnBackendDescriptor_t d,
                                cudnnBackendAttributeName_t by_handle,
                                cudnnBackendAttributeName_t by_description, cudnnHandle_t handle)
{
    if (p->description)
        return p->dnn->cudnnBackendSetAttribute(d, by_description, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                                &p->description);
    return p->dnn->cudnnBackendSetAttribute(d, by_handle, CUDNN_TYPE_HANDLE, 1, &handle);
}

static void dnn_conv_finish(builder *b, cudnnBackendDescriptor_t d)
{
    if (b->status == CUDNN_STATUS_SUCCESS)
        check(b, b->dnn->cudnnBackendFinalize(d));
}

/* ---- the graph ---- */

static cudnnDataType_t dnn_conv_data_type(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16    ? CUDNN_DATA_HALF
           : dtype == GRT_DTYPE_BFLOAT16 ? CUDNN_DATA_BFLOAT16
                                         : CUDNN_DATA_FLOAT;
}

/* dims in the order n, c, spatial; strides of a dense tensor with channels first or last. */
static cudnnBackendDescriptor_t dnn_conv_tensor(builder *b, const cuda_dnn_conv *c, int64_t uid,
                                                const int64_t *dims, bool is_virtual)
{
    const int32_t rank = c->spatial + 2;
    int64_t strides[MAX_RANK], step = 1;
    if (c->last) {
        strides[1] = 1;
        step = dims[1];
    }
    for (int32_t i = rank - 1; i >= 2; i--) {
        strides[i] = step;
        step *= dims[i];
    }
    if (!c->last) {
        strides[1] = step;
        step *= dims[1];
    }
    strides[0] = step;
    cudnnBackendDescriptor_t d = dnn_conv_make(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    dnn_conv_set_type(b, d, CUDNN_ATTR_TENSOR_DATA_TYPE,
                      is_virtual ? CUDNN_DATA_FLOAT : dnn_conv_data_type(c->dtype));
    dnn_conv_set(b, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dims);
    dnn_conv_set(b, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, strides);
    set_int(b, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    set_int(b, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT);
    if (is_virtual)
        dnn_conv_set(b, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    dnn_conv_finish(b, d);
    return d;
}

/* Where a step's result goes: y if it is the last. */
static cudnnBackendDescriptor_t dnn_conv_result(builder *b, const cuda_dnn_conv *c, const int64_t *dims,
                                                bool is_last)
{
    return is_last ? dnn_conv_tensor(b, c, UID_Y, dims, false)
                   : dnn_conv_tensor(b, c, UID_VIRTUAL + b->n_virtual++, dims, true);
}

static void add_operation(builder *b, cudnnBackendDescriptor_t d)
{
    dnn_conv_finish(b, d);
    if (b->n_operations < MAX_OPERATIONS)
        b->operations[b->n_operations++] = d;
}

static void convolution(builder *b, const cuda_dnn_conv *c, cudnnBackendDescriptor_t x,
                        cudnnBackendDescriptor_t w, cudnnBackendDescriptor_t y)
{
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t window = dnn_conv_make(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_int(b, window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, c->spatial);
    dnn_conv_set_type(b, window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    dnn_conv_set(b, window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    dnn_conv_set(b, window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, c->spatial, c->padding);
    dnn_conv_set(b, window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, c->spatial, c->padding);
    dnn_conv_set(b, window, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, c->spatial, c->dilation);
    dnn_conv_set(b, window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, c->spatial, c->stride);
    dnn_conv_finish(b, window);
    if (c->transposed) {
        cudnnBackendDescriptor_t d =
            dnn_conv_make(b, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
        set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, window);
        set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, x);
        set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w);
        set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, y);
        set_float(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1.0f);
        set_float(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0.0f);
        add_operation(b, d);
        return;
    }
    cudnnBackendDescriptor_t d = dnn_conv_make(b, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, window);
    set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    set_descriptor(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
    set_float(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0f);
    set_float(b, d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0f);
    add_operation(b, d);
}

/* y = x + other, or relu(x) where other is NULL. */
static void pointwise(builder *b, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                      cudnnBackendDescriptor_t other, cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t kind = dnn_conv_make(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    dnn_conv_set(b, kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    dnn_conv_set_type(b, kind, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    dnn_conv_finish(b, kind);
    cudnnBackendDescriptor_t d = dnn_conv_make(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(b, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
    set_descriptor(b, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (other)
        set_descriptor(b, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other);
    set_descriptor(b, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add_operation(b, d);
}

static cudnnBackendDescriptor_t build_graph(builder *b, const cuda_dnn_conv *c, cudnnHandle_t handle)
{
    int64_t x_dims[MAX_RANK] = {c->batch, c->in_channels}, y_dims[MAX_RANK] = {c->batch, c->out_channels};
    int64_t w_dims[MAX_RANK], bias_dims[MAX_RANK] = {1, c->out_channels, 1, 1, 1};
    w_dims[0] = c->transposed ? c->in_channels : c->out_channels;
    w_dims[1] = (c->transposed ? c->out_channels : c->in_channels) / c->groups;
    for (int32_t i = 0; i < c->spatial; i++) {
        x_dims[2 + i] = c->in[i];
        y_dims[2 + i] = c->out[i];
        w_dims[2 + i] = c->kernel[i];
    }
    cudnnBackendDescriptor_t x = dnn_conv_tensor(b, c, UID_X, x_dims, false),
                             w = dnn_conv_tensor(b, c, UID_W, w_dims, false);
    cudnnBackendDescriptor_t at = dnn_conv_result(b, c, y_dims, !c->residual && !c->bias && !c->relu), next;
    convolution(b, c, x, w, at);
    if (c->residual) {
        cudnnBackendDescriptor_t residual = dnn_conv_tensor(b, c, UID_RESIDUAL, y_dims, false);
        next = dnn_conv_result(b, c, y_dims, !c->bias && !c->relu);
        pointwise(b, CUDNN_POINTWISE_ADD, at, residual, next);
        at = next;
    }
    if (c->bias) {
        cudnnBackendDescriptor_t bias = dnn_conv_tensor(b, c, UID_BIAS, bias_dims, false);
        next = dnn_conv_result(b, c, y_dims, !c->relu);
        pointwise(b, CUDNN_POINTWISE_ADD, at, bias, next);
        at = next;
    }
    if (c->relu)
        pointwise(b, CUDNN_POINTWISE_RELU_FWD, at, NULL, dnn_conv_result(b, c, y_dims, true));
    cudnnBackendDescriptor_t graph = dnn_conv_make(b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (!b->plan->description)
        dnn_conv_set(b, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    dnn_conv_set(b, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, b->n_operations,
                 b->operations);
    dnn_conv_finish(b, graph);
    return graph;
}

/* ---- engines ---- */

/* Engines that would cost precision or repeatability are left out: TF32 and other tensor-core arithmetic for
 * float32, sums in fewer bits, transforms with large tiles; and, unless asked for, those compiled at run
 * time. */
static bool acceptable(const cuda_dnn *dnn, const cuda_dnn_conv *c, cudnnBackendDescriptor_t config)
{
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t numbers[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendBehaviorNote_t behaviours[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t n = 0, n_numbers = 0, n_behaviours = 0;
    if (dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS)
        return false;
    bool ok =
        dnn->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                      &n, &engine) == CUDNN_STATUS_SUCCESS &&
        dnn->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n_numbers,
                                      numbers) == CUDNN_STATUS_SUCCESS &&
        dnn->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                      CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &n_behaviours,
                                      behaviours) == CUDNN_STATUS_SUCCESS;
    const bool strict = c->dtype == GRT_DTYPE_FLOAT && !c->tf32;
    for (int64_t i = 0; ok && i < n_numbers && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++)
        switch (numbers[i]) {
        case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
            ok = !strict;
            break;
        case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        case CUDNN_NUMERICAL_NOTE_FFT:
        case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
        case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
            ok = false;
            break;
        default:
            break;
        }
    for (int64_t i = 0; ok && i < n_behaviours && i < CUDNN_BEHAVIOR_NOTE_TYPE_COUNT; i++)
        ok = behaviours[i] != CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION || c->compile;
    dnn->cudnnBackendDestroyDescriptor(engine);
    return ok;
}

static int64_t engine_number(const cuda_dnn *dnn, cudnnBackendDescriptor_t config)
{
    cudnnBackendDescriptor_t engine = NULL;
    int64_t n = 0, number = -1;
    if (dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS)
        return -1;
    if (dnn->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                      &n, &engine) != CUDNN_STATUS_SUCCESS ||
        dnn->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n,
                                      &number) != CUDNN_STATUS_SUCCESS)
        number = -1;
    dnn->cudnnBackendDestroyDescriptor(engine);
    return number;
}

/* A plan of one configuration, if it fits the workspace. */
static cudnnBackendDescriptor_t plan_of(execution *p, const cuda_dnn_conv *c, cudnnHandle_t handle,
                                        cudnnBackendDescriptor_t config, size_t *out_workspace)
{
    const cuda_dnn *dnn = p->dnn;
    cudnnBackendDescriptor_t plan = NULL;
    int64_t n = 0, workspace = 0;
    cudnnStatus_t finished = CUDNN_STATUS_SUCCESS;
    if (dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) !=
        CUDNN_STATUS_SUCCESS)
        return NULL;
    if (set_device(p, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, handle) ==
            CUDNN_STATUS_SUCCESS &&
        dnn->cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) == CUDNN_STATUS_SUCCESS &&
        (finished = dnn->cudnnBackendFinalize(plan)) == CUDNN_STATUS_SUCCESS &&
        dnn->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                                      &workspace) == CUDNN_STATUS_SUCCESS &&
        workspace >= 0 && (uint64_t)workspace <= c->workspace_cap) {
        *out_workspace = (size_t)workspace;
        return plan;
    }
    note(p, finished);
    dnn->cudnnBackendDestroyDescriptor(plan);
    return NULL;
}

/* ---- recorded choices ---- */

/* The key: all that the choice depends on. */
static void dnn_conv_add_key(const cuda_dnn *dnn, const cuda_dnn_conv *c, grt_text *key)
{
    static const char *const names[] = {"in", "out", "kernel", "stride", "dilation", "padding"};
    const int64_t *const lists[] = {c->in, c->out, c->kernel, c->stride, c->dilation, c->padding};
    grt_text_add(key, "cudnn=%zu;type=%s;layout=%s;batch=%lld;channels=%lld;filters=%lld;groups=%lld;",
                 dnn->cudnnGetVersion(), grt_dtype_name(c->dtype), c->last ? "last" : "first",
                 (long long)c->batch, (long long)c->in_channels, (long long)c->out_channels,
                 (long long)c->groups);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        grt_text_add(key, "%s=", names[i]);
        grt_text_add_dims(key, lists[i], c->spatial);
        grt_text_add(key, ";");
    }
    grt_text_add(key, "epilogue=%s%s%s;math=%s;compile=%d;workspace=%zu;", c->residual ? "residual," : "",
                 c->bias ? "bias," : "", c->relu ? "relu" : "", c->tf32 ? "tf32" : "own", c->compile,
                 c->workspace_cap);
}

/* "1 WORKSPACE ENGINE " and the library's own text of the plan, or no_engine. The 1 is this format's version.
 */
static const char no_engine[] = "1 none";

/* Empty if the library cannot serialise it: it is chosen again next time. */
static grt_text dnn_conv_data_of(const cuda_dnn *dnn, cudnnBackendDescriptor_t plan, size_t workspace,
                                 int64_t engine)
{
    const cudnnBackendAttributeName_t name = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
    grt_text data = {0};
    int64_t size = 0, n = 0;
    if (dnn->cudnnBackendGetAttribute(plan, name, CUDNN_TYPE_CHAR, 0, &size, NULL) != CUDNN_STATUS_SUCCESS ||
        size <= 0)
        return data;
    char *text = malloc((size_t)size + 1);
    if (text &&
        dnn->cudnnBackendGetAttribute(plan, name, CUDNN_TYPE_CHAR, size, &n, text) == CUDNN_STATUS_SUCCESS &&
        n > 0 && n <= size) {
        text[n] = '\0';
        grt_text_add(&data, "1 %zu %lld %s", workspace, (long long)engine, text);
        if (data.failed)
            grt_text_release(&data);
    }
    free(text);
    return data;
}

/* The plan of a library's text. */
static bool plan_of_text(execution *p, cudnnHandle_t handle, size_t workspace_cap, const char *text)
{
    const cuda_dnn *dnn = p->dnn;
    cudnnBackendDescriptor_t plan = NULL;
    int64_t n = 0, workspace = 0;
    if (dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) !=
        CUDNN_STATUS_SUCCESS)
        return false;
    if (set_device(p, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, handle) ==
            CUDNN_STATUS_SUCCESS &&
        dnn->cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                      (int64_t)strlen(text), text) == CUDNN_STATUS_SUCCESS &&
        dnn->cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS &&
        dnn->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                                      &workspace) == CUDNN_STATUS_SUCCESS &&
        workspace >= 0 && (uint64_t)workspace <= workspace_cap) {
        p->plan = plan;
        p->workspace = (size_t)workspace;
        return true;
    }
    dnn->cudnnBackendDestroyDescriptor(plan);
    return false;
}

/* The plan from data_of's text, written here or for another GPU of this kind; false: not usable here. */
static bool dnn_conv_restore(execution *p, cudnnHandle_t handle, size_t workspace_cap, const char *data,
                             size_t data_size)
{
    if (!strcmp(data, no_engine))
        return true;
    if (strncmp(data, "1 ", 2) != 0)
        return false;
    char *size, *text;
    strtoul(data + 2, &size, 10); /* of the workspace */
    const int64_t engine = strtoll(size, &text, 10);
    if (text == size || *text != ' ')
        return false;
    text++;
    if (!cuda_json_is_object(text, data_size - (size_t)(text - data)))
        return false;
    const char *profile = cuda_dnn_profile(p->libraries, handle);
    char *own = profile ? cuda_dnn_profile_replace(text, profile) : NULL;
    const bool made = plan_of_text(p, handle, workspace_cap, own ? own : text);
    free(own);
    p->engine = engine;
    return made;
}

/* The recorded choice, if it is still valid. */
static bool dnn_conv_recall(cuda_device *device, grt_algo_trial *trial, const char *key, execution *p,
                            cudnnHandle_t handle, size_t workspace_cap)
{
    bool known = false;
    size_t size;
    for (char *data; !known && (data = grt_device_algo_find(&device->base, trial, key, &size)); free(data)) {
        known = dnn_conv_restore(p, handle, workspace_cap, data, size);
        if (!known)
            grt_device_algo_reject(&device->base, trial, key);
    }
    return known;
}

/* Parameters of a search for an engine. */
typedef struct question {
    cuda_device *device;
    const cuda_dnn_conv *conv;
    cudnnHandle_t handle;
    grt_algo_trial *trial;
    const char *key;
    bool over; /* no more candidates are wanted */
} question;

/* Candidates are offered as they would be stored. */
static void dnn_conv_offer(question *q, const cuda_dnn *dnn, cudnnBackendDescriptor_t plan, size_t workspace,
                           int64_t engine)
{
    grt_text data = dnn_conv_data_of(dnn, plan, workspace, engine);
    if (data.size)
        q->over = !grt_algo_trial_offer(q->trial, q->key, data.data, data.size);
    grt_text_release(&data);
}

/* Tries one answer of a heuristic: the first that makes a plan is taken; true if it keeps the configuration.
 */
static bool dnn_conv_consider(builder *b, question *q, cudnnBackendDescriptor_t config)
{
    size_t workspace;
    cudnnBackendDescriptor_t plan = plan_of(b->plan, q->conv, q->handle, config, &workspace);
    if (!plan)
        return false;
    const int64_t engine = engine_number(b->dnn, config);
    if (grt_algo_trial_lists(q->trial))
        dnn_conv_offer(q, b->dnn, plan, workspace, engine);
    if (b->plan->plan || b->plan->n_descriptors == MAX_DESCRIPTORS) {
        b->dnn->cudnnBackendDestroyDescriptor(plan);
        return false;
    }
    b->plan->plan = plan;
    b->plan->workspace = workspace;
    b->plan->engine = engine;
    b->plan->descriptors[b->plan->n_descriptors++] = config; /* as long as the plan */
    return true;
}

/* Tries a heuristic's answers, up to the first that is usable, or all if candidates are collected. */
static void dnn_conv_choose(builder *b, question *q, cudnnBackendDescriptor_t graph,
                            cudnnBackendHeurMode_t mode)
{
    const cuda_dnn *dnn = b->dnn;
    const bool lists = grt_algo_trial_lists(q->trial);
    cudnnBackendDescriptor_t configs[MOST_ANSWERS] = {NULL};
    int64_t n = 0, n_made = 0;
    cudnnBackendDescriptor_t heuristics = dnn_conv_make(b, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_descriptor(b, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    dnn_conv_set(b, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (b->plan->description) /* else that of the graph's handle */
        set_descriptor(b, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, b->plan->description);
    dnn_conv_finish(b, heuristics);
    if (b->status != CUDNN_STATUS_SUCCESS)
        return;
    while (n_made < MOST_ANSWERS &&
           dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[n_made]) ==
               CUDNN_STATUS_SUCCESS)
        n_made++;
    check(b, dnn->cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, n_made, &n, configs));
    if (b->status == CUDNN_STATUS_SUCCESS)
        for (int64_t i = 0; i < n && i < n_made && (!b->plan->plan || (lists && !q->over)); i++)
            if (acceptable(dnn, q->conv, configs[i]) && dnn_conv_consider(b, q, configs[i]))
                configs[i] = NULL; /* the plan's */
    for (int64_t i = 0; i < n_made; i++)
        if (configs[i])
            dnn->cudnnBackendDestroyDescriptor(configs[i]);
}

/* Without a GPU no engine can be compiled, so "none" is not final. */
static void dnn_conv_remember(const question *q, const execution *p)
{
    grt_text data = {0};
    if (!p->plan && (p->unsure || (p->description && q->conv->compile)))
        return;
    if (!p->plan) {
        grt_device_algo_store(&q->device->base, q->trial, q->key, no_engine, sizeof no_engine - 1);
        return;
    }
    data = dnn_conv_data_of(p->dnn, p->plan, p->workspace, p->engine);
    if (data.size)
        grt_device_algo_store(&q->device->base, q->trial, q->key, data.data, data.size);
    grt_text_release(&data);
}

/* The heuristics' first answer that is acceptable. */
static void dnn_conv_ask(question *q, execution *p)
{
    builder b = {.dnn = p->dnn, .plan = p, .status = CUDNN_STATUS_SUCCESS};
    cudnnBackendDescriptor_t graph = build_graph(&b, q->conv, q->handle);
    if (b.status != CUDNN_STATUS_SUCCESS)
        return;
    dnn_conv_choose(&b, q, graph, CUDNN_HEUR_MODE_A);
    b.status = CUDNN_STATUS_SUCCESS; /* no answer in this mode is not an error */
    if (!p->plan)
        dnn_conv_choose(&b, q, graph, CUDNN_HEUR_MODE_FALLBACK);
}

/* Convolutions that are products of matrices: cuDNN has an engine for them that calls cuBLASLt, most often
 * its heuristics' first answer, and does not offer it where there is no GPU to ask. */
static bool wants_gpu_to_choose(const cuda_dnn_conv *c)
{
    for (int32_t i = 0; i < c->spatial; i++)
        if (c->kernel[i] != 1 || c->stride[i] != 1 || c->padding[i] != 0)
            return false;
    return c->groups == 1 && !c->transposed;
}

/* For a device that is only described: recorded choices are not loaded again, as some engines need a GPU.
 * True: there is an engine. */
static bool choose_from_afar(question *q, execution *p)
{
    size_t size;
    char *data = grt_device_algo_find(&q->device->base, q->trial, q->key, &size);
    const bool known = data && strcmp(data, no_engine) != 0;
    if (!data && !wants_gpu_to_choose(q->conv)) {
        dnn_conv_ask(q, p);
        dnn_conv_remember(q, p);
    }
    free(data);
    return known || p->plan;
}

/* Parameters of make_execution. */
typedef struct order {
    cuda_device *device;
    const cuda_dnn_conv *conv;
    grt_algo_trial *trial;
    const char *key;
} order;

static void release_execution(void *data)
{
    execution *e = data;
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
    execution *e = calloc(1, sizeof *e);
    if (!e) {
        cuda_dnn_give(libraries, handle);
        return grt_fail_memory(sizeof *e);
    }
    pthread_mutex_init(&e->lock, NULL);
    e->dnn = dnn;
    e->libraries = libraries;
    e->description = cuda_dnn_description(libraries);
    question q = {o->device, o->conv, handle, o->trial, o->key, false};
    if (e->description) {
        e->decided = choose_from_afar(&q, e);
    } else if (!dnn_conv_recall(o->device, o->trial, o->key, e, handle, o->conv->workspace_cap)) {
        dnn_conv_ask(&q, e);
        dnn_conv_remember(&q, e);
    }
    cuda_dnn_give(libraries, handle);
    if (e->plan || e->decided)
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
    dnn_conv_add_key(dnn, conv, &key);
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

int64_t cuda_dnn_plan_engine(const cuda_dnn_plan *plan)
{
    return plan->execution->engine;
}

/* ---- run ---- */

/* Made again only when a pointer has changed. */
static cudnnStatus_t dnn_conv_bind(cuda_dnn_plan *p, const cuda_dnn_args *args)
{
    const cuda_dnn *dnn = p->execution->dnn;
    if (p->pack && !memcmp(&p->args, args, sizeof *args))
        return CUDNN_STATUS_SUCCESS;
    if (p->pack)
        dnn->cudnnBackendDestroyDescriptor(p->pack);
    p->pack = NULL;
    int64_t uids[POINTERS] = {UID_X, UID_W, UID_Y}, n = 3;
    const void *pointers[POINTERS] = {args->x, args->w,
                                      args->y}; /* cuDNN asks for void *; it does not write the inputs */
    if (args->bias) {
        uids[n] = UID_BIAS;
        pointers[n++] = args->bias;
    }
    if (args->residual) {
        uids[n] = UID_RESIDUAL;
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

static cudnnStatus_t cuda_dnn_conv_execute(execution *e, cudnnHandle_t handle, cudnnBackendDescriptor_t pack,
                                           void *stream)
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
    execution *e = plan->execution;
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
