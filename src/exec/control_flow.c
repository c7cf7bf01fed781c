/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/control_flow.h"

#include "src/exec/body.h"
#include "src/exec/lists.h"

static grt_value *step_out(grt_frame *frame, const grt_plan_step *step, int32_t i)
{
    if (i >= step->n_out || step->out[i] < 0)
        return NULL;
    grt_frame_drop(frame, step->out[i]);
    return &frame->host[step->out[i]];
}

static const grt_value *step_in(const grt_frame *frame, const grt_plan_step *step, int32_t i)
{
    return i < step->n_in && step->in[i] >= 0 ? &frame->host[step->in[i]] : NULL;
}

static grt_status scalar_bool(const grt_plan_step *step, const grt_value *value, const char *what, bool *out)
{
    if (value->kind != GRT_KIND_TENSOR || value->t.dtype != GRT_DTYPE_BOOL ||
        grt_tensor_elements(&value->t) != 1) {
        char text[GRT_TYPE_TEXT_SIZE];
        return grt_fail_op(&step->desc, GRT_STATUS_INVALID_ARGUMENT, "%s must be one bool, found %s", what,
                           grt_tensor_text(&value->t, text));
    }
    *out = *(const uint8_t *)value->t.data != 0;
    return GRT_OK;
}

static grt_status scalar_int(const grt_plan_step *step, const grt_value *value, const char *what,
                             int64_t *out)
{
    if (value->kind != GRT_KIND_TENSOR || !grt_dtype_in(value->t.dtype, GRT_SET_INTS) ||
        grt_tensor_elements(&value->t) != 1) {
        char text[GRT_TYPE_TEXT_SIZE];
        return grt_fail_op(&step->desc, GRT_STATUS_INVALID_ARGUMENT, "%s must be one whole number, found %s",
                           what, grt_tensor_text(&value->t, text));
    }
    *out = grt_tensor_int(&value->t, 0);
    return GRT_OK;
}

/* ---- If ---- */

grt_status grt_control_run_if(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    bool condition;
    GRT_TRY(scalar_bool(step, step_in(frame, step, 0), "the condition", &condition));
    grt_frame *body = grt_body_enter(frame, step->bodies[condition ? 0 : 1]);
    GRT_TRY(grt_body_run(body));
    for (int32_t i = 0; i < step->n_out; i++) {
        grt_value *out = step_out(frame, step, i);
        if (out)
            GRT_TRY(grt_value_share(out, grt_body_output(body, i)));
    }
    grt_frame_clear(body);
    return GRT_OK;
}

/* ---- Loop ---- */

/* Outputs of an iteration become the inputs of the next. They are taken first, as one may be another's
 * input. */
static grt_status carry(grt_frame *body, int32_t n, int32_t first_output, int32_t first_input)
{
    grt_lists next;
    grt_status status = grt_lists_create(&next, n);
    for (int32_t i = 0; status == GRT_OK && i < n; i++)
        status = grt_body_take_output(body, first_output + i, &next.v[i]);
    for (int32_t i = 0; status == GRT_OK && i < n; i++)
        status = grt_body_give_input(body, first_input + i, &next.v[i]);
    grt_lists_release(&next);
    return status;
}

static grt_status loop_iterations(grt_frame *frame, const grt_plan_step *step, grt_frame *body,
                                  grt_lists *scans)
{
    int32_t n_carried = step->n_in - 2;
    const grt_value *limit = step_in(frame, step, 0), *go = step_in(frame, step, 1);
    int64_t max = INT64_MAX;
    bool condition = true;
    if (limit)
        GRT_TRY(scalar_int(step, limit, "the number of iterations", &max));
    if (go)
        GRT_TRY(scalar_bool(step, go, "the condition", &condition));
    for (int32_t i = 0; i < n_carried; i++)
        GRT_TRY(grt_body_set_input(body, 2 + i, step_in(frame, step, 2 + i)));
    for (int64_t iteration = 0; iteration < max && condition; iteration++) {
        GRT_TRY(grt_body_set_int(body, 0, iteration));
        GRT_TRY(grt_body_set_bool(body, 1, condition));
        GRT_TRY(grt_body_run(body));
        GRT_TRY(scalar_bool(step, grt_body_output(body, 0), "the condition of an iteration", &condition));
        for (int32_t i = 0; i < scans->n; i++)
            GRT_TRY(grt_list_append(&scans->v[i], grt_body_output(body, 1 + n_carried + i)));
        GRT_TRY(carry(body, n_carried, 1, 2));
    }
    return GRT_OK;
}

