/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/prepare.h"

#include "src/base/checked.h"
#include "src/base/failures.h"
#include "src/exec/frame_memory.h"
#include "src/exec/hoist.h"
#include "src/exec/instructions.h"
#include "src/exec/new_code.h"
#include "src/exec/stays.h"

#include <stdlib.h>
#include <string.h>

/* ---- dims from symbols ---- */

static grt_status eval_dims(grt_draft *draft, const int64_t *symbols)
{
    grt_program *program = draft->program;
    const grt_plan *plan = program->plan;
    program->dims = GRT_ARENA_ARRAY(draft->frame->arena, int64_t, plan->n_dims + 1);
    program->dims_known = GRT_ARENA_ARRAY(draft->frame->arena, bool, plan->n_dims + 1);
    if (!program->dims || !program->dims_known)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < plan->n_dims; i++) {
        const grt_dim_expr *e = &plan->dims[i];
        int64_t *v = &program->dims[i];
        bool *known = &program->dims_known[i];
        if (e->op == GRT_DIM_CONST) {
            *v = e->value;
            *known = true;
        } else if (e->op == GRT_DIM_SYMBOL) {
            *v = symbols[e->value];
            *known = *v >= 0;
        } else {
            *known = program->dims_known[e->a] && program->dims_known[e->b] &&
                     grt_dim_apply(e->op, program->dims[e->a], program->dims[e->b], v);
        }
    }
    return GRT_OK;
}

static grt_status negative_dims(const grt_plan_value *v)
{
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                    "the bound input dims give no valid dims for tensor '%s': a dim is negative, overflows "
                    "or does not broadcast",
                    v->name);
}

/* Dims that input symbols decide. */
static void prepare_take_dims(grt_draft *draft, int32_t value)
{
    const grt_plan_value *v = &draft->program->body->values[value];
    grt_tensor *t = &draft->frame->values[value].t;
    t->rank = v->rank;
    for (int32_t i = 0; i < v->rank; i++)
        t->dims[i] = draft->program->dims[v->dims[i]];
    draft->program->places[value].has_dims = true;
    if (grt_frame_on_device(draft->frame))
        grt_frame_shadow(draft->frame, value);
}

/* ---- values ---- */

static void init_value(grt_draft *draft, int32_t v)
{
    const grt_session *session = draft->frame->executor->session;
    const grt_plan_value *value = &draft->program->body->values[v];
    grt_frame *frame = draft->frame;
    grt_place *place = &draft->program->places[v];
    const bool main = draft->program->index == 0;
    *place = (grt_place){.maker = -1, .storage = v, .offset = SIZE_MAX};
    frame->values[v].kind = frame->host[v].kind = value->kind;
    frame->values[v].t.dtype = frame->host[v].t.dtype = value->dtype;
    if (value->role == GRT_VALUE_CAPTURE || (value->role == GRT_VALUE_INPUT && main))
        place->home = GRT_HOME_BORROWED;
    if (value->role != GRT_VALUE_CONST)
        return;
    place->home = GRT_HOME_CONST;
    place->has_dims = frame->host_ok[v] = true;
    frame->host[v].t = session->host_weights[value->weight];
    if (main)
        frame->values[v].t = session->weights[value->weight];
    if (!frame->host[v].t.data && grt_tensor_elements(&frame->host[v].t) == 0)
        frame->host[v].t.data = grt_nothing;
}

/* Inputs are bound: their dims are known, whatever the model says of them. */
static void init_inputs(grt_draft *draft)
{
    grt_frame *frame = draft->frame;
    for (int32_t i = 0; i < draft->program->body->n_inputs; i++) {
        int32_t v = draft->program->body->inputs[i];
        const grt_value *in = &frame->executor->bound.inputs[i];
        if (in->kind != GRT_KIND_TENSOR || in->t.dtype == GRT_DTYPE_STRING ||
            frame->values[v].kind != GRT_KIND_TENSOR)
            continue;
        draft->program->places[v].home = GRT_HOME_INPUT;
        draft->program->places[v].has_dims = true;
        frame->values[v].t.rank = in->t.rank;
        memcpy(frame->values[v].t.dims, in->t.dims, sizeof in->t.dims);
        frame->host[v].t.rank = in->t.rank;
        memcpy(frame->host[v].t.dims, in->t.dims, sizeof in->t.dims);
        draft->program->input_bytes += grt_align_up(grt_tensor_bytes(&in->t), 256);
    }
}

/* ---- steps ---- */

/* Sequences, optionals and strings have no device form. */
static bool is_host_only(const grt_plan_value *v)
{
    return v->kind != GRT_KIND_TENSOR || v->dtype == GRT_DTYPE_STRING;
}

