/* SPDX-License-Identifier: Apache-2.0 */
/* graphrun MODEL: run it, show what comes out and how long it took. */
#include "tools/commands.h"
#include "tools/explain.h"
#include "tools/latencies.h"
#include "tools/loaded.h"
#include "tools/outputs.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/run.h"
#include "tools/trust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool take_input(void *request, const char *value)
{
    return inputs_add_source(&((run_request *)request)->inputs, value);
}

static bool take_shape(void *request, const char *value)
{
    return inputs_add_shape(&((run_request *)request)->inputs, value);
}

static bool take_device(void *request, const char *value)
{
    run_request *r = request;
    devices_release(&r->devices);
    return devices_parse(value, &r->devices);
}

static bool take_explain(void *request, const char *value)
{
    run_request *r = request;
    r->explain = true;
    r->timeline = value ? value : r->timeline;
    return !value || option_is_file("--explain-load", value);
}

static bool take_model(void *request, const char *value)
{
    return option_only(&((run_request *)request)->model, value);
}

const tool_option run_options[] = {
    OPTION_TAKE(take_input, "--input", "NAME=SOURCE",
                "what input NAME gets: FILE.npy, FILE.pb (ONNX), random or zeros\n"
                "(default: its default in the model, else random).\n"
                "A directory: the model runs once with each file in it, in the order of their names"),
    OPTION_TAKE(take_shape, "--shape", "NAME=2x3x224",
                "shape of a random or zeros input; unknown dims are 1 otherwise"),
    OPTION_INT(run_request, seed, INT64_MIN, INT64_MAX, "--seed", "N", "of random inputs (default: 0)"),
    OPTION_TEXT(run_request, output_dir, "--output-dir", "DIR",
                "save outputs as DIR/NAME.npy, or .pb where NumPy has no such type"),
    OPTION_TAKE(take_device, "--device", "DEVICE",
                "cpu, null, cuda:0, ... (default: cpu); several: cuda:all, cuda:0,2, null:0-7.\n"
                "Inputs or repetitions are then split over them"),
    OPTION_TEXT(run_request, fallback, "--fallback", "cpu",
                "run ops that the device has no kernel for on the CPU; otherwise they are an error"),
    OPTION_INT(run_request, threads, 0, 1024, "--threads", "N",
               "CPU threads of one operator (default: one per physical core, at most the CPU quota)"),
    OPTION_INT(run_request, contexts, 1, 64, "--contexts", "N",
               "runs at a time on each device: copies and reading of inputs overlap computing (default: 1)"),
    OPTION_INT(run_request, repeat, 1, 100000000, "--repeat", "N",
               "run N times and report latencies (default: 1)"),
    OPTION_TEXT(run_request, trust_option, "--trust", "all|none|KEY", TRUST_HELP),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(run_request, json, "--json", "report as JSON on standard output"),
    OPTION_TAKE(take_explain, "--explain-load", "[=FILE.html]",
                "what loading did and when, for each device; also as a picture in FILE.html"),
    OPTION_TABLE_END,
};

typedef struct run_result {
    grt_value **values; /* inputs */
    const char **sources;
    double *ms; /* per run */
} run_result;

static load_report report_of(const run_request *r, loaded *l)
{
    return (load_report){.title = r->model,
                         .model = l->model,
                         .sessions = &l->session,
                         .contexts = &l->context,
                         .n = 1,
                         .sessions_at_ms = l->sessions_at_ms,
                         .total_ms = l->total_ms};
}

static bool run_all(const run_request *r, loaded *l, double *ms)
{
    for (int64_t i = 0; i < r->repeat; i++) {
        double begin = now_ms();
        if (grt_context_run(l->context) != GRT_OK) {
            progress_clear();
            tool_fail();
            return false;
        }
        ms[i] = now_ms() - begin;
        progress_show((double)(i + 1) / (double)r->repeat, "running");
    }
    progress_clear();
    return true;
}

static void print_inputs(const run_request *r, const loaded *l, const run_result *result)
{
    for (size_t i = 0; i < grt_model_input_count(l->model); i++) {
        grt_io_info info;
        grt_tensor t;
        char type[512], shape[256];
        if (grt_model_input(l->model, i, &info) != GRT_OK)
            continue;
        tool_print("input %s: %s", info.name, figure_io(&info, type, sizeof type));
        if (result->values[i] && grt_value_kind(result->values[i]) == GRT_KIND_TENSOR &&
            grt_value_tensor(result->values[i], &t) == GRT_OK)
            tool_print(" <- %s", figure_shape(&t, shape, sizeof shape));
        tool_print(" %s", result->sources[i]);
        if (!strcmp(result->sources[i], "random"))
            tool_print(" (seed %lld)", (long long)r->seed);
        bool unknown = false;
        for (int32_t k = 0; k < info.rank; k++)
            unknown = unknown || info.dims[k] < 0;
        bool shaped = false;
        for (size_t k = 0; k < r->inputs.n; k++)
            shaped = shaped || !strcmp(r->inputs.items[k].name, info.name);
        tool_print(unknown && !shaped ? "; unknown dims are 1 unless another input settles them\n" : "\n");
    }
}

