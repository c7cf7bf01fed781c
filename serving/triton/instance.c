/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name that the library has for the device of an instance. */
static TRITONSERVER_Error *name_device(const instance *in, char *out, size_t size)
{
    TRITONSERVER_InstanceGroupKind kind;
    int32_t number;
    TRITON_TRY(TRITONBACKEND_ModelInstanceKind(in->handle, &kind));
    TRITON_TRY(TRITONBACKEND_ModelInstanceDeviceId(in->handle, &number));
    const char *const device = in->model->settings.device;
    if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        snprintf(out, size, "cuda:%d", number);
    else if (kind == TRITONSERVER_INSTANCEGROUPKIND_MODEL && device && strlen(device) < size)
        snprintf(out, size, "%s", device);
    else if (kind == TRITONSERVER_INSTANCEGROUPKIND_MODEL && device)
        return error_new(TRITONSERVER_ERROR_INVALID_ARG, "parameter 'device': '%s' is too long", device);
    else
        snprintf(out, size, "cpu");
    return NULL;
}

static TRITONSERVER_Error *open_instance(instance *in)
{
    char device[32], kind[DEVICE_KIND_SIZE];
    TRITON_TRY(name_device(in, device, sizeof device));
    device_kind(device, kind);
    in->gpu = device_kind_is_accelerator(kind);
    in->padding = in->model->settings.padding;
    if (in->padding == PADDING_BY_DEVICE)
        in->padding = in->gpu ? PADDING_POWER_OF_TWO : PADDING_NONE;
    if (in->gpu)
        log_line(TRITONSERVER_LOG_INFO, "model '%s' on %s: large inputs in pageable memory are %s",
                 in->model->name, device,
                 in->model->settings.pins_inputs ? "copied to page-locked memory first"
                                                 : "left to the driver, as input_pinned_memory is off");
    TRITON_TRY(served_model_take_session(in->model, device, &in->session));
    TRITON_TRY(error_from_status(grt_context_create(in->session, &in->context), in->model->name));
    in->inputs = calloc(in->model->n_inputs + 1, sizeof *in->inputs);
    in->targets = calloc(in->model->n_outputs + 1, sizeof *in->targets);
    return in->inputs && in->targets ? NULL : error_no_memory();
}

TRITONSERVER_Error *instance_create(TRITONBACKEND_ModelInstance *handle, served_model *model, instance **out)
{
    instance *in = calloc(1, sizeof *in);
    if (!in)
        return error_no_memory();
    in->handle = handle;
    in->model = model;
    TRITONSERVER_Error *error = open_instance(in);
    if (error)
        instance_release(in);
    else
        *out = in;
    return error;
}

void instance_release(instance *in)
{
    if (!in)
        return;
    for (size_t i = 0; in->inputs && i < in->model->n_inputs; i++) {
        grt_session_free_host(in->session, in->inputs[i].data);
        free(in->inputs[i].strings);
    }
    grt_context_release(in->context);
    if (in->session)
        served_model_give_session(in->model, in->session);
    free(in->inputs);
    free(in->targets);
    free(in->requests);
    free(in->request_inputs);
    free(in->wanted);
    free(in->batch);
    free(in);
}

/* Contents are not kept. */
static bool renew(void **memory, size_t n, size_t size)
{
    free(*memory);
    return (*memory = calloc(n, size)) != NULL;
}

TRITONSERVER_Error *instance_reserve(instance *in, size_t n)
{
    if (n <= in->capacity)
        return NULL;
    const size_t n_inputs = in->model->n_inputs + 1, n_outputs = in->model->n_outputs + 1;
    in->capacity = 0;
    if (!renew((void **)&in->requests, n, sizeof *in->requests) ||
        !renew((void **)&in->request_inputs, n * n_inputs, sizeof *in->request_inputs) ||
        !renew((void **)&in->wanted, n * n_outputs, sizeof *in->wanted) ||
        !renew((void **)&in->batch, n, sizeof *in->batch))
        return error_no_memory();
    for (size_t i = 0; i < n; i++) {
        in->requests[i].inputs = in->request_inputs + i * n_inputs;
        in->requests[i].wanted = in->wanted + i * n_outputs;
    }
    in->capacity = n;
    return NULL;
}
