/* SPDX-License-Identifier: Apache-2.0 */
/* See batch.h.
 *
 * Rows that are in page-locked memory go from there to the device, each to its place; others are put together
 * in page-locked memory first. Small outputs on a device come back through page-locked memory: a copy to
 * other memory would hold the driver until the run has ended.
 *
 * Outputs whose dims are known before the run are written to memory that the requests then share, each with a
 * view of its rows. A worker has a few such sets of outputs and uses one again when no request has it any
 * more. */
#include "src/pool/batch.h"

#include <stdlib.h>
#include <string.h>

/* Sets of outputs of a worker; and up to which size copying one is cheap. */
enum { OUTPUT_SETS = 8, SMALL_OUTPUT = 1 << 20 };

struct grt_batch_memory {
    void *data; /* of the host, page-locked for the session's device */
    size_t bytes;
    void *there; /* of the device */
    size_t there_bytes;
};

/* ---- models whose rows can be put together ---- */

/* What the first dims of a model say. */
typedef struct row_rule {
    const grt_plan *plan;
    int64_t symbol; /* of the first dims; -1: not found yet */
    bool *depends;  /* per dim of the plan, on that symbol */
} row_rule;

/* Operands come before their users. */
static void find_dependent_dims(const row_rule *rule)
{
    for (int32_t i = 0; i < rule->plan->n_dims; i++) {
        const grt_dim_expr *e = &rule->plan->dims[i];
        rule->depends[i] = e->op == GRT_DIM_SYMBOL
                               ? e->value == rule->symbol
                               : e->op != GRT_DIM_CONST && (rule->depends[e->a] || rule->depends[e->b]);
    }
}

static int64_t first_symbol(const grt_plan *plan, const grt_plan_value *v)
{
    const bool symbolic =
        v->kind == GRT_KIND_TENSOR && v->rank > 0 && plan->dims[v->dims[0]].op == GRT_DIM_SYMBOL;
    return symbolic ? plan->dims[v->dims[0]].value : -1;
}

static grt_status pool_batch_check_rows(const row_rule *rule, const grt_plan_value *v, const char *what,
                                        const char *name)
{
    if (grt_dtype_bits(v->dtype) < 8)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "max_batch: %s '%s' has elements of less than a byte",
                        what, name);
    if (rule->symbol < 0 || first_symbol(rule->plan, v) != rule->symbol)
        return grt_fail(
            GRT_STATUS_INVALID_ARGUMENT,
            "max_batch: the first dim of %s '%s' is not the symbol that all inputs and outputs begin with",
            what, name);
    for (int32_t k = 1; k < v->rank; k++)
        if (rule->depends[v->dims[k]])
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "max_batch: dim %d of %s '%s' depends on '%s', the first dim", k, what, name,
                            rule->plan->symbols[rule->symbol]);
    return GRT_OK;
}

static grt_status pool_batch_find_rows(const grt_batching *batching, row_rule *rule)
{
    const grt_plan_body *body = &rule->plan->bodies[0];
    for (int32_t i = 0; i < body->n_inputs; i++) {
        const grt_plan_value *v = &body->values[body->inputs[i]];
        batching->has_rows[i] = v->weight < 0;
        if (v->weight >= 0)
            continue;
        if (rule->symbol < 0) {
            rule->symbol = first_symbol(rule->plan, v);
            find_dependent_dims(rule);
        }
        GRT_TRY(pool_batch_check_rows(rule, v, "input", v->name));
    }
    for (int32_t i = 0; i < body->n_outputs; i++) {
        const grt_plan_value *v = &body->values[body->outputs[i]];
        GRT_TRY(pool_batch_check_rows(rule, v, "output", body->output_names[i]));
    }
    return GRT_OK;
}

grt_status grt_batching_create(const grt_plan *plan, int64_t most_rows, grt_padding padding,
                               grt_batching *out_batching)
{
    if (most_rows < 0 || padding < GRT_PADDING_POWER_OF_TWO || padding > GRT_PADDING_NONE)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "max_batch is %lld, padding %d", (long long)most_rows,
                        (int)padding);
    if (most_rows < 2)
        return GRT_OK;
    out_batching->plan = plan;
    out_batching->padding = padding;
    out_batching->has_rows = calloc((size_t)plan->bodies[0].n_inputs + 1, sizeof *out_batching->has_rows);
    row_rule rule = {
        .plan = plan, .symbol = -1, .depends = calloc((size_t)plan->n_dims + 1, sizeof *rule.depends)};
    grt_status status = out_batching->has_rows && rule.depends ? pool_batch_find_rows(out_batching, &rule)
                                                               : grt_fail_memory(0);
    free(rule.depends);
    if (status == GRT_OK)
        out_batching->most_rows = most_rows;
    return status;
}

