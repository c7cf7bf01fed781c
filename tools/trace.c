/* SPDX-License-Identifier: Apache-2.0 */
/* See trace.h. A process for the model's loading, one for runs, with a track for each thread, and one for
 * each session: its loading, and on devices with a clock a run whose steps were timed there. Times are
 * microseconds from the beginning of loading. */
#include "tools/trace.h"

#include "tools/report.h"
#include "tools/spans.h"
#include "tools/whole_file.h"

#include <stdio.h>

enum { HOST = 1, DEVICE = 2 };        /* tracks */
enum { MODEL_PID = 1, RUNS_PID = 2 }; /* then the sessions */

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

/* The first run prepares; in the second, each step is timed. */
static bool trace_runs(track *t, grt_context *context, grt_value *const *values, size_t n)
{
    grt_profile_options options = {.struct_size = sizeof options, .event = take_event, .user = t};
    for (size_t i = 0; i < n; i++)
        if (grt_context_set_input_value(context, i, values[i]) != GRT_OK)
            return false;
    for (int run = 0; run < 2; run++) {
        options.steps = run == 1;
        if (grt_context_set_profile(context, &options) != GRT_OK || grt_context_run(context) != GRT_OK)
            return false;
    }
    return true;
}

static bool trace_session(json_t *events, const load_report *load, size_t index, grt_value *const *values)
{
    const grt_phase *phases;
    grt_load_info info = {.struct_size = sizeof info};
    track t = {.events = events, .pid = RUNS_PID + 1 + (int)index, .shift_ms = load->sessions_at_ms};
    grt_context *context = NULL;
    const size_t n = grt_session_phases(load->sessions[index], &phases);
    bool ok = grt_session_get_load(load->sessions[index], &info) == GRT_OK;
    if (ok) {
        name_track(&t, 0, "process_name", info.device);
        name_track(&t, HOST, "thread_name", "host");
        name_track(&t, DEVICE, "thread_name", "device, one step after the other");
        trace_add_phases(&t, phases, n);
        t.shift_ms = -load->origin_ms;
        ok = grt_context_create(load->sessions[index], &context) == GRT_OK;
    }
    if (ok && grt_context_time_device(context, true)) {
        grt_context_time_device(context, false);
        ok = trace_runs(&t, context, values, grt_model_input_count(load->model));
    }
    if (!ok)
        tool_fail();
    grt_context_release(context);
    return ok;
}

static void name_thread(const track *t, int thread)
{
    char name[32];
    snprintf(name, sizeof name, "thread %d", thread);
    name_track(t, thread, "thread_name", name);
}

/* Requests overlap: each is a track by itself, with its time in the queue. */
static void add_request(const track *t, const recorded_span *s)
{
    const double us[] = {1e3 * (s->begin_ms + t->shift_ms), 1e3 * (s->end_ms + t->shift_ms)};
    for (int end = 0; end < 2; end++)
        json_array_append_new(
            t->events, json_pack("{s:s,s:s,s:s,s:I,s:f,s:i,s:i,s:{s:I,s:s}}", "ph", end ? "e" : "b", "name",
                                 span_kind_text(s->kind), "cat", "request", "id", (json_int_t)s->request,
                                 "ts", us[end], "pid", t->pid, "tid", s->thread, "args", "lane",
                                 (json_int_t)s->lane, "status", grt_status_text(s->status)));
}

static void add_recorded_span(void *user, const recorded_span *s)
{
    const track *t = user;
    if (s->kind == GRT_SPAN_REQUEST || s->kind == GRT_SPAN_QUEUE) {
        add_request(t, s);
        return;
    }
    char title[512];
    json_t *args = json_pack("{s:s}", "device", s->device);
    snprintf(title, sizeof title, "%s%s%s", s->kind == GRT_SPAN_STEP ? s->op : span_kind_text(s->kind),
             *s->name ? " " : "", s->name);
    if (s->kind == GRT_SPAN_STEP) {
        json_object_set_new(args, "nodes", json_text(s->name));
        json_object_set_new(args, "step", json_integer(s->step));
    }
    if (s->request)
        json_object_set_new(args, "request", json_integer((json_int_t)s->request));
    add_event(t, s->thread, span_kind_text(s->kind), title, (double[]){s->begin_ms, s->end_ms}, args);
}

static void count_thread(void *user, const recorded_span *s)
{
    int *most = user;
    *most = s->thread > *most ? s->thread : *most;
}

static void add_recorded_spans(const track *t)
{
    int threads = 0;
    name_track(t, 0, "process_name", "runs");
    spans_each(count_thread, &threads);
    for (int i = 1; i <= threads; i++)
        name_thread(t, i);
    spans_each(add_recorded_span, (void *)t);
    if (spans_left_out())
        tool_error("%zu of what runs did had no room in the trace", spans_left_out());
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
    spans_stop();
    track model = {.events = json_array(), .pid = MODEL_PID};
    const track all = {.events = model.events, .pid = RUNS_PID, .shift_ms = -load->origin_ms};
    bool ok = model.events != NULL;
    name_track(&model, 0, "process_name", "model");
    const size_t n = grt_model_phases(load->model, &phases);
    trace_add_phases(&model, phases, n);
    if (ok)
        add_recorded_spans(&all);
    for (size_t i = 0; ok && i < load->n; i++)
        ok = trace_session(model.events, load, i, values);
    ok = ok && write_events(path, model.events);
    json_decref(model.events);
    return ok;
}
