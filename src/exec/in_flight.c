/* SPDX-License-Identifier: Apache-2.0 */
/* See in_flight.h. */
#include "src/exec/in_flight.h"

#include <stdlib.h>
#include <string.h>

struct grt_kept_memory {
    struct grt_kept_memory *next;
    void *data;
};

static grt_device *device_of(const grt_context *context)
{
    return context->session->device;
}

/* ---- order ---- */

grt_status grt_context_follow(grt_context *context, void *stream)
{
    grt_device *device = device_of(context);
    if (!context->in_flight || context->flight_stream == grt_device_stream_id(device, stream))
        return GRT_OK;
    return grt_device_stream_wait_fence(device, stream, context->flight);
}

grt_status grt_context_launched(grt_context *context, void *stream)
{
    grt_device *device = device_of(context);
    if (!grt_device_has_fences(device))
        return grt_device_wait(device, stream);
    if (!context->flight)
        GRT_TRY(grt_device_fence_create(device, &context->flight));
    GRT_TRY(grt_device_fence_record(device, context->flight, stream));
    context->in_flight = true;
    context->flight_stream = grt_device_stream_id(device, stream);
    return GRT_OK;
}

void grt_context_landed(grt_context *context)
{
    context->in_flight = false;
}

grt_status grt_context_settle(grt_context *context)
{
    if (!context->in_flight)
        return GRT_OK;
    context->in_flight = false;
    return grt_device_fence_wait(device_of(context), context->flight);
}

void grt_context_abandon(grt_context *context, void *stream)
{
    char *message = strdup(grt_last_error());
    (void)grt_context_settle(context);
    (void)grt_device_wait(device_of(context), stream);
    grt_error_set(message ? message : "out of memory");
    free(message);
}

grt_status grt_context_check_local(grt_context *context)
{
    return grt_device_local_check(device_of(context), context->local);
}

/* ---- graphs of the caller's ---- */

void grt_context_captured(grt_context *context, grt_frame *frame)
{
    frame->captured = true;
    context->arena_captured = context->workspace_captured = true;
}

grt_status grt_context_drop_memory(grt_context *context, void *memory, bool captured)
{
    if (!captured || !memory) {
        grt_device_free(device_of(context), memory);
        return GRT_OK;
    }
    struct grt_kept_memory *kept = malloc(sizeof *kept);
    if (!kept)
        return grt_fail_memory(sizeof *kept);
    *kept = (struct grt_kept_memory){context->kept_memory, memory};
    context->kept_memory = kept;
    return GRT_OK;
}

void grt_context_drop_frame(grt_context *context, grt_frame *frame)
{
    if (!frame->captured) {
        grt_frame_release(frame);
        return;
    }
    frame->next_kept = context->kept_frames;
    context->kept_frames = frame;
}

void grt_context_release_in_flight(grt_context *context)
{
    grt_device *device = device_of(context);
    (void)grt_context_settle(context);
    for (grt_frame *f = context->kept_frames, *next; f; f = next) {
        next = f->next_kept;
        grt_frame_release(f);
    }
    for (struct grt_kept_memory *m = context->kept_memory, *next; m; m = next) {
        next = m->next;
        grt_device_free(device, m->data);
        free(m);
    }
    grt_device_fence_release(device, context->flight);
    grt_device_local_release(device, context->local);
}
