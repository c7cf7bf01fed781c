/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/request.h"

#include "src/base/forked.h"
#include "src/base/structs.h"
#include "src/pool/clock.h"

#include <stdlib.h>
#include <string.h>

/* Results up to this size are kept with a request for the next, in at most so many requests. */
enum { KEPT_BYTES = 65536, MOST_KEPT = 256 };

grt_status grt_request_store_create(grt_request_store **out_store)
{
    grt_request_store *store = calloc(1, sizeof *store);
    if (!store)
        return grt_fail_memory(sizeof *store);
    atomic_init(&store->refs, 1);
    pthread_mutex_init(&store->lock, NULL);
    *out_store = store;
    return GRT_OK;
}

static void free_request(grt_request *r)
{
    for (size_t i = 0; r->results && i < r->most_outputs; i++)
        grt_value_clear(&r->results[i]);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->finished);
    free(r->inputs);
    free(r->values);
    free(r->outputs);
    free(r->results);
    free(r->error);
    free(r);
}

void grt_request_store_release(grt_request_store *store)
{
    if (!store || atomic_fetch_sub_explicit(&store->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (grt_request *r = store->free, *next; r; r = next) {
        next = r->next;
        free_request(r);
    }
    pthread_mutex_destroy(&store->lock);
    free(store);
}

static grt_request *take_free(grt_request_store *store)
{
    pthread_mutex_lock(&store->lock);
    grt_request *r = store->free;
    if (r) {
        store->free = r->next;
        store->n_free--;
    }
    pthread_mutex_unlock(&store->lock);
    return r;
}

/* Memory that is shared with a batch or that is large goes. */
static void forget_results(grt_request *r)
{
    for (size_t i = 0; i < r->n_outputs; i++) {
        grt_value *v = &r->results[i];
        const bool keep = v->kind == GRT_KIND_TENSOR && v->t.dtype != GRT_DTYPE_STRING && v->buffer &&
                          v->buffer->size <= KEPT_BYTES &&
                          atomic_load_explicit(&v->buffer->refs, memory_order_acquire) == 1;
        if (!keep)
            grt_value_clear(v);
    }
    free(r->error);
    r->error = NULL;
}

static void keep_request(grt_request *r)
{
    grt_request_store *store = r->store;
    forget_results(r);
    pthread_mutex_lock(&store->lock);
    const bool kept = store->n_free < MOST_KEPT;
    if (kept) {
        r->next = store->free;
        store->free = r;
        store->n_free++;
    }
    pthread_mutex_unlock(&store->lock);
    if (!kept)
        free_request(r);
    grt_request_store_release(store);
}

static grt_request *make_request(void)
{
    grt_request *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    pthread_mutex_init(&r->lock, NULL);
    grt_clock_cond_init(&r->finished);
    return r;
}

static bool request_make_room(grt_request *r, size_t n_inputs, size_t n_outputs)
{
    if (n_inputs > r->most_inputs || !r->inputs) {
        free(r->inputs);
        free(r->values);
        r->most_inputs = n_inputs;
        r->inputs = calloc(n_inputs + 1, sizeof *r->inputs);
        r->values = calloc(n_inputs + 1, sizeof *r->values);
    }
    if (n_outputs > r->most_outputs || !r->outputs) {
        for (size_t i = 0; r->results && i < r->most_outputs; i++)
            grt_value_clear(&r->results[i]);
        free(r->outputs);
        free(r->results);
        r->most_outputs = n_outputs;
        r->outputs = calloc(n_outputs + 1, sizeof *r->outputs);
        r->results = calloc(n_outputs + 1, sizeof *r->results);
    }
    return r->inputs && r->values && r->outputs && r->results;
}

static void take_submission(grt_request *r, const grt_submission *s, size_t n_outputs)
{
    r->n_inputs = s->n_inputs;
    r->n_outputs = n_outputs;
    r->by_value = s->values != NULL;
    if (s->n_inputs && r->by_value)
        memcpy(r->values, s->values, s->n_inputs * sizeof(const grt_value *));
    else if (s->n_inputs)
        memcpy(r->inputs, s->inputs, s->n_inputs * sizeof *r->inputs);
    memset(r->outputs, 0, n_outputs * sizeof *r->outputs);
    if (s->n_outputs)
        memcpy(r->outputs, s->outputs, s->n_outputs * sizeof *r->outputs);
    r->callback = s->done;
    r->user = s->user;
    r->collect = s->collect;
    r->with = s->state;
    r->queued = (grt_queued){.priority = s->priority, .deadline_ms = s->deadline_ms};
    r->info = (grt_request_info){0};
    r->stage = GRT_REQUEST_WAITING;
    r->in = NULL;
    r->before = r->behind = NULL;
    r->verdict = r->status = GRT_OK;
    r->done = r->again = false;
    r->next = NULL;
    atomic_store_explicit(&r->cancelled, false, memory_order_relaxed);
    atomic_store_explicit(&r->holders, 2, memory_order_relaxed);
}

grt_status grt_request_create(grt_request_store *store, const grt_submission *submission, size_t n_outputs,
                              grt_request **out_request)
{
    grt_request *r = take_free(store);
    if (!r)
        r = make_request();
    if (!r || !request_make_room(r, submission->n_inputs, n_outputs)) {
        if (r)
            free_request(r);
        return grt_fail_memory((submission->n_inputs + n_outputs) * sizeof(grt_tensor));
    }
    r->store = store;
    atomic_fetch_add_explicit(&store->refs, 1, memory_order_relaxed);
    take_submission(r, submission, n_outputs);
    *out_request = r;
    return GRT_OK;
}

void grt_request_let_go(grt_request *request)
{
    if (atomic_fetch_sub_explicit(&request->holders, 1, memory_order_acq_rel) == 1)
        keep_request(request);
}

void grt_request_finish(grt_request *r, grt_status status)
{
    char *error = status == GRT_OK ? NULL : strdup(grt_last_error());
    pthread_mutex_lock(&r->lock);
    r->status = status;
    r->error = error;
    r->done = true;
    pthread_cond_broadcast(&r->finished);
    pthread_mutex_unlock(&r->lock);
}

enum { LONG_AGO = 1 };

/* Until the deadline; 0: for ever; NAN and what is past: a look. */
static bool wait_until_done(grt_request *r, double deadline_ms)
{
    if (grt_forked_since(r->process))
        return r->done; /* nobody else is in this process, and the lock may be held by who was */
    pthread_mutex_lock(&r->lock);
    bool goes_on = true;
    while (!r->done && goes_on)
        goes_on = grt_clock_cond_wait(&r->finished, &r->lock, deadline_ms);
    const bool done = r->done;
    pthread_mutex_unlock(&r->lock);
    return done;
}

static grt_status status_of(grt_request *request)
{
    if (request->status != GRT_OK)
        grt_error_set(request->error ? request->error : "out of memory");
    return request->status;
}

static grt_status fail_without_pool(void)
{
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                    "the request was submitted before fork(), and its pool has no threads in this process");
}

grt_status grt_request_await(grt_request *request)
{
    return wait_until_done(request, 0) ? status_of(request) : fail_without_pool();
}

grt_status grt_request_wait_until(grt_request *request, double deadline_ms)
{
    if (!request)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_request_wait_until: the request is NULL");
    if (!wait_until_done(request, deadline_ms != 0 ? deadline_ms : LONG_AGO))
        return grt_forked_since(request->process) ? fail_without_pool()
                                                  : grt_fail(GRT_STATUS_BUSY, "the request is not done yet");
    return status_of(request);
}

void *grt_request_user(const grt_request *request)
{
    return request ? request->user : NULL;
}

static grt_status check_done(grt_request *request, const char *function)
{
    return request && wait_until_done(request, LONG_AGO)
               ? GRT_OK
               : grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: the request is %s", function,
                          request ? "not done: wait for it first" : "NULL");
}

