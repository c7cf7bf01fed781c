/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: the values of a body, where static ones lie, and the prepared kernels. */
#include "src/exec/context.h"

#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

/* ---- dims from symbols ---- */

static void eval_dims(grt_frame *frame, const int64_t *symbols)
{
    const grt_plan *plan = frame->context->session->model->plan;
    for (int32_t i = 0; i < plan->n_dims; i++) {
        const grt_dim_expr *e = &plan->dims[i];
        int64_t *v = &frame->dims[i];
        if (e->op == GRT_DIM_CONST) {
            *v = e->value;
            frame->dims_known[i] = true;
        } else if (e->op == GRT_DIM_SYMBOL) {
            *v = symbols[e->value];
            frame->dims_known[i] = *v >= 0;
        } else {
            frame->dims_known[i] = frame->dims_known[e->a] && frame->dims_known[e->b] &&
                                   grt_dim_apply(e->op, frame->dims[e->a], frame->dims[e->b], v);
        }
    }
}

static grt_frame *main_frame(const grt_frame *frame)
{
    return frame->index == 0 ? (grt_frame *)frame : frame->context->current;
}

bool grt_frame_has_dims(const grt_frame *frame, int32_t value)
{
    const grt_plan_value *v = &frame->body->values[value];
    const grt_frame *dims = main_frame(frame);
    if (v->kind != GRT_KIND_TENSOR || v->rank < 0)
        return false;
    for (int32_t i = 0; i < v->rank; i++)
        if (!dims->dims_known[v->dims[i]] || dims->dims[v->dims[i]] < 0)
            return false;
    return true;
}

static grt_status negative_dims(const grt_plan_value *v)
{
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                    "the bound input dims give no valid dims for tensor '%s': a dim is negative, overflows "
                    "or does not broadcast",
                    v->name);
}

/* Dims that input symbols decide. */
static void take_dims(grt_frame *frame, int32_t value)
{
    const grt_plan_value *v = &frame->body->values[value];
    grt_tensor *t = &frame->values[value].t;
    t->rank = v->rank;
    for (int32_t i = 0; i < v->rank; i++)
        t->dims[i] = frame->dims[v->dims[i]];
    frame->known[value] = true;
}

/* ---- steps ---- */

/* Sequences, optionals and strings have no device form. */
static bool is_host_only(const grt_frame *frame, int32_t value)
{
    const grt_plan_value *v = &frame->body->values[value];
    return v->kind != GRT_KIND_TENSOR || v->dtype == GRT_DTYPE_STRING;
}

static bool has_open_dims(const grt_frame *frame, const int32_t *values, int32_t n)
{
    const grt_plan *plan = frame->context->session->model->plan;
    for (int32_t i = 0; i < n; i++) {
        const grt_plan_value *v = values[i] < 0 ? NULL : &frame->body->values[values[i]];
        bool open = v && (v->kind != GRT_KIND_TENSOR || v->rank < 0);
        for (int32_t k = 0; v && k < v->rank; k++)
            open = open || plan->dims[v->dims[k]].op != GRT_DIM_CONST;
        if (open)
            return true;
    }
    return false;
}

