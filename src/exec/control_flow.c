/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/control_flow.h"

#include "src/base/checked.h"
#include "src/exec/execute.h"

#include <stdlib.h>
#include <string.h>

/* ---- bodies ---- */

enum { MAX_DEPTH = 64 };

/* The frame of a body, with what it captures from the frame around. */
static grt_frame *enter_body(grt_frame *outer, int32_t index)
{
    grt_frame *frame = outer->executor->bodies[index];
    const grt_plan_body *body = frame->program->body;
    grt_frame_clear(frame);
    for (int32_t i = 0; i < body->n_captures; i++)
        frame->values[body->captures_inner[i]] = outer->host[body->captures_outer[i]];
    return frame;
}

/* Let go of what the last iteration made; inputs and captures stay. */
static void clear_steps(grt_frame *frame)
{
    const grt_program *program = frame->program;
    for (int32_t i = 0; i < program->n_clear; i++)
        if (program->body->values[program->clear[i]].role == GRT_VALUE_STEP)
            grt_frame_drop(frame, program->clear[i]);
}

/* What a body's steps were prepared for: a plan may be forged. */
static bool control_flow_fits(const grt_frame *frame, const grt_plan_value *wanted, const grt_value *value)
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

static grt_status control_flow_check_input(const grt_frame *frame, int32_t i, const grt_value *value)
{
    int32_t v = frame->program->body->inputs[i];
    const grt_plan_value *wanted = &frame->program->body->values[v];
    char text[GRT_TYPE_TEXT_SIZE];
    if (!control_flow_fits(frame, wanted, value))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "input '%s' of a body of control flow was prepared for %s %s of rank %d, found %s %s",
                        wanted->name, grt_kind_name(wanted->kind), grt_dtype_name(wanted->dtype),
                        wanted->rank, grt_kind_name(value->kind), grt_tensor_text(&value->t, text));
    return GRT_OK;
}

static grt_status set_input(grt_frame *frame, int32_t i, const grt_value *value)
{
    int32_t v = frame->program->body->inputs[i];
    GRT_TRY(control_flow_check_input(frame, i, value));
    grt_frame_drop(frame, v);
    return grt_value_share(&frame->values[v], value);
}

/* The same; the value is empty then. */
static grt_status control_flow_give_input(grt_frame *frame, int32_t i, grt_value *value)
{
    int32_t v = frame->program->body->inputs[i];
    GRT_TRY(control_flow_check_input(frame, i, value));
    grt_frame_drop(frame, v);
    frame->values[v] = *value;
    *value = (grt_value){0};
    return GRT_OK;
}

static grt_status set_input_int(grt_frame *frame, int32_t i, int64_t value)
{
    int32_t v = frame->program->body->inputs[i];
    grt_frame_drop(frame, v);
    GRT_TRY(grt_value_alloc(&frame->values[v], GRT_DTYPE_INT64, 0, NULL));
    *(int64_t *)frame->values[v].t.data = value;
    return GRT_OK;
}

static grt_status set_input_bool(grt_frame *frame, int32_t i, bool value)
{
    int32_t v = frame->program->body->inputs[i];
    grt_frame_drop(frame, v);
    GRT_TRY(grt_value_alloc(&frame->values[v], GRT_DTYPE_BOOL, 0, NULL));
    *(uint8_t *)frame->values[v].t.data = value;
    return GRT_OK;
}

static grt_status run_body(grt_frame *frame)
{
    grt_executor *executor = frame->executor;
    if (executor->depth >= MAX_DEPTH)
        return grt_fail(GRT_STATUS_UNSUPPORTED, "bodies of control flow are nested deeper than %d",
                        MAX_DEPTH);
    GRT_TRY(grt_stop_check(&executor->stop)); /* a body may have no instructions, and be run for ever */
    executor->depth++;
    clear_steps(frame);
    grt_status status = grt_frame_run(frame);
    executor->depth--;
    return status;
}

static grt_value *control_flow_output_of(grt_frame *frame, int32_t i)
{
    return &frame->values[frame->program->body->outputs[i]];
}

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

/* ---- tensors made of slices ---- */

/* Copy between a tensor of rank r+1 and its slice `index` along `axis`. */
static void copy_slice(const grt_tensor *whole, const grt_tensor *slice, int32_t axis, int64_t index,
                       bool to_whole)
{
    size_t size = grt_dtype_size(whole->dtype);
    size_t inner = (size_t)grt_dims_product(whole->dims, axis + 1, whole->rank) * size;
    int64_t outer = grt_dims_product(whole->dims, 0, axis);
    for (int64_t o = 0; inner && o < outer; o++) {
        char *w = (char *)whole->data + (size_t)(o * whole->dims[axis] + index) * inner;
        char *s = (char *)slice->data + (size_t)o * inner;
        memcpy(to_whole ? w : s, to_whole ? s : w, inner);
    }
}

