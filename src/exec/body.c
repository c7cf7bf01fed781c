/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/body.h"

#include "src/exec/execute.h"

enum { MAX_DEPTH = 64 };

grt_frame *grt_body_enter(grt_frame *outer, int32_t index)
{
    grt_frame *frame = outer->executor->bodies[index];
    const grt_plan_body *body = frame->program->body;
    grt_frame_clear(frame);
    for (int32_t i = 0; i < body->n_captures; i++)
        frame->values[body->captures_inner[i]] = outer->host[body->captures_outer[i]];
    return frame;
}

/* Let go of what the last iteration made; inputs and captures stay. */
static void body_clear_steps(grt_frame *frame)
{
    const grt_program *program = frame->program;
    for (int32_t i = 0; i < program->n_clear; i++)
        if (program->body->values[program->clear[i]].role == GRT_VALUE_STEP)
            grt_frame_drop(frame, program->clear[i]);
}

/* What a body's steps were prepared for: a plan may be forged. */
static bool body_input_fits(const grt_frame *frame, const grt_plan_value *wanted, const grt_value *value)
{
    const grt_program *main = frame->executor->main->program;
    if (wanted->kind == GRT_KIND_OPTIONAL)
        return true; /* kernels look at what an optional holds */
    if (value->kind != wanted->kind || (wanted->dtype && value->t.dtype && wanted->dtype != value->t.dtype))
        return false;
    if (wanted->kind != GRT_KIND_TENSOR || wanted->rank < 0)
        return true;
    bool same = value->t.rank == wanted->rank;
    for (int32_t k = 0; same && k < wanted->rank; k++) {
        const int32_t dim = wanted->dims[k];
        same = !main->dims_known[dim] || main->dims[dim] < 0 || main->dims[dim] == value->t.dims[k];
    }
    return same;
}

static grt_status body_check_input(const grt_frame *frame, int32_t i, const grt_value *value)
{
    int32_t v = frame->program->body->inputs[i];
    const grt_plan_value *wanted = &frame->program->body->values[v];
    char text[GRT_TYPE_TEXT_SIZE];
    if (!body_input_fits(frame, wanted, value))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "input '%s' of a body of control flow was prepared for %s %s of rank %d, found %s %s",
                        wanted->name, grt_kind_name(wanted->kind), grt_dtype_name(wanted->dtype),
                        wanted->rank, grt_kind_name(value->kind), grt_tensor_text(&value->t, text));
    return GRT_OK;
}

grt_status grt_body_set_input(grt_frame *frame, int32_t i, const grt_value *value)
{
    int32_t v = frame->program->body->inputs[i];
    GRT_TRY(body_check_input(frame, i, value));
    grt_frame_drop(frame, v);
    return grt_value_share(&frame->values[v], value);
}

grt_status grt_body_give_input(grt_frame *frame, int32_t i, grt_value *value)
{
    int32_t v = frame->program->body->inputs[i];
    GRT_TRY(body_check_input(frame, i, value));
    grt_frame_drop(frame, v);
    frame->values[v] = *value;
    *value = (grt_value){0};
    return GRT_OK;
}

grt_status grt_body_set_int(grt_frame *frame, int32_t i, int64_t value)
{
    int32_t v = frame->program->body->inputs[i];
    grt_frame_drop(frame, v);
    GRT_TRY(grt_value_alloc(&frame->values[v], GRT_DTYPE_INT64, 0, NULL));
    *(int64_t *)frame->values[v].t.data = value;
    return GRT_OK;
}

grt_status grt_body_set_bool(grt_frame *frame, int32_t i, bool value)
{
    int32_t v = frame->program->body->inputs[i];
    grt_frame_drop(frame, v);
    GRT_TRY(grt_value_alloc(&frame->values[v], GRT_DTYPE_BOOL, 0, NULL));
    *(uint8_t *)frame->values[v].t.data = value;
    return GRT_OK;
}

grt_status grt_body_run(grt_frame *frame)
{
    grt_executor *executor = frame->executor;
    if (executor->depth >= MAX_DEPTH)
        return grt_fail(GRT_STATUS_UNSUPPORTED, "bodies of control flow are nested deeper than %d",
                        MAX_DEPTH);
    GRT_TRY(grt_stop_check(&executor->stop)); /* a body may have no instructions, and be run for ever */
    executor->depth++;
    body_clear_steps(frame);
    grt_status status = grt_frame_run(frame);
    executor->depth--;
    return status;
}

grt_value *grt_body_output(grt_frame *frame, int32_t i)
{
    return &frame->values[frame->program->body->outputs[i]];
}

/* True if a step of the body made it in this run, for this output alone. */
static bool body_output_is_own(const grt_program *program, int32_t output)
{
    const int32_t v = program->body->outputs[output];
    int32_t n = 0;
    for (int32_t i = 0; i < program->body->n_outputs; i++)
        n += program->body->outputs[i] == v;
    return n == 1 && program->body->values[v].role == GRT_VALUE_STEP &&
           program->places[v].home == GRT_HOME_RUN;
}

grt_status grt_body_take_output(grt_frame *body, int32_t output, grt_value *out)
{
    grt_value *value = grt_body_output(body, output);
    if (value->kind == GRT_KIND_TENSOR || !body_output_is_own(body->program, output))
        return grt_value_share(out, value);
    grt_value_clear(out);
    *out = *value;
    *value = (grt_value){.kind = out->kind, .t.dtype = out->t.dtype};
    return GRT_OK;
}
