/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/steps.h"

#include "src/exec/transfer.h"

grt_status grt_step_run_prepared(grt_frame *frame, const grt_instruction *ins)
{
    (void)frame;
    return ins->call->row->run(&ins->call->run);
}

/* Values of this size and below may be shapes, axes, limits and the like, which shape rules read. */
enum { MAX_READABLE = 1024, MAX_READABLE_FLOATS = 16 };

/* A rule on a device session reads small inputs: bring them to the host. */
static grt_status fetch_readable(grt_frame *frame, const grt_plan_step *step)
{
    for (int32_t i = 0; i < step->n_in; i++) {
        const grt_tensor *t = step->in[i] < 0 ? NULL : &frame->values[step->in[i]].t;
        int64_t most = t && grt_dtype_in(t->dtype, GRT_SET_FLOATS) ? MAX_READABLE_FLOATS : MAX_READABLE;
        if (t && grt_dtype_in(t->dtype, GRT_SET_NUMBERS | GRT_BIT(BOOL)) && t->rank >= 0 && t->rank <= 1 &&
            grt_tensor_elements(t) <= most)
            GRT_TRY(grt_frame_fetch(frame, step->in[i]));
    }
    return GRT_OK;
}

/* The kernel was created for the dtypes of the plan. */
static grt_status check_inferred_dtypes(const grt_instruction *ins, const grt_plan_value *values)
{
    for (int32_t i = 0; i < ins->step->n_out; i++) {
        if (ins->step->out[i] < 0)
            continue;
        const grt_plan_value *planned = &values[ins->step->out[i]];
        const grt_dtype found = ins->call->run.out[i]->dtype;
        if (planned->dtype && found && found != planned->dtype)
            return grt_fail_op(&ins->step->desc, GRT_STATUS_INVALID_PLAN,
                               "output %d, '%s', is %s in the plan, expected %s", (int)i, planned->name,
                               grt_dtype_name(planned->dtype), grt_dtype_name(found));
    }
    return GRT_OK;
}

/* Dims of the outputs: from the plan where input symbols decide, else by the op's rule. */
static grt_status steps_find_dims(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    const grt_program *main = frame->executor->main->program;
    const grt_plan_value *values = frame->program->body->values;
    bool all = true;
    for (int32_t i = 0; i < step->n_out; i++)
        all = all && (step->out[i] < 0 || grt_program_has_dims(main, &values[step->out[i]]));
    if (!all) {
        if (grt_frame_on_device(frame))
            GRT_TRY(fetch_readable(frame, step));
        GRT_TRY(grt_op_call_infer(ins->call, &frame->executor->scratch));
        return check_inferred_dtypes(ins, values);
    }
    for (int32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] < 0)
            continue;
        const grt_plan_value *v = &values[step->out[i]];
        grt_tensor *t = ins->call->run.out[i];
        t->rank = v->rank;
        for (int32_t k = 0; k < v->rank; k++)
            t->dims[k] = main->dims[v->dims[k]];
    }
    return grt_frame_check_dims(frame, ins->index, ins->check, !grt_frame_on_device(frame));
}

/* What a kernel may rely on that finds its outputs' sizes itself: the op's rule takes the dims of this run.
 */
static grt_status steps_check_dims(grt_frame *frame, const grt_instruction *ins)
{
    const uint32_t flags = ins->call->row->flags;
    if (!(flags & (GRT_KERNEL_DYNAMIC | GRT_KERNEL_VALUES)))
        return steps_find_dims(frame, ins);
    return flags & GRT_KERNEL_VALUES || ins->check == GRT_DIMS_CHECKED
               ? GRT_OK
               : grt_op_call_accept(ins->call, !grt_frame_on_device(frame), &frame->executor->scratch);
}

static void steps_drop_outputs(grt_frame *frame, const grt_plan_step *step)
{
    for (int32_t i = 0; i < step->n_out; i++)
        if (step->out[i] >= 0)
            grt_frame_drop(frame, step->out[i]);
}

static void shadow_outputs(grt_frame *frame, const grt_plan_step *step)
{
    for (int32_t i = 0; i < step->n_out; i++)
        if (step->out[i] >= 0)
            grt_frame_shadow(frame, step->out[i]);
}

