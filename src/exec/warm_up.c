/* SPDX-License-Identifier: Apache-2.0 */
/* Becoming ready where shapes are known: what the first run of a context would have to do (choose algorithms,
 * load code, take memory, capture its graph) is done while the session is created, in a context that the
 * first caller who wants one gets. */
#include "src/base/openmp.h"
#include "src/base/structs.h"
#include "src/exec/context.h"
#include "src/exec/frame_memory.h"
#include "src/exec/rehearse.h"
#include "src/exec/run.h"

#include <stdlib.h>

static bool has_fixed_dims(const grt_plan *plan, const grt_plan_value *v)
{
    bool fixed = v->kind == GRT_KIND_TENSOR && v->dtype != GRT_DTYPE_STRING && v->rank >= 0;
    for (int32_t i = 0; fixed && i < v->rank; i++)
        fixed = plan->dims[v->dims[i]].op == GRT_DIM_CONST;
    return fixed;
}

static bool may_warm_up(const grt_session *session)
{
    const grt_plan *plan = session->model->plan;
    const grt_plan_body *body = &plan->bodies[0];
    bool fixed = session->on_device;
    for (int32_t i = 0; fixed && i < body->n_inputs; i++)
        fixed = has_fixed_dims(plan, &body->values[body->inputs[i]]);
    return fixed;
}

/* Inputs in host memory, of which only dims are looked at. */
static void bind_dims(grt_binding *bound)
{
    const grt_plan_body *body = grt_binding_body(bound);
    for (int32_t i = 0; i < body->n_inputs; i++) {
        const grt_plan_value *v = &body->values[body->inputs[i]];
        grt_tensor *t = &bound->inputs[i].t;
        bound->inputs[i] = (grt_value){.t = {.dtype = v->dtype, .rank = v->rank, .data = grt_nothing}};
        for (int32_t k = 0; k < v->rank; k++)
            t->dims[k] = bound->plan->dims[v->dims[k]].value;
    }
}

static void unbind(grt_binding *bound)
{
    for (int32_t i = 0; i < grt_binding_body(bound)->n_inputs; i++) {
        bound->inputs[i] = (grt_value){0};
        bound->input_set[i] = false;
    }
}

/* Zeros are inputs like any. */
static grt_status upload_zeros(const grt_frame *frame)
{
    const grt_plan_body *body = frame->program->body;
    grt_device *device = grt_executor_device(frame->executor);
    grt_status status = GRT_OK;
    for (int32_t i = 0; i < body->n_inputs && status == GRT_OK; i++) {
        const grt_tensor *t = &frame->values[body->inputs[i]].t;
        const size_t bytes = grt_tensor_bytes(t);
        void *zeros = calloc(bytes + 1, 1);
        status = zeros ? grt_device_upload(device, t->data, zeros, bytes, frame->executor->stream)
                       : grt_fail_memory(bytes);
        if (status == GRT_OK)
            status = grt_device_wait(device, frame->executor->stream);
        free(zeros);
    }
    return status;
}

/* Where all steps are the device's, so that a run ends whatever the inputs are; but the weights have to be
 * there, which are uploaded meanwhile. What kernels say of the inputs is of no interest. */
static grt_status warm_up_run_once(grt_context *context, grt_frame *frame)
{
    grt_executor *executor = &context->executor;
    if (frame->program->blocker >= 0)
        return GRT_OK;
    grt_phases_next(&executor->session->phases, "run");
    GRT_TRY(grt_resident_wait(executor->session->resident));
    GRT_TRY(upload_zeros(frame));
    GRT_TRY(grt_run_frame(frame, &context->timing));
    GRT_TRY(grt_device_wait(grt_executor_device(executor), executor->stream));
    (void)grt_executor_check_local(executor);
    (void)grt_run_capture(frame);
    return GRT_OK;
}

static grt_status warm_up_prepare(grt_context *context)
{
    grt_frame *frame;
    bind_dims(&context->executor.bound);
    GRT_TRY(grt_frame_cache_get(&context->frames, &context->executor, &frame));
    context->executor.main = frame;
    GRT_TRY(grt_frame_bind(frame));
    grt_phases_next(&context->executor.session->phases, "load code");
    grt_rehearse(frame);
    grt_phases_next(&context->executor.session->phases, "capture");
    if (!grt_run_capture(frame))
        GRT_TRY(warm_up_run_once(context, frame));
    frame->spare_block = frame->input_block;
    grt_frame_clear(frame);
    context->executor.main = NULL; /* nothing ran, as far as callers know */
    return GRT_OK;
}

static void warm_up_release(void *context)
{
    grt_context_release(context);
}

/* Where inputs' dims are fixed. Failures leave the session as it is: the first run meets them, and says so.
 */
static void warm_up_session(grt_session *session)
{
    grt_context *context;
    bool switched;
    if (!may_warm_up(session) || grt_context_create(session, &context) != GRT_OK)
        return;
    grt_status status = grt_device_enter(session->device, &switched);
    if (status == GRT_OK) {
        const grt_team team = grt_team_enter(grt_session_team(session), false);
        status = warm_up_prepare(context);
        grt_team_leave(team);
        grt_device_leave(session->device, switched);
    }
    if (status != GRT_OK) {
        grt_context_release(context);
        return;
    }
    unbind(&context->executor.bound);
    session->release_spare = warm_up_release;
    atomic_store(&session->spare, context);
    grt_session_release(session); /* the spare holds no reference */
}

grt_status grt_sessions_create(grt_model *model, const char *const *devices, size_t n,
                               const grt_sessions_options *options, grt_session **out_sessions)
{
    return grt_session_group_create(model, devices, n, options, warm_up_session, out_sessions);
}

grt_status grt_session_create(grt_model *model, const char *device, const grt_session_options *options,
                              grt_session **out_session)
{
    if (!model || !out_session)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_session_create: %s is NULL",
                        model ? "out_session" : "model");
    grt_session_options used = {0};
    GRT_TRY(grt_options_take(&used, sizeof used, options, "grt_session_options"));
    const grt_sessions_options many = {.struct_size = sizeof many,
                                       .threads = used.threads,
                                       .fallback = used.fallback,
                                       .memory_limit = used.memory_limit,
                                       .priority = used.priority,
                                       .multiprocessors = used.multiprocessors,
                                       .compile = used.compile};
    return grt_sessions_create(model, &device, 1, &many, out_session);
}