static grt_status init_step(grt_frame *frame, int32_t s)
{
    const grt_plan_step *step = &frame->body->steps[s];
    const grt_session_kernel *kernel = &frame->context->session->kernels[frame->index][s];
    grt_op_call *call = &frame->steps[s].call;
    const grt_tensor **in = GRT_ARENA_ARRAY(frame->arena, const grt_tensor *, step->n_in + 1);
    grt_tensor **out = GRT_ARENA_ARRAY(frame->arena, grt_tensor *, step->n_out + 1);
    if (!in || !out)
        return grt_fail_memory(0);
    const grt_tensor **host_in = GRT_ARENA_ARRAY(frame->arena, const grt_tensor *, step->n_in + 1);
    if (!host_in)
        return grt_fail_memory(0);
    grt_session *session = frame->context->session;
    bool host = kernel->host || (step->kind == GRT_STEP_VIEW && is_host_only(frame, step->in[0]));
    grt_value *values = host ? frame->host : frame->values;
    for (int32_t i = 0; i < step->n_in; i++) {
        in[i] = step->in[i] < 0 ? NULL : &values[step->in[i]].t;
        host_in[i] = step->in[i] < 0 ? NULL : &frame->host[step->in[i]].t;
        if (step->in[i] >= 0 && !host)
            frame->read_on_device[step->in[i]] = true;
    }
    for (int32_t i = 0; i < step->n_out; i++) {
        out[i] = step->out[i] < 0 ? NULL : &values[step->out[i]].t;
        if (step->out[i] >= 0)
            frame->made_on_host[step->out[i]] = host;
    }
    frame->steps[s].host = host && grt_frame_on_device(frame);
    frame->steps[s].open =
        has_open_dims(frame, step->in, step->n_in) || has_open_dims(frame, step->out, step->n_out);
    frame->steps[s].unproven = !frame->steps[s].open && session->model->plan->content;
    call->row = kernel->row;
    call->op = kernel->op;
    call->host_in = host_in;
    call->run = (grt_run){.device = host ? NULL : session->device,
                          .stream = frame->context->stream,
                          .desc = &step->desc,
                          .state = kernel->state,
                          .in = in,
                          .out = out,
                          .n_in = step->n_in,
                          .n_out = step->n_out,
                          .threads = frame->context->session->threads,
                          .hooks = &frame->context->hooks};
    return GRT_OK;
}

grt_status grt_frame_check_step(grt_frame *frame, int32_t s, bool content)
{
    grt_step_state *state = &frame->steps[s];
    if (!state->open && !state->unproven)
        return GRT_OK;
    const bool view = frame->body->steps[s].kind == GRT_STEP_VIEW;
    if (view && state->call.run.in[0]->rank >= 0)
        GRT_TRY(grt_op_call_check_view(&state->call)); /* whatever the rule needs may be gone by now */
    if (!view || state->open)
        GRT_TRY(grt_op_call_check(&state->call, content, &frame->context->scratch));
    state->unproven = false;
    return GRT_OK;
}

/* Output dims by the plan's expressions, else by the op's rule; false if only the run can tell. */
static grt_status find_dims(grt_frame *frame, int32_t s, bool *out_found)
{
    const grt_plan_step *step = &frame->body->steps[s];
    bool all = true;
    for (int32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] < 0)
            continue;
        if (grt_frame_has_dims(frame, step->out[i]))
            take_dims(frame, step->out[i]);
        else
            all = false;
    }
    *out_found = all;
    if (all)
        return grt_frame_check_step(frame, s, true);
    GRT_TRY(grt_op_call_infer(&frame->steps[s].call, &frame->context->scratch));
    *out_found = true;
    for (int32_t i = 0; i < step->n_out; i++)
        if (step->out[i] >= 0) {
            grt_value *v = &frame->values[step->out[i]];
            if (grt_frame_on_device(frame) && frame->steps[s].host)
                v->t = frame->host[step->out[i]].t;
            bool known = v->kind == GRT_KIND_TENSOR && v->t.rank >= 0;
            for (int32_t k = 0; known && k < v->t.rank; k++)
                if (v->t.dims[k] < 0)
                    return negative_dims(&frame->body->values[step->out[i]]);
            frame->known[step->out[i]] = known;
            *out_found = *out_found && known;
        }
    const bool view = step->kind == GRT_STEP_VIEW && frame->steps[s].call.run.in[0]->rank >= 0;
    return view && *out_found ? grt_op_call_check_view(&frame->steps[s].call) : GRT_OK;
}

/* Decide whether a step of the main body is static at these dims: everything it touches is known before the
 * run. */
