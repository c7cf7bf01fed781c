/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/state_pairs.h"

#include "src/base/structs.h"
#include "src/plan/dims.h"

#include <stdlib.h>
#include <string.h>

static const char METADATA_KEY[] = "graphrt.state";

static int32_t state_pairs_find_input(const grt_plan_body *body, const char *name, size_t size)
{
    for (int32_t i = 0; i < body->n_inputs; i++)
        if (!strncmp(body->values[body->inputs[i]].name, name, size) &&
            !body->values[body->inputs[i]].name[size])
            return i;
    return -1;
}

static int32_t find_output(const grt_plan_body *body, const char *name, size_t size)
{
    for (int32_t i = 0; i < body->n_outputs; i++)
        if (!strncmp(body->output_names[i], name, size) && !body->output_names[i][size])
            return i;
    return -1;
}

static grt_status state_check_pair(const grt_plan *plan, int32_t input, int32_t output)
{
    const grt_plan_body *body = &plan->bodies[0];
    const grt_plan_value *in = &body->values[body->inputs[input]],
                         *out = &body->values[body->outputs[output]];
    bool fits = in->kind == GRT_KIND_TENSOR && out->kind == GRT_KIND_TENSOR && in->dtype == out->dtype &&
                in->dtype != GRT_DTYPE_STRING && (in->rank == out->rank || in->rank < 0 || out->rank < 0);
    for (int32_t i = 0; fits && in->rank == out->rank && i < in->rank; i++) {
        const grt_dim_expr *a = &plan->dims[in->dims[i]], *b = &plan->dims[out->dims[i]];
        fits = a->op != GRT_DIM_CONST || b->op != GRT_DIM_CONST || a->value == b->value;
    }
    if (fits)
        return GRT_OK;
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    const grt_tensor in_type = grt_plan_describe(plan, body, body->inputs[input], NULL),
                     out_type = grt_plan_describe(plan, body, body->outputs[output], NULL);
    return grt_fail(
        GRT_STATUS_INVALID_ARGUMENT,
        "state: output '%s' (%s %s) cannot be the next run's input '%s' (%s %s): both have to be tensors "
        "of one type, not of strings",
        body->output_names[output], grt_kind_name(out->kind), grt_tensor_text(&out_type, b), in->name,
        grt_kind_name(in->kind), grt_tensor_text(&in_type, a));
}

static bool dims_fit(const grt_plan *plan, const grt_plan_value *v, const grt_tensor *t)
{
    if (t->dtype != v->dtype || t->rank < 0 || t->rank > GRT_MAX_RANK || (v->rank >= 0 && v->rank != t->rank))
        return false;
    for (int32_t i = 0; i < t->rank; i++) {
        const grt_dim_expr *e = v->rank < 0 ? NULL : &plan->dims[v->dims[i]];
        if (t->dims[i] < 0 || (e && e->op == GRT_DIM_CONST && e->value != t->dims[i]))
            return false;
    }
    return grt_tensor_bytes(t) != SIZE_MAX;
}

grt_status grt_state_check_dims(const grt_session *session, int32_t input, const grt_tensor *t)
{
    const grt_plan *plan = session->model->plan;
    char wanted[GRT_TYPE_TEXT_SIZE], found[GRT_TYPE_TEXT_SIZE];
    const grt_plan_body *body = &plan->bodies[0];
    GRT_TRY(grt_reserved_check(t->reserved, sizeof t->reserved, "grt_tensor"));
    if (dims_fit(plan, &body->values[body->inputs[input]], t))
        return GRT_OK;
    const grt_tensor type = grt_plan_describe(plan, body, body->inputs[input], NULL);
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "state '%s' must be %s, found %s",
                    body->values[body->inputs[input]].name, grt_tensor_text(&type, wanted),
                    grt_tensor_text(t, found));
}

grt_status grt_state_check_content(const grt_session *session, int32_t input, const grt_tensor *tensor)
{
    GRT_TRY(grt_state_check_dims(session, input, tensor));
    const grt_plan_body *body = &session->model->plan->bodies[0];
    const char *name = body->values[body->inputs[input]].name;
    if (grt_tensor_bytes(tensor) && !tensor->data)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "state '%s': the tensor has no data", name);
    if (tensor->memory == GRT_MEMORY_DEVICE &&
        (!session->on_device || tensor->device != session->device->index))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "state '%s': memory of device %d, but the state is on %s", name, (int)tensor->device,
                        session->name);
    return GRT_OK;
}

