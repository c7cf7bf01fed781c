/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/frame_memory.h"

#include "src/base/checked.h"
#include "src/base/text.h"
#include "src/plan/memory_plan.h"

static uint32_t in_place_mask(void *user, int32_t step)
{
    const grt_draft *draft = user;
    const grt_kernel_row *row = draft->frame->calls[step].row;
    return row && draft->steps[step].prepared && !draft->steps[step].host ? row->flags & 0xffu : 0;
}

/* The values of each storage, which views and results in place share. */
static grt_status group_storages(grt_draft *draft)
{
    grt_program *program = draft->program;
    const int32_t n = program->body->n_values;
    program->sharing_start = GRT_ARENA_ARRAY(draft->frame->arena, int32_t, n + 2);
    program->sharing = GRT_ARENA_ARRAY(draft->frame->arena, int32_t, n + 1);
    if (!program->sharing_start || !program->sharing)
        return grt_fail_memory(0);
    for (int32_t v = 0; v < n; v++)
        program->sharing_start[program->places[v].storage + 2]++;
    for (int32_t v = 2; v < n + 2; v++)
        program->sharing_start[v] += program->sharing_start[v - 1];
    for (int32_t v = 0; v < n; v++)
        program->sharing[program->sharing_start[program->places[v].storage + 1]++] = v;
    return GRT_OK;
}

/* `value` is all of its storage. */
static void point_storage(grt_frame *frame, int32_t value, char *data)
{
    const grt_program *program = frame->program;
    const int32_t s = program->places[value].storage;
    for (int32_t i = program->sharing_start[s]; i < program->sharing_start[s + 1]; i++)
        frame->values[program->sharing[i]].t.data = data + program->places[program->sharing[i]].within;
}

/* Views of constants lie where these do, whatever is bound. */
static void point_constants(grt_frame *frame)
{
    for (int32_t v = 0; v < frame->program->body->n_values; v++)
        if (frame->program->body->values[v].role == GRT_VALUE_CONST)
            point_storage(frame, v, frame->values[v].t.data);
}

/* A view of an input or constant has that one's home. */
static void take_places(grt_program *program, const grt_memory_plan *memory)
{
    for (int32_t v = 0; v < program->body->n_values; v++) {
        grt_place *place = &program->places[v];
        place->storage = memory->storage[v];
        place->within = memory->within[v];
        place->offset = memory->offset[v];
        if (place->offset == SIZE_MAX)
            place->home = program->places[place->storage].home;
    }
    program->arena_bytes = memory->arena_bytes;
}

/* A part of a value lies where that lies. */
static bool is_part(const grt_draft *draft, int32_t v)
{
    const grt_value *values = draft->frame->values;
    return grt_tensor_bytes(&values[v].t) != grt_tensor_bytes(&values[draft->program->places[v].storage].t);
}

static bool output_is_free(const grt_draft *draft, int32_t output)
{
    const grt_place *places = draft->program->places;
    const int32_t *outputs = draft->program->body->outputs, v = outputs[output];
    if (v < 0 || places[v].home != GRT_HOME_ARENA || is_part(draft, v))
        return false;
    for (int32_t i = 0; i < output; i++)
        if (outputs[i] >= 0 && places[outputs[i]].storage == places[v].storage && !is_part(draft, outputs[i]))
            return false;
    return true;
}

static grt_status find_free_outputs(grt_draft *draft)
{
    const int32_t n = draft->program->body->n_outputs;
    draft->program->output_is_free = GRT_ARENA_ARRAY(draft->frame->arena, bool, n + 1);
    if (!draft->program->output_is_free)
        return grt_fail_memory((size_t)n);
    for (int32_t i = 0; i < n; i++)
        draft->program->output_is_free[i] = output_is_free(draft, i);
    return GRT_OK;
}

