/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/execute.h"

#include "serving/triton/gather.h"
#include "serving/triton/scatter.h"

#include <time.h>

/* Nanoseconds, for the server's statistics. */
typedef struct moments {
    uint64_t begin, compute_begin, compute_end;
} moments;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The request is over. Takes the error. */
static void finish_request(instance *in, request *r, const moments *at, TRITONSERVER_Error *error)
{
    const bool success = !error;
    request_respond(r, error);
    log_error(TRITONBACKEND_ModelInstanceReportStatistics(in->handle, r->handle, success, at->begin,
                                                          at->compute_begin, at->compute_end, now_ns()));
    log_error(TRITONBACKEND_RequestRelease(r->handle, TRITONSERVER_REQUEST_RELEASE_ALL));
}

/* Rows of a run that is to have at least `rows`: a context keeps graphs and memory for 16 combinations of
 * dims, and dynamic batches would have any number. What is in memory of a GPU cannot be padded. */
static int64_t padded_rows(const instance *in, const request *first, int64_t rows)
{
    const int64_t most = in->model->settings.max_batch;
    int64_t padded = in->padding == PADDING_FULL ? most : 1;
    if (in->padding == PADDING_NONE || first->alone || rows < 1 || rows >= most)
        return rows;
    while (padded < rows)
        padded *= 2;
    return padded < most ? padded : most;
}

static TRITONSERVER_Error *triton_execute_run_batch(instance *in, request *const *batch, size_t n,
                                                    int64_t rows, moments *at)
{
    at->compute_begin = at->compute_end = now_ns();
    TRITON_TRY(gather_inputs(in, batch, n, rows));
    TRITON_TRY(scatter_bind(in, n == 1 && rows == batch[0]->rows ? batch[0] : NULL));
    at->compute_begin = now_ns();
    TRITONSERVER_Error *error = error_from_status(grt_context_run(in->context), in->model->name);
    at->compute_end = now_ns();
    return error;
}

/* n requests that fit each other. */
static void execute_batch(instance *in, request *const *batch, size_t n)
{
    moments at = {.begin = now_ns()};
    int64_t rows = 0, first = 0;
    for (size_t i = 0; i < n; i++)
        rows += batch[i]->rows;
    const int64_t padded = padded_rows(in, batch[0], rows);
    TRITONSERVER_Error *error = triton_execute_run_batch(in, batch, n, padded, &at);
    if (error && n > 1) {
        TRITONSERVER_ErrorDelete(error);
        for (size_t i = 0; i < n; i++)
            execute_batch(in, batch + i, 1);
        return;
    }
    if (error) {
        finish_request(in, batch[0], &at, error);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const int64_t next = first + batch[i]->rows;
        finish_request(in, batch[i], &at, scatter_outputs(in, batch[i], first, padded));
        first = next;
    }
    log_error(TRITONBACKEND_ModelInstanceReportBatchStatistics(in->handle, (uint64_t)rows, at.begin,
                                                               at.compute_begin, at.compute_end, now_ns()));
}

/* Moves the requests that fit the first one to the front; their number. */
static size_t select_fitting(const served_model *m, request **batch, size_t n)
{
    size_t fitting = 1;
    for (size_t i = 1; i < n; i++)
        if (request_fits(m, batch[0], batch[i])) {
            request *other = batch[i];
            for (size_t k = i; k > fitting; k--) /* the others keep their order */
                batch[k] = batch[k - 1];
            batch[fitting++] = other;
        }
    return fitting;
}

TRITONSERVER_Error *execute_requests(instance *in, TRITONBACKEND_Request **handles, size_t n)
{
    TRITON_TRY(instance_reserve(in, n));
    const uint64_t begin = now_ns();
    const moments none = {begin, begin, begin};
    size_t good = 0;
    for (size_t i = 0; i < n; i++) {
        request *r = &in->requests[i];
        TRITONSERVER_Error *error = request_read(in->model, handles[i], r);
        if (error)
            finish_request(in, r, &none, error);
        else
            in->batch[good++] = r;
    }
    for (size_t done = 0; done < good;) {
        const size_t fitting = select_fitting(in->model, in->batch + done, good - done);
        execute_batch(in, in->batch + done, fitting);
        done += fitting;
    }
    return NULL;
}
