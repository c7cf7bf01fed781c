/* SPDX-License-Identifier: Apache-2.0 */
/* Where the static values of a frame lie: planned once, pointed at what is bound before each run. */
#include "src/exec/context.h"

#include "src/base/checked.h"

#include <string.h>

static uint32_t in_place_mask(void *user, int32_t step)
{
    const grt_frame *frame = user;
    const grt_kernel_row *row = frame->steps[step].call.row;
    return row && frame->steps[step].is_static && !frame->steps[step].host ? row->flags & 0xffu : 0;
}

/* The values of each storage, which views and results in place share. */
static grt_status group_storages(grt_frame *frame)
{
    int32_t n = frame->body->n_values;
    frame->group_start = GRT_ARENA_ARRAY(frame->arena, int32_t, n + 2);
    frame->group = GRT_ARENA_ARRAY(frame->arena, int32_t, n + 1);
    if (!frame->group_start || !frame->group)
        return grt_fail_memory(0);
    for (int32_t v = 0; v < n; v++)
        frame->group_start[frame->memory.storage[v] + 2]++;
    for (int32_t v = 2; v < n + 2; v++)
        frame->group_start[v] += frame->group_start[v - 1];
    for (int32_t v = 0; v < n; v++)
        frame->group[frame->group_start[frame->memory.storage[v] + 1]++] = v;
    return GRT_OK;
}

/* `value` is all of its storage. */
static void point_storage(grt_frame *frame, int32_t value, char *data)
{
    int32_t s = frame->memory.storage[value];
    for (int32_t i = frame->group_start[s]; i < frame->group_start[s + 1]; i++)
        frame->values[frame->group[i]].t.data = data + frame->memory.within[frame->group[i]];
}

/* Views of constants lie where these do, whatever is bound. */
static void point_constants(grt_frame *frame)
{
    for (int32_t v = 0; v < frame->body->n_values; v++)
        if (frame->body->values[v].role == GRT_VALUE_CONST)
            point_storage(frame, v, frame->values[v].t.data);
}

grt_status grt_frame_plan_memory(grt_frame *frame)
{
    const grt_plan_body *body = frame->body;
    size_t *bytes = GRT_ARENA_ARRAY(frame->arena, size_t, body->n_values + 1);
    int64_t *elements = GRT_ARENA_ARRAY(frame->arena, int64_t, body->n_values + 1);
    bool *planned = GRT_ARENA_ARRAY(frame->arena, bool, body->n_values + 1);
    bool *step_planned = GRT_ARENA_ARRAY(frame->arena, bool, body->n_steps + 1);
    if (!bytes || !elements || !planned || !step_planned)
        return grt_fail_memory(0);
    for (int32_t s = 0; s < body->n_steps; s++)
        step_planned[s] = frame->steps[s].is_static;
    for (int32_t v = 0; v < body->n_values; v++) {
        planned[v] = body->values[v].role == GRT_VALUE_STEP && frame->known[v] && !frame->dynamic[v] &&
                     !frame->hoisted[v];
        if (!planned[v])
            continue;
        bytes[v] = grt_tensor_bytes(&frame->values[v].t);
        elements[v] = grt_tensor_elements(&frame->values[v].t);
        if (bytes[v] == SIZE_MAX)
            return grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                            "tensor '%s' is too large for this machine's address space",
                            body->values[v].name);
    }
    const grt_memory_request request = {.plan = frame->context->session->model->plan,
                                        .body = body,
                                        .bytes = bytes,
                                        .elements = elements,
                                        .planned = planned,
                                        .step_planned = step_planned,
                                        .in_place = in_place_mask,
                                        .user = frame};
    GRT_TRY(grt_memory_plan_make(&request, &frame->memory));
    GRT_TRY(group_storages(frame));
    point_constants(frame);
    return GRT_OK;
}

/* Where input i of the model lies on the device: in the frame's own block, or where the caller has it. */
static void *input_place(const grt_frame *frame, int32_t i, size_t *at)
{
    const grt_tensor *bound = &frame->context->inputs[i].t;
    const size_t own = *at;
    *at += grt_align_up(grt_tensor_bytes(&frame->values[frame->body->inputs[i]].t), 256);
    return grt_is_device_tensor(bound) ? bound->data : frame->input_block + own;
}

/* Where value `v`'s storage lies in the context's arena, which is there unless all that is in it is empty. */
static char *arena_place(const grt_frame *frame, int32_t v)
{
    char *arena = frame->context->arena;
    return arena ? arena + frame->memory.offset[v] : grt_nothing;
}

/* The frame's own block is for inputs in host memory: whoever binds device memory only does not pay for it.
 */