grt_status grt_control_run_loop(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    grt_lists scans;
    int32_t n_carried = step->n_in - 2;
    grt_frame *body = grt_body_enter(frame, step->bodies[0]);
    GRT_TRY(grt_lists_create(&scans, body->program->body->n_outputs - 1 - n_carried));
    grt_status status = loop_iterations(frame, step, body, &scans);
    for (int32_t i = 0; status == GRT_OK && i < step->n_out; i++) {
        grt_value *out = step_out(frame, step, i);
        if (!out)
            continue;
        if (i < n_carried)
            status = grt_value_share(out, &body->values[body->program->body->inputs[2 + i]]);
        else if (scans.v[i - n_carried].n)
            status = grt_list_stack(step, &scans.v[i - n_carried], 0, false, out);
        else
            status = grt_list_stack_none(body, &step->desc, 1 + i, 0, out);
    }
    grt_lists_release(&scans);
    grt_frame_clear(body);
    return status;
}

/* ---- Scan ---- */

typedef struct scan {
    int32_t n_state, n_scan;
    const int64_t *in_axes, *in_directions, *out_axes, *out_directions;
    size_t n_in_axes, n_in_directions, n_out_axes, n_out_directions;
} scan;

static int64_t control_flow_pick(const int64_t *values, size_t n, int32_t i)
{
    return (size_t)i < n ? values[i] : 0;
}

static grt_status scan_length(const grt_frame *frame, const grt_plan_step *step, const scan *sc,
                              int64_t *out_length)
{
    *out_length = -1;
    for (int32_t i = 0; i < sc->n_scan; i++) {
        const grt_value *in = step_in(frame, step, sc->n_state + i);
        int64_t axis = grt_axis(control_flow_pick(sc->in_axes, sc->n_in_axes, i), in->t.rank);
        if (in->kind != GRT_KIND_TENSOR)
            return grt_fail_op(&step->desc, GRT_STATUS_INVALID_ARGUMENT, "scan input %d is no tensor", i);
        if (axis < 0)
            return grt_fail_op(&step->desc, GRT_STATUS_INVALID_ARGUMENT, "scan input %d has no axis %lld", i,
                               (long long)control_flow_pick(sc->in_axes, sc->n_in_axes, i));
        if (*out_length >= 0 && in->t.dims[axis] != *out_length)
            return grt_fail_op(&step->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "scan input %d has %lld steps, the inputs before it %lld", i,
                               (long long)in->t.dims[axis], (long long)*out_length);
        *out_length = in->t.dims[axis];
    }
    return GRT_OK;
}

static grt_status scan_iterations(grt_frame *frame, const grt_plan_step *step, grt_frame *body,
                                  const scan *sc, grt_lists *scans)
{
    int64_t length;
    GRT_TRY(scan_length(frame, step, sc, &length));
    for (int32_t i = 0; i < sc->n_state; i++)
        GRT_TRY(grt_body_set_input(body, i, step_in(frame, step, i)));
    for (int64_t t = 0; t < length; t++) {
        for (int32_t i = 0; i < sc->n_scan; i++) {
            const grt_value *in = step_in(frame, step, sc->n_state + i);
            int64_t axis = grt_axis(control_flow_pick(sc->in_axes, sc->n_in_axes, i), in->t.rank);
            int64_t at = control_flow_pick(sc->in_directions, sc->n_in_directions, i) ? length - 1 - t : t;
            int32_t v = body->program->body->inputs[sc->n_state + i];
            grt_frame_drop(body, v);
            GRT_TRY(grt_slice_take(step, in, axis, at, &body->values[v]));
        }
        GRT_TRY(grt_body_run(body));
        for (int32_t i = 0; i < scans->n; i++)
            GRT_TRY(grt_list_append(&scans->v[i], grt_body_output(body, sc->n_state + i)));
        GRT_TRY(carry(body, sc->n_state, 0, 0));
    }
    return GRT_OK;
}

