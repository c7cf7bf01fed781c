/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/remote.h"

#include "src/base/structs.h"
#include "src/base/tensor.h"

#include <string.h>

static const grt_plan_body *remote_body(const grt_worker *w)
{
    return &w->lane->model->plan->bodies[0];
}

static grt_status remote_check_numbers(const grt_plan_value *v, const char *what, const char *name)
{
    if (v->kind == GRT_KIND_TENSOR && v->dtype != GRT_DTYPE_STRING)
        return GRT_OK;
    return grt_fail(
        GRT_STATUS_UNSUPPORTED,
        "%s '%s' is no tensor of numbers, which is all that sessions in processes of their own take: "
        "use grt_pool_add",
        what, name);
}

grt_status grt_remote_check_model(const grt_model *model)
{
    const grt_plan_body *body = &model->plan->bodies[0];
    for (int32_t i = 0; i < body->n_inputs; i++)
        GRT_TRY(remote_check_numbers(&body->values[body->inputs[i]], "input",
                                     body->values[body->inputs[i]].name));
    for (int32_t i = 0; i < body->n_outputs; i++)
        GRT_TRY(remote_check_numbers(&body->values[body->outputs[i]], "output", body->output_names[i]));
    return GRT_OK;
}

static const grt_tensor *remote_input_of(const grt_request *r, int32_t i)
{
    if (r->by_value)
        return r->values[i] ? &r->values[i]->t : NULL;
    return r->inputs[i].dtype ? &r->inputs[i] : NULL;
}

/* What the session would refuse is refused there; here what this process would read wrongly. */
static grt_status remote_check_tensor(const grt_tensor *t, const char *what, const char *name)
{
    GRT_TRY(grt_reserved_check(t->reserved, sizeof t->reserved, "grt_tensor"));
    const size_t bytes =
        t->rank < 0 || t->rank > GRT_MAX_RANK || !grt_dtype_bits(t->dtype) ? SIZE_MAX : grt_tensor_bytes(t);
    const char *wrong = bytes == SIZE_MAX              ? "has no size: its rank, a dim or its dtype is wrong"
                        : t->dtype == GRT_DTYPE_STRING ? "has strings, which go to no other process"
                        : t->memory != GRT_MEMORY_HOST && t->memory != GRT_MEMORY_PINNED
                            ? "is in memory of a device, which the session's process does not have"
                        : bytes && !t->data ? "has no data"
                                            : NULL;
    return wrong ? grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s '%s' %s", what, name, wrong) : GRT_OK;
}

static grt_status place_input(grt_worker *w, grt_request *const *requests, int32_t i, int64_t padded,
                              uint64_t *at)
{
    grt_wire_tensor *wire = &w->channel->shared.head->tensors[i];
    const grt_tensor *first = remote_input_of(requests[0], i);
    wire->dtype = GRT_DTYPE_NONE;
    if (!first)
        return GRT_OK;
    if (requests[0]->by_value && requests[0]->values[i]->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "input '%s' takes a tensor, found another kind of value",
                        remote_body(w)->values[remote_body(w)->inputs[i]].name);
    GRT_TRY(remote_check_tensor(first, "input", remote_body(w)->values[remote_body(w)->inputs[i]].name));
    grt_tensor whole = *first;
    if (padded)
        whole.dims[0] = padded;
    wire->dtype = whole.dtype;
    wire->rank = whole.rank;
    memcpy(wire->dims, whole.dims, sizeof wire->dims);
    return grt_shared_place(wire, grt_tensor_bytes(&whole), at);
}

/* Rows that are added are copies of the last. */
static void fill_input(grt_worker *w, grt_request *const *requests, size_t n, int32_t i, int64_t padded)
{
    const grt_wire_tensor *wire = &w->channel->shared.head->tensors[i];
    const grt_tensor *first = remote_input_of(requests[0], i);
    const size_t bytes = first ? grt_tensor_bytes(first) : 0;
    if (!bytes)
        return;
    char *at = w->channel->shared.data + wire->offset;
    const size_t row = padded ? bytes / (size_t)first->dims[0] : 0;
    const char *end = at + row * (size_t)padded;
    for (size_t k = 0; k < n; k++) {
        const grt_tensor *part = remote_input_of(requests[k], i);
        memcpy(at, part->data, grt_tensor_bytes(part));
        at += grt_tensor_bytes(part);
    }
    for (; at < end; at += row)
        memcpy(at, at - row, row);
}

