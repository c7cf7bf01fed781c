/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

grt_status grt_frame_create(grt_executor *executor, const grt_program *program, grt_arena *arena,
                            grt_frame **out_frame)
{
    const int32_t n_values = program->body->n_values + 1, n_steps = program->body->n_steps + 1;
    const bool device = executor->session->on_device && program->index == 0;
    grt_frame *frame = calloc(1, sizeof *frame);
    if (!frame)
        return grt_fail_memory(sizeof *frame);
    *frame = (grt_frame){.program = program, .executor = executor, .stream = executor->stream};
    frame->values = GRT_ARENA_ARRAY(arena, grt_value, n_values);
    frame->host = device ? GRT_ARENA_ARRAY(arena, grt_value, n_values) : frame->values;
    frame->host_ok = GRT_ARENA_ARRAY(arena, bool, n_values);
    frame->host_fetched = GRT_ARENA_ARRAY(arena, bool, n_values);
    frame->calls = GRT_ARENA_ARRAY(arena, grt_op_call, n_steps);
    frame->proven = GRT_ARENA_ARRAY(arena, bool, n_steps);
    if (grt_arena_failed(arena)) {
        free(frame);
        return grt_fail_memory(0);
    }
    frame->arena = arena;
    *out_frame = frame;
    return GRT_OK;
}

/* Prepare may have failed half-way: whatever is there. */
static void frame_release_values(grt_frame *frame)
{
    for (int32_t v = 0; v < frame->program->body->n_values; v++) {
        grt_frame_drop(frame, v);
        if (frame->program->places[v].home != GRT_HOME_PREPARED)
            continue;
        grt_value_clear(&frame->values[v]);
        if (grt_frame_on_device(frame))
            grt_value_clear(&frame->host[v]);
    }
}

void grt_frame_free_inputs(grt_frame *frame)
{
    grt_executor_free(frame->executor, GRT_ACCOUNT_INPUTS, frame->program->input_bytes, frame->input_block);
    frame->input_block = NULL;
}

void grt_frame_release(grt_frame *frame)
{
    if (!frame)
        return;
    grt_device *device = grt_executor_device(frame->executor);
    frame_release_values(frame);
    for (int32_t s = 0; s < frame->program->body->n_steps; s++)
        grt_op_call_release(&frame->calls[s]);
    grt_replay_release(&frame->replay, device);
    grt_replay_release(&frame->trips, device);
    grt_frame_free_inputs(frame);
    grt_arena_release(frame->arena);
    free(frame);
}

static void reset_value(grt_value *v, const grt_plan_value *plan, bool borrowed)
{
    if (borrowed)
        *v = (grt_value){0};
    else if (v->buffer || v->kind != GRT_KIND_TENSOR)
        grt_value_clear(v);
    else
        return; /* in the arena, or empty */
    v->kind = plan->kind;
    v->t.dtype = plan->dtype;
}

void grt_frame_drop(grt_frame *frame, int32_t value)
{
    const grt_place *place = &frame->program->places[value];
    const grt_plan_value *plan = &frame->program->body->values[value];
    if (grt_place_is_constant(place))
        return;
    if (!grt_place_is_fixed(place))
        reset_value(&frame->values[value], plan, place->home == GRT_HOME_BORROWED);
    if (!grt_frame_on_device(frame))
        return;
    const bool callers = plan->role == GRT_VALUE_INPUT && !frame->host_fetched[value];
    reset_value(&frame->host[value], plan, callers);
    frame->host_ok[value] = frame->host_fetched[value] = false;
}

void grt_frame_clear(grt_frame *frame)
{
    for (int32_t i = 0; i < frame->program->n_clear; i++)
        grt_frame_drop(frame, frame->program->clear[i]);
}

void grt_frame_shadow(grt_frame *frame, int32_t value)
{
    grt_tensor *shadow = &frame->host[value].t;
    void *data = frame->host_ok[value] ? shadow->data : NULL;
    *shadow = frame->values[value].t;
    shadow->memory = GRT_MEMORY_HOST;
    shadow->device = 0;
    shadow->data = data;
}

