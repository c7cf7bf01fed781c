/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profile.h"

#include "tools/latencies.h"
#include "tools/report.h"

#include <stdlib.h>

enum { PROFILE_RUNS = 11 };

typedef struct profiled {
    const char *op, *name;
    double ms[PROFILE_RUNS], median;
} profiled;

static int by_median(const void *a, const void *b)
{
    double x = ((const profiled *)a)->median, y = ((const profiled *)b)->median;
    return x < y ? 1 : x > y ? -1 : 0;
}

static bool profile_runs(grt_context *context, profiled *steps, size_t n)
{
    const grt_step_time *times;
    grt_context_set_timing(context, true);
    bool ok = true;
    for (int run = -1; ok && run < PROFILE_RUNS; run++) { /* one to warm up */
        ok = grt_context_run(context) == GRT_OK && grt_context_step_times(context, &times) == n;
        for (size_t i = 0; ok && run >= 0 && i < n; i++) {
            steps[i].op = times[i].op;
            steps[i].name = times[i].name;
            steps[i].ms[run] = times[i].ms;
        }
    }
    grt_context_set_timing(context, false);
    return ok;
}

static void add_to_op(json_t *ops, const profiled *step)
{
    json_t *found = json_object_get(ops, step->op);
    double ms = found ? json_number_value(json_object_get(found, "ms")) : 0;
    json_int_t count = found ? json_integer_value(json_object_get(found, "steps")) : 0;
    json_t *object = json_object();
    json_object_set_new(object, "ms", json_real(ms + step->median));
    json_object_set_new(object, "steps", json_integer(count + 1));
    json_object_set_new(ops, step->op, object);
}

json_t *profile_measure(grt_context *context, const grt_model *model, int64_t most)
{
    grt_model_info info = {.struct_size = sizeof info};
    if (grt_model_get_info(model, &info) != GRT_OK)
        return NULL;
    size_t n = (size_t)info.steps;
    profiled *steps = calloc(n + 1, sizeof *steps);
    json_t *report = NULL;
    if (steps && profile_runs(context, steps, n)) {
        json_t *ops = json_object(), *list = json_array();
        for (size_t i = 0; i < n; i++) {
            steps[i].median = latencies_of(steps[i].ms, PROFILE_RUNS).p50;
            if (steps[i].op)
                add_to_op(ops, &steps[i]);
        }
        qsort(steps, n, sizeof *steps, by_median);
        for (size_t i = 0; i < n && i < (size_t)most && steps[i].op; i++) {
            json_t *object = json_object();
            json_object_set_new(object, "op", json_text(steps[i].op));
            json_object_set_new(object, "name", json_text(steps[i].name));
            json_object_set_new(object, "ms", json_real(steps[i].median));
            json_array_append_new(list, object);
        }
        report = json_object();
        json_object_set_new(report, "ops", ops);
        json_object_set_new(report, "steps", list);
    }
    free(steps);
    return report;
}