static grt_status classify_step(grt_frame *frame, int32_t s)
{
    const grt_plan_step *step = &frame->body->steps[s];
    grt_step_state *state = &frame->steps[s];
    uint32_t flags = state->call.row ? state->call.row->flags : 0;
    bool known = step->kind <= GRT_STEP_VIEW && !(flags & (GRT_KERNEL_DYNAMIC | GRT_KERNEL_VALUES));
    for (int32_t i = 0; i < step->n_in; i++) {
        int32_t v = step->in[i];
        known = known && (v < 0 || frame->known[v]);
        const bool read = i < 8 && flags & GRT_KERNEL_READS(i);
        if (read && v >= 0 && !frame->hoisted[v] && frame->body->values[v].role != GRT_VALUE_CONST)
            known = false; /* its content comes with the run, and with it what reshape makes of it */
        if (step->kind == GRT_STEP_VIEW && v >= 0 && frame->dynamic[v])
            known = false; /* its memory comes with the run, and so does the view's */
    }
    if (known)
        GRT_TRY(find_dims(frame, s, &known));
    for (int32_t i = 0; i < step->n_out; i++)
        known = known && (step->out[i] < 0 || frame->values[step->out[i]].t.dtype != GRT_DTYPE_STRING);
    if (grt_frame_can_hoist(frame, s))
        GRT_TRY(grt_frame_hoist(frame, s));
    if (state->skip)
        return GRT_OK;
    state->is_static = known;
    state->skip = known && (step->kind == GRT_STEP_VIEW || grt_op_call_is_empty(&state->call));
    for (int32_t i = 0; known && grt_frame_on_device(frame) && i < step->n_out; i++)
        if (step->out[i] >= 0)
            grt_frame_shadow(frame, step->out[i]);
    for (int32_t i = 0; i < step->n_out; i++)
        if (step->out[i] >= 0)
            frame->dynamic[step->out[i]] = !known;
    return GRT_OK;
}

static grt_status prepare_step(grt_frame *frame, int32_t s)
{
    grt_op_call *call = &frame->steps[s].call;
    if (!frame->steps[s].is_static || frame->steps[s].skip || frame->steps[s].host || !call->row ||
        !call->row->reshape)
        return GRT_OK;
    grt_reshape reshape = grt_op_call_reshape(call);
    GRT_TRY(call->row->reshape(&reshape));
    call->run.shape = reshape.shape;
    call->workspace_bytes = reshape.workspace_bytes;
    return GRT_OK;
}

/* Algorithms are chosen and code is made here, in kernels of vendors' libraries above all: all steps in
 * parallel. The first failure is reported. */
static grt_status prepare_steps(grt_frame *frame)
{
    enum { WORTH_A_TEAM = 8, MOST_THREADS = 8 };
    const grt_session *session = frame->context->session;
    const int32_t threads = session->threads < MOST_THREADS ? session->threads : MOST_THREADS;
    grt_status first = GRT_OK;
    grt_text message = {0};
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (frame->body->n_steps > WORTH_A_TEAM)
    for (int32_t s = 0; s < frame->body->n_steps; s++) {
        bool switched = false;
        grt_status status = grt_device_enter(session->device, &switched);
        if (status == GRT_OK)
            status = prepare_step(frame, s);
        grt_device_leave(session->device, switched);
        if (status == GRT_OK)
            continue;
#pragma omp critical(grt_frame_failure)
        if (first == GRT_OK) {
            first = status;
            grt_text_add(&message, "%s", grt_last_error());
        }
    }
    if (first != GRT_OK)
        grt_error_set(message.failed ? "out of memory" : grt_text_get(&message));
    grt_text_release(&message);
    return first;
}

