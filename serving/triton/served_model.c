/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/served_model.h"

#include "serving/triton/dtypes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file in the version's directory: the one that the configuration names, or a plan, or an ONNX model. */
static TRITONSERVER_Error *find_file(TRITONBACKEND_Model *handle, served_model *m)
{
    const char *const usual[] = {"model.grt", "model.onnx", "model.graphrt"};
    const char *const *names = m->settings.file ? &m->settings.file : usual;
    const size_t n = m->settings.file ? 1 : sizeof usual / sizeof *usual;
    TRITONBACKEND_ArtifactType kind;
    const char *directory;
    uint64_t version;
    TRITON_TRY(TRITONBACKEND_ModelRepository(handle, &kind, &directory));
    TRITON_TRY(TRITONBACKEND_ModelVersion(handle, &version));
    const size_t size = strlen(directory) + 64 + (m->settings.file ? strlen(m->settings.file) : 0);
    m->path = malloc(size);
    if (!m->path)
        return error_no_memory();
    for (size_t i = 0; i < n; i++) {
        snprintf(m->path, size, "%s/%llu/%s", directory, (unsigned long long)version, names[i]);
        if (access(m->path, F_OK) == 0)
            return NULL;
    }
    return error_new(TRITONSERVER_ERROR_NOT_FOUND, "model '%s': there is no %s in %s/%llu", m->name,
                     m->settings.file ? m->settings.file : "model.grt, model.onnx or model.graphrt",
                     directory, (unsigned long long)version);
}

void device_kind(const char *device, char out[DEVICE_KIND_SIZE])
{
    snprintf(out, DEVICE_KIND_SIZE, "%.*s", (int)strcspn(device, ":"), device);
}

/* A kind that the library does not list is a module's, and these are for accelerators. */
bool device_kind_is_accelerator(const char *kind)
{
    for (size_t i = 0; i < grt_device_kind_count(); i++) {
        grt_device_kind_info info = {.struct_size = sizeof info};
        if (grt_device_kind(i, &info) == GRT_OK && !strcmp(info.name, kind))
            return info.accelerator;
    }
    return true;
}

/* The kind of device that an ONNX model is compiled for at first: the first group's, as far as the
 * configuration says. */
static void choose_target(const settings *s, char out[DEVICE_KIND_SIZE])
{
    const json_t *group = json_array_get(json_object_get(s->config, "instance_group"), 0);
    const char *kind = json_string_value(json_object_get(group, "kind"));
    int32_t gpus;
    const bool cpu = kind && !strcmp(kind, "KIND_CPU");
    if (kind && !strcmp(kind, "KIND_MODEL") && s->device)
        device_kind(s->device, out);
    else
        device_kind(!cpu && grt_device_count("cuda", &gpus) == GRT_OK && gpus > 0 ? "cuda" : "cpu", out);
}

static TRITONSERVER_Error *open_for(const served_model *m, const char *target, grt_model **out)
{
    const grt_compile_options options = {.struct_size = sizeof options,
                                         .target = target,
                                         .precision = m->settings.precision,
                                         .trust = m->settings.trust};
    return error_from_status(grt_model_open_with(m->runtime, m->path, &options, out), m->name);
}

static TRITONSERVER_Error *describe_io(const served_model *m, bool output, size_t index, served_io *io)
{
    const char *const what = output ? "output" : "input";
    io->info.struct_size = sizeof io->info;
    TRITON_TRY(error_from_status(output ? grt_model_output(m->model, index, &io->info)
                                        : grt_model_input(m->model, index, &io->info),
                                 m->name));
    io->type = dtype_to_triton(io->info.dtype);
    io->state = output && settings_is_state(&m->settings, io->info.name);
    if (io->info.kind != GRT_KIND_TENSOR)
        return error_new(TRITONSERVER_ERROR_UNSUPPORTED,
                         "model '%s': %s '%s' is a sequence, an optional or a map; Triton has tensors only",
                         m->name, what, io->info.name);
    if (io->type == TRITONSERVER_TYPE_INVALID)
        return error_new(TRITONSERVER_ERROR_UNSUPPORTED,
                         "model '%s': %s '%s' has elements of %s, a type that Triton does not have", m->name,
                         what, io->info.name, grt_dtype_name(io->info.dtype));
    return NULL;
}

static TRITONSERVER_Error *describe_model(served_model *m)
{
    m->n_inputs = grt_model_input_count(m->model);
    m->n_outputs = grt_model_output_count(m->model);
    m->inputs = calloc(m->n_inputs + 1, sizeof *m->inputs);
    m->outputs = calloc(m->n_outputs + 1, sizeof *m->outputs);
    if (!m->inputs || !m->outputs)
        return error_no_memory();
    for (size_t i = 0; i < m->n_inputs; i++)
        TRITON_TRY(describe_io(m, false, i, &m->inputs[i]));
    for (size_t i = 0; i < m->n_outputs; i++)
        TRITON_TRY(describe_io(m, true, i, &m->outputs[i]));
    return NULL;
}

