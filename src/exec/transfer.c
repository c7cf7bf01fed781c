/* SPDX-License-Identifier: Apache-2.0 */
/* Device sessions: values between the host and the device.
 *
 * Every tensor's home is the device. The host sees a value when a step that runs on the CPU, a shape rule or
 * the caller wants it; what such a step makes goes to the device if a step there reads it. */
#include "src/exec/transfer.h"

#include <string.h>

grt_status grt_frame_fetch(grt_frame *frame, int32_t value)
{
    if (!grt_frame_on_device(frame) || frame->host_ok[value])
        return GRT_OK;
    const grt_executor *executor = frame->executor;
    GRT_TRY(grt_device_value_download(grt_executor_device(executor), executor->stream, &frame->host[value],
                                      &frame->values[value].t));
    frame->host_ok[value] = true;
    frame->host_fetched[value] = frame->program->body->values[value].role == GRT_VALUE_INPUT;
    return GRT_OK;
}

/* Bodies find their results' dims themselves. */
static grt_status check_planned(const grt_frame *frame, int32_t value)
{
    const grt_tensor *found = &frame->host[value].t, *planned = &frame->values[value].t;
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    if (grt_tensor_same_type(found, planned))
        return GRT_OK;
    return grt_fail(GRT_STATUS_INVALID_PLAN, "tensor '%s' is %s, the plan has it as %s",
                    frame->program->body->values[value].name, grt_tensor_text(found, a),
                    grt_tensor_text(planned, b));
}

grt_status grt_frame_store(grt_frame *frame, int32_t value)
{
    const grt_executor *executor = frame->executor;
    const grt_place *place = &frame->program->places[value];
    const grt_value *from = &frame->host[value];
    grt_value *to = &frame->values[value];
    frame->host_ok[value] = true;
    if (grt_place_is_fixed(place))
        GRT_TRY(check_planned(frame, value));
    if (!place->read_on_device || from->kind != GRT_KIND_TENSOR || from->t.dtype == GRT_DTYPE_STRING)
        return GRT_OK;
    if (!grt_place_is_fixed(place))
        GRT_TRY(grt_device_value_alloc(grt_executor_device(executor), executor->pool, to, from->t.dtype,
                                       from->t.rank, from->t.dims));
    return grt_device_upload(grt_executor_device(executor), to->t.data, from->t.data,
                             grt_tensor_bytes(&from->t), executor->stream);
}

grt_status grt_frame_upload_inputs(grt_frame *frame, uint32_t kinds, void *stream)
{
    grt_executor *executor = frame->executor;
    const grt_plan_body *body = frame->program->body;
    for (int32_t i = 0; i < body->n_inputs; i++) {
        int32_t v = body->inputs[i];
        const grt_tensor *in = &executor->bound.inputs[i].t;
        const grt_place *place = &frame->program->places[v];
        if (!place->has_dims || !place->read_on_device || !(kinds >> in->memory & 1))
            continue;
        GRT_TRY(grt_device_upload(grt_executor_device(executor), frame->values[v].t.data, in->data,
                                  grt_tensor_bytes(in), stream));
    }
    return GRT_OK;
}

static grt_status check_output(const grt_frame *frame, int32_t i)
{
    const int32_t v = frame->program->body->outputs[i];
    const grt_tensor *found =
                         frame->program->places[v].made_on_host ? &frame->host[v].t : &frame->values[v].t,
                     *bound = &frame->executor->bound.outputs[i];
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    if (grt_tensor_same_type(found, bound))
        return GRT_OK;
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output '%s' is %s, the memory bound to it is for %s",
                    frame->program->body->values[v].name, grt_tensor_text(found, a),
                    grt_tensor_text(bound, b));
}

grt_status grt_frame_copy_on_device(grt_frame *frame, void *stream)
{
    grt_executor *executor = frame->executor;
    for (int32_t i = 0; i < frame->program->body->n_outputs; i++) {
        int32_t v = frame->program->body->outputs[i];
        const grt_tensor *to = &executor->bound.outputs[i], *from = &frame->values[v].t;
        const grt_place *place = &frame->program->places[v];
        const bool is_there = from->data == to->data && (!place->made_on_host || place->read_on_device);
        if (!executor->bound.output_set[i] || !grt_is_device_tensor(to) || is_there)
            continue;
        GRT_TRY(check_output(frame, i));
        if (place->made_on_host)
            GRT_TRY(grt_device_upload(grt_executor_device(executor), to->data, frame->host[v].t.data,
                                      grt_tensor_bytes(to), stream));
        else
            GRT_TRY(grt_device_copy(grt_executor_device(executor), to->data, from->data, grt_tensor_bytes(to),
                                    stream));
    }
    return GRT_OK;
}

/* The host has it already: it made it, asked for it, or it depends on dims alone. */
static bool is_on_host(const grt_frame *frame, int32_t value)
{
    return frame->program->places[value].made_on_host || frame->host_ok[value];
}

grt_status grt_frame_copy_to_pinned(grt_frame *frame, void *stream)
{
    grt_executor *executor = frame->executor;
    for (int32_t i = 0; i < frame->program->body->n_outputs; i++) {
        const int32_t v = frame->program->body->outputs[i];
        const grt_tensor *to = &executor->bound.outputs[i];
        if (!executor->bound.output_set[i] || to->memory != GRT_MEMORY_PINNED)
            continue;
        GRT_TRY(check_output(frame, i));
        if (is_on_host(frame, v))
            memmove(to->data, frame->host[v].t.data, grt_tensor_bytes(to));
        else
            GRT_TRY(grt_device_download(grt_executor_device(executor), to->data, frame->values[v].t.data,
                                        grt_tensor_bytes(to), stream));
    }
    return GRT_OK;
}

/* A result goes where the caller wants it, if it has that type; else into memory of the context's. */
static grt_status download_output(grt_frame *frame, int32_t i, grt_value *result)
{
    grt_executor *executor = frame->executor;
    const int32_t v = frame->program->body->outputs[i];
    const grt_tensor *from = &frame->values[v].t, *to = &executor->bound.outputs[i];
    if (executor->bound.output_set[i] && (grt_is_device_tensor(to) || !is_on_host(frame, v)))
        grt_value_clear(result); /* of an earlier run */
    if (executor->bound.output_set[i] && grt_is_device_tensor(to))
        return GRT_OK;
    if (is_on_host(frame, v))
        return grt_value_share(result, &frame->host[v]);
    if (executor->bound.output_set[i] && grt_tensor_same_type(from, to))
        result->t = *to; /* a view */
    else
        GRT_TRY(grt_value_realloc(result, from->dtype, from->rank, from->dims));
    return grt_device_download(grt_executor_device(executor), result->t.data, from->data,
                               grt_tensor_bytes(from), executor->stream);
}

grt_status grt_frame_enqueue_downloads(grt_frame *frame, grt_value *results)
{
    for (int32_t i = 0; i < frame->program->body->n_outputs; i++)
        GRT_TRY(download_output(frame, i, &results[i]));
    return GRT_OK;
}
