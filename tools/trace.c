/* SPDX-License-Identifier: Apache-2.0 */
/* See trace.h. A process for each session, and one for the model; in a session's, a track for the host and
 * one for the device. Times are microseconds from the beginning of loading; the traced runs begin where
 * loading ended. */
#include "tools/trace.h"

#include "tools/report.h"
#include "tools/whole_file.h"

#include <stdio.h>

enum { HOST = 1, DEVICE = 2 }; /* tracks */

typedef struct track {
    json_t *events;
    int pid;
    double shift_ms; /* from the clock of the events to that of the file */
} track;

static void add_event(const track *t, int tid, const char *category, const char *name, const double ms[2],
                      json_t *args)
{
    json_array_append_new(
        t->events, json_pack("{s:s,s:o,s:s,s:f,s:f,s:i,s:i,s:o}", "ph", "X", "name", json_text(name), "cat",
                             category, "ts", 1e3 * (ms[0] + t->shift_ms), "dur", 1e3 * (ms[1] - ms[0]), "pid",
                             t->pid, "tid", tid, "args", args ? args : json_object()));
}

static void name_track(const track *t, int tid, const char *kind, const char *name)
{
    json_array_append_new(t->events, json_pack("{s:s,s:s,s:i,s:i,s:{s:o}}", "ph", "M", "name", kind, "pid",
                                               t->pid, "tid", tid, "args", "name", json_text(name)));
}

static void trace_add_phases(const track *t, const grt_phase *phases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_event(t, HOST, "load", phases[i].name, (double[]){phases[i].begin_ms, phases[i].end_ms}, NULL);
}

static void take_event(void *user, const grt_profile_event *e)
{
    static const char *const kinds[] = {"run", "prepare", "compute", "step"};
    const double ms[] = {e->begin_ms, e->end_ms};
    if (e->kind < GRT_PROFILE_STEP) {
        add_event(user, HOST, "run", kinds[e->kind], ms, NULL);
        return;
    }
    char title[512];
    snprintf(title, sizeof title, "%s %s", e->op, e->name);
    add_event(user, e->on_device ? DEVICE : HOST, "step", title, ms,
              json_pack("{s:o,s:o,s:i}", "op", json_text(e->op), "nodes", json_text(e->name), "step",
                        (int)e->step));
}

/* The first run prepares, the second is one as all that follow; in the third, each step is timed. */
static bool trace_runs(track *t, grt_context *context, grt_value *const *values, size_t n)
{
    grt_profile_options options = {.struct_size = sizeof options, .event = take_event, .user = t};
    for (size_t i = 0; i < n; i++)
        if (grt_context_set_input_value(context, i, values[i]) != GRT_OK)
            return false;
    for (int run = 0; run < 3; run++) {
        options.steps = run == 2;
        if (grt_context_set_profile(context, &options) != GRT_OK || grt_context_run(context) != GRT_OK)
            return false;
    }
    return true;
}

static bool trace_session(json_t *events, const load_report *load, size_t index, grt_value *const *values)
{
    const grt_phase *phases;
    grt_load_info info = {.struct_size = sizeof info};
    track t = {.events = events, .pid = (int)index + 2, .shift_ms = load->sessions_at_ms};
    grt_context *context = NULL;
    const size_t n = grt_session_phases(load->sessions[index], &phases);
    bool ok = grt_session_get_load(load->sessions[index], &info) == GRT_OK;
    if (ok) {
        name_track(&t, 0, "process_name", info.device);
        name_track(&t, HOST, "thread_name", "host");
        name_track(&t, DEVICE, "thread_name", "device, one step after the other");
        trace_add_phases(&t, phases, n);
        t.shift_ms = load->total_ms - grt_clock_ms();
        ok = grt_context_create(load->sessions[index], &context) == GRT_OK &&
             trace_runs(&t, context, values, grt_model_input_count(load->model));
    }
    if (!ok)
        tool_fail();
    grt_context_release(context);
    return ok;
}

static bool write_events(const char *path, json_t *events)
{
    whole_file file;
    json_t *trace = json_pack("{s:O,s:s}", "traceEvents", events, "displayTimeUnit", "ms");
    bool ok = trace && whole_file_begin(&file, path);
    if (ok)
        ok = whole_file_end(&file, json_dumpf(trace, file.f, JSON_COMPACT) == 0);
    json_decref(trace);
    return ok;
}

bool trace_write(const char *path, const load_report *load, grt_value *const *values)
{
    const grt_phase *phases;
    track model = {.events = json_array(), .pid = 1};
    bool ok = model.events != NULL;
    name_track(&model, 0, "process_name", "model");
    const size_t n = grt_model_phases(load->model, &phases);
    trace_add_phases(&model, phases, n);
    for (size_t i = 0; ok && i < load->n; i++)
        ok = trace_session(model.events, load, i, values);
    ok = ok && write_events(path, model.events);
    json_decref(model.events);
    return ok;
}