static bool has_open_dims(const grt_program *program, const int32_t *values, int32_t n)
{
    const grt_plan *plan = program->plan;
    for (int32_t i = 0; i < n; i++) {
        const grt_plan_value *v = values[i] < 0 ? NULL : &program->body->values[values[i]];
        bool open = v && (v->kind != GRT_KIND_TENSOR || v->rank < 0);
        for (int32_t k = 0; v && k < v->rank; k++)
            open = open || plan->dims[v->dims[k]].op != GRT_DIM_CONST;
        if (open)
            return true;
    }
    return false;
}

/* What has been proven of a plan that was compiled in memory: the compiler asked the op's rule. */
static grt_dims_check check_of(const grt_program *program, const grt_plan_step *step)
{
    if (has_open_dims(program, step->in, step->n_in) || has_open_dims(program, step->out, step->n_out))
        return GRT_DIMS_CHECK_ALWAYS;
    return program->plan->content ? GRT_DIMS_CHECK_ONCE : GRT_DIMS_CHECKED;
}

static grt_status init_step(grt_draft *draft, int32_t s)
{
    grt_frame *frame = draft->frame;
    grt_program *program = draft->program;
    grt_executor *executor = frame->executor;
    const grt_plan_step *step = &program->body->steps[s];
    const grt_session_kernel *kernel = &executor->session->kernels[program->index][s];
    const grt_tensor **in = GRT_ARENA_ARRAY(frame->arena, const grt_tensor *, step->n_in + 1);
    const grt_tensor **host_in =
        grt_frame_on_device(frame) ? GRT_ARENA_ARRAY(frame->arena, const grt_tensor *, step->n_in + 1) : in;
    grt_tensor **out = GRT_ARENA_ARRAY(frame->arena, grt_tensor *, step->n_out + 1);
    if (!in || !host_in || !out)
        return grt_fail_memory(0);
    const bool view_on_host =
        step->kind == GRT_STEP_VIEW && is_host_only(&program->body->values[step->in[0]]);
    const bool host = kernel->host || view_on_host;
    grt_value *values = host ? frame->host : frame->values;
    for (int32_t i = 0; i < step->n_in; i++) {
        in[i] = step->in[i] < 0 ? NULL : &values[step->in[i]].t;
        host_in[i] = step->in[i] < 0 ? NULL : &frame->host[step->in[i]].t;
        if (step->in[i] >= 0 && !host)
            program->places[step->in[i]].read_on_device = true;
    }
    for (int32_t i = 0; i < step->n_out; i++) {
        out[i] = step->out[i] < 0 ? NULL : &values[step->out[i]].t;
        if (step->out[i] < 0)
            continue;
        program->places[step->out[i]].made_on_host = host;
        program->places[step->out[i]].maker = s;
    }
    draft->steps[s] = (grt_step_draft){.host = host && grt_frame_on_device(frame),
                                       .view = step->kind == GRT_STEP_VIEW,
                                       .check = check_of(program, step)};
    frame->calls[s] =
        (grt_op_call){.row = kernel->row,
                      .op = kernel->op,
                      .host_in = host_in,
                      .code_when = executor->session->code_when,
                      .account = grt_frame_on_device(frame) && host ? NULL : executor->session->account,
                      .run = {.device = host ? NULL : executor->session->device,
                              .stream = host ? NULL : frame->stream,
                              .desc = &step->desc,
                              .state = kernel->state,
                              .in = in,
                              .out = out,
                              .n_in = step->n_in,
                              .n_out = step->n_out,
                              .threads = executor->session->threads,
                              .hooks = &executor->hooks}};
    return GRT_OK;
}

/* ---- what is known before a run ---- */

static grt_status find_dims_by_rule(grt_draft *draft, int32_t s, bool *out_found)
{
    grt_frame *frame = draft->frame;
    const grt_plan_step *step = &draft->program->body->steps[s];
    GRT_TRY(grt_op_call_infer(&frame->calls[s], &frame->executor->scratch));
    *out_found = true;
    for (int32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] < 0)
            continue;
        grt_value *v = &frame->values[step->out[i]];
        if (draft->steps[s].host)
            v->t = frame->host[step->out[i]].t;
        const bool known = v->kind == GRT_KIND_TENSOR && v->t.rank >= 0;
        for (int32_t k = 0; known && k < v->t.rank; k++)
            if (v->t.dims[k] < 0)
                return negative_dims(&draft->program->body->values[step->out[i]]);
        draft->program->places[step->out[i]].has_dims = known;
        *out_found = *out_found && known;
    }
    return GRT_OK;
}