static TRITONSERVER_Error *fill_model(TRITONBACKEND_Model *handle, served_model *m)
{
    TRITON_TRY(TRITONBACKEND_ModelName(handle, &m->name));
    TRITON_TRY(settings_read(handle, &m->settings));
    if (m->settings.custom_ops)
        TRITON_TRY(error_from_status(grt_custom_ops_load(m->settings.custom_ops), m->name));
    TRITON_TRY(find_file(handle, m));
    choose_target(&m->settings, m->target);
    TRITON_TRY(open_for(m, m->target, &m->model));
    return describe_model(m);
}

TRITONSERVER_Error *served_model_create(TRITONBACKEND_Model *handle, grt_runtime *runtime, copiers *helpers,
                                        served_model **out)
{
    served_model *m = calloc(1, sizeof *m);
    if (!m)
        return error_no_memory();
    m->runtime = runtime;
    m->copiers = helpers;
    pthread_mutex_init(&m->lock, NULL);
    TRITONSERVER_Error *error = fill_model(handle, m);
    if (error)
        served_model_release(m);
    else
        *out = m;
    return error;
}

void served_model_release(served_model *m)
{
    if (!m)
        return;
    grt_model_release(m->model);
    pthread_mutex_destroy(&m->lock);
    settings_release(&m->settings);
    free(m->inputs);
    free(m->outputs);
    free(m->path);
    free(m);
}

bool served_model_is_batchable(const served_model *m)
{
    const char *symbol = NULL;
    for (size_t i = 0; i < m->n_inputs + m->n_outputs; i++) {
        const grt_io_info *info = i < m->n_inputs ? &m->inputs[i].info : &m->outputs[i - m->n_inputs].info;
        if (info->rank < 1 || !info->symbols[0] || (symbol && strcmp(symbol, info->symbols[0]) != 0))
            return false;
        symbol = info->symbols[0];
    }
    return symbol != NULL;
}

/* Instances on CPUs share the processors, unless the configuration says how many threads each has. */
static int32_t fair_threads(const served_model *m, const grt_session *alone)
{
    const int64_t n = settings_cpu_instances(&m->settings);
    const int32_t all = grt_session_threads(alone);
    return n < all ? (int32_t)(all / n) : 1;
}

/* A plan serves every kind of device; an ONNX model is compiled again for another kind. */
static TRITONSERVER_Error *create_session(served_model *m, const char *device, grt_session **out)
{
    grt_session_options options = {
        .struct_size = sizeof options, .threads = m->settings.threads, .fallback = m->settings.fallback};
    grt_model *model = m->model, *other = NULL;
    char target[DEVICE_KIND_SIZE];
    device_kind(device, target);
    if (strcmp(target, m->target) != 0) {
        TRITON_TRY(open_for(m, target, &other));
        model = other;
    }
    grt_session *alone = NULL;
    grt_status status = grt_session_create(model, device, &options, &alone);
    *out = alone;
    if (status == GRT_OK && !options.threads && !strcmp(target, "cpu")) {
        options.threads = fair_threads(m, alone);
        if (options.threads != grt_session_threads(alone)) { /* weights are shared with the first one */
            status = grt_session_create(model, device, &options, out);
            grt_session_release(alone);
        }
    }
    TRITONSERVER_Error *error = error_from_status(status, m->name);
    grt_model_release(other);
    return error;
}

static TRITONSERVER_Error *add_session(served_model *m, const char *device, device_session **out)
{
    device_session *made = calloc(1, sizeof *made);
    if (!made)
        return error_no_memory();
    snprintf(made->device, sizeof made->device, "%s", device);
    TRITONSERVER_Error *error = create_session(m, device, &made->session);
    if (error) {
        free(made);
        return error;
    }
    made->next = m->sessions;
    m->sessions = *out = made;
    log_line(TRITONSERVER_LOG_INFO, "model '%s': %s on %s, %d threads an operator", m->name, m->path, device,
             (int)grt_session_threads(made->session));
    return NULL;
}

TRITONSERVER_Error *served_model_take_session(served_model *m, const char *device, grt_session **out_session)
{
    TRITONSERVER_Error *error = NULL;
    pthread_mutex_lock(&m->lock);
    device_session *d = m->sessions;
    while (d && strcmp(d->device, device) != 0)
        d = d->next;
    if (!d)
        error = add_session(m, device, &d);
    if (!error) {
        d->users++;
        *out_session = d->session;
    }
    pthread_mutex_unlock(&m->lock);
    return error;
}

void served_model_give_session(served_model *m, grt_session *session)
{
    pthread_mutex_lock(&m->lock);
    device_session **at = &m->sessions;
    while (*at && (*at)->session != session)
        at = &(*at)->next;
    device_session *d = *at;
    if (d && --d->users == 0) {
        *at = d->next;
        grt_session_release(d->session);
        free(d);
    }
    pthread_mutex_unlock(&m->lock);
}
