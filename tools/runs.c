/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/runs.h"

#include "tools/interrupt.h"
#include "tools/progress.h"
#include "tools/report.h"

#include <stdlib.h>
#include <string.h>

/* A run in flight, with its inputs. */
typedef struct run_slot {
    grt_value **values; /* NULL: those of all runs */
    grt_request *request;
    char *error; /* why there is no request */
} run_slot;

static char *copy_error(const char *text)
{
    char *copy = strdup(text);
    return copy ? copy : strdup("");
}

/* Values from files belong to the run. */
static grt_value **read_run_inputs(const runs *r, size_t index)
{
    const size_t n = grt_model_input_count(r->model);
    grt_value **values = calloc(n + 1, sizeof *values);
    const char **sources = calloc(n + 1, sizeof *sources);
    if (values && sources && input_lists_create(r->lists, r->model, index, r->seed, values, sources)) {
        free(sources);
        return values;
    }
    free(sources);
    inputs_release_values(values, n);
    return NULL;
}

static void start_run(const runs *r, run_slot *slot, size_t index)
{
    *slot = (run_slot){.values = r->values ? NULL : read_run_inputs(r, index)};
    grt_value *const *values = r->values ? r->values : slot->values;
    if (!values)
        slot->error = copy_error("its inputs cannot be used");
    else if (grt_pool_submit_values(r->pool, (const grt_value *const *)values,
                                    grt_model_input_count(r->model), &slot->request) != GRT_OK)
        slot->error = copy_error(grt_last_error());
}

/* One whose user interrupts it is cancelled, with all others. */
static grt_status wait_for_run(const runs *r, grt_request *request)
{
    enum { LOOK_AGAIN_MS = 50 };
    grt_status status;
    while ((status = grt_request_wait_until(request, grt_clock_ms() + LOOK_AGAIN_MS)) == GRT_STATUS_BUSY)
        if (interrupt_asked(NULL))
            grt_pool_cancel(r->pool);
    return status;
}

static void finish_run(runs *r, run_slot *slot, size_t index)
{
    grt_request_info info = {.struct_size = sizeof info};
    finished_run run = {.index = index, .error = slot->error, .request = slot->request};
    if (slot->request) {
        if (wait_for_run(r, slot->request) != GRT_OK)
            run.error = slot->error = copy_error(grt_last_error());
        if (grt_request_get_info(slot->request, &info) == GRT_OK) {
            run.device = info.session;
            run.ms = info.run_ms;
        }
    }
    const bool shown = r->show(r->user, &run), failed = run.error || !shown;
    r->results[index] = (run_result){.ms = run.ms, .device = (int32_t)run.device, .failed = failed};
    r->failed += failed;
    grt_request_release(slot->request);
    inputs_release_values(slot->values, grt_model_input_count(r->model));
    free(slot->error);
}

bool runs_all(runs *r)
{
    const size_t n_slots = r->most_in_flight < r->n ? r->most_in_flight : r->n;
    run_slot *slots = calloc(n_slots, sizeof *slots);
    r->results = calloc(r->n, sizeof *r->results);
    const bool ok = slots && r->results;
    const double begin = now_ms();
    if (!ok)
        tool_error("out of memory");
    size_t started = 0, finished = 0;
    for (; ok && finished < r->n; finished++) {
        for (; started < r->n && started - finished < n_slots && !interrupt_asked(NULL); started++)
            start_run(r, &slots[started % n_slots], started);
        if (finished == started)
            break;
        finish_run(r, &slots[finished % n_slots], finished);
        progress_show((double)(finished + 1) / (double)r->n, "running");
    }
    progress_clear();
    r->total_ms = now_ms() - begin;
    free(slots);
    if (ok && interrupt_asked(NULL))
        tool_error("interrupted: %zu of %zu runs were done", finished - r->failed, r->n);
    return ok && !interrupt_asked(NULL);
}

void runs_release(runs *r)
{
    free(r->results);
    *r = (runs){0};
}
