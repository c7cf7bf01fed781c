/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/hoist.h"

#include "src/target/target.h"

/* Content of this size and below is worth computing once per program, as long as all of it is not much: what
 * is not hoisted shares the arena's memory. */
enum { MAX_HOISTED_BYTES = 1 << 20, MAX_ALL_HOISTED_BYTES = 32 << 20 };

/* A constant that steps on the host can read as it is: one that is packed has meaning for the session's own
 * kernels only. */
static bool hoist_is_plain_constant(const grt_draft *draft, int32_t v)
{
    const grt_session *session = draft->frame->executor->session;
    const grt_plan_value *value = &draft->program->body->values[v];
    if (value->role != GRT_VALUE_CONST)
        return false;
    const grt_packing packing = grt_plan_packing(session->model->plan, value->weight);
    return !session->packed || !grt_is_packed(&packing);
}

bool grt_draft_can_hoist(const grt_draft *draft, int32_t s)
{
    const grt_plan_step *step = &draft->program->body->steps[s];
    const grt_place *places = draft->program->places;
    const grt_op_call *call = &draft->frame->calls[s];
    if (step->kind > GRT_STEP_VIEW || !call->op || (call->op->flags & OP_RANDOM))
        return false;
    if (step->kind != GRT_STEP_VIEW && draft->hoisted_bytes >= MAX_ALL_HOISTED_BYTES)
        return false;
    const bool dims_only = call->op->flags & OP_READS_DIMS;
    for (int32_t i = 0; i < step->n_in; i++) {
        int32_t v = step->in[i];
        bool content = v < 0 || places[v].home == GRT_HOME_PREPARED || hoist_is_plain_constant(draft, v);
        if (!content && !(dims_only && places[v].has_dims))
            return false;
    }
    for (int32_t i = 0; i < step->n_out; i++) {
        int32_t v = step->out[i];
        if (v < 0)
            return false;
        if (places[v].has_dims && grt_tensor_bytes(&draft->frame->values[v].t) > MAX_HOISTED_BYTES)
            return false;
        if (draft->program->body->values[v].kind != GRT_KIND_TENSOR)
            return false;
    }
    return step->n_in > 0;
}

static void hoist_view_of(grt_value *out, const grt_value *in, size_t at)
{
    out->t.dtype = in->t.dtype;
    out->t.data = in->t.data ? (char *)in->t.data + at : NULL;
    out->buffer = grt_buffer_retain(in->buffer);
}

static void set_prepared(grt_draft *draft, int32_t v)
{
    draft->program->places[v].home = GRT_HOME_PREPARED;
    draft->program->places[v].has_dims = draft->frame->host_ok[v] = true;
}

static void set_done(grt_draft *draft, int32_t s)
{
    grt_step_draft *step = &draft->steps[s];
    step->done = step->prepared = step->hoisted = true;
}

/* A view of known content: its dims have been found, the elements are those of its input. */
static void hoist_view(grt_draft *draft, int32_t s)
{
    grt_frame *frame = draft->frame;
    const grt_plan_step *step = &draft->program->body->steps[s];
    const int32_t in = step->in[0];
    size_t at = 0;
    for (int32_t i = 0; i < step->n_out; i++)
        if (!draft->program->places[step->out[i]].has_dims || frame->values[in].kind != GRT_KIND_TENSOR)
            return;
    for (int32_t i = 0; i < step->n_out; i++) {
        const int32_t out = step->out[i];
        hoist_view_of(&frame->values[out], &frame->values[in], at);
        if (grt_frame_on_device(frame)) {
            grt_frame_shadow(frame, out);
            hoist_view_of(&frame->host[out], &frame->host[in], at);
        }
        set_prepared(draft, out);
        at += grt_tensor_bytes(&frame->values[out].t);
    }
    set_done(draft, s);
}

/* Content that was computed on the host, for the steps that read it there and on the device. */
static grt_status place_hoisted(grt_draft *draft, int32_t v, const grt_value *content)
{
    grt_frame *frame = draft->frame;
    const grt_executor *executor = frame->executor;
    set_prepared(draft, v);
    frame->host[v] = *content; /* the same as values[v] on host devices */
    if (!grt_frame_on_device(frame) || content->t.dtype == GRT_DTYPE_STRING)
        return GRT_OK;
    grt_device *device = grt_executor_device(executor);
    const grt_tensor *t = &content->t;
    GRT_TRY(grt_device_value_alloc(device, NULL, &frame->values[v], t->dtype, t->rank, t->dims));
    GRT_TRY(
        grt_device_upload(device, frame->values[v].t.data, t->data, grt_tensor_bytes(t), executor->stream));
    return grt_device_wait(device, executor->stream);
}

grt_status grt_draft_hoist(grt_draft *draft, int32_t s)
{
    const grt_plan_step *step = &draft->program->body->steps[s];
    enum { MOST = 4 };
    grt_value out[MOST] = {0};
    if (step->kind == GRT_STEP_VIEW) {
        hoist_view(draft, s);
        return GRT_OK;
    }
    if (step->n_out > MOST)
        return GRT_OK;
    /* Dims that the plan has decided: what the op's rule would find them from may be gone from the step. */
    for (int32_t i = 0; i < step->n_out; i++) {
        if (draft->program->places[step->out[i]].has_dims) {
            out[i].t = draft->frame->values[step->out[i]].t;
            out[i].t.data = NULL;
        }
    }
    grt_target host = grt_target_of(&grt_backend_cpu);
    GRT_TRY(host.evaluate(&host, &step->desc, draft->frame->calls[s].host_in, step->n_in, out, step->n_out,
                          SIZE_MAX));
    grt_status status = GRT_OK;
    for (int32_t i = 0; i < step->n_out; i++) {
        if (status == GRT_OK) {
            draft->hoisted_bytes += grt_tensor_bytes(&out[i].t);
            status = place_hoisted(draft, step->out[i], &out[i]);
        } else
            grt_value_clear(&out[i]);
    }
    set_done(draft, s);
    return status;
}
