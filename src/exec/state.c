/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/state.h"

#include "src/base/checked.h"
#include "src/base/structs.h"
#include "src/exec/state_overwrite.h"
#include "src/exec/state_pairs.h"
#include "src/session/device_memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static const grt_plan_body *state_body_of(const grt_state *state)
{
    return &state->session->model->plan->bodies[0];
}

static const char *input_name(const grt_state *state, const grt_state_slot *slot)
{
    const grt_plan_body *body = state_body_of(state);
    return body->values[body->inputs[slot->input]].name;
}

/* Room in buffer k, whose content is not kept. A state that grows from run to run gets twice what it wants.
 */
static grt_status state_reserve(grt_state *state, grt_state_slot *slot, int32_t k, size_t bytes)
{
    void *grown;
    size_t wanted = bytes;
    if (bytes <= slot->bytes[k])
        return GRT_OK;
    if (slot->bytes[k] && (!grt_mul_size(bytes, 2, &wanted) || wanted > SIZE_MAX / 2))
        wanted = bytes;
    grt_account *account = state->session->account;
    grt_status status = grt_account_take(account, GRT_ACCOUNT_STATE, wanted);
    if (status == GRT_OK && (status = grt_device_alloc(state->session->device, wanted, &grown)) != GRT_OK)
        grt_account_give(account, GRT_ACCOUNT_STATE, wanted);
    if (status != GRT_OK)
        return grt_fail_context(status, "memory for state '%s'", input_name(state, slot));
    grt_account_give(account, GRT_ACCOUNT_STATE, slot->bytes[k]);
    grt_device_free(state->session->device, slot->data[k]);
    slot->data[k] = grown;
    slot->bytes[k] = wanted;
    return GRT_OK;
}

static void state_place(const grt_state *state, const grt_state_slot *slot, int32_t k, grt_tensor *t)
{
    t->data = slot->data[k] ? slot->data[k] : grt_nothing;
    t->memory = state->session->on_device ? GRT_MEMORY_DEVICE : GRT_MEMORY_HOST;
    t->device = state->session->on_device ? state->session->device->index : 0;
}

/* ---- for runs ---- */

/* What a run of the context reads. */
static void sync_inputs(grt_state *state)
{
    if (!state->executor)
        return;
    grt_binding *bound = &state->executor->bound;
    for (int32_t i = 0; i < state->n; i++) {
        bound->inputs[state->slots[i].input] = (grt_value){.t = state->slots[i].t};
        bound->input_set[state->slots[i].input] = true;
    }
}

/* The output is written to memory of the slot's: the other buffer, unless it is written in place. */
static grt_status state_bind_output(grt_state *state, grt_state_slot *slot, const grt_tensor *type)
{
    grt_binding *bound = &state->executor->bound;
    const int32_t k = slot->in_place ? slot->now : 1 - slot->now;
    const size_t bytes = grt_tensor_bytes(type);
    GRT_TRY(grt_state_check_dims(state->session, slot->input, type));
    slot->next = *type;
    if (bytes > slot->bytes[k]) { /* a run in flight may read what is given back */
        GRT_TRY(grt_in_flight_settle(&state->executor->flight));
        GRT_TRY(state_reserve(state, slot, k, bytes));
        bound->rebound = true;
    }
    state_place(state, slot, k, &slot->next);
    bound->outputs[slot->output] = slot->next;
    bound->output_set[slot->output] = true;
    bound->in_place[slot->output] = slot->in_place;
    return GRT_OK;
}

static grt_status bind_slot(grt_state *state, grt_state_slot *slot, const grt_frame *frame, bool captured)
{
    const int32_t v = state_body_of(state)->outputs[slot->output];
    slot->late = !frame->program->places[v].has_dims;
    if (slot->lost)
        return grt_fail(
            GRT_STATUS_INVALID_ARGUMENT,
            "state '%s' was being written in place by a run that did not end well: reset or restore it",
            input_name(state, slot));
    if (captured && (slot->late || !grt_tensor_same_type(&slot->t, &frame->values[v].t)))
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "state '%s' may have other dims after the run than before: it cannot be captured",
                        input_name(state, slot));
    if (!slot->late)
        return state_bind_output(state, slot, &frame->values[v].t);
    state->executor->bound.output_set[slot->output] = false;
    state->executor->bound.in_place[slot->output] = false;
    return GRT_OK;
}