/* Every output as a value: printed or added to `array`, saved if asked to. */
static bool show_outputs(const run_request *r, const loaded *l, json_t *array)
{
    for (size_t i = 0; i < grt_model_output_count(l->model); i++) {
        grt_io_info info;
        grt_value *value;
        char *path = NULL;
        if (grt_model_output(l->model, i, &info) != GRT_OK ||
            grt_context_get_output_value(l->context, i, &value) != GRT_OK) {
            tool_fail();
            return false;
        }
        bool ok = !r->output_dir || outputs_save(r->output_dir, info.name, value, &path);
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
        grt_value_release(value);
        if (!ok)
            return false;
    }
    return true;
}

static json_t *inputs_json(const loaded *l, const run_result *result)
{
    json_t *array = json_array();
    for (size_t i = 0; i < grt_model_input_count(l->model); i++) {
        grt_io_info info;
        grt_tensor t;
        if (grt_model_input(l->model, i, &info) != GRT_OK)
            continue;
        json_t *object = json_object();
        json_object_set_new(object, "name", json_text(info.name));
        json_object_set_new(object, "dtype", json_string(grt_dtype_name(info.dtype)));
        json_object_set_new(object, "source", json_text(result->sources[i]));
        if (result->values[i] && grt_value_kind(result->values[i]) == GRT_KIND_TENSOR &&
            grt_value_tensor(result->values[i], &t) == GRT_OK)
            json_object_set_new(object, "shape", json_shape(&t));
        json_array_append_new(array, object);
    }
    return array;
}

static bool report_json(const run_request *r, loaded *l, const run_result *result)
{
    json_t *object = json_object(), *outputs = json_array();
    double first = result->ms[0];
    json_object_set_new(object, "model", json_text(r->model));
    json_object_set_new(object, "device", json_text(r->devices.names[0]));
    json_object_set_new(object, "threads", json_integer(grt_session_threads(l->session)));
    json_object_set_new(object, "inputs", inputs_json(l, result));
    json_object_set_new(object, "outputs", outputs);
    bool ok = show_outputs(r, l, outputs);
    json_object_set_new(object, "load_ms", json_phases(l->model, l->session, l->total_ms));
    if (r->explain) {
        const load_report report = report_of(r, l);
        json_object_set_new(object, "load", explain_json(&report));
    }
    json_object_set_new(object, "first_run_ms", json_real(first));
    json_object_set_new(object, "runs", json_integer(r->repeat));
    const latencies all = latencies_of(result->ms, (size_t)r->repeat);
    json_object_set_new(object, "latency_ms", latencies_json(&all));
    return json_print(object) && ok;
}

static bool report_text(const run_request *r, loaded *l, const run_result *result)
{
    double first = result->ms[0];
    print_inputs(r, l, result);
    if (!show_outputs(r, l, NULL))
        return false;
    if (r->explain) {
        const load_report report = report_of(r, l);
        explain_text(&report);
        tool_print("  first run %32.3f ms\n", first);
    }
    if (r->repeat == 1) {
        tool_print("load %.1f ms, run %.3f ms\n", l->total_ms, first);
        return true;
    }
    const latencies all = latencies_of(result->ms, (size_t)r->repeat);
    char text[LATENCIES_TEXT_SIZE];
    tool_print("load %.1f ms, first run %.3f ms; all %lld runs: %s\n", l->total_ms, first,
               (long long)r->repeat, latencies_text(&all, text));
    return true;
}

static int run_request_now(run_request *r, loaded *l, run_result *result)
{
    if (loaded_open(l, r->model, r->devices.names[0], r->fallback, (int32_t)r->threads, r->trust) != GRT_OK)
        return tool_fail();
    if (r->output_dir && mkdir(r->output_dir, 0777) != 0 && errno != EEXIST) {
        tool_error("%s: %s", r->output_dir, strerror(errno));
        return EXIT_BAD;
    }
    size_t n = grt_model_input_count(l->model);
    result->values = calloc(n + 1, sizeof *result->values);
    result->sources = calloc(n + 1, sizeof *result->sources);
    result->ms = calloc((size_t)r->repeat, sizeof *result->ms);
    if (!result->values || !result->sources || !result->ms) {
        tool_error("out of memory");
        return EXIT_BAD;
    }
    if (!inputs_bind(l->model, l->context, &r->inputs, (uint64_t)r->seed, result->values, result->sources) ||
        !run_all(r, l, result->ms))
        return EXIT_BAD;
    const load_report report = report_of(r, l);
    if (r->timeline && !explain_html(&report, r->timeline))
        return EXIT_BAD;
    return (r->json ? report_json(r, l, result) : report_text(r, l, result)) ? EXIT_GOOD : EXIT_BAD;
}

int run_command(const tool_command *command, int argc, char **argv)
{
    run_request request = {.repeat = 1, .contexts = 1};
    loaded l = {0};
    run_result result = {0};
    int code = EXIT_BAD;
    if (options_parse(command, argc, argv, &request, take_model, &code) &&
        option_given(command, request.model) && (request.devices.n || take_device(&request, NULL)) &&
        trust_read(request.trust_option, &request.trust)) {
        code = request.devices.n > 1 || request.contexts > 1 || run_has_lists(&request)
                   ? run_many(&request)
                   : run_request_now(&request, &l, &result);
        inputs_release_values(result.values, l.model ? grt_model_input_count(l.model) : 0);
        free(result.sources);
        free(result.ms);
        loaded_release(&l);
    }
    inputs_release(&request.inputs);
    free(request.trust);
    devices_release(&request.devices);
    return code;
}