static grt_status check_request_output(grt_request *request, size_t index, const void *out,
                                       const char *function)
{
    GRT_TRY(check_done(request, function));
    if (!out || index >= request->n_outputs)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "%s: the out-parameter is NULL, or there is no output %zu", function, index);
    if (request->status != GRT_OK)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: the request failed: %s", function,
                        request->error ? request->error : "out of memory");
    return GRT_OK;
}

static grt_status fail_state_output(const char *function, size_t index)
{
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                    "%s: output %zu belongs to the request's state: grt_state_save or grt_state_get has it",
                    function, index);
}

grt_status grt_request_get_output(grt_request *request, size_t index, grt_tensor *out_tensor)
{
    GRT_TRY(check_request_output(request, index, out_tensor, "grt_request_get_output"));
    const grt_tensor *bound = &request->outputs[index];
    const grt_value *kept = &request->results[index];
    if (!bound->dtype && kept->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_request_get_output: output %zu is no tensor: use grt_request_get_output_value",
                        index);
    if (!bound->dtype && !kept->t.dtype)
        return fail_state_output("grt_request_get_output", index);
    *out_tensor = bound->dtype ? *bound : kept->t;
    return GRT_OK;
}

grt_status grt_request_get_output_value(grt_request *request, size_t index, const grt_value **out_value)
{
    GRT_TRY(check_request_output(request, index, out_value, "grt_request_get_output_value"));
    if (request->outputs[index].dtype)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_request_get_output_value: output %zu is in memory of the caller", index);
    *out_value = &request->results[index];
    if ((*out_value)->kind == GRT_KIND_TENSOR && !(*out_value)->t.dtype)
        return fail_state_output("grt_request_get_output_value", index);
    return GRT_OK;
}

grt_status grt_request_get_info(grt_request *request, grt_request_info *out_info)
{
    GRT_TRY(check_done(request, "grt_request_get_info"));
    return grt_info_give(out_info, &request->info, sizeof request->info, "grt_request_info");
}

void grt_request_release(grt_request *request)
{
    if (!request)
        return;
    wait_until_done(request, 0);
    grt_request_let_go(request);
}
