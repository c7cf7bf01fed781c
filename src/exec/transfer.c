/* SPDX-License-Identifier: Apache-2.0 */
/* Device sessions: values between the host and the device.
 *
 * Every tensor's home is the device. The host sees a value when a step that runs on the CPU, a shape rule or
 * the caller wants it; what such a step makes goes to the device if a step there reads it. */
#include "src/exec/context.h"
#include "src/exec/device_value.h"

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

grt_status grt_frame_upload_inputs(grt_frame *frame, uint32_t kinds, void *stream)
{
    grt_context *context = frame->context;
    const grt_plan_body *body = frame->body;
    for (int32_t i = 0; i < body->n_inputs; i++) {
        int32_t v = body->inputs[i];
        const grt_tensor *in = &context->inputs[i].t;
        if (!frame->known[v] || !frame->read_on_device[v] || !(kinds >> in->memory & 1))
            continue;
        GRT_TRY(grt_device_upload(context->session->device, frame->values[v].t.data, in->data,
                                  grt_tensor_bytes(in), stream));
    }
    return GRT_OK;
}

static grt_status check_output(const grt_frame *frame, int32_t i)
{
    const int32_t v = frame->body->outputs[i];
    const grt_tensor *found = frame->made_on_host[v] ? &frame->host[v].t : &frame->values[v].t,
                     *bound = &frame->context->outputs[i];
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    if (grt_tensor_same_type(found, bound))
        return GRT_OK;
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output '%s' is %s, the memory bound to it is for %s",
                    frame->body->values[v].name, grt_tensor_text(found, a), grt_tensor_text(bound, b));
}

grt_status grt_frame_copy_on_device(grt_frame *frame, void *stream)
{
    grt_context *context = frame->context;
    for (int32_t i = 0; i < frame->body->n_outputs; i++) {
        int32_t v = frame->body->outputs[i];
        const grt_tensor *to = &context->outputs[i], *from = &frame->values[v].t;
        if (!context->output_set[i] || !grt_is_device_tensor(to) || from->data == to->data)
            continue;
        GRT_TRY(check_output(frame, i));
        if (frame->made_on_host[v])
            GRT_TRY(grt_device_upload(context->session->device, to->data, frame->host[v].t.data,
                                      grt_tensor_bytes(to), stream));
        else
            GRT_TRY(grt_device_copy(context->session->device, to->data, from->data, grt_tensor_bytes(to),
                                    stream));
    }
    return GRT_OK;
}

/* The host has it already: it made it, asked for it, or it depends on dims alone. */
static bool is_on_host(const grt_frame *frame, int32_t value)
{
    return frame->made_on_host[value] || frame->host_ok[value] || frame->hoisted[value];
}

grt_status grt_frame_copy_to_pinned(grt_frame *frame, void *stream)
{
    grt_context *context = frame->context;
    for (int32_t i = 0; i < frame->body->n_outputs; i++) {
        const int32_t v = frame->body->outputs[i];
        const grt_tensor *to = &context->outputs[i];
        if (!context->output_set[i] || to->memory != GRT_MEMORY_PINNED)
            continue;
        GRT_TRY(check_output(frame, i));
        if (is_on_host(frame, v))
            memmove(to->data, frame->host[v].t.data, grt_tensor_bytes(to));
        else
            GRT_TRY(grt_device_download(context->session->device, to->data, frame->values[v].t.data,
                                        grt_tensor_bytes(to), stream));
    }
    return GRT_OK;
}

/* A result goes where the caller wants it, if it has that type; else into memory of the context's. */
static grt_status download_output(grt_frame *frame, int32_t i)
{
    grt_context *context = frame->context;
    const int32_t v = frame->body->outputs[i];
    const grt_tensor *from = &frame->values[v].t, *to = &context->outputs[i];
    grt_value *result = &context->results[i];
    if (context->output_set[i] && (grt_is_device_tensor(to) || !is_on_host(frame, v)))
        grt_value_clear(result); /* of an earlier run */
    if (context->output_set[i] && grt_is_device_tensor(to))
        return GRT_OK;
    if (is_on_host(frame, v))
        return grt_value_share(result, &frame->host[v]);
    if (context->output_set[i] && grt_tensor_same_type(from, to))
        result->t = *to; /* a view */
    else
        GRT_TRY(grt_value_realloc(result, from->dtype, from->rank, from->dims));
    return grt_device_download(context->session->device, result->t.data, from->data, grt_tensor_bytes(from),
                               context->stream);
}

grt_status grt_frame_download_outputs(grt_frame *frame)
{
    grt_context *context = frame->context;
    for (int32_t i = 0; i < frame->body->n_outputs; i++)
        GRT_TRY(download_output(frame, i));
    return grt_device_wait(context->session->device, context->stream);
}