static grt_status check_bound(const grt_worker *w, const grt_request *r)
{
    for (size_t i = 0; i < r->n_outputs; i++)
        if (r->outputs[i].dtype)
            GRT_TRY(remote_check_tensor(&r->outputs[i], "output", remote_body(w)->output_names[i]));
    return GRT_OK;
}

grt_status grt_remote_bind(grt_worker *w, grt_request *const *requests, size_t n, int64_t padded)
{
    uint64_t at = 0;
    for (size_t k = 0; k < n; k++)
        GRT_TRY(check_bound(w, requests[k]));
    for (int32_t i = 0; i < remote_body(w)->n_inputs; i++)
        GRT_TRY(place_input(w, requests, i, padded, &at));
    GRT_TRY(grt_shared_reserve(&w->channel->shared, at));
    w->channel->shared.head->free_at = at;
    for (int32_t i = 0; i < remote_body(w)->n_inputs; i++)
        fill_input(w, requests, n, i, padded);
    return GRT_OK;
}

grt_status grt_remote_run(grt_worker *w, double deadline_ms, bool (*cancelled)(void *user), void *user)
{
    grt_wire_head *head = w->channel->shared.head;
    head->deadline_ms = deadline_ms;
    atomic_store(&head->cancelled, 0); /* before looking: who cancels marks the request, then this */
    if (cancelled(user))
        atomic_store(&head->cancelled, 1);
    return grt_channel_run(w->channel, &w->gone);
}

void grt_remote_cancel(const grt_worker *w)
{
    if (w->channel)
        atomic_store(&w->channel->shared.head->cancelled, 1);
}

static grt_status remote_result(const grt_worker *w, size_t i, grt_tensor *out)
{
    const grt_shared *shared = &w->channel->shared;
    GRT_TRY(grt_shared_view(shared, &shared->head->tensors[(size_t)remote_body(w)->n_inputs + i], out));
    out->memory = GRT_MEMORY_HOST;
    return GRT_OK;
}

grt_status grt_remote_check_rows(const grt_worker *w, int64_t padded)
{
    for (int32_t i = 0; i < remote_body(w)->n_outputs; i++) {
        grt_tensor found;
        GRT_TRY(remote_result(w, (size_t)i, &found));
        if (found.rank < 1 || found.dims[0] != padded)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "output '%s' does not have a row for each of the %lld rows of a batch",
                            remote_body(w)->output_names[i], (long long)padded);
    }
    return GRT_OK;
}

static grt_status keep_remote_result(const grt_worker *w, grt_request *r, size_t i, int64_t first_row,
                                     bool rows)
{
    const grt_tensor *bound = &r->outputs[i];
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    grt_tensor part;
    GRT_TRY(remote_result(w, i, &part));
    if (rows) {
        const size_t row = grt_tensor_bytes(&part) / (size_t)part.dims[0];
        part.dims[0] = r->rows;
        part.data = (char *)part.data + (size_t)first_row * row;
    }
    if (!bound->dtype) {
        GRT_TRY(grt_value_realloc(&r->results[i], part.dtype, part.rank, part.dims));
        bound = &r->results[i].t;
    }
    if (!grt_tensor_same_type(bound, &part))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output '%s' is %s, the memory bound to it is for %s",
                        remote_body(w)->output_names[i], grt_tensor_text(&part, a),
                        grt_tensor_text(bound, b));
    const size_t bytes = grt_tensor_bytes(&part);
    if (bytes)
        memcpy(bound->data, part.data, bytes);
    return GRT_OK;
}

grt_status grt_remote_keep(const grt_worker *w, grt_request *r, int64_t first_row, bool rows)
{
    for (size_t i = 0; i < r->n_outputs; i++)
        GRT_TRY(keep_remote_result(w, r, i, first_row, rows));
    return GRT_OK;
}