/* The same elements under new dims, one range for each output: memory is shared or borrowed, never copied. A
 * body's input may be replaced while an earlier view of it is an output: what has no buffer is copied there.
 */
grt_status grt_step_run_view(grt_frame *frame, const grt_instruction *ins)
{
    grt_op_call *call = ins->call;
    const grt_value *in = (const grt_value *)call->run.in[0];
    size_t at = 0;
    steps_drop_outputs(frame, ins->step);
    if (in->kind != GRT_KIND_TENSOR)
        return grt_value_share((grt_value *)call->run.out[0], in);
    GRT_TRY(steps_find_dims(frame, ins));
    GRT_TRY(grt_op_call_check_view(call));
    for (int32_t i = 0; i < ins->step->n_out; i++) {
        grt_value *out = (grt_value *)call->run.out[i];
        grt_tensor t = out->t;
        t.dtype = in->t.dtype;
        t.data = (char *)in->t.data + at;
        grt_buffer *shared = grt_buffer_retain(in->buffer);
        grt_value_clear(out);
        out->t = t;
        out->buffer = shared;
        at += grt_tensor_bytes(&t);
    }
    return GRT_OK;
}

grt_status grt_step_run_view_on_device(grt_frame *frame, const grt_instruction *ins)
{
    GRT_TRY(grt_step_run_view(frame, ins));
    shadow_outputs(frame, ins->step);
    return GRT_OK;
}

/* The old one may be in use; prepared kernels and graphs point at it. */
static grt_status need_workspace(grt_frame *frame, size_t bytes)
{
    grt_executor *executor = frame->executor;
    if (bytes <= executor->workspace.bytes)
        return GRT_OK;
    GRT_TRY(grt_device_wait(grt_executor_device(executor), executor->stream));
    GRT_TRY(grt_executor_reserve_workspace(executor, bytes));
    grt_frame_set_workspace(executor->main);
    grt_replay_clear(&executor->main->replay, grt_executor_device(executor));
    grt_replay_clear(&executor->main->trips, grt_executor_device(executor));
    return GRT_OK;
}

grt_status grt_step_run_kernel(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    grt_op_call *call = ins->call;
    steps_drop_outputs(frame, step);
    for (int32_t i = 0; i < step->n_in && i < 8; i++)
        if (step->in[i] >= 0 && call->row->flags & GRT_KERNEL_READS(i))
            GRT_TRY(grt_frame_fetch(frame, step->in[i]));
    GRT_TRY(steps_check_dims(frame, ins));
    GRT_TRY(grt_op_call_prepare(call));
    GRT_TRY(need_workspace(frame, call->workspace_bytes));
    call->run.workspace = grt_executor_workspace(frame->executor);
    return grt_op_call_run(call);
}

grt_status grt_step_run_kernel_on_device(grt_frame *frame, const grt_instruction *ins)
{
    GRT_TRY(grt_step_run_kernel(frame, ins));
    shadow_outputs(frame, ins->step);
    return GRT_OK;
}

grt_status grt_step_run_kernel_on_cpu(grt_frame *frame, const grt_instruction *ins)
{
    grt_executor *executor = frame->executor;
    grt_op_call *call = ins->call;
    steps_drop_outputs(frame, ins->step);
    GRT_TRY(steps_check_dims(frame, ins));
    GRT_TRY(grt_op_call_prepare(call));
    GRT_TRY(grt_executor_reserve_host_workspace(executor, call->workspace_bytes));
    call->run.workspace = executor->host_workspace ? executor->host_workspace : grt_nothing;
    return grt_op_call_run(call);
}

grt_status grt_step_run_with_copies(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    for (int32_t i = 0; i < step->n_in; i++)
        if (step->in[i] >= 0)
            GRT_TRY(grt_frame_fetch(frame, step->in[i]));
    for (int32_t b = 0; b < step->n_bodies; b++) {
        const grt_plan_body *body = &frame->program->plan->bodies[step->bodies[b]];
        for (int32_t i = 0; i < body->n_captures; i++)
            GRT_TRY(grt_frame_fetch(frame, body->captures_outer[i]));
    }
    GRT_TRY(ins->on_host(frame, ins));
    for (int32_t i = 0; i < step->n_out; i++)
        if (step->out[i] >= 0)
            GRT_TRY(grt_frame_store(frame, step->out[i]));
    return GRT_OK;
}