void grt_batching_release(grt_batching *batching)
{
    free(batching->has_rows);
    batching->has_rows = NULL;
}

/* ---- requests that can be put together ---- */

/* What a request has for an input; NULL: the default, or no tensor. */
static const grt_tensor *pool_batch_input_of(const grt_request *r, int32_t i)
{
    if (!r->by_value)
        return r->inputs[i].dtype ? &r->inputs[i] : NULL;
    return r->values[i] && r->values[i]->kind == GRT_KIND_TENSOR ? &r->values[i]->t : NULL;
}

static bool is_left_out(const grt_request *r, int32_t i)
{
    return r->by_value ? !r->values[i] : !r->inputs[i].dtype;
}

/* What does not fit runs by itself, and is refused there. */
static bool is_batchable(const grt_plan *plan, const grt_plan_value *v, const grt_tensor *t)
{
    static const uint64_t zeros[sizeof t->reserved / sizeof *t->reserved];
    if (t->dtype != v->dtype || t->rank != v->rank || t->memory == GRT_MEMORY_DEVICE ||
        memcmp(t->reserved, zeros, sizeof zeros) != 0)
        return false;
    for (int32_t k = 0; k < t->rank; k++) {
        const grt_dim_expr *e = &plan->dims[v->dims[k]];
        if (t->dims[k] < 0 || (e->op == GRT_DIM_CONST && e->value != t->dims[k]))
            return false;
    }
    const size_t bytes = grt_tensor_bytes(t);
    return bytes != SIZE_MAX && (!bytes || t->data);
}

int64_t grt_batching_rows(const grt_batching *batching, const grt_request *request)
{
    const grt_plan_body *body = batching->most_rows ? &batching->plan->bodies[0] : NULL;
    int64_t rows = -1;
    for (int32_t i = 0; body && i < body->n_inputs; i++) {
        const grt_tensor *t = pool_batch_input_of(request, i);
        if (!batching->has_rows[i] && is_left_out(request, i))
            continue;
        if (!batching->has_rows[i] || !t ||
            !is_batchable(batching->plan, &body->values[body->inputs[i]], t) ||
            (rows >= 0 && t->dims[0] != rows))
            return 0;
        rows = t->dims[0];
    }
    for (int32_t i = 0; body && i < body->n_outputs; i++)
        if (request->outputs[i].dtype && request->outputs[i].memory == GRT_MEMORY_DEVICE)
            return 0;
    return rows > 0 && rows < batching->most_rows ? rows : 0;
}

bool grt_batching_fits(const grt_batching *batching, const grt_request *a, const grt_request *b)
{
    const grt_plan_body *body = &batching->plan->bodies[0];
    for (int32_t i = 0; i < body->n_inputs; i++) {
        if (!batching->has_rows[i])
            continue;
        const grt_tensor *x = pool_batch_input_of(a, i), *y = pool_batch_input_of(b, i);
        for (int32_t k = 1; k < x->rank; k++)
            if (x->dims[k] != y->dims[k])
                return false;
    }
    return true;
}

int64_t grt_batching_padded(const grt_batching *batching, int64_t rows)
{
    int64_t padded = rows;
    if (batching->padding == GRT_PADDING_FULL)
        return batching->most_rows;
    if (batching->padding == GRT_PADDING_POWER_OF_TWO)
        for (padded = 1; padded < rows;)
            padded *= 2;
    return padded < batching->most_rows ? padded : batching->most_rows;
}

/* ---- a worker's memory ---- */

grt_status grt_batch_create(grt_session *session, grt_batch *out_batch)
{
    const grt_plan_body *body = &session->model->plan->bodies[0];
    out_batch->session = session;
    out_batch->inputs = calloc((size_t)body->n_inputs + 1, sizeof *out_batch->inputs);
    out_batch->outputs = calloc((size_t)body->n_outputs * OUTPUT_SETS + 1, sizeof *out_batch->outputs);
    out_batch->found = calloc((size_t)body->n_outputs + 1, sizeof *out_batch->found);
    out_batch->small = calloc((size_t)body->n_outputs + 1, sizeof *out_batch->small);
    return out_batch->inputs && out_batch->outputs && out_batch->found && out_batch->small
               ? GRT_OK
               : grt_fail_memory(0);
}

/* It is in place of what the context would have for these inputs, and counted as that. */
static void pool_batch_free_there(grt_session *session, struct grt_batch_memory *memory)
{
    grt_session_free_device(session, memory->there);
    grt_account_give(session->account, GRT_ACCOUNT_INPUTS, memory->there_bytes);
    memory->there = NULL;
    memory->there_bytes = 0;
}