static grt_status refuse_size(const grt_draft *draft, int32_t v)
{
    const grt_plan_body *body = draft->program->body;
    const int32_t maker = draft->program->places[v].maker;
    char text[GRT_TYPE_TEXT_SIZE];
    grt_tensor_text(&draft->frame->values[v].t, text);
    if (maker < 0)
        return grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                        "tensor '%s', %s, is too large for this machine's address space",
                        body->values[v].name, text);
    return grt_fail_op(
        &body->steps[maker].desc, GRT_STATUS_OUT_OF_MEMORY,
        "its result, %s, is too large for this machine's address space: make its inputs smaller", text);
}

static grt_status frame_memory_measure(const grt_draft *draft, size_t *bytes, int64_t *elements,
                                       bool *planned)
{
    const grt_plan_body *body = draft->program->body;
    for (int32_t v = 0; v < body->n_values; v++) {
        planned[v] = draft->program->places[v].home == GRT_HOME_ARENA;
        if (!planned[v])
            continue;
        bytes[v] = grt_tensor_bytes(&draft->frame->values[v].t);
        elements[v] = grt_tensor_elements(&draft->frame->values[v].t);
        if (bytes[v] == SIZE_MAX)
            return refuse_size(draft, v);
    }
    return GRT_OK;
}

grt_status grt_draft_plan_memory(grt_draft *draft)
{
    grt_arena *arena = draft->frame->arena;
    const grt_plan_body *body = draft->program->body;
    size_t *bytes = GRT_ARENA_ARRAY(arena, size_t, body->n_values + 1);
    int64_t *elements = GRT_ARENA_ARRAY(arena, int64_t, body->n_values + 1);
    bool *planned = GRT_ARENA_ARRAY(arena, bool, body->n_values + 1);
    bool *step_planned = GRT_ARENA_ARRAY(arena, bool, body->n_steps + 1);
    bool *step_views = GRT_ARENA_ARRAY(arena, bool, body->n_steps + 1);
    grt_memory_plan memory;
    if (!bytes || !elements || !planned || !step_planned || !step_views)
        return grt_fail_memory(0);
    GRT_TRY(frame_memory_measure(draft, bytes, elements, planned));
    for (int32_t s = 0; s < body->n_steps; s++) {
        const grt_step_draft *step = &draft->steps[s];
        step_views[s] = step->view;
        step_planned[s] =
            step->view ? step->prepared && !step->hoisted : step->prepared || step->outputs_fixed;
    }
    const grt_memory_request request = {.plan = draft->program->plan,
                                        .body = body,
                                        .bytes = bytes,
                                        .elements = elements,
                                        .planned = planned,
                                        .step_planned = step_planned,
                                        .step_views = step_views,
                                        .in_place = in_place_mask,
                                        .user = draft};
    GRT_TRY(grt_memory_plan_make(&request, &memory));
    take_places(draft->program, &memory);
    grt_memory_plan_release(&memory);
    GRT_TRY(group_storages(draft));
    GRT_TRY(find_free_outputs(draft));
    point_constants(draft->frame);
    return GRT_OK;
}

/* Where input i of the model lies on the device: in the frame's own block, or where the caller has it. */
static void *input_place(const grt_frame *frame, int32_t i, size_t *at)
{
    const grt_tensor *bound = &frame->executor->bound.inputs[i].t;
    const size_t own = *at;
    *at += grt_align_up(grt_tensor_bytes(&frame->values[frame->program->body->inputs[i]].t), 256);
    return grt_is_device_tensor(bound) ? bound->data : frame->input_block + own;
}

/* Where value `v`'s storage lies in the executor's arena, which is there unless all that is in it is empty.
 */
static char *arena_place(const grt_frame *frame, int32_t v)
{
    char *arena = frame->executor->arena.data;
    return arena ? arena + frame->program->places[v].offset : grt_nothing;
}

/* The frame's own block is for inputs in host memory: whoever binds device memory only does not pay for it.
 */
