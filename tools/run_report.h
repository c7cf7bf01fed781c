/* SPDX-License-Identifier: Apache-2.0 */
/* What `graphrun MODEL` shows: inputs, what each run gave, and figures of all, as text or as JSON. */
#ifndef TOOLS_RUN_REPORT_H
#define TOOLS_RUN_REPORT_H

#include "tools/explain.h"
#include "tools/run_request.h"
#include "tools/runs.h"

typedef struct run_report {
    const run_request *request;
    const input_lists *lists;
    grt_value *const *values; /* of all runs, as runs has them */
    const char **sources;
    load_report load;
    json_t *results; /* NULL: text */
} run_report;

/* Before the runs: shows the inputs and makes the directory of outputs. False after printing what is wrong.
 */
bool run_report_begin(const run_report *r);
/* `show` of runs: without directories all runs give the same, so the first and those that failed are shown.
 */
bool run_report_show(void *report, const finished_run *run);
/* After the runs. Takes over `results`. False after printing an error. */
bool run_report_end(run_report *r, const runs *all);

#endif
