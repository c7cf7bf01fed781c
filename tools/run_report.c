/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/run_report.h"

#include "tools/latencies.h"
#include "tools/outputs.h"
#include "tools/progress.h"
#include "tools/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool has_unknown_dims(const run_report *r, const grt_io_info *info)
{
    bool unknown = false;
    for (int32_t i = 0; i < info->rank; i++)
        unknown = unknown || info->dims[i] < 0;
    for (size_t i = 0; i < r->request->inputs.n; i++)
        if (!strcmp(r->request->inputs.items[i].name, info->name))
            return false;
    return unknown;
}

static bool get_tensor_value(const grt_value *value, grt_tensor *out)
{
    return value && grt_value_kind(value) == GRT_KIND_TENSOR && grt_value_tensor(value, out) == GRT_OK;
}

static bool make_directory(const char *path)
{
    const bool ok = mkdir(path, 0777) == 0 || errno == EEXIST;
    if (!ok)
        tool_error("--output-dir: %s cannot be made: %s", path, strerror(errno));
    return ok;
}

static void print_inputs(const run_report *r)
{
    for (size_t i = 0; r->values && !r->results && i < grt_model_input_count(r->load.model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        grt_tensor t;
        char type[512], shape[256];
        if (grt_model_input(r->load.model, i, &info) != GRT_OK)
            continue;
        tool_print("input %s: %s", info.name, figure_io(&info, type, sizeof type));
        if (get_tensor_value(r->values[i], &t))
            tool_print(" <- %s", figure_shape(&t, shape, sizeof shape));
        tool_print(" %s", r->sources[i]);
        if (!strcmp(r->sources[i], "random"))
            tool_print(" (seed %lld)", (long long)r->request->seed);
        tool_print(has_unknown_dims(r, &info) ? "; unknown dims are 1 unless another input settles them\n"
                                              : "\n");
    }
}

/* With directories: where files come from; otherwise what all runs got. */
static json_t *inputs_json(const run_report *r)
{
    json_t *array = json_array();
    for (size_t i = 0; i < grt_model_input_count(r->load.model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        const char *source = r->values ? r->sources[i] : NULL;
        grt_tensor t;
        if (grt_model_input(r->load.model, i, &info) != GRT_OK)
            continue;
        for (size_t k = 0; !source && k < r->request->inputs.n; k++)
            if (!strcmp(r->request->inputs.items[k].name, info.name))
                source = r->request->inputs.items[k].source;
        json_t *object = json_object();
        json_object_set_new(object, "name", json_text(info.name));
        json_object_set_new(object, "dtype", json_string(grt_dtype_name(info.dtype)));
        json_object_set_new(object, "source",
                            json_text(source             ? source
                                      : info.has_default ? "default"
                                                         : "random"));
        json_object_set_new(object, "shape",
                            r->values && get_tensor_value(r->values[i], &t) ? json_shape(&t) : json_null());
        json_array_append_new(array, object);
    }
    return array;
}

bool run_report_begin(const run_report *r)
{
    print_inputs(r);
    return !r->request->output_dir || make_directory(r->request->output_dir);
}

/* Into the directory that was asked for, or into one of the run's own in it. */
static bool save_output(const run_report *r, size_t index, const char *name, const grt_value *value,
                        char **out_path)
{
    char directory[4096];
    const char *given = r->request->output_dir;
    *out_path = NULL;
    if (!given)
        return true;
    if (r->lists->n_files)
        snprintf(directory, sizeof directory, "%s/%06zu", given, input_lists_number(r->lists, index));
    else
        snprintf(directory, sizeof directory, "%s", given);
    return make_directory(directory) && outputs_save(directory, name, value, out_path);
}

static bool show_output(const run_report *r, const finished_run *run, size_t i, json_t *array)
{
    grt_io_info info = {.struct_size = sizeof info};
    const grt_value *value;
    char *path;
    if (grt_model_output(r->load.model, i, &info) != GRT_OK ||
        grt_request_get_output_value(run->request, i, &value) != GRT_OK) {
        tool_fail();
        return false;
    }
    const bool ok = save_output(r, run->index, info.name, value, &path);
    if (array) {
        json_t *object = outputs_json(info.name, value);
        if (path)
            json_object_set_new(object, "file", json_text(path));
        json_array_append_new(array, object);
    } else {
        outputs_print(info.name, value);
        if (path)
            tool_print("  saved as %s\n", path);
    }
    free(path);
    return ok;
}

static json_t *run_json(const run_report *r, const finished_run *run, const char *file, const char *device)
{
    json_t *object = json_object();
    json_object_set_new(object, "index", json_integer((json_int_t)input_lists_number(r->lists, run->index)));
    json_object_set_new(object, "input", file ? json_text(file) : json_null());
    json_object_set_new(object, "device", device ? json_text(device) : json_null());
    json_object_set_new(object, "ms", run->error ? json_null() : json_real(run->ms));
    json_object_set_new(object, "error", run->error ? json_text(run->error) : json_null());
    json_object_set_new(object, "outputs", json_array());
    json_array_append_new(r->results, object);
    return object;
}

/* The library's message has its lines if there is only one run, which needs no name. */
static void print_failure(const run_report *r, const finished_run *run, const char *file, const char *device)
{
    const bool only = !r->lists->n_files && r->request->repeat == 1;
    if (only && run->request && grt_request_wait(run->request) != GRT_OK)
        tool_fail();
    else
        tool_error("run %zu%s%s%s%s%s failed: %s", input_lists_number(r->lists, run->index), file ? " (" : "",
                   file ? file : "", file ? ")" : "", device ? " on " : "", device ? device : "", run->error);
}

bool run_report_show(void *report, const finished_run *run)
{
    const run_report *r = report;
    const char *file = input_lists_file(r->lists, run->index);
    const char *device = run->request ? r->request->devices.names[run->device] : NULL;
    if (!r->lists->n_files && run->index > 0 && !run->error)
        return true;
    progress_clear();
    json_t *object = r->results ? run_json(r, run, file, device) : NULL;
    if (!object && file && !run->error)
        tool_print("%s: on %s, %.3f ms\n", file, device, run->ms);
    if (run->error)
        print_failure(r, run, file, device);
    bool ok = true;
    for (size_t i = 0; !run->error && ok && i < grt_model_output_count(r->load.model); i++)
        ok = show_output(r, run, i, json_object_get(object, "outputs"));
    return ok;
}

/* Of one device (-1: all); runs that failed do not count. */
static latencies latencies_on(const runs *all, int32_t device, double *room, double *out_first)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        if (!all->results[i].failed && (device < 0 || all->results[i].device == device))
            room[n++] = all->results[i].ms;
    *out_first = n ? room[0] : 0;
    return latencies_of(room, n);
}

static double runs_per_second(const runs *all)
{
    return all->total_ms > 0 ? 1e3 * (double)(all->n - all->failed) / all->total_ms : 0;
}

static void print_summary(const run_report *r, const runs *all, double *room)
{
    char text[LATENCIES_TEXT_SIZE];
    double first;
    (void)latencies_on(all, -1, room, &first);
    if (r->request->explain) {
        explain_text(&r->load);
        tool_print("  first run %32.3f ms\n", first);
    }
    if (all->n == 1 && r->load.n == 1 && !all->failed) {
        tool_print("load %.1f ms, run %.3f ms\n", r->load.total_ms, first);
        return;
    }
    tool_print("load %.1f ms; %zu runs on %zu devices in %.1f ms, %.1f a second, %zu failed\n",
               r->load.total_ms, all->n, r->load.n, all->total_ms, runs_per_second(all), all->failed);
    for (size_t d = 0; d < r->load.n; d++) {
        const latencies found = latencies_on(all, (int32_t)d, room, &first);
        tool_print("  %-10s %6zu runs: %s", r->request->devices.names[d], found.n,
                   latencies_text(&found, text));
        if (found.n)
            tool_print(", the first %.3f ms", first);
        tool_print("\n");
    }
}

/* Latencies of one device or of all, into its object. */
static void set_latencies(json_t *object, const runs *all, int32_t device, double *room)
{
    double first;
    const latencies found = latencies_on(all, device, room, &first);
    json_object_set_new(object, "runs", json_integer((json_int_t)(device < 0 ? all->n : found.n)));
    if (device < 0)
        json_object_set_new(object, "failed", json_integer((json_int_t)all->failed));
    json_object_set_new(object, "first_run_ms", found.n ? json_real(first) : json_null());
    json_object_set_new(object, "latency_ms", latencies_json(&found));
}

static bool print_run_json(run_report *r, const runs *all, double *room)
{
    json_t *object = json_object(), *devices = json_array();
    json_object_set_new(object, "model", json_text(r->request->model));
    json_object_set_new(object, "threads", json_integer(grt_session_threads(r->load.sessions[0])));
    json_object_set_new(object, "inputs", inputs_json(r));
    json_object_set_new(object, "results", r->results);
    r->results = NULL;
    set_latencies(object, all, -1, room);
    json_object_set_new(object, "run_ms", json_real(all->total_ms));
    json_object_set_new(object, "throughput_per_s", json_real(runs_per_second(all)));
    for (size_t d = 0; d < r->load.n; d++) {
        json_t *device = json_object();
        json_object_set_new(device, "device", json_text(r->request->devices.names[d]));
        set_latencies(device, all, (int32_t)d, room);
        json_array_append_new(devices, device);
    }
    json_object_set_new(object, "devices", devices);
    json_object_set_new(object, "load_ms", json_phases(r->load.model, r->load.sessions[0], r->load.total_ms));
    if (r->request->explain)
        json_object_set_new(object, "load", explain_json(&r->load));
    return json_print(object);
}

bool run_report_end(run_report *r, const runs *all)
{
    double *room = malloc(all->n * sizeof *room);
    bool ok = room != NULL;
    if (!ok)
        tool_error("out of memory");
    else if (r->results)
        ok = print_run_json(r, all, room);
    else if (!all->failed || all->n > 1 || r->lists->n_files)
        print_summary(r, all, room);
    free(room);
    return ok;
}