static grt_status check_whole_bytes(const grt_plan_step *step, grt_dtype dtype)
{
    if (grt_dtype_size(dtype) == 0)
        return grt_fail_op(&step->desc, GRT_STATUS_UNSUPPORTED, "scanned tensors of %s are not supported",
                           grt_dtype_name(dtype));
    return GRT_OK;
}

/* Stack equal tensors along a new axis. */
static grt_status stack(const grt_plan_step *step, const grt_value *list, int64_t axis, bool reverse,
                        grt_value *out)
{
    if (!list->n)
        return GRT_OK;
    const grt_tensor *first = &list->items[0].t;
    GRT_TRY(check_whole_bytes(step, first->dtype));
    int32_t rank = first->rank + 1;
    axis = grt_axis(axis, rank);
    if (axis < 0 || rank > GRT_MAX_RANK)
        return grt_fail_op(&step->desc, GRT_STATUS_INVALID_ARGUMENT, "scan output axis does not fit rank %d",
                           rank);
    int64_t dims[GRT_MAX_RANK];
    for (int32_t i = 0, k = 0; i < rank; i++)
        dims[i] = i == axis ? (int64_t)list->n : first->dims[k++];
    GRT_TRY(grt_value_alloc(out, first->dtype, rank, dims));
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].kind != GRT_KIND_TENSOR)
            return grt_fail_op(
                &step->desc, GRT_STATUS_INVALID_ARGUMENT,
                "a scan output must be a tensor in all iterations; it is none in iteration %zu", i);
        if (!grt_tensor_same_type(first, &list->items[i].t)) {
            char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
            return grt_fail_op(
                &step->desc, GRT_STATUS_INVALID_ARGUMENT,
                "a scan output must have one shape in all iterations: %s in the first, %s in iteration %zu",
                grt_tensor_text(first, a), grt_tensor_text(&list->items[i].t, b), i);
        }
        copy_slice(&out->t, &list->items[i].t, (int32_t)axis, (int64_t)(reverse ? list->n - 1 - i : i), true);
    }
    return GRT_OK;
}

static grt_status control_flow_append(grt_value *list, const grt_value *value)
{
    grt_value *item;
    GRT_TRY(grt_value_insert(list, list->n, &item));
    return grt_value_share(item, value);
}

/* The dims that the source declares of the body's output; NULL if it says nothing. */
static const int64_t *declared_dims(const grt_op_desc *desc, int32_t output, int32_t *out_rank)
{
    size_t n, at = 0;
    const int64_t *list = grt_attr_ints(desc, GRT_ATTR_DECLARED, &n);
    for (int32_t i = 0; list && at < n; i++) {
        const int64_t rank = list[at++];
        if (rank > GRT_MAX_RANK || (rank > 0 && (size_t)rank > n - at))
            return NULL;
        if (i == output) {
            *out_rank = (int32_t)rank;
            return rank < 0 ? NULL : list + at;
        }
        at += rank > 0 ? (size_t)rank : 0;
    }
    return NULL;
}

/* A scan output without iterations: the shape of the body's output with 0 in front. Dims that inference does
 * not know are as the source declares them, else 0. */
static grt_status empty_scan(grt_frame *frame, const grt_op_desc *desc, int32_t output, int64_t axis,
                             grt_value *out)
{
    const grt_plan_value *v = &frame->program->body->values[frame->program->body->outputs[output]];
    const grt_program *main = frame->executor->main->program;
    int64_t dims[GRT_MAX_RANK] = {0};
    int32_t declared_rank = -1;
    const int64_t *declared = declared_dims(desc, output, &declared_rank);
    const int32_t inner = v->rank >= 0 ? v->rank : declared_rank > 0 ? declared_rank : 0;
    if (declared_rank != inner)
        declared = NULL;
    int32_t rank = inner + 1;
    axis = grt_axis(axis, rank);
    if (axis < 0 || rank > GRT_MAX_RANK)
        axis = 0, rank = 1;
    for (int32_t i = 0, k = 0; i < rank; i++) {
        if (i == axis)
            continue;
        const int32_t dim = v->rank >= 0 ? v->dims[k] : -1;
        const bool known = dim >= 0 && main->dims_known[dim] && main->dims[dim] >= 0;
        dims[i] = known ? main->dims[dim] : declared && declared[k] > 0 ? declared[k] : 0;
        k++;
    }
    return grt_value_alloc(out, v->dtype, rank, dims);
}

/* Lists of values with one cleanup. */
typedef struct lists {
    grt_value *v;
    int32_t n;
} lists;

