/* Running the steps of a frame. */
#include "src/context.h"

#include <stdlib.h>
#include <string.h>

static grt_status need_workspace(grt_context *context, size_t bytes)
{
    if (bytes <= context->workspace_bytes)
        return GRT_OK;
    void *memory;
    GRT_TRY(grt_device_alloc(context->session->device, bytes, &memory));
    grt_device_free(context->session->device, context->workspace);
    context->workspace = memory;
    context->workspace_bytes = bytes;
    return GRT_OK;
}

/* Dims of the outputs of a dynamic step: from the plan where input symbols decide, else by the op's rule. */
static grt_status find_dims(grt_frame *frame, const grt_plan_step *step, grt_op_call *call)
{
    const grt_frame *main = frame->index == 0 ? frame : frame->context->current;
    bool all = true;
    for (int32_t i = 0; i < step->n_out; i++)
        all = all && (step->out[i] < 0 || grt_frame_has_dims(frame, step->out[i]));
    if (!all)
        return grt_op_call_infer(call, &frame->context->scratch);
    for (int32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] < 0)
            continue;
        const grt_plan_value *v = &frame->body->values[step->out[i]];
        grt_tensor *t = &frame->values[step->out[i]].t;
        t->rank = v->rank;
        for (int32_t k = 0; k < v->rank; k++)
            t->dims[k] = main->dims[v->dims[k]];
    }
    return GRT_OK;
}

/* The same elements under new dims: memory is shared or borrowed, never copied. */
static grt_status run_view(grt_frame *frame, const grt_plan_step *step, grt_op_call *call)
{
    const grt_value *in = &frame->values[step->in[0]];
    grt_value *out = &frame->values[step->out[0]];
    if (in->kind != GRT_KIND_TENSOR)
        return grt_value_share(out, in);
    GRT_TRY(find_dims(frame, step, call));
    grt_tensor t = out->t;
    if (t.rank < 0 || grt_tensor_elements(&t) != grt_tensor_elements(&in->t)) {
        char text[GRT_TYPE_TEXT_SIZE];
        return grt_fail_op(&step->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "cannot give %s a shape of %lld elements", grt_tensor_text(&in->t, text),
                           (long long)(t.rank < 0 ? -1 : grt_tensor_elements(&t)));
    }
    t.dtype = in->t.dtype;
    t.data = in->t.data;
    grt_buffer *shared = grt_buffer_retain(in->buffer);
    grt_value_clear(out);
    out->t = t;
    out->buffer = shared;
    /* A body's input may be replaced while an earlier view of it is an output: what has no buffer is copied there. */
    return GRT_OK;
}

static grt_status run_dynamic(grt_frame *frame, int32_t s)
{
    const grt_plan_step *step = &frame->body->steps[s];
    grt_op_call *call = &frame->steps[s].call;
    if (step->kind >= GRT_STEP_IF)
        return grt_control_run(frame, s);
    for (int32_t i = 0; i < step->n_out; i++)
        if (step->out[i] >= 0)
            grt_frame_drop(frame, step->out[i]);
    if (step->kind == GRT_STEP_VIEW)
        return run_view(frame, step, call);
    if (!(call->row->flags & (GRT_KERNEL_DYNAMIC | GRT_KERNEL_VALUES)))
        GRT_TRY(find_dims(frame, step, call));
    GRT_TRY(grt_op_call_prepare(call));
    GRT_TRY(need_workspace(frame->context, call->workspace_bytes));
    call->run.workspace = frame->context->workspace;
    return call->row->run(&call->run);
}

static grt_status run_step(grt_frame *frame, int32_t s)
{
    grt_step_state *state = &frame->steps[s];
    if (state->is_static) {
        if (state->skip)
            return GRT_OK;
        state->call.run.workspace = frame->context->workspace;
        return state->call.row->run(&state->call.run);
    }
    return run_dynamic(frame, s);
}

static void drop_dead(grt_frame *frame, int32_t s)
{
    const grt_step_state *state = &frame->steps[s];
    for (int32_t i = 0; i < state->n_drop; i++)
        if (frame->dynamic[state->drop[i]])
            grt_frame_drop(frame, state->drop[i]);
}

static grt_status run_timed(grt_frame *frame)
{
    grt_context *context = frame->context;
    double begin = grt_now_ms(), kernels = 0;
    for (int32_t s = 0; s < frame->body->n_steps; s++) {
        double t0 = grt_now_ms();
        GRT_TRY(run_step(frame, s));
        double ms = grt_now_ms() - t0;
        drop_dead(frame, s);
        if (frame->index == 0) {
            const grt_op_desc *desc = &frame->body->steps[s].desc;
            context->times[s] = (grt_step_time){desc->op, desc->name, ms};
            kernels += ms;
        }
    }
    if (frame->index == 0)
        context->host_us = (grt_now_ms() - begin - kernels) * 1e3;
    return GRT_OK;
}

grt_status grt_frame_run(grt_frame *frame)
{
    if (frame->context->timing)
        return run_timed(frame);
    for (int32_t s = 0; s < frame->body->n_steps; s++) {
        GRT_TRY(run_step(frame, s));
        if (frame->steps[s].n_drop)
            drop_dead(frame, s);
    }
    return GRT_OK;
}