void grt_batch_release(grt_batch *batch)
{
    if (!batch->session)
        return;
    const grt_plan_body *body = &batch->session->model->plan->bodies[0];
    for (int32_t i = 0; batch->inputs && i < body->n_inputs; i++) {
        grt_session_free_host(batch->session, batch->inputs[i].data);
        pool_batch_free_there(batch->session, &batch->inputs[i]);
    }
    for (int32_t i = 0; batch->small && i < body->n_outputs; i++)
        grt_session_free_host(batch->session, batch->small[i].data);
    for (int32_t i = 0; batch->outputs && i < body->n_outputs * OUTPUT_SETS; i++)
        grt_value_clear(&batch->outputs[i]);
    free(batch->inputs);
    free(batch->small);
    free(batch->outputs);
    free(batch->found);
}

static grt_status pool_batch_reserve(grt_session *session, struct grt_batch_memory *memory, size_t bytes)
{
    if (bytes <= memory->bytes)
        return GRT_OK;
    grt_session_free_host(session, memory->data);
    memory->data = NULL;
    memory->bytes = 0;
    GRT_TRY(grt_session_alloc_host(session, bytes, &memory->data));
    memory->bytes = bytes;
    return GRT_OK;
}

static grt_status pool_batch_reserve_there(grt_session *session, struct grt_batch_memory *memory,
                                           size_t bytes)
{
    if (bytes <= memory->there_bytes)
        return GRT_OK;
    pool_batch_free_there(session, memory);
    GRT_TRY(grt_account_take(session->account, GRT_ACCOUNT_INPUTS, bytes));
    memory->there_bytes = bytes;
    const grt_status status = grt_session_alloc_device(session, bytes, &memory->there, NULL);
    if (status != GRT_OK)
        pool_batch_free_there(session, memory);
    return status;
}

/* ---- inputs ---- */

static bool all_pinned(grt_request *const *requests, size_t n, int32_t i)
{
    for (size_t k = 0; k < n; k++)
        if (pool_batch_input_of(requests[k], i)->memory != GRT_MEMORY_PINNED)
            return false;
    return true;
}

/* Enqueued; the last row again where there is padding. */
static grt_status pool_batch_upload(grt_device *device, void *stream, const grt_tensor *whole, size_t row,
                                    grt_request *const *requests, size_t n, int32_t i)
{
    char *at = whole->data;
    const char *end = at + (size_t)whole->dims[0] * row;
    for (size_t k = 0; k < n; k++) {
        const grt_tensor *part = pool_batch_input_of(requests[k], i);
        GRT_TRY(grt_device_upload(device, at, part->data, (size_t)part->dims[0] * row, stream));
        at += (size_t)part->dims[0] * row;
    }
    for (; at < end; at += row)
        GRT_TRY(grt_device_copy(device, at, at - row, row, stream));
    return GRT_OK;
}

static void pool_batch_put_together(const grt_tensor *whole, size_t row, grt_request *const *requests,
                                    size_t n, int32_t i)
{
    char *at = whole->data;
    const char *end = at + (size_t)whole->dims[0] * row;
    for (size_t k = 0; row && k < n; k++) {
        const grt_tensor *part = pool_batch_input_of(requests[k], i);
        memcpy(at, part->data, (size_t)part->dims[0] * row);
        at += (size_t)part->dims[0] * row;
    }
    for (; row && at < end; at += row)
        memcpy(at, at - row, row);
}

/* One request without padding is bound as it is. */
static grt_status pool_batch_bind_input(grt_batch *batch, grt_context *context, int32_t i,
                                        grt_request *const *requests, size_t n, int64_t padded)
{
    grt_session *session = batch->session;
    grt_tensor whole = *pool_batch_input_of(requests[0], i);
    if (n == 1 && whole.dims[0] == padded)
        return grt_context_set_input(context, (size_t)i, &whole);
    const size_t row = grt_tensor_bytes(&whole) / (size_t)whole.dims[0];
    whole.dims[0] = padded;
    const size_t bytes = grt_tensor_bytes(&whole);
    if (bytes == SIZE_MAX)
        return grt_fail_memory(bytes);
    if (session->on_device && row && all_pinned(requests, n, i)) {
        GRT_TRY(pool_batch_reserve_there(session, &batch->inputs[i], bytes));
        whole.data = batch->inputs[i].there;
        whole.memory = GRT_MEMORY_DEVICE;
        whole.device = session->device->index;
        GRT_TRY(pool_batch_upload(session->device, context->executor.stream, &whole, row, requests, n, i));
    } else {
        GRT_TRY(pool_batch_reserve(session, &batch->inputs[i], bytes));
        whole.data = batch->inputs[i].data;
        whole.memory = whole.dtype == GRT_DTYPE_STRING ? GRT_MEMORY_HOST : GRT_MEMORY_PINNED;
        pool_batch_put_together(&whole, row, requests, n, i);
    }
    return grt_context_set_input(context, (size_t)i, &whole);
}

/* ---- outputs ---- */