static grt_status need_input_block(grt_frame *frame)
{
    const grt_program *program = frame->program;
    bool needed = false;
    for (int32_t i = 0; i < program->body->n_inputs; i++)
        needed = needed || (program->places[program->body->inputs[i]].has_dims &&
                            !grt_is_device_tensor(&frame->executor->bound.inputs[i].t));
    if (!needed && frame->spare_block) {
        grt_frame_free_inputs(frame);
    }
    frame->spare_block = false;
    if (!needed || frame->input_block)
        return GRT_OK;
    void *block;
    grt_status status = grt_executor_alloc(frame->executor, GRT_ACCOUNT_INPUTS, program->input_bytes, &block);
    if (status != GRT_OK)
        return grt_fail_context(status, "memory for inputs");
    frame->input_block = block;
    return GRT_OK;
}

/* Device tensors of the caller's are used where they are; host tensors have a place on the device. */
static void bind_inputs_on_device(grt_frame *frame)
{
    const grt_program *program = frame->program;
    size_t at = 0;
    for (int32_t i = 0; i < program->body->n_inputs; i++) {
        const int32_t v = program->body->inputs[i];
        const grt_value *bound = &frame->executor->bound.inputs[i];
        if (frame->host_fetched[v])
            grt_frame_drop(frame, v);
        frame->host_ok[v] = !grt_is_device_tensor(&bound->t);
        if (frame->host_ok[v])
            frame->host[v] = *bound;
        else
            grt_frame_shadow(frame, v);
        if (!program->places[v].has_dims)
            continue;
        void *data = input_place(frame, i, &at);
        if (frame->values[v].t.data != data)
            point_storage(frame, v, data);
        if (frame->replay.sets)
            frame->replay.pointers[i] = data;
    }
}

static void bind_inputs_on_host(grt_frame *frame)
{
    const grt_program *program = frame->program;
    for (int32_t i = 0; i < program->body->n_inputs; i++) {
        const int32_t v = program->body->inputs[i];
        const grt_value *bound = &frame->executor->bound.inputs[i];
        if (!program->places[v].has_dims)
            frame->values[v] = *bound;
        else if (frame->values[v].t.data != bound->t.data)
            point_storage(frame, v, bound->t.data);
    }
}

/* Results are written straight into the caller's memory where it is of the kind that steps write to. */
static void frame_memory_bind_outputs(grt_frame *frame)
{
    const grt_program *program = frame->program;
    const grt_binding *bound = &frame->executor->bound;
    const bool device = grt_frame_on_device(frame);
    for (int32_t i = 0; i < program->body->n_outputs; i++) {
        const int32_t v = program->body->outputs[i];
        if (!program->output_is_free[i])
            continue;
        const bool theirs = bound->output_set[i] && grt_is_device_tensor(&bound->outputs[i]) == device;
        void *data = theirs ? bound->outputs[i].data : arena_place(frame, v);
        if (frame->values[v].t.data != data)
            point_storage(frame, v, data);
        if (frame->replay.sets)
            frame->replay.pointers[program->body->n_inputs + i] = data;
    }
}

/* Memory of the executor's has moved: graphs have other pointers. */
static void point_into_arena(grt_frame *frame)
{
    for (int32_t v = 0; v < frame->program->body->n_values; v++)
        if (frame->program->places[v].home == GRT_HOME_ARENA)
            frame->values[v].t.data = arena_place(frame, v);
    frame->arena_base = frame->executor->arena.data;
    grt_frame_set_workspace(frame);
    grt_replay_clear(&frame->replay, grt_executor_device(frame->executor));
    grt_replay_clear(&frame->trips, grt_executor_device(frame->executor));
    frame->bound = true;
}

grt_status grt_frame_bind(grt_frame *frame)
{
    const grt_executor *executor = frame->executor;
    if (grt_frame_on_device(frame))
        GRT_TRY(need_input_block(frame));
    if (!frame->bound || frame->arena_base != executor->arena.data ||
        frame->workspace_base != executor->workspace.data)
        point_into_arena(frame);
    if (grt_frame_on_device(frame))
        bind_inputs_on_device(frame);
    else
        bind_inputs_on_host(frame);
    frame_memory_bind_outputs(frame);
    return GRT_OK;
}