grt_status grt_state_bind_late(grt_state *state, const grt_frame *frame)
{
    for (int32_t i = 0; i < state->n; i++) {
        const int32_t v = state_body_of(state)->outputs[state->slots[i].output];
        const grt_value *value = frame->program->places[v].made_on_host ? &frame->host[v] : &frame->values[v];
        if (state->slots[i].late)
            GRT_TRY(state_bind_output(state, &state->slots[i], &value->t));
    }
    return GRT_OK;
}

static void decide_in_place(grt_state *state, const grt_frame *frame, uint64_t frames)
{
    if (state->frame == frame && state->frames == frames)
        return;
    for (int32_t i = 0; i < state->n; i++) {
        grt_state_slot *slot = &state->slots[i];
        slot->in_place = slot->may_be_in_place && grt_frame_may_overwrite(frame, slot->input, slot->output);
    }
    state->frame = frame;
    state->frames = frames;
}

grt_status grt_state_bind(grt_state *state, const grt_frame *frame, uint64_t frames, bool captured)
{
    decide_in_place(state, frame, frames);
    for (int32_t i = 0; i < state->n; i++)
        GRT_TRY(bind_slot(state, &state->slots[i], frame, captured));
    return GRT_OK;
}

void grt_state_advance(grt_state *state)
{
    for (int32_t i = 0; i < state->n; i++) {
        grt_state_slot *slot = &state->slots[i];
        slot->t = slot->next;
        slot->now = slot->in_place ? slot->now : 1 - slot->now;
    }
    sync_inputs(state);
}

grt_status grt_state_copy_back(grt_state *state, void *stream)
{
    for (int32_t i = 0; i < state->n; i++) {
        const grt_state_slot *slot = &state->slots[i];
        if (!slot->in_place)
            GRT_TRY(grt_device_copy(state->session->device, slot->t.data, slot->next.data,
                                    grt_tensor_bytes(&slot->t), stream));
    }
    return GRT_OK;
}

void grt_state_spoil(grt_state *state)
{
    for (int32_t i = 0; i < state->n; i++)
        state->slots[i].lost = state->slots[i].lost || state->slots[i].in_place;
}

/* ---- which context ---- */

void grt_state_detach(grt_state *state)
{
    grt_binding *bound = &state->executor->bound;
    for (int32_t i = 0; i < state->n; i++) {
        bound->input_set[state->slots[i].input] = false;
        bound->output_set[state->slots[i].output] = false;
        bound->in_place[state->slots[i].output] = false;
    }
    state->executor = NULL;
    grt_state_release(state);
}

void grt_state_attach(grt_state *state, grt_executor *executor)
{
    atomic_fetch_add_explicit(&state->refs, 1, memory_order_relaxed);
    state->executor = executor;
    state->frame = NULL;
    sync_inputs(state);
}

/* ---- content ---- */

grt_status grt_state_check_free(const grt_state *state, const char *function)
{
    return !atomic_load_explicit(&state->open, memory_order_acquire)
               ? GRT_OK
               : grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                          "%s: requests of a pool wait or run with the state; wait until they are done",
                          function);
}

/* Nothing runs with it, or will before `leave`. */
static grt_status state_enter(grt_state *state, const char *function)
{
    if (!state)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: state is NULL", function);
    GRT_TRY(grt_state_check_free(state, function));
    if (!state->executor)
        return GRT_OK;
    GRT_TRY(grt_executor_hold(state->executor, function));
    const grt_status status = grt_in_flight_settle(&state->executor->flight);
    if (status != GRT_OK)
        grt_executor_let_go(state->executor);
    return status;
}

static grt_status state_leave(grt_state *state, grt_status status)
{
    sync_inputs(state);
    if (state->executor)
        grt_executor_let_go(state->executor);
    return status;
}

static grt_status check_index(const grt_state *state, size_t index, const char *function)
{
    if (index < (size_t)state->n)
        return GRT_OK;
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: pair %zu does not exist; the state has %d", function,
                    index, (int)state->n);
}