/* Which dynamic values die after which step. */
static grt_status find_drops(grt_frame *frame)
{
    const grt_plan_body *body = frame->body;
    int32_t *last = GRT_ARENA_ARRAY(frame->arena, int32_t, body->n_values + 1);
    int32_t *pool = GRT_ARENA_ARRAY(frame->arena, int32_t, body->n_values + 1);
    if (!last || !pool)
        return grt_fail_memory(0);
    memset(last, 0xff, (size_t)body->n_values * sizeof *last);
    for (int32_t s = 0; s < body->n_steps; s++) {
        for (int32_t i = 0; i < body->steps[s].n_in; i++)
            if (body->steps[s].in[i] >= 0)
                last[body->steps[s].in[i]] = s;
        for (int32_t i = 0; i < body->steps[s].n_out; i++)
            if (body->steps[s].out[i] >= 0)
                last[body->steps[s].out[i]] = s;
    }
    const grt_plan *plan = frame->context->session->model->plan;
    for (int32_t b = 0; b < plan->n_bodies; b++) /* bodies read captured values while their step runs */
        if (plan->bodies[b].parent == frame->index)
            for (int32_t i = 0; i < plan->bodies[b].n_captures; i++)
                last[plan->bodies[b].captures_outer[i]] = body->n_steps;
    for (int32_t i = 0; i < body->n_outputs; i++)
        if (body->outputs[i] >= 0)
            last[body->outputs[i]] = body->n_steps;
    for (int32_t v = 0; v < body->n_values; v++)
        if (body->values[v].role == GRT_VALUE_STEP && last[v] >= 0 && last[v] < body->n_steps)
            frame->steps[last[v]].n_drop++;
    for (int32_t s = 0; s < body->n_steps; s++) {
        frame->steps[s].drop = pool;
        pool += frame->steps[s].n_drop;
        frame->steps[s].n_drop = 0;
    }
    for (int32_t v = 0; v < body->n_values; v++)
        if (body->values[v].role == GRT_VALUE_STEP && last[v] >= 0 && last[v] < body->n_steps)
            frame->steps[last[v]].drop[frame->steps[last[v]].n_drop++] = v;
    return GRT_OK;
}

/* ---- life ---- */

static grt_status init_values(grt_frame *frame)
{
    const grt_session *session = frame->context->session;
    bool main = frame->index == 0;
    for (int32_t v = 0; v < frame->body->n_values; v++) {
        const grt_plan_value *value = &frame->body->values[v];
        frame->values[v].kind = frame->host[v].kind = value->kind;
        frame->values[v].t.dtype = frame->host[v].t.dtype = value->dtype;
        frame->dynamic[v] = !main;
        if (value->role == GRT_VALUE_CONST) {
            frame->host[v].t = session->host_weights[value->weight];
            if (main)
                frame->values[v].t = session->weights[value->weight];
            if (!frame->host[v].t.data && grt_tensor_elements(&frame->host[v].t) == 0)
                frame->host[v].t.data = grt_nothing;
            frame->known[v] = frame->host_ok[v] = true;
        }
    }
    return GRT_OK;
}

/* Inputs are bound: their dims are known, whatever the model says of them. */
static void init_inputs(grt_frame *frame)
{
    const grt_context *context = frame->context;
    for (int32_t i = 0; i < frame->body->n_inputs; i++) {
        int32_t v = frame->body->inputs[i];
        const grt_value *in = &context->inputs[i];
        if (in->kind != GRT_KIND_TENSOR || in->t.dtype == GRT_DTYPE_STRING ||
            frame->values[v].kind != GRT_KIND_TENSOR)
            continue;
        frame->known[v] = true;
        frame->values[v].t.rank = in->t.rank;
        memcpy(frame->values[v].t.dims, in->t.dims, sizeof in->t.dims);
        frame->host[v].t.rank = in->t.rank;
        memcpy(frame->host[v].t.dims, in->t.dims, sizeof in->t.dims);
        frame->input_bytes += grt_align_up(grt_tensor_bytes(&in->t), 256);
    }
}

static grt_status alloc_tables(grt_frame *frame)
{
    int32_t n_values = frame->body->n_values + 1, n_steps = frame->body->n_steps + 1;
    bool device = frame->context->session->on_device && frame->index == 0;
    frame->values = GRT_ARENA_ARRAY(frame->arena, grt_value, n_values);
    frame->host = device ? GRT_ARENA_ARRAY(frame->arena, grt_value, n_values) : frame->values;
    frame->host_ok = GRT_ARENA_ARRAY(frame->arena, bool, n_values);
    frame->made_on_host = GRT_ARENA_ARRAY(frame->arena, bool, n_values);
    frame->read_on_device = GRT_ARENA_ARRAY(frame->arena, bool, n_values);
    frame->borrowed = GRT_ARENA_ARRAY(frame->arena, bool, n_values);
    frame->known = GRT_ARENA_ARRAY(frame->arena, bool, n_values);
    frame->hoisted = GRT_ARENA_ARRAY(frame->arena, bool, n_values);
    frame->dynamic = GRT_ARENA_ARRAY(frame->arena, bool, n_values);
    frame->steps = GRT_ARENA_ARRAY(frame->arena, grt_step_state, n_steps);
    return grt_arena_failed(frame->arena) ? grt_fail_memory(0) : GRT_OK;
}