static grt_status lists_create(lists *l, int32_t n)
{
    l->v = calloc((size_t)n + 1, sizeof *l->v);
    l->n = n;
    for (int32_t i = 0; l->v && i < n; i++)
        l->v[i].kind = GRT_KIND_SEQUENCE;
    return l->v ? GRT_OK : grt_fail_memory((size_t)n * sizeof *l->v);
}

static void lists_release(lists *l)
{
    for (int32_t i = 0; l->v && i < l->n; i++)
        grt_value_clear(&l->v[i]);
    free(l->v);
}

/* ---- If ---- */

grt_status grt_control_run_if(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    bool condition;
    GRT_TRY(scalar_bool(step, step_in(frame, step, 0), "the condition", &condition));
    grt_frame *body = enter_body(frame, step->bodies[condition ? 0 : 1]);
    GRT_TRY(run_body(body));
    for (int32_t i = 0; i < step->n_out; i++) {
        grt_value *out = step_out(frame, step, i);
        if (out)
            GRT_TRY(grt_value_share(out, control_flow_output_of(body, i)));
    }
    grt_frame_clear(body);
    return GRT_OK;
}

/* ---- Loop ---- */

/* True if a step of the body made it in this run, for this output alone. */
static bool control_flow_is_own(const grt_program *program, int32_t output)
{
    const int32_t v = program->body->outputs[output];
    int32_t n = 0;
    for (int32_t i = 0; i < program->body->n_outputs; i++)
        n += program->body->outputs[i] == v;
    return n == 1 && program->body->values[v].role == GRT_VALUE_STEP &&
           program->places[v].home == GRT_HOME_RUN;
}

/* The output for the next iteration. A list is moved: to share it is to count each of its items. */
static grt_status control_flow_take_output(grt_frame *body, int32_t output, grt_value *out)
{
    grt_value *value = control_flow_output_of(body, output);
    if (value->kind == GRT_KIND_TENSOR || !control_flow_is_own(body->program, output))
        return grt_value_share(out, value);
    grt_value_clear(out);
    *out = *value;
    *value = (grt_value){.kind = out->kind, .t.dtype = out->t.dtype};
    return GRT_OK;
}

/* Outputs of an iteration become the inputs of the next. They are taken first, as one may be another's
 * input. */
static grt_status carry(grt_frame *body, int32_t n, int32_t first_output, int32_t first_input)
{
    lists next;
    grt_status status = lists_create(&next, n);
    for (int32_t i = 0; status == GRT_OK && i < n; i++)
        status = control_flow_take_output(body, first_output + i, &next.v[i]);
    for (int32_t i = 0; status == GRT_OK && i < n; i++)
        status = control_flow_give_input(body, first_input + i, &next.v[i]);
    lists_release(&next);
    return status;
}

static grt_status loop_iterations(grt_frame *frame, const grt_plan_step *step, grt_frame *body, lists *scans)
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
        GRT_TRY(set_input(body, 2 + i, step_in(frame, step, 2 + i)));
    for (int64_t iteration = 0; iteration < max && condition; iteration++) {
        GRT_TRY(set_input_int(body, 0, iteration));
        GRT_TRY(set_input_bool(body, 1, condition));
        GRT_TRY(run_body(body));
        GRT_TRY(
            scalar_bool(step, control_flow_output_of(body, 0), "the condition of an iteration", &condition));
        for (int32_t i = 0; i < scans->n; i++)
            GRT_TRY(control_flow_append(&scans->v[i], control_flow_output_of(body, 1 + n_carried + i)));
        GRT_TRY(carry(body, n_carried, 1, 2));
    }
    return GRT_OK;
}