/* All results have dims that input symbols decide; they are taken. */
static bool take_all_dims(grt_draft *draft, const grt_plan_step *step)
{
    bool all = true;
    for (int32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] < 0)
            continue;
        if (grt_program_has_dims(draft->program, &draft->program->body->values[step->out[i]]))
            prepare_take_dims(draft, step->out[i]);
        else
            all = false;
    }
    return all;
}

/* Output dims by the plan's expressions, else by the op's rule; false if only the run can tell. */
static grt_status prepare_find_dims(grt_draft *draft, int32_t s, bool *out_found)
{
    const grt_plan_step *step = &draft->program->body->steps[s];
    grt_op_call *call = &draft->frame->calls[s];
    *out_found = take_all_dims(draft, step);
    if (*out_found)
        return grt_frame_check_dims(draft->frame, s, draft->steps[s].check, true);
    GRT_TRY(find_dims_by_rule(draft, s, out_found));
    const bool view = step->kind == GRT_STEP_VIEW && call->run.in[0]->rank >= 0;
    return view && *out_found ? grt_op_call_check_view(call) : GRT_OK;
}

static bool has_host_only_output(const grt_draft *draft, const grt_plan_step *step)
{
    for (int32_t i = 0; i < step->n_out; i++)
        if (step->out[i] >= 0 && (is_host_only(&draft->program->body->values[step->out[i]]) ||
                                  draft->frame->values[step->out[i]].t.dtype == GRT_DTYPE_STRING))
            return true;
    return false;
}

/* Everything that the step reads before its kernel runs is there: dims, and content that reshape reads. */
static bool are_inputs_fixed(const grt_draft *draft, int32_t s)
{
    const grt_plan_step *step = &draft->program->body->steps[s];
    const uint32_t flags = draft->frame->calls[s].row ? draft->frame->calls[s].row->flags : 0;
    for (int32_t i = 0; i < step->n_in; i++) {
        const grt_place *place = step->in[i] < 0 ? NULL : &draft->program->places[step->in[i]];
        const bool read = i < 8 && flags & GRT_KERNEL_READS(i);
        if (place && (!grt_place_is_fixed(place) || (read && !grt_place_is_constant(place))))
            return false;
    }
    return true;
}

/* The step finds its results' sizes, or shares their memory, in the run. */
static bool sizes_its_results(const grt_draft *draft, int32_t s)
{
    const grt_step_kind kind = draft->program->body->steps[s].kind;
    const grt_kernel_row *row = draft->frame->calls[s].row;
    if (kind >= GRT_STEP_IF)
        return !draft->steps[s].host; /* else the device gets a copy of the results */
    return row && row->flags & (GRT_KERNEL_DYNAMIC | GRT_KERNEL_VALUES);
}

static void set_results(grt_draft *draft, int32_t s, bool fixed)
{
    const grt_plan_step *step = &draft->program->body->steps[s];
    for (int32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] < 0)
            continue;
        draft->program->places[step->out[i]].home = fixed ? GRT_HOME_ARENA : GRT_HOME_RUN;
        draft->program->places[step->out[i]].has_dims = fixed;
        if (fixed && grt_frame_on_device(draft->frame))
            grt_frame_shadow(draft->frame, step->out[i]);
    }
}

/* Decide what of a step of the main body is known at these dims. Its results are fixed if all is, and also if
 * their dims are while those of its inputs, or what it reads, come with the run. */
static grt_status decide_step(grt_draft *draft, int32_t s)
{
    const grt_plan_step *step = &draft->program->body->steps[s];
    grt_step_draft *d = &draft->steps[s];
    const bool sizes = sizes_its_results(draft, s);
    bool known = step->kind <= GRT_STEP_VIEW && !sizes && are_inputs_fixed(draft, s);
    if (known)
        GRT_TRY(prepare_find_dims(draft, s, &known));
    known = known && !has_host_only_output(draft, step);
    if (grt_draft_can_hoist(draft, s))
        GRT_TRY(grt_draft_hoist(draft, s));
    if (d->done)
        return GRT_OK;
    d->prepared = known;
    d->view = d->view || (known && grt_draft_stays(draft, s));
    d->done = known && (d->view || grt_op_call_is_empty(&draft->frame->calls[s]));
    d->outputs_fixed = known || (step->kind != GRT_STEP_VIEW && !sizes &&
                                 !has_host_only_output(draft, step) && take_all_dims(draft, step));
    set_results(draft, s, d->outputs_fixed);
    return GRT_OK;
}

/* ---- kernels ---- */

static grt_status prepare_kernel(grt_draft *draft, int32_t s)
{
    const grt_step_draft *d = &draft->steps[s];
    grt_op_call *call = &draft->frame->calls[s];
    if (!d->prepared || d->done || d->host || !call->row || !call->row->reshape)
        return GRT_OK;
    grt_reshape reshape = grt_op_call_reshape(call);
    GRT_TRY(call->row->reshape(&reshape));
    call->run.shape = reshape.shape;
    call->workspace_bytes = reshape.workspace_bytes;
    call->code = reshape.code;
    return GRT_OK;
}