static grt_status build_main(grt_frame *frame, const int64_t *symbols)
{
    const grt_plan *plan = frame->context->session->model->plan;
    frame->dims = GRT_ARENA_ARRAY(frame->arena, int64_t, plan->n_dims + 1);
    frame->dims_known = GRT_ARENA_ARRAY(frame->arena, bool, plan->n_dims + 1);
    if (!frame->dims || !frame->dims_known)
        return grt_fail_memory(0);
    eval_dims(frame, symbols);
    GRT_TRY(init_values(frame));
    init_inputs(frame);
    for (int32_t s = 0; s < frame->body->n_steps; s++) {
        GRT_TRY(init_step(frame, s));
        GRT_TRY(classify_step(frame, s));
    }
    GRT_TRY(find_drops(frame));
    GRT_TRY(grt_frame_plan_memory(frame));
    return prepare_steps(frame);
}

static grt_status build(grt_frame *frame, const int64_t *symbols)
{
    GRT_TRY(alloc_tables(frame));
    if (frame->index == 0)
        return build_main(frame, symbols);
    GRT_TRY(init_values(frame));
    for (int32_t s = 0; s < frame->body->n_steps; s++)
        GRT_TRY(init_step(frame, s));
    return find_drops(frame);
}

grt_status grt_frame_create(grt_context *context, int32_t body, const int64_t *symbols, grt_frame **out_frame)
{
    grt_frame *frame = calloc(1, sizeof *frame);
    if (!frame || !(frame->arena = grt_arena_create())) {
        free(frame);
        return grt_fail_memory(sizeof *frame);
    }
    frame->context = context;
    frame->index = body;
    frame->stream = context->stream;
    frame->body = &context->session->model->plan->bodies[body];
    grt_status status = build(frame, symbols);
    if (status != GRT_OK) {
        grt_frame_release(frame);
        return status;
    }
    frame->blocker = grt_frame_find_blocker(frame);
    *out_frame = frame;
    return GRT_OK;
}

static void drop_value(grt_value *v, const grt_plan_value *plan, bool *borrowed)
{
    if (*borrowed) {
        *v = (grt_value){0};
        *borrowed = false;
    } else if (v->buffer || v->kind != GRT_KIND_TENSOR) {
        grt_value_clear(v);
    } else {
        return; /* in the arena, a constant, or empty */
    }
    v->kind = plan->kind;
    v->t.dtype = plan->dtype;
}

void grt_frame_drop(grt_frame *frame, int32_t value)
{
    const grt_plan_value *plan = &frame->body->values[value];
    bool is_input = plan->role == GRT_VALUE_INPUT, theirs = false;
    if (frame->hoisted[value])
        return; /* lives as long as the frame */
    drop_value(&frame->values[value], plan, &frame->borrowed[value]);
    if (!grt_frame_on_device(frame))
        return;
    theirs = is_input; /* host sides of inputs are the caller's */
    drop_value(&frame->host[value], plan, &theirs);
    frame->host_ok[value] = false;
}

void grt_frame_clear(grt_frame *frame)
{
    for (int32_t v = 0; v < frame->body->n_values; v++)
        if (frame->body->values[v].role != GRT_VALUE_CONST)
            grt_frame_drop(frame, v);
}

void grt_frame_release(grt_frame *frame)
{
    if (!frame)
        return;
    if (frame->steps) { /* all tables are there */
        memset(frame->hoisted, 0, (size_t)frame->body->n_values * sizeof *frame->hoisted);
        grt_frame_clear(frame);
    }
    for (int32_t s = 0; frame->steps && s < frame->body->n_steps; s++)
        grt_op_call_release(&frame->steps[s].call);
    grt_device *device = frame->context->session->device;
    grt_frame_release_graphs(frame);
    grt_device_free(device, frame->input_block);
    grt_memory_plan_release(&frame->memory);
    free(frame->not_captured);
    free(frame->key);
    grt_arena_release(frame->arena);
    free(frame);
}