static grt_status need_input_block(grt_frame *frame)
{
    const grt_context *context = frame->context;
    bool needed = false;
    for (int32_t i = 0; i < frame->body->n_inputs; i++)
        needed =
            needed || (frame->known[frame->body->inputs[i]] && !grt_is_device_tensor(&context->inputs[i].t));
    if (!needed || frame->input_block)
        return GRT_OK;
    void *block;
    grt_status status = grt_device_alloc(context->session->device, frame->input_bytes, &block);
    if (status != GRT_OK)
        return grt_fail_context(status, "memory for inputs");
    frame->input_block = block;
    return GRT_OK;
}

static void mix(uint64_t *hash, const void *pointer)
{
    *hash = (*hash ^ (uint64_t)(uintptr_t)pointer) * UINT64_C(0x9e3779b97f4a7c15);
    *hash ^= *hash >> 29;
}

/* A part of a value lies where that lies. */
static bool is_part(const grt_frame *frame, int32_t value)
{
    return grt_tensor_bytes(&frame->values[value].t) !=
           grt_tensor_bytes(&frame->values[frame->memory.storage[value]].t);
}

/* An output may be written straight into the caller's memory if nothing else decides where it lies. */
static bool output_is_ours(const grt_frame *frame, int32_t output)
{
    int32_t v = frame->body->outputs[output];
    if (v < 0 || frame->dynamic[v] || frame->memory.offset[v] == SIZE_MAX || is_part(frame, v))
        return false;
    for (int32_t i = 0; i < output; i++)
        if (frame->body->outputs[i] >= 0 &&
            frame->memory.storage[frame->body->outputs[i]] == frame->memory.storage[v] &&
            !is_part(frame, frame->body->outputs[i]))
            return false;
    return true;
}

/* Device tensors of the caller's are used where they are; host tensors have a place on the device. */
static void bind_on_device(grt_frame *frame)
{
    grt_context *context = frame->context;
    const grt_plan_body *body = frame->body;
    size_t at = 0;
    frame->pointers = 0;
    for (int32_t i = 0; i < body->n_inputs; i++) {
        int32_t v = body->inputs[i];
        const grt_tensor *bound = &context->inputs[i].t;
        if (grt_is_device_tensor(bound)) {
            grt_frame_shadow(frame, v);
            frame->host[v].t.data = NULL;
            frame->host_ok[v] = false;
        } else {
            frame->host[v] = context->inputs[i];
            frame->host_ok[v] = true;
        }
        if (!frame->known[v])
            continue;
        void *data = input_place(frame, i, &at);
        if (frame->values[v].t.data != data)
            point_storage(frame, v, data);
        mix(&frame->pointers, data);
    }
    for (int32_t i = 0; i < body->n_outputs; i++) {
        int32_t v = body->outputs[i];
        if (!output_is_ours(frame, i))
            continue;
        bool theirs = context->output_set[i] && grt_is_device_tensor(&context->outputs[i]);
        void *data = theirs ? context->outputs[i].data : arena_place(frame, v);
        if (frame->values[v].t.data != data)
            point_storage(frame, v, data);
        mix(&frame->pointers, data);
    }
}

grt_status grt_frame_bind(grt_frame *frame)
{
    grt_context *context = frame->context;
    const grt_plan_body *body = frame->body;
    if (grt_frame_on_device(frame))
        GRT_TRY(need_input_block(frame));
    if (frame->arena_base != context->arena || frame->workspace_base != context->workspace || !frame->bound) {
        frame->bound = true;
        frame->workspace_base = context->workspace;
        for (int32_t v = 0; v < body->n_values; v++)
            if (frame->memory.offset[v] != SIZE_MAX)
                frame->values[v].t.data = arena_place(frame, v);
        frame->arena_base = context->arena;
        grt_frame_release_graphs(frame); /* captured with other pointers */
    }
    if (grt_frame_on_device(frame)) {
        bind_on_device(frame);
        return GRT_OK;
    }
    for (int32_t i = 0; i < body->n_inputs; i++) {
        int32_t v = body->inputs[i];
        if (frame->known[v]) {
            if (frame->values[v].t.data != context->inputs[i].t.data)
                point_storage(frame, v, context->inputs[i].t.data);
        } else {
            frame->values[v] = context->inputs[i];
            frame->borrowed[v] = true;
        }
    }
    for (int32_t i = 0; i < body->n_outputs; i++) {
        int32_t v = body->outputs[i];
        if (!output_is_ours(frame, i))
            continue;
        void *own = arena_place(frame, v);
        void *data = context->output_set[i] ? context->outputs[i].data : own;
        if (frame->values[v].t.data != data)
            point_storage(frame, v, data);
    }
    return GRT_OK;
}