grt_status grt_frame_check_dims(grt_frame *frame, int32_t s, grt_dims_check check, bool content)
{
    grt_op_call *call = &frame->calls[s];
    if (check == GRT_DIMS_CHECKED || (check == GRT_DIMS_CHECK_ONCE && frame->proven[s]))
        return GRT_OK;
    const bool view = frame->program->body->steps[s].kind == GRT_STEP_VIEW;
    if (view && call->run.in[0]->rank >= 0)
        GRT_TRY(grt_op_call_check_view(call)); /* whatever the rule needs may be gone by now */
    if (!view || check == GRT_DIMS_CHECK_ALWAYS)
        GRT_TRY(grt_op_call_check(call, content, &frame->executor->scratch));
    frame->proven[s] = true;
    return GRT_OK;
}

static bool has_graph(const grt_replay *replay, int32_t segment)
{
    for (int32_t i = 0; i < replay->n_sets; i++)
        if (replay->sets[i].graphs[segment])
            return true;
    return false;
}

bool grt_frame_is_settled(const grt_frame *frame)
{
    const grt_replay *replay = &frame->replay;
    if (!replay->sets || frame->executor->debug || frame->executor->watch.function)
        return true;
    for (int32_t k = 0; k < frame->program->n_segments; k++)
        if (frame->program->segments[k].graph && replay->failures[k] < GRT_MAX_CAPTURES &&
            !has_graph(replay, k))
            return false;
    return true;
}

static void frame_add_inputs(const grt_frame *frame, const grt_plan_step *step, grt_text *text)
{
    char type[GRT_TYPE_TEXT_SIZE];
    for (int32_t i = 0; i < step->n_in; i++) {
        const int32_t v = step->in[i];
        grt_text_add(text, i ? ", " : "");
        if (i == GRT_SHOWN_INPUTS) {
            grt_text_add(text, "%d more", step->n_in - i);
            break;
        }
        if (v < 0) {
            grt_text_add(text, "none");
            continue;
        }
        const grt_value *value = &frame->values[v];
        grt_text_add(text, "'%.100s' %s", frame->program->body->values[v].name,
                     value->kind == GRT_KIND_TENSOR ? grt_tensor_text(&value->t, type)
                                                    : grt_kind_name(value->kind));
    }
}

grt_status grt_frame_explain(const grt_frame *frame, int32_t s, grt_status status)
{
    const grt_plan_step *step = &frame->program->body->steps[s];
    const grt_op_desc *desc = &step->desc;
    char name[256];
    snprintf(name, sizeof name, "node '%.200s'", desc->name);
    if (!strstr(grt_last_error(), name))
        grt_fail_context(status, "%s%s%s node '%s'", desc->domain, *desc->domain ? "::" : "", desc->op,
                         desc->name);
    if (status != GRT_STATUS_INVALID_ARGUMENT)
        return status;
    grt_text inputs = {0};
    frame_add_inputs(frame, step, &inputs);
    grt_fail_inputs(status, &inputs);
    grt_text_release(&inputs);
    return status;
}

void grt_frame_set_stream(grt_frame *frame, void *stream)
{
    if (frame->stream == stream)
        return;
    frame->stream = stream;
    for (int32_t i = 0; i < frame->program->n_instructions; i++) {
        const grt_instruction *ins = &frame->program->instructions[i];
        ins->call->run.stream = ins->host ? NULL : stream;
    }
}

void grt_frame_set_workspace(grt_frame *frame)
{
    const grt_executor *executor = frame->executor;
    void *workspace = grt_executor_workspace(executor);
    frame->workspace_base = executor->workspace.data;
    for (int32_t i = 0; i < frame->program->n_instructions; i++)
        if (frame->program->instructions[i].prepared && !frame->program->instructions[i].host)
            frame->program->instructions[i].call->run.workspace = workspace;
}