static grt_status state_fill(grt_state *state, grt_state_slot *slot, const grt_tensor *from)
{
    grt_tensor t = *from;
    const size_t bytes = grt_tensor_bytes(from);
    GRT_TRY(state_reserve(state, slot, slot->now, bytes));
    state_place(state, slot, slot->now, &t);
    slot->lost = true;
    GRT_TRY(grt_device_move(state->session->device, &t, from));
    slot->t = t;
    slot->lost = false;
    return GRT_OK;
}

static grt_status fill_zeros(grt_state *state, grt_state_slot *slot)
{
    grt_tensor t = slot->initial.t;
    t.data = calloc(grt_tensor_bytes(&t) + 1, 1);
    if (!t.data)
        return grt_fail_memory(grt_tensor_bytes(&t));
    const grt_status status = state_fill(state, slot, &t);
    free(t.data);
    return status;
}

static grt_status reset_all(grt_state *state)
{
    for (int32_t i = 0; i < state->n; i++) {
        grt_state_slot *slot = &state->slots[i];
        GRT_TRY(slot->initial.t.data ? state_fill(state, slot, &slot->initial.t) : fill_zeros(state, slot));
    }
    return GRT_OK;
}

grt_status grt_state_reset(grt_state *state)
{
    GRT_TRY(state_enter(state, "grt_state_reset"));
    return state_leave(state, reset_all(state));
}

static void release_value(grt_value *value)
{
    grt_value_clear(value);
    free(value);
}

static grt_status save(const grt_state *state, const grt_state_slot *slot, grt_value **out_value)
{
    if (slot->lost)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_state_save: state '%s' was lost by a run that did not end well",
                        input_name(state, slot));
    grt_value *value = calloc(1, sizeof *value);
    if (!value)
        return grt_fail_memory(sizeof *value);
    grt_status status = grt_value_alloc(value, slot->t.dtype, slot->t.rank, slot->t.dims);
    if (status == GRT_OK)
        status = grt_device_move(state->session->device, &value->t, &slot->t);
    if (status == GRT_OK)
        *out_value = value;
    else
        release_value(value);
    return status;
}

grt_status grt_state_save(grt_state *state, size_t index, grt_value **out_value)
{
    if (!out_value)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_state_save: out_value is NULL");
    GRT_TRY(state_enter(state, "grt_state_save"));
    grt_status status = check_index(state, index, "grt_state_save");
    if (status == GRT_OK)
        status = save(state, &state->slots[index], out_value);
    return state_leave(state, status);
}

static grt_status state_restore(grt_state *state, size_t index, const grt_tensor *tensor)
{
    GRT_TRY(check_index(state, index, "grt_state_restore"));
    GRT_TRY(grt_state_check_content(state->session, state->slots[index].input, tensor));
    return state_fill(state, &state->slots[index], tensor);
}

grt_status grt_state_restore(grt_state *state, size_t index, const grt_tensor *tensor)
{
    if (!tensor)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_state_restore: tensor is NULL");
    GRT_TRY(state_enter(state, "grt_state_restore"));
    return state_leave(state, state_restore(state, index, tensor));
}

static grt_status copy_slot(grt_state *to, const grt_state *from, int32_t i)
{
    grt_value *value;
    if (to->session->device == from->session->device && !from->slots[i].lost)
        return state_fill(to, &to->slots[i], &from->slots[i].t);
    GRT_TRY(save(from, &from->slots[i], &value));
    const grt_status status = state_fill(to, &to->slots[i], &value->t);
    release_value(value);
    return status;
}

static grt_status copy_all(grt_state *to, const grt_state *from)
{
    bool same = to->session->model == from->session->model && to->n == from->n;
    for (int32_t i = 0; same && i < to->n; i++)
        same = to->slots[i].input == from->slots[i].input && to->slots[i].output == from->slots[i].output;
    if (!same)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_state_copy: the states have different models or pairs");
    for (int32_t i = 0; i < to->n; i++)
        GRT_TRY(copy_slot(to, from, i));
    return GRT_OK;
}

