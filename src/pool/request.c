/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. */
#include "src/pool/request.h"

#include "src/base/structs.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

void grt_request_free(grt_request *r)
{
    for (size_t i = 0; r->results && i < r->n_outputs; i++)
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

grt_status grt_request_create(const grt_submission *submission, size_t n_results, grt_request **out_request)
{
    const size_t n_inputs = submission->n_inputs;
    grt_request *r = calloc(1, sizeof *r);
    if (!r)
        return grt_fail_memory(sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->finished, NULL);
    r->n_inputs = n_inputs;
    r->n_outputs = n_results;
    r->submitted_ms = grt_now_ms();
    r->inputs = calloc(n_inputs + 1, sizeof *r->inputs);
    r->values = submission->values ? calloc(n_inputs + 1, sizeof *r->values) : NULL;
    r->outputs = calloc(n_results + 1, sizeof *r->outputs);
    r->results = calloc(n_results + 1, sizeof *r->results);
    if (!r->inputs || !r->outputs || !r->results || (submission->values && !r->values)) {
        grt_request_free(r);
        return grt_fail_memory((n_inputs + 2 * n_results) * sizeof *r->inputs);
    }
    if (n_inputs && r->values)
        memcpy(r->values, submission->values, n_inputs * sizeof(const grt_value *));
    else if (n_inputs)
        memcpy(r->inputs, submission->inputs, n_inputs * sizeof *r->inputs);
    if (submission->n_outputs)
        memcpy(r->outputs, submission->outputs, submission->n_outputs * sizeof *r->outputs);
    *out_request = r;
    return GRT_OK;
}

/* ---- running ---- */

static grt_status bind_request(grt_context *context, const grt_request *r)
{
    for (size_t i = 0; i < r->n_inputs; i++)
        GRT_TRY(r->values ? grt_context_set_input_value(context, i, r->values[i])
                          : grt_context_set_input(context, i, r->inputs[i].dtype ? &r->inputs[i] : NULL));
    for (size_t i = 0; i < r->n_outputs; i++)
        GRT_TRY(grt_context_set_output(context, i, r->outputs[i].dtype ? &r->outputs[i] : NULL));
    return GRT_OK;
}

static grt_status keep_other_than_tensor(grt_context *context, size_t index, grt_value *out)
{
    grt_value *copy;
    GRT_TRY(grt_context_get_output_value(context, index, &copy));
    *out = *copy;
    free(copy);
    return GRT_OK;
}

static bool is_tensor_output(const grt_context *context, size_t index)
{
    const grt_plan_body *body = grt_context_body(context);
    return body->values[body->outputs[index]].kind == GRT_KIND_TENSOR;
}

/* Results on a device were copied to memory that can change hands; those of the CPU lie in the arena. */
static grt_status keep_results(grt_context *context, grt_request *r)
{
    for (size_t i = 0; i < r->n_outputs; i++) {
        if (r->outputs[i].dtype)
            continue;
        grt_tensor found;
        if (!is_tensor_output(context, i))
            GRT_TRY(keep_other_than_tensor(context, i, &r->results[i]));
        else if (context->results)
            GRT_TRY(grt_value_share(&r->results[i], &context->results[i]));
        else {
            GRT_TRY(grt_context_get_output(context, i, &found));
            GRT_TRY(grt_value_copy_tensor(&r->results[i], &found));
        }
    }
    return GRT_OK;
}

static void finish_request(grt_request *r, grt_status status)
{
    char *error = status == GRT_OK ? NULL : strdup(grt_last_error());
    pthread_mutex_lock(&r->lock);
    r->status = status;
    r->error = error;
    r->done = true;
    pthread_cond_broadcast(&r->finished); /* with the lock: who waits may free the request */
    pthread_mutex_unlock(&r->lock);
}

void grt_request_serve(grt_request *r, grt_context *context, size_t session)
{
    grt_status status = bind_request(context, r);
    const double begun = grt_now_ms();
    if (status == GRT_OK)
        status = grt_context_run(context);
    r->info.session = session;
    r->info.queued_ms = begun - r->submitted_ms;
    r->info.run_ms = grt_now_ms() - begun;
    if (status == GRT_OK)
        status = keep_results(context, r);
    finish_request(r, status);
}

/* ---- waiting, and what came of it ---- */

static void wait_until_done(grt_request *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->done)
        pthread_cond_wait(&r->finished, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

grt_status grt_request_wait(grt_request *request)
{
    if (!request)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_request_wait: the request is NULL");
    wait_until_done(request);
    if (request->status != GRT_OK)
        grt_error_set(request->error ? request->error : "out of memory");
    return request->status;
}

static grt_status check_done(grt_request *request, const char *function)
{
    bool done = false;
    if (request) {
        pthread_mutex_lock(&request->lock);
        done = request->done;
        pthread_mutex_unlock(&request->lock);
    }
    return done ? GRT_OK
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

grt_status grt_request_get_output(grt_request *request, size_t index, grt_tensor *out_tensor)
{
    GRT_TRY(check_request_output(request, index, out_tensor, "grt_request_get_output"));
    const grt_tensor *bound = &request->outputs[index];
    const grt_value *kept = &request->results[index];
    if (!bound->dtype && kept->kind != GRT_KIND_TENSOR)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_request_get_output: output %zu is no tensor: use grt_request_get_output_value",
                        index);
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
    wait_until_done(request);
    grt_request_free(request);
}