/* Algorithms are chosen and code is made here, in kernels of vendors' libraries above all: all steps in
 * parallel. The first failure is reported. */
static grt_status prepare_kernels(grt_draft *draft)
{
    enum { WORTH_A_TEAM = 8 };
    const grt_session *session = draft->frame->executor->session;
    const int32_t team = grt_session_team(session),
                  threads = team < GRT_MOST_PREPARING ? team : GRT_MOST_PREPARING;
    const int32_t n_steps = draft->program->body->n_steps;
    grt_failures failures = {0};
    grt_new_code_begin(draft->frame);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (n_steps > WORTH_A_TEAM)
    for (int32_t s = 0; s < n_steps; s++) {
        if (grt_stop_is_asked(&draft->frame->executor->stop))
            continue; /* this function fails in the end */
        bool switched = false;
        grt_status status = grt_device_enter(session->device, &switched);
        if (status == GRT_OK)
            status = prepare_kernel(draft, s);
        if (status != GRT_OK)
            grt_frame_explain(draft->frame, s, status);
        grt_device_leave(session->device, switched);
        grt_failures_add(&failures, status);
    }
    for (int32_t s = 0; s < n_steps; s++)
        if (draft->frame->calls[s].workspace_bytes > draft->program->workspace_bytes)
            draft->program->workspace_bytes = draft->frame->calls[s].workspace_bytes;
    grt_new_code_expect(draft->frame);
    GRT_TRY(grt_failures_end(&failures));
    return grt_stop_check(&draft->frame->executor->stop);
}

/* ---- programs ---- */

static grt_status prepare_fill(grt_draft *draft, const int64_t *symbols)
{
    const grt_plan_body *body = draft->program->body;
    const bool main = draft->program->index == 0;
    if (main) {
        GRT_TRY(eval_dims(draft, symbols));
        init_inputs(draft);
    }
    for (int32_t s = 0; s < body->n_steps; s++) {
        GRT_TRY(init_step(draft, s));
        const grt_status status = main ? decide_step(draft, s) : GRT_OK;
        if (status != GRT_OK)
            return grt_frame_explain(draft->frame, s, status);
    }
    if (main)
        GRT_TRY(grt_draft_plan_memory(draft));
    GRT_TRY(grt_draft_make_instructions(draft));
    GRT_TRY(prepare_kernels(draft));
#ifdef GRT_DEBUG
    GRT_TRY(grt_program_check(draft->program));
#endif
    return GRT_OK;
}

/* The tables that must be there for a frame to be released. */
static grt_status make_draft(grt_executor *executor, int32_t body, grt_arena *arena, grt_draft *out_draft)
{
    const grt_plan *plan = grt_executor_plan(executor);
    grt_program *program = GRT_ARENA_NEW(arena, grt_program);
    if (!program)
        return grt_fail_memory(sizeof *program);
    *program = (grt_program){.plan = plan, .body = &plan->bodies[body], .index = body};
    program->places = GRT_ARENA_ARRAY(arena, grt_place, program->body->n_values + 1);
    out_draft->steps = GRT_ARENA_ARRAY(arena, grt_step_draft, program->body->n_steps + 1);
    if (!program->places || !out_draft->steps)
        return grt_fail_memory(0);
    out_draft->program = program;
    GRT_TRY(grt_frame_create(executor, program, arena, &out_draft->frame));
    for (int32_t v = 0; v < program->body->n_values; v++)
        init_value(out_draft, v);
    return GRT_OK;
}

static grt_status prepare_body(grt_executor *executor, int32_t body, const int64_t *symbols,
                               grt_frame **out_frame)
{
    grt_draft draft = {0};
    grt_arena *arena = grt_arena_create();
    grt_status status = arena ? make_draft(executor, body, arena, &draft) : grt_fail_memory(0);
    if (status != GRT_OK) {
        grt_arena_release(arena);
        return status;
    }
    status = prepare_fill(&draft, symbols);
    if (status != GRT_OK) {
        grt_frame_release(draft.frame);
        return status;
    }
    *out_frame = draft.frame;
    return GRT_OK;
}

grt_status grt_prepare(grt_executor *executor, const int64_t *symbols, grt_frame **out_frame)
{
    for (int32_t b = 1; b < grt_executor_plan(executor)->n_bodies; b++)
        if (!executor->bodies[b])
            GRT_TRY(prepare_body(executor, b, NULL, &executor->bodies[b]));
    return prepare_body(executor, 0, symbols, out_frame);
}
