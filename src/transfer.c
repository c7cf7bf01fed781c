/* Device sessions: values between the host and the device.
 *
 * Every tensor's home is the device. The host sees a value when a step that runs on the CPU, a shape rule or
 * the caller wants it; what such a step makes goes to the device if a step there reads it. */
#include "src/context.h"
#include "src/device_value.h"

#include <stdlib.h>
#include <string.h>

void grt_frame_shadow(grt_frame *frame, int32_t value)
{
    const grt_tensor *t = &frame->values[value].t;
    grt_tensor *shadow = &frame->host[value].t;
    void *data = frame->host_ok[value] ? shadow->data : NULL;
    *shadow = *t;
    shadow->memory = GRT_MEMORY_HOST;
    shadow->device = 0;
    shadow->data = data;
}

grt_status grt_frame_fetch(grt_frame *frame, int32_t value)
{
    if (!grt_frame_on_device(frame) || frame->host_ok[value] || frame->hoisted[value])
        return GRT_OK;
    grt_context *context = frame->context;
    GRT_TRY(grt_device_value_download(context->session->device, context->stream, &frame->host[value],
                                      &frame->values[value].t));
    frame->host_ok[value] = true;
    return GRT_OK;
}

grt_status grt_frame_store(grt_frame *frame, int32_t value)
{
    grt_context *context = frame->context;
    const grt_value *from = &frame->host[value];
    grt_value *to = &frame->values[value];
    frame->host_ok[value] = true;
    if (!frame->read_on_device[value] || from->kind != GRT_KIND_TENSOR || from->t.dtype == GRT_DTYPE_STRING)
        return GRT_OK;
    if (frame->dynamic[value] || !frame->known[value])
        GRT_TRY(grt_device_value_alloc(context->session->device, context->pool, to, from->t.dtype,
                                       from->t.rank, from->t.dims));
    return grt_device_upload(context->session->device, to->t.data, from->t.data, grt_tensor_bytes(&from->t),
                             context->stream);
}

grt_status grt_frame_upload_inputs(grt_frame *frame)
{
    grt_context *context = frame->context;
    const grt_plan_body *body = frame->body;
    for (int32_t i = 0; i < body->n_inputs; i++) {
        int32_t v = body->inputs[i];
        const grt_tensor *in = &context->inputs[i].t;
        if (!frame->known[v] || !frame->read_on_device[v] || grt_is_device_tensor(in))
            continue;
        GRT_TRY(grt_device_upload(context->session->device, frame->values[v].t.data, in->data,
                                  grt_tensor_bytes(in), context->stream));
    }
    return GRT_OK;
}

grt_status grt_frame_copy_on_device(grt_frame *frame)
{
    grt_context *context = frame->context;
    for (int32_t i = 0; i < frame->body->n_outputs; i++) {
        int32_t v = frame->body->outputs[i];
        const grt_tensor *to = &context->outputs[i], *from = &frame->values[v].t;
        char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
        if (!context->output_set[i] || !grt_is_device_tensor(to) || from->data == to->data)
            continue;
        if (!grt_tensor_same_type(frame->made_on_host[v] ? &frame->host[v].t : from, to))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "output '%s' is %s, the memory bound to it is for %s",
                            frame->body->values[v].name, grt_tensor_text(from, a), grt_tensor_text(to, b));
        if (frame->made_on_host[v])
            GRT_TRY(grt_device_upload(context->session->device, to->data, frame->host[v].t.data,
                                      grt_tensor_bytes(to), frame->stream));
        else
            GRT_TRY(grt_device_copy(context->session->device, to->data, from->data, grt_tensor_bytes(to),
                                    frame->stream));
    }
    return GRT_OK;
}

grt_status grt_frame_download_outputs(grt_frame *frame)
{
    grt_context *context = frame->context;
    grt_device *device = context->session->device;
    for (int32_t i = 0; i < frame->body->n_outputs; i++) {
        int32_t v = frame->body->outputs[i];
        grt_value *result = &context->results[i];
        if (context->output_set[i] && grt_is_device_tensor(&context->outputs[i])) {
            grt_value_clear(result); /* it lies where the caller wants it */
            continue;
        }
        if (frame->made_on_host[v] || frame->host_ok[v] || frame->hoisted[v]) {
            GRT_TRY(grt_value_share(result, &frame->host[v]));
            continue;
        }
        const grt_tensor *t = &frame->values[v].t;
        GRT_TRY(grt_value_realloc(result, t->dtype, t->rank, t->dims));
        GRT_TRY(grt_device_download(device, result->t.data, t->data, grt_tensor_bytes(t), context->stream));
    }
    return grt_device_wait(device, context->stream);
}