grt_status grt_control_run_loop(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    lists scans;
    int32_t n_carried = step->n_in - 2;
    grt_frame *body = enter_body(frame, step->bodies[0]);
    GRT_TRY(lists_create(&scans, body->program->body->n_outputs - 1 - n_carried));
    grt_status status = loop_iterations(frame, step, body, &scans);
    for (int32_t i = 0; status == GRT_OK && i < step->n_out; i++) {
        grt_value *out = step_out(frame, step, i);
        if (!out)
            continue;
        if (i < n_carried)
            status = grt_value_share(out, &body->values[body->program->body->inputs[2 + i]]);
        else if (scans.v[i - n_carried].n)
            status = stack(step, &scans.v[i - n_carried], 0, false, out);
        else
            status = empty_scan(body, &step->desc, 1 + i, 0, out);
    }
    lists_release(&scans);
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

static grt_status scan_slice(const grt_plan_step *step, const grt_value *whole, int64_t axis, int64_t index,
                             grt_value *slot)
{
    int64_t dims[GRT_MAX_RANK];
    for (int32_t i = 0, k = 0; i < whole->t.rank; i++)
        if (i != axis)
            dims[k++] = whole->t.dims[i];
    GRT_TRY(check_whole_bytes(step, whole->t.dtype));
    GRT_TRY(grt_value_alloc(slot, whole->t.dtype, whole->t.rank - 1, dims));
    copy_slice(&whole->t, &slot->t, (int32_t)axis, index, false);
    return GRT_OK;
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
                                  const scan *sc, lists *scans)
{
    int64_t length;
    GRT_TRY(scan_length(frame, step, sc, &length));
    for (int32_t i = 0; i < sc->n_state; i++)
        GRT_TRY(set_input(body, i, step_in(frame, step, i)));
    for (int64_t t = 0; t < length; t++) {
        for (int32_t i = 0; i < sc->n_scan; i++) {
            const grt_value *in = step_in(frame, step, sc->n_state + i);
            int64_t axis = grt_axis(control_flow_pick(sc->in_axes, sc->n_in_axes, i), in->t.rank);
            int64_t at = control_flow_pick(sc->in_directions, sc->n_in_directions, i) ? length - 1 - t : t;
            int32_t v = body->program->body->inputs[sc->n_state + i];
            grt_frame_drop(body, v);
            GRT_TRY(scan_slice(step, in, axis, at, &body->values[v]));
        }
        GRT_TRY(run_body(body));
        for (int32_t i = 0; i < scans->n; i++)
            GRT_TRY(control_flow_append(&scans->v[i], control_flow_output_of(body, sc->n_state + i)));
        GRT_TRY(carry(body, sc->n_state, 0, 0));
    }
    return GRT_OK;
}

grt_status grt_control_run_scan(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    lists scans;
    scan sc = {.n_scan = (int32_t)grt_attr_int(&step->desc, "num_scan_inputs", 0)};
    if (sc.n_scan < 1 || sc.n_scan > step->n_in)
        return grt_fail_op(&step->desc, GRT_STATUS_INVALID_MODEL, "num_scan_inputs is %d for %d inputs",
                           sc.n_scan, step->n_in);
    sc.n_state = step->n_in - sc.n_scan;
    sc.in_axes = grt_attr_ints(&step->desc, "scan_input_axes", &sc.n_in_axes);
    sc.in_directions = grt_attr_ints(&step->desc, "scan_input_directions", &sc.n_in_directions);
    sc.out_axes = grt_attr_ints(&step->desc, "scan_output_axes", &sc.n_out_axes);
    sc.out_directions = grt_attr_ints(&step->desc, "scan_output_directions", &sc.n_out_directions);
    grt_frame *body = enter_body(frame, step->bodies[0]);
    GRT_TRY(lists_create(&scans, body->program->body->n_outputs - sc.n_state));
    grt_status status = scan_iterations(frame, step, body, &sc, &scans);
    for (int32_t i = 0; status == GRT_OK && i < step->n_out; i++) {
        grt_value *out = step_out(frame, step, i);
        int32_t k = i - sc.n_state;
        if (!out)
            continue;
        if (k < 0)
            status = grt_value_share(out, &body->values[body->program->body->inputs[i]]);
        else if (scans.v[k].n)
            status = stack(step, &scans.v[k], control_flow_pick(sc.out_axes, sc.n_out_axes, k),
                           control_flow_pick(sc.out_directions, sc.n_out_directions, k) != 0, out);
        else
            status = empty_scan(body, &step->desc, i, control_flow_pick(sc.out_axes, sc.n_out_axes, k), out);
    }
    lists_release(&scans);
    grt_frame_clear(body);
    return status;
}

/* ---- SequenceMap ---- */

static grt_status map_items(grt_frame *frame, const grt_plan_step *step, grt_frame *body, lists *results)
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
            GRT_TRY(set_input(body, i, item));
        }
        GRT_TRY(run_body(body));
        for (int32_t i = 0; i < results->n; i++)
            GRT_TRY(control_flow_append(&results->v[i], control_flow_output_of(body, i)));
    }
    return GRT_OK;
}

grt_status grt_control_run_sequence_map(grt_frame *frame, const grt_instruction *ins)
{
    const grt_plan_step *step = ins->step;
    lists results;
    grt_frame *body = enter_body(frame, step->bodies[0]);
    GRT_TRY(lists_create(&results, body->program->body->n_outputs));
    grt_status status = map_items(frame, step, body, &results);
    for (int32_t i = 0; status == GRT_OK && i < step->n_out && i < results.n; i++) {
        grt_value *out = step_out(frame, step, i);
        if (!out)
            continue;
        results.v[i].t.dtype = body->program->body->values[body->program->body->outputs[i]].dtype;
        *out = results.v[i];
        results.v[i] = (grt_value){0};
    }
    lists_release(&results);
    grt_frame_clear(body);
    return status;
}
