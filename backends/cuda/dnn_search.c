/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/dnn_search.h"

#include "backends/cuda/dnn_profile.h"
#include "backends/cuda/json.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ANSWERS = 32 };

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
static cudnnBackendDescriptor_t plan_of(cuda_dnn_execution *p, const cuda_dnn_conv *c, cudnnHandle_t handle,
                                        cudnnBackendDescriptor_t config, size_t *out_workspace)
{
    const cuda_dnn *dnn = p->dnn;
    cudnnBackendDescriptor_t plan = NULL;
    int64_t n = 0, workspace = 0;
    cudnnStatus_t finished = CUDNN_STATUS_SUCCESS;
    if (dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) !=
        CUDNN_STATUS_SUCCESS)
        return NULL;
    if (cuda_dnn_set_device(p, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                            handle) == CUDNN_STATUS_SUCCESS &&
        dnn->cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) == CUDNN_STATUS_SUCCESS &&
        (finished = dnn->cudnnBackendFinalize(plan)) == CUDNN_STATUS_SUCCESS &&
        dnn->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                                      &workspace) == CUDNN_STATUS_SUCCESS &&
        workspace >= 0 && (uint64_t)workspace <= c->workspace_cap) {
        *out_workspace = (size_t)workspace;
        return plan;
    }
    cuda_dnn_note(p, finished);
    dnn->cudnnBackendDestroyDescriptor(plan);
    return NULL;
}

