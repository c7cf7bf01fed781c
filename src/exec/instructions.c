/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/instructions.h"

#include "src/exec/round_trip.h"

#include "src/exec/control_flow.h"
#include "src/exec/steps.h"

#include <string.h>

static grt_step_run *choose_control(grt_step_kind kind)
{
    switch (kind) {
    case GRT_STEP_IF:
        return grt_control_run_if;
    case GRT_STEP_LOOP:
        return grt_control_run_loop;
    case GRT_STEP_SCAN:
        return grt_control_run_scan;
    default:
        return grt_control_run_sequence_map;
    }
}

/* On the CPU, with memory of the host: steps that a device leaves to it, and bodies. */
static grt_step_run *choose_on_cpu(grt_step_kind kind)
{
    if (kind >= GRT_STEP_IF)
        return choose_control(kind);
    return kind == GRT_STEP_VIEW ? grt_step_run_view : grt_step_run_kernel_on_cpu;
}

static void choose_functions(const grt_draft *draft, grt_instruction *ins)
{
    const grt_step_kind kind = ins->step->kind;
    const bool session_on_device = draft->frame->executor->session->on_device;
    if (ins->host) {
        ins->run = grt_step_run_with_copies;
        ins->on_host = choose_on_cpu(kind);
    } else if (ins->prepared)
        ins->run = grt_step_run_prepared;
    else if (kind >= GRT_STEP_IF)
        ins->run = choose_control(kind);
    else if (grt_frame_on_device(draft->frame))
        ins->run = kind == GRT_STEP_VIEW ? grt_step_run_view_on_device : grt_step_run_kernel_on_device;
    else if (session_on_device)
        ins->run = choose_on_cpu(kind);
    else
        ins->run = kind == GRT_STEP_VIEW ? grt_step_run_view : grt_step_run_kernel;
}

static grt_status make_instructions(grt_draft *draft)
{
    grt_program *program = draft->program;
    const int32_t n_steps = program->body->n_steps;
    program->instructions = GRT_ARENA_ARRAY(draft->frame->arena, grt_instruction, n_steps + 1);
    program->instruction_of = GRT_ARENA_ARRAY(draft->frame->arena, int32_t, n_steps + 1);
    if (!program->instructions || !program->instruction_of)
        return grt_fail_memory(0);
    for (int32_t s = 0; s < n_steps; s++) {
        const grt_step_draft *d = &draft->steps[s];
        program->instruction_of[s] = d->done ? -1 : program->n_instructions;
        if (d->done)
            continue;
        grt_instruction *ins = &program->instructions[program->n_instructions++];
        *ins = (grt_instruction){.step = &program->body->steps[s],
                                 .call = &draft->frame->calls[s],
                                 .index = s,
                                 .prepared = d->prepared,
                                 .host = d->host,
                                 .outputs_fixed = d->outputs_fixed,
                                 .check = d->check};
        ins->call->outputs_placed = d->outputs_fixed && !d->host;
        choose_functions(draft, ins);
    }
    return GRT_OK;
}

/* The last step that reads each value; n_steps: it is read after the run, or by bodies while their step runs.
 */
static int32_t *find_last_reads(const grt_draft *draft)
{
    const grt_program *program = draft->program;
    const grt_plan_body *body = program->body;
    int32_t *last = GRT_ARENA_ARRAY(draft->frame->arena, int32_t, body->n_values + 1);
    if (!last)
        return NULL;
    memset(last, 0xff, (size_t)body->n_values * sizeof *last);
    for (int32_t s = 0; s < body->n_steps; s++) {
        for (int32_t i = 0; i < body->steps[s].n_in; i++)
            if (body->steps[s].in[i] >= 0)
                last[body->steps[s].in[i]] = s;
        for (int32_t i = 0; i < body->steps[s].n_out; i++)
            if (body->steps[s].out[i] >= 0)
                last[body->steps[s].out[i]] = s;
    }
    for (int32_t b = 0; b < program->plan->n_bodies; b++)
        if (program->plan->bodies[b].parent == program->index)
            for (int32_t i = 0; i < program->plan->bodies[b].n_captures; i++)
                last[program->plan->bodies[b].captures_outer[i]] = body->n_steps;
    for (int32_t i = 0; i < body->n_outputs; i++)
        if (body->outputs[i] >= 0)
            last[body->outputs[i]] = body->n_steps;
    return last;
}

