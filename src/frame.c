/* Frames: the values of a body, where static ones lie, and the prepared kernels. */
#include "src/context.h"

#include "src/base/checked.h"
#include "src/device_value.h"
#include "src/target.h"

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

/* ---- static memory ---- */

static uint32_t in_place_mask(void *user, int32_t step)
{
    const grt_frame *frame = user;
    const grt_kernel_row *row = frame->steps[step].call.row;
    return row && frame->steps[step].is_static && !frame->steps[step].host ? row->flags & 0xffu : 0;
}

static grt_status plan_memory(grt_frame *frame)
{
    const grt_plan_body *body = frame->body;
    size_t *bytes = GRT_ARENA_ARRAY(frame->arena, size_t, body->n_values + 1);
    bool *planned = GRT_ARENA_ARRAY(frame->arena, bool, body->n_values + 1);
    bool *step_planned = GRT_ARENA_ARRAY(frame->arena, bool, body->n_steps + 1);
    if (!bytes || !planned || !step_planned)
        return grt_fail_memory(0);
    for (int32_t s = 0; s < body->n_steps; s++)
        step_planned[s] = frame->steps[s].is_static;
    for (int32_t v = 0; v < body->n_values; v++) {
        planned[v] = body->values[v].role == GRT_VALUE_STEP && frame->known[v] && !frame->dynamic[v] &&
                     !frame->hoisted[v];
        if (!planned[v])
            continue;
        bytes[v] = grt_tensor_bytes(&frame->values[v].t);
        if (bytes[v] == SIZE_MAX)
            return grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                            "tensor '%s' is too large for this machine's address space",
                            body->values[v].name);
    }
    grt_memory_request request = {
        frame->context->session->model->plan, body, bytes, planned, step_planned, in_place_mask, frame};
    return grt_memory_plan_make(&request, &frame->memory);
}

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

static void point_storage(grt_frame *frame, int32_t value, void *data)
{
    int32_t s = frame->memory.storage[value];
    for (int32_t i = frame->group_start[s]; i < frame->group_start[s + 1]; i++)
        frame->values[frame->group[i]].t.data = data;
}

/* Where input i of the model lies on the device: in the frame's own block, or where the caller has it. */
static void *input_place(const grt_frame *frame, int32_t i, size_t *at)
{
    const grt_tensor *bound = &frame->context->inputs[i].t;
    const size_t own = *at;
    *at += grt_align_up(grt_tensor_bytes(&frame->values[frame->body->inputs[i]].t), 256);
    return grt_is_device_tensor(bound) ? bound->data : frame->input_block + own;
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

/* An output may be written straight into the caller's memory if nothing else decides where it lies. */
static bool output_is_ours(const grt_frame *frame, int32_t output)
{
    int32_t v = frame->body->outputs[output];
    if (v < 0 || frame->dynamic[v] || frame->memory.offset[v] == SIZE_MAX)
        return false;
    for (int32_t i = 0; i < output; i++)
        if (frame->body->outputs[i] >= 0 &&
            frame->memory.storage[frame->body->outputs[i]] == frame->memory.storage[v])
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
        void *data = theirs ? context->outputs[i].data : context->arena + frame->memory.offset[v];
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
                frame->values[v].t.data = context->arena + frame->memory.offset[v];
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
        void *own = context->arena + frame->memory.offset[v];
        void *data = context->output_set[i] ? context->outputs[i].data : own;
        if (frame->values[v].t.data != data)
            point_storage(frame, v, data);
    }
    return GRT_OK;
}

/* ---- steps ---- */