static grt_value *output_memory(const grt_batch *batch, int32_t i)
{
    return &batch->outputs[(size_t)i * OUTPUT_SETS + batch->turn];
}

static grt_status pool_batch_bind_output(grt_batch *batch, grt_context *context, int32_t i)
{
    grt_value *memory = output_memory(batch, i);
    grt_tensor t;
    GRT_TRY(grt_context_output_dims(context, (size_t)i, &t));
    if (t.dtype == GRT_DTYPE_STRING || grt_tensor_bytes(&t) == SIZE_MAX) {
        grt_value_clear(memory);
        return grt_context_set_output(context, (size_t)i, NULL);
    }
    GRT_TRY(grt_value_realloc(memory, t.dtype, t.rank, t.dims));
    if (batch->session->on_device && grt_tensor_bytes(&t) <= SMALL_OUTPUT) {
        GRT_TRY(pool_batch_reserve(batch->session, &batch->small[i],
                                   grt_tensor_bytes(&t) + !grt_tensor_bytes(&t)));
        t.data = batch->small[i].data;
        t.memory = GRT_MEMORY_PINNED;
        return grt_context_set_output(context, (size_t)i, &t);
    }
    return grt_context_set_output(context, (size_t)i, &memory->t);
}

static grt_status bind_batch_inputs(grt_batch *batch, const grt_batching *batching, grt_context *context,
                                    grt_request *const *requests, size_t n, int64_t padded)
{
    const grt_plan_body *body = &batching->plan->bodies[0];
    for (int32_t i = 0; i < body->n_inputs; i++)
        GRT_TRY(batching->has_rows[i] ? pool_batch_bind_input(batch, context, i, requests, n, padded)
                                      : grt_context_set_input(context, (size_t)i, NULL));
    return GRT_OK;
}

grt_status grt_batch_bind(grt_batch *batch, const grt_batching *batching, grt_context *context,
                          grt_request *const *requests, size_t n, int64_t rows)
{
    const grt_plan_body *body = &batching->plan->bodies[0];
    const int64_t padded = grt_batching_padded(batching, rows);
    const grt_status bound = bind_batch_inputs(batch, batching, context, requests, n, padded);
    /* what is enqueued reads memory of the requests, which may leave the batch from now on */
    const grt_status copied = grt_device_wait(batch->session->device, context->executor.stream);
    GRT_TRY(bound != GRT_OK ? bound : copied);
    batch->turn = (batch->turn + 1) % OUTPUT_SETS;
    for (int32_t i = 0; i < body->n_outputs; i++)
        GRT_TRY(pool_batch_bind_output(batch, context, i));
    return GRT_OK;
}

grt_status grt_batch_find_results(grt_batch *batch, grt_context *context, int64_t padded)
{
    const grt_plan_body *body = grt_context_body(context);
    for (int32_t i = 0; i < body->n_outputs; i++) {
        const void *small = batch->small[i].data;
        GRT_TRY(grt_context_get_output(context, (size_t)i, &batch->found[i]));
        if (small && batch->found[i].data == small)
            batch->found[i].data =
                memcpy(output_memory(batch, i)->t.data, small, grt_tensor_bytes(&batch->found[i]));
        if (batch->found[i].rank < 1 || batch->found[i].dims[0] != padded)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "output '%s' does not have a row for each of the %lld rows of a batch",
                            body->output_names[i], (long long)padded);
    }
    return GRT_OK;
}

static grt_status pool_batch_give_result(const grt_batch *batch, grt_request *r, int32_t i, int64_t first_row)
{
    const grt_tensor *bound = &r->outputs[i];
    grt_value *memory = output_memory(batch, i);
    grt_tensor part = batch->found[i];
    const size_t row = grt_tensor_bytes(&part) / (size_t)part.dims[0];
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    part.data = (char *)part.data + (size_t)first_row * row;
    part.dims[0] = r->rows;
    if (bound->dtype && !grt_tensor_same_type(bound, &part))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "output '%s' is %s, the memory bound to it is for %s",
                        batch->session->model->plan->bodies[0].output_names[i], grt_tensor_text(&part, a),
                        grt_tensor_text(bound, b));
    if (bound->dtype && row) {
        memcpy(bound->data, part.data, (size_t)r->rows * row);
    } else if (!bound->dtype && !memory->buffer) {
        return grt_value_copy_tensor(&r->results[i], &part);
    } else if (!bound->dtype) {
        grt_value_clear(&r->results[i]);
        r->results[i] = (grt_value){.t = part, .buffer = grt_buffer_retain(memory->buffer)};
    }
    return GRT_OK;
}

grt_status grt_batch_give_results(const grt_batch *batch, grt_request *request, int64_t first_row)
{
    for (size_t i = 0; i < request->n_outputs; i++)
        GRT_TRY(pool_batch_give_result(batch, request, (int32_t)i, first_row));
    return GRT_OK;
}