grt_status grt_state_copy(grt_state *to, grt_state *from)
{
    if (to == from && to)
        return GRT_OK;
    GRT_TRY(state_enter(to, "grt_state_copy"));
    grt_status status = state_enter(from, "grt_state_copy");
    if (status == GRT_OK)
        status = state_leave(from, copy_all(to, from));
    return state_leave(to, status);
}

/* ---- to another device ---- */

static void state_give_memory(grt_state *state)
{
    for (int32_t i = 0; i < state->n; i++)
        for (int k = 0; k < 2; k++) {
            grt_state_slot *slot = &state->slots[i];
            grt_account_give(state->session->account, GRT_ACCOUNT_STATE, slot->bytes[k]);
            grt_device_free(state->session->device, slot->data[k]);
            slot->data[k] = NULL;
            slot->bytes[k] = 0;
        }
}

static void take_place_of(grt_state *state, grt_state *moved)
{
    grt_session *session = state->session;
    grt_state_slot *slots = state->slots;
    state->session = moved->session;
    state->slots = moved->slots;
    state->frame = NULL;
    moved->session = session;
    moved->slots = slots;
}

/* Memory on the new device, and what stays as it is. */
static grt_status begin_move(const grt_state *state, grt_session *session, grt_state **out_moved)
{
    grt_state *moved = calloc(1, sizeof *moved);
    grt_state_slot *slots = calloc((size_t)state->n, sizeof *slots);
    if (!moved || !slots) {
        free(moved);
        free(slots);
        return grt_fail_memory((size_t)state->n * sizeof *slots);
    }
    atomic_init(&moved->refs, 1);
    moved->session = grt_session_retain(session);
    moved->slots = slots;
    for (moved->n = 0; moved->n < state->n; moved->n++) {
        const grt_state_slot *slot = &state->slots[moved->n];
        slots[moved->n] = (grt_state_slot){
            .input = slot->input, .output = slot->output, .may_be_in_place = slot->may_be_in_place};
    }
    *out_moved = moved;
    return GRT_OK;
}

grt_status grt_state_move(grt_state *state, grt_session *session)
{
    grt_state *moved;
    GRT_TRY(begin_move(state, session, &moved));
    const grt_status status = copy_all(moved, state);
    if (status == GRT_OK) {
        for (int32_t i = 0; i < state->n; i++) {
            moved->slots[i].initial = state->slots[i].initial;
            state->slots[i].initial = (grt_value){0};
        }
        take_place_of(state, moved);
    }
    grt_state_release(moved);
    return status;
}

/* ---- life ---- */

size_t grt_state_count(const grt_state *state)
{
    return state ? (size_t)state->n : 0;
}

grt_status grt_state_get(grt_state *state, size_t index, grt_state_info *out_info)
{
    if (!state)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_state_get: state is NULL");
    GRT_TRY(check_index(state, index, "grt_state_get"));
    const grt_state_slot *slot = &state->slots[index];
    const grt_state_info info = {.output = state_body_of(state)->output_names[slot->output],
                                 .input = input_name(state, slot),
                                 .tensor = slot->t,
                                 .in_place = slot->in_place,
                                 .lost = slot->lost,
                                 .bytes = slot->bytes[0] + slot->bytes[1]};
    return grt_info_give(out_info, &info, sizeof info, "grt_state_info");
}

grt_status grt_state_create(grt_session *session, const grt_state_pair *pairs, size_t n,
                            grt_state **out_state)
{
    if (!session || !out_state || (n && !pairs))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_state_create: session, out_state or pairs is NULL");
    grt_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    atomic_init(&state->refs, 1);
    state->session = grt_session_retain(session);
    grt_status status =
        n ? grt_state_take_pairs(session, pairs, n, state) : grt_state_take_declared(session, state);
    if (status == GRT_OK)
        status = reset_all(state);
    if (status == GRT_OK)
        *out_state = state;
    else
        grt_state_release(state);
    return status;
}

void grt_state_release(grt_state *state)
{
    if (!state || atomic_fetch_sub_explicit(&state->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int32_t i = 0; i < state->n; i++)
        grt_value_clear(&state->slots[i].initial);
    state_give_memory(state);
    grt_session_release(state->session);
    free(state->slots);
    free(state);
}