/* The instruction after which nobody reads a value of the run any more. */
static grt_instruction *last_reader(const grt_draft *draft, const int32_t *last, int32_t v)
{
    const grt_program *program = draft->program;
    const bool of_run =
        program->places[v].home == GRT_HOME_RUN && program->body->values[v].role == GRT_VALUE_STEP;
    if (!of_run || last[v] < 0 || last[v] >= program->body->n_steps || program->instruction_of[last[v]] < 0)
        return NULL;
    return &program->instructions[program->instruction_of[last[v]]];
}

static grt_status find_drops(grt_draft *draft)
{
    const int32_t n_values = draft->program->body->n_values;
    const int32_t *last = find_last_reads(draft);
    int32_t *pool = GRT_ARENA_ARRAY(draft->frame->arena, int32_t, n_values + 1);
    grt_instruction *ins;
    if (!last || !pool)
        return grt_fail_memory(0);
    for (int32_t v = 0; v < n_values; v++)
        if ((ins = last_reader(draft, last, v)))
            ins->n_drop++;
    int32_t **next = GRT_ARENA_ARRAY(draft->frame->arena, int32_t *, draft->program->n_instructions + 1);
    if (!next)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < draft->program->n_instructions; i++) {
        ins = &draft->program->instructions[i];
        ins->drop = next[i] = pool;
        pool += ins->n_drop;
    }
    for (int32_t v = 0; v < n_values; v++)
        if ((ins = last_reader(draft, last, v)))
            *next[ins - draft->program->instructions]++ = v;
    return GRT_OK;
}

/* On a device the host may have asked for anything but constants. */
static grt_status find_clear(grt_draft *draft)
{
    grt_program *program = draft->program;
    program->clear = GRT_ARENA_ARRAY(draft->frame->arena, int32_t, program->body->n_values + 1);
    if (!program->clear)
        return grt_fail_memory(0);
    for (int32_t v = 0; v < program->body->n_values; v++) {
        const grt_place *place = &program->places[v];
        if (grt_frame_on_device(draft->frame) ? !grt_place_is_constant(place) : !grt_place_is_fixed(place))
            program->clear[program->n_clear++] = v;
    }
    return GRT_OK;
}

static bool is_capturable(const grt_draft *draft, int32_t i)
{
    const grt_instruction *ins = &draft->program->instructions[i];
    return grt_frame_on_device(draft->frame) && ins->prepared && !ins->host;
}

static grt_status find_segments(grt_draft *draft)
{
    grt_program *program = draft->program;
    program->segments = GRT_ARENA_ARRAY(draft->frame->arena, grt_segment, program->n_instructions + 1);
    if (!program->segments)
        return grt_fail_memory(0);
    program->blocker = -1;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const bool graph = is_capturable(draft, i);
        if (i == 0 || program->segments[program->n_segments - 1].graph != graph)
            program->segments[program->n_segments++] = (grt_segment){.first = i, .graph = graph};
        program->segments[program->n_segments - 1].end = i + 1;
        if (!graph && program->blocker < 0)
            program->blocker = i;
    }
    if (!grt_frame_on_device(draft->frame) ||
        !grt_device_has_graphs(grt_executor_device(draft->frame->executor)))
        return GRT_OK;
    GRT_TRY(grt_replay_create(draft->frame->arena, program->body->n_inputs + program->body->n_outputs,
                              program->n_segments, &draft->frame->replay));
    return grt_round_trip_create(draft->frame->arena, program, &draft->frame->trips);
}

grt_status grt_draft_make_instructions(grt_draft *draft)
{
    GRT_TRY(make_instructions(draft));
    GRT_TRY(find_drops(draft));
    GRT_TRY(find_clear(draft));
    return find_segments(draft);
}