void cuda_dnn_search_key(const cuda_dnn *dnn, const cuda_dnn_conv *c, grt_text *key)
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
static grt_text dnn_search_data_of(const cuda_dnn *dnn, cudnnBackendDescriptor_t plan, size_t workspace,
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
static bool plan_of_text(cuda_dnn_execution *p, cudnnHandle_t handle, size_t workspace_cap, const char *text)
{
    const cuda_dnn *dnn = p->dnn;
    cudnnBackendDescriptor_t plan = NULL;
    int64_t n = 0, workspace = 0;
    if (dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) !=
        CUDNN_STATUS_SUCCESS)
        return false;
    if (cuda_dnn_set_device(p, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                            handle) == CUDNN_STATUS_SUCCESS &&
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
static bool dnn_search_restore(cuda_dnn_execution *p, cudnnHandle_t handle, size_t workspace_cap,
                               const char *data, size_t data_size)
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
static bool dnn_search_recall(cuda_device *device, grt_algo_trial *trial, const char *key,
                              cuda_dnn_execution *p, cudnnHandle_t handle, size_t workspace_cap)
{
    bool known = false;
    size_t size;
    for (char *data; !known && (data = grt_device_algo_find(&device->base, trial, key, &size)); free(data)) {
        known = dnn_search_restore(p, handle, workspace_cap, data, size);
        if (!known)
            grt_device_algo_reject(&device->base, trial, key);
    }
    return known;
}

/* Candidates are offered as they would be stored. */
static void dnn_search_offer(cuda_dnn_question *q, const cuda_dnn *dnn, cudnnBackendDescriptor_t plan,
                             size_t workspace, int64_t engine)
{
    grt_text data = dnn_search_data_of(dnn, plan, workspace, engine);
    if (data.size)
        q->over = !grt_algo_trial_offer(q->trial, q->key, data.data, data.size);
    grt_text_release(&data);
}

/* Tries one answer of a heuristic: the first that makes a plan is taken; true if it keeps the configuration.
 */
static bool dnn_search_consider(cuda_dnn_builder *b, cuda_dnn_question *q, cudnnBackendDescriptor_t config)
{
    size_t workspace;
    cudnnBackendDescriptor_t plan = plan_of(b->plan, q->conv, q->handle, config, &workspace);
    if (!plan)
        return false;
    const int64_t engine = engine_number(b->dnn, config);
    if (grt_algo_trial_lists(q->trial))
        dnn_search_offer(q, b->dnn, plan, workspace, engine);
    if (b->plan->plan || b->plan->n_descriptors == CUDA_DNN_DESCRIPTORS) {
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
static void dnn_search_choose(cuda_dnn_builder *b, cuda_dnn_question *q, cudnnBackendDescriptor_t graph,
                              cudnnBackendHeurMode_t mode)
{
    const cuda_dnn *dnn = b->dnn;
    const bool lists = grt_algo_trial_lists(q->trial);
    cudnnBackendDescriptor_t configs[MOST_ANSWERS] = {NULL};
    int64_t n = 0, n_made = 0;
    cudnnBackendDescriptor_t heuristics = cuda_dnn_make(b, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cuda_dnn_set_descriptor(b, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    cuda_dnn_set(b, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (b->plan->description) /* else that of the graph's handle */
        cuda_dnn_set_descriptor(b, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, b->plan->description);
    cuda_dnn_finish(b, heuristics);
    if (b->status != CUDNN_STATUS_SUCCESS)
        return;
    while (n_made < MOST_ANSWERS &&
           dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[n_made]) ==
               CUDNN_STATUS_SUCCESS)
        n_made++;
    cuda_dnn_check(b, dnn->cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, n_made, &n, configs));
    if (b->status == CUDNN_STATUS_SUCCESS)
        for (int64_t i = 0; i < n && i < n_made && (!b->plan->plan || (lists && !q->over)); i++)
            if (acceptable(dnn, q->conv, configs[i]) && dnn_search_consider(b, q, configs[i]))
                configs[i] = NULL; /* the plan's */
    for (int64_t i = 0; i < n_made; i++)
        if (configs[i])
            dnn->cudnnBackendDestroyDescriptor(configs[i]);
}

/* Without a GPU no engine can be compiled, so "none" is not final. */
static void dnn_search_remember(const cuda_dnn_question *q, const cuda_dnn_execution *p)
{
    grt_text data = {0};
    if (!p->plan && (p->unsure || (p->description && q->conv->compile)))
        return;
    if (!p->plan) {
        grt_device_algo_store(&q->device->base, q->trial, q->key, no_engine, sizeof no_engine - 1);
        return;
    }
    data = dnn_search_data_of(p->dnn, p->plan, p->workspace, p->engine);
    if (data.size)
        grt_device_algo_store(&q->device->base, q->trial, q->key, data.data, data.size);
    grt_text_release(&data);
}

/* The heuristics' first answer that is acceptable. */
static void dnn_search_ask(cuda_dnn_question *q, cuda_dnn_execution *p)
{
    cuda_dnn_builder b = {.dnn = p->dnn, .plan = p, .status = CUDNN_STATUS_SUCCESS};
    cudnnBackendDescriptor_t graph = cuda_dnn_graph_build(&b, q->conv, q->handle);
    if (b.status != CUDNN_STATUS_SUCCESS)
        return;
    dnn_search_choose(&b, q, graph, CUDNN_HEUR_MODE_A);
    b.status = CUDNN_STATUS_SUCCESS; /* no answer in this mode is not an error */
    if (!p->plan)
        dnn_search_choose(&b, q, graph, CUDNN_HEUR_MODE_FALLBACK);
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
static bool choose_from_afar(cuda_dnn_question *q, cuda_dnn_execution *p)
{
    size_t size;
    char *data = grt_device_algo_find(&q->device->base, q->trial, q->key, &size);
    const bool known = data && strcmp(data, no_engine) != 0;
    if (!data && !wants_gpu_to_choose(q->conv)) {
        dnn_search_ask(q, p);
        dnn_search_remember(q, p);
    }
    free(data);
    return known || p->plan;
}

bool cuda_dnn_search(cuda_dnn_question *q, cuda_dnn_execution *p)
{
    if (p->description)
        return choose_from_afar(q, p);
    if (!dnn_search_recall(q->device, q->trial, q->key, p, q->handle, q->conv->workspace_cap)) {
        dnn_search_ask(q, p);
        dnn_search_remember(q, p);
    }
    return p->plan;
}