static grt_status take_initial(const grt_session *session, const grt_tensor *initial, grt_state_slot *slot)
{
    const grt_plan *plan = session->model->plan;
    const grt_plan_body *body = &plan->bodies[0];
    const char *name = body->values[body->inputs[slot->input]].name;
    grt_tensor type = grt_plan_describe(plan, body, body->inputs[slot->input], NULL);
    bool known = type.rank >= 0;
    for (int32_t i = 0; i < type.rank; i++)
        known = known && type.dims[i] >= 0;
    if (initial)
        GRT_TRY(grt_state_check_dims(session, slot->input, initial));
    else if (!known)
        return grt_fail(
            GRT_STATUS_INVALID_ARGUMENT,
            "state '%s' has symbolic dims: grt_state_pair.initial has to say which the first run has", name);
    if (initial && initial->data && initial->memory == GRT_MEMORY_DEVICE)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "state '%s': initial content is taken from host memory",
                        name);
    if (initial && initial->data)
        return grt_value_copy_tensor(&slot->initial, initial);
    slot->initial.t = initial ? *initial : type;
    slot->initial.t.data = NULL;
    slot->initial.t.memory = GRT_MEMORY_HOST;
    return GRT_OK;
}

static grt_status add_slot(const grt_session *session, int32_t output, int32_t input,
                           const grt_state_pair *pair, grt_state *state)
{
    const grt_plan_body *body = &session->model->plan->bodies[0];
    if (grt_state_has(state, false, (size_t)input) || grt_state_has(state, true, (size_t)output))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "state: output '%s' or input '%s' is in two pairs",
                        body->output_names[output], body->values[body->inputs[input]].name);
    GRT_TRY(state_check_pair(session->model->plan, input, output));
    grt_state_slot *slot = &state->slots[state->n++];
    slot->input = input;
    slot->output = output;
    slot->t.rank = -1;
    slot->may_be_in_place = pair && pair->in_place;
    return take_initial(session, pair ? pair->initial : NULL, slot);
}

static grt_status alloc_slots(grt_state *state, size_t n)
{
    state->slots = calloc(n + 1, sizeof *state->slots);
    return state->slots ? GRT_OK : grt_fail_memory(n * sizeof *state->slots);
}

grt_status grt_state_take_pairs(const grt_session *session, const grt_state_pair *pairs, size_t n,
                                grt_state *state)
{
    const grt_plan_body *body = &session->model->plan->bodies[0];
    if (n > (size_t)body->n_inputs)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "state: %zu pairs, but the model has %d inputs", n,
                        (int)body->n_inputs);
    GRT_TRY(alloc_slots(state, n));
    for (size_t i = 0; i < n; i++) {
        const grt_state_pair *p = &pairs[i];
        GRT_TRY(grt_reserved_check(p->reserved, sizeof p->reserved, "grt_state_pair"));
        const int32_t input = p->input ? state_pairs_find_input(body, p->input, strlen(p->input)) : -1,
                      output = p->output ? find_output(body, p->output, strlen(p->output)) : -1;
        if (input < 0 || output < 0)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "state: the model has no %s '%s'",
                            output < 0 ? "output" : "input",
                            output < 0 ? (p->output ? p->output : "") : (p->input ? p->input : ""));
        GRT_TRY(add_slot(session, output, input, p, state));
    }
    return GRT_OK;
}

/* "OUTPUT=INPUT"; either name may have a '=', too. */
static grt_status add_declared(const grt_session *session, const char *line, size_t size, grt_state *state)
{
    const grt_plan_body *body = &session->model->plan->bodies[0];
    for (size_t i = 0; i < size; i++) {
        const int32_t output = line[i] == '=' ? find_output(body, line, i) : -1,
                      input = line[i] == '=' ? state_pairs_find_input(body, line + i + 1, size - i - 1) : -1;
        if (output >= 0 && input >= 0)
            return add_slot(session, output, input, NULL, state);
    }
    return grt_fail(
        GRT_STATUS_INVALID_ARGUMENT,
        "state: the model's metadata entry '%s' has the line '%.*s', which is not OUTPUT=INPUT with names of "
        "the model",
        METADATA_KEY, (int)(size < 200 ? size : 200), line);
}

grt_status grt_state_take_declared(const grt_session *session, grt_state *state)
{
    const grt_metadata *metadata = &session->model->plan->metadata;
    const char *text = NULL;
    for (size_t i = 0; i < metadata->n_entries; i++)
        if (metadata->entries[i].key && !strcmp(metadata->entries[i].key, METADATA_KEY))
            text = metadata->entries[i].value;
    GRT_TRY(alloc_slots(state, (size_t)session->model->plan->bodies[0].n_inputs));
    while (text && *text) {
        const size_t size = strcspn(text, "\n");
        if (size)
            GRT_TRY(add_declared(session, text, size, state));
        text += size + (text[size] == '\n');
    }
    if (state->n)
        return GRT_OK;
    return grt_fail(
        GRT_STATUS_INVALID_ARGUMENT,
        "grt_state_create: the model declares no state (metadata entry '%s'): pass pairs, or compile it with "
        "graphc optimize --state OUTPUT=INPUT",
        METADATA_KEY);
}
