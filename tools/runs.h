/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a model in a pool: inputs are read while earlier runs are at work, and what comes out is shown in
 * the order of the runs. One that fails does not stop the others. */
#ifndef TOOLS_RUNS_H
#define TOOLS_RUNS_H

#include "tools/input_lists.h"

/* One that is done. */
typedef struct finished_run {
    size_t index, device; /* device: only with a request */
    double ms;
    const char *error;    /* NULL: it succeeded */
    grt_request *request; /* NULL: it never began */
} finished_run;

typedef struct run_result {
    double ms;
    int32_t device;
    bool failed;
} run_result;

typedef struct runs {
    const grt_model *model;
    grt_pool *pool;
    const input_lists *lists;
    grt_value *const *values; /* of all runs; NULL: each has a file of its own */
    uint64_t seed;
    size_t n, most_in_flight;
    /* For each run in order. False, after printing why, if it could not be shown, which is a failure too. */
    bool (*show)(void *user, const finished_run *run);
    void *user;
    /* what runs_all found */
    run_result *results;
    size_t failed;
    double total_ms;
} runs;

/* False after printing an error, if it is not one run's failure, or if the user interrupted them. Release in
 * any case. */
bool runs_all(runs *r);
void runs_release(runs *r);

#endif