/* Sequences, optionals and strings have no device form. */
static bool is_host_only(const grt_frame *frame, int32_t value)
{
    const grt_plan_value *v = &frame->body->values[value];
    return v->kind != GRT_KIND_TENSOR || v->dtype == GRT_DTYPE_STRING;
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

/* Content of this size and below is worth computing once per profile. */
enum { MAX_HOISTED_BYTES = 1 << 20 };

/* A constant that steps on the host can read as it is: one that is packed has meaning for the session's own
 * kernels only. */
static bool is_plain_constant(const grt_frame *frame, int32_t v)
{
    const grt_plan_value *value = &frame->body->values[v];
    if (value->role != GRT_VALUE_CONST)
        return false;
    const grt_packing packing = grt_plan_packing(frame->context->session->model->plan, value->weight);
    return !grt_is_packed(&packing);
}

/* Does the step compute from dims alone? All inputs are constants or hoisted, or it asks for nothing but
 * dims. */
static bool can_hoist(const grt_frame *frame, int32_t s)
{
    const grt_plan_step *step = &frame->body->steps[s];
    const grt_op_call *call = &frame->steps[s].call;
    if (step->kind > GRT_STEP_VIEW || !call->op || (call->op->flags & OP_RANDOM))
        return false;
    bool dims_only = grt_op_is(&step->desc, "", "Shape") || grt_op_is(&step->desc, "", "Size");
    for (int32_t i = 0; i < step->n_in; i++) {
        int32_t v = step->in[i];
        bool content = v < 0 || frame->hoisted[v] || is_plain_constant(frame, v);
        if (!content && !(dims_only && frame->known[v]))
            return false;
    }
    for (int32_t i = 0; i < step->n_out; i++) {
        int32_t v = step->out[i];
        if (v < 0)
            return false;
        if (frame->known[v] && grt_tensor_bytes(&frame->values[v].t) > MAX_HOISTED_BYTES)
            return false;
        if (frame->body->values[v].kind != GRT_KIND_TENSOR)
            return false;
    }
    return step->n_in > 0;
}

static void view_of(grt_value *out, const grt_value *in)
{
    out->t.dtype = in->t.dtype;
    out->t.data = in->t.data;
    out->buffer = grt_buffer_retain(in->buffer);
}

/* A view of known content: its dims have been found, the elements are those of its input. */
static void hoist_view(grt_frame *frame, int32_t s)
{
    const grt_plan_step *step = &frame->body->steps[s];
    int32_t in = step->in[0], out = step->out[0];
    if (!frame->known[out] || frame->values[in].kind != GRT_KIND_TENSOR)
        return;
    view_of(&frame->values[out], &frame->values[in]);
    if (grt_frame_on_device(frame)) {
        grt_frame_shadow(frame, out);
        view_of(&frame->host[out], &frame->host[in]);
    }
    frame->hoisted[out] = true;
    frame->steps[s].is_static = frame->steps[s].skip = true;
}

/* Content that was computed on the host, for the steps that read it there and on the device. */
static grt_status place_hoisted(grt_frame *frame, int32_t v, const grt_value *content)
{
    frame->known[v] = frame->hoisted[v] = true;
    frame->host[v] = *content; /* the same as values[v] on host devices */
    if (!grt_frame_on_device(frame) || content->t.dtype == GRT_DTYPE_STRING)
        return GRT_OK;
    grt_device *device = frame->context->session->device;
    const grt_tensor *t = &content->t;
    GRT_TRY(grt_device_value_alloc(device, NULL, &frame->values[v], t->dtype, t->rank, t->dims));
    GRT_TRY(grt_device_upload(device, frame->values[v].t.data, t->data, grt_tensor_bytes(t),
                              frame->context->stream));
    return grt_device_wait(device, frame->context->stream);
}

static grt_status hoist(grt_frame *frame, int32_t s)
{
    const grt_plan_step *step = &frame->body->steps[s];
    enum { MOST = 4 };
    grt_value out[MOST] = {0};
    if (step->kind == GRT_STEP_VIEW) {
        hoist_view(frame, s);
        return GRT_OK;
    }
    if (step->n_out > MOST)
        return GRT_OK;
    /* Dims that the plan has decided: what the op's rule would find them from may be gone from the step. */
    for (int32_t i = 0; i < step->n_out; i++) {
        const grt_tensor *t = &frame->values[step->out[i]].t;
        if (frame->known[step->out[i]]) {
            out[i].t = *t;
            out[i].t.data = NULL;
        }
    }
    grt_target host = grt_target_of(&grt_backend_cpu);
    GRT_TRY(host.evaluate(&host, &step->desc, frame->steps[s].call.host_in, step->n_in, out, step->n_out));
    grt_status status = GRT_OK;
    for (int32_t i = 0; i < step->n_out; i++) {
        if (status == GRT_OK)
            status = place_hoisted(frame, step->out[i], &out[i]);
        else
            grt_value_clear(&out[i]);
    }
    frame->steps[s].is_static = frame->steps[s].skip = true;
    return status;
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
        return GRT_OK;
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
    return GRT_OK;
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
    if (can_hoist(frame, s))
        GRT_TRY(hoist(frame, s));
    if (state->skip)
        return GRT_OK;
    state->is_static = known;
    state->skip = known && step->kind == GRT_STEP_VIEW;
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
    grt_reshape reshape = {.desc = call->run.desc,
                           .state = call->run.state,
                           .in = call->host_in,
                           .device = call->run.device,
                           .out = (const grt_tensor *const *)call->run.out,
                           .n_in = call->run.n_in,
                           .n_out = call->run.n_out,
                           .threads = call->run.threads};
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
        grt_status status = grt_device_make_current(session->device);
        if (status == GRT_OK)
            status = prepare_step(frame, s);
        if (status == GRT_OK)
            continue;
#pragma omp critical(grt_frame_failure)
        if (first == GRT_OK) {
            first = status;
            grt_text_add(&message, "%s", grt_last_error());
        }
    }
    if (first != GRT_OK)
        grt_error_set(grt_text_get(&message));
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
    GRT_TRY(plan_memory(frame));
    GRT_TRY(group_storages(frame));
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