grt_status grt_control_run_scan(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    grt_lists scans;
    scan sc = {.n_scan = (int32_t)grt_attr_int(&step->desc, "num_scan_inputs", 0)};
    if (sc.n_scan < 1 || sc.n_scan > step->n_in)
        return grt_fail_op(&step->desc, GRT_STATUS_INVALID_MODEL, "num_scan_inputs is %d for %d inputs",
                           sc.n_scan, step->n_in);
    sc.n_state = step->n_in - sc.n_scan;
    sc.in_axes = grt_attr_ints(&step->desc, "scan_input_axes", &sc.n_in_axes);
    sc.in_directions = grt_attr_ints(&step->desc, "scan_input_directions", &sc.n_in_directions);
    sc.out_axes = grt_attr_ints(&step->desc, "scan_output_axes", &sc.n_out_axes);
    sc.out_directions = grt_attr_ints(&step->desc, "scan_output_directions", &sc.n_out_directions);
    grt_frame *body = grt_body_enter(frame, step->bodies[0]);
    GRT_TRY(grt_lists_create(&scans, body->program->body->n_outputs - sc.n_state));
    grt_status status = scan_iterations(frame, step, body, &sc, &scans);
    for (int32_t i = 0; status == GRT_OK && i < step->n_out; i++) {
        grt_value *out = step_out(frame, step, i);
        int32_t k = i - sc.n_state;
        if (!out)
            continue;
        if (k < 0)
            status = grt_value_share(out, &body->values[body->program->body->inputs[i]]);
        else if (scans.v[k].n)
            status = grt_list_stack(step, &scans.v[k], control_flow_pick(sc.out_axes, sc.n_out_axes, k),
                                    control_flow_pick(sc.out_directions, sc.n_out_directions, k) != 0, out);
        else
            status = grt_list_stack_none(body, &step->desc, i,
                                         control_flow_pick(sc.out_axes, sc.n_out_axes, k), out);
    }
    grt_lists_release(&scans);
    grt_frame_clear(body);
    return status;
}

/* ---- SequenceMap ---- */

static grt_status map_items(grt_frame *frame, const grt_plan_step *step, grt_frame *body, grt_lists *results)
{
    const grt_value *sequence = step_in(frame, step, 0);
    for (size_t k = 0; k < sequence->n; k++) {
        for (int32_t i = 0; i < step->n_in; i++) {
            const grt_value *in = step_in(frame, step, i);
            if (in->kind == GRT_KIND_SEQUENCE && k >= in->n)
                return grt_fail_op(&step->desc, GRT_STATUS_INVALID_ARGUMENT,
                                   "input sequence %d has %zu items, the first one %zu", i, in->n,
                                   sequence->n);
            const grt_value *item = in->kind == GRT_KIND_SEQUENCE ? &in->items[k] : in;
            if (item->kind != GRT_KIND_TENSOR)
                return grt_fail_op(&step->desc, GRT_STATUS_INVALID_ARGUMENT,
                                   "input %d has items that are no tensors", i);
            GRT_TRY(grt_body_set_input(body, i, item));
        }
        GRT_TRY(grt_body_run(body));
        for (int32_t i = 0; i < results->n; i++)
            GRT_TRY(grt_list_append(&results->v[i], grt_body_output(body, i)));
    }
    return GRT_OK;
}

grt_status grt_control_run_sequence_map(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    grt_lists results;
    grt_frame *body = grt_body_enter(frame, step->bodies[0]);
    GRT_TRY(grt_lists_create(&results, body->program->body->n_outputs));
    grt_status status = map_items(frame, step, body, &results);
    for (int32_t i = 0; status == GRT_OK && i < step->n_out && i < results.n; i++) {
        grt_value *out = step_out(frame, step, i);
        if (!out)
            continue;
        results.v[i].t.dtype = body->program->body->values[body->program->body->outputs[i]].dtype;
        *out = results.v[i];
        results.v[i] = (grt_value){0};
    }
    grt_lists_release(&results);
    grt_frame_clear(body);
    return status;
}
