/* SPDX-License-Identifier: Apache-2.0 */
/* graphrun MODEL: run it on one device or on many, show what comes out and how long it took. */
#include "tools/commands.h"
#include "tools/destination.h"
#include "tools/interrupt.h"
#include "tools/loaded.h"
#include "tools/manifest.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/run_report.h"
#include "tools/spans.h"
#include "tools/trace.h"
#include "tools/trust.h"
#include "tools/visible.h"

#include <stdlib.h>
#include <string.h>

static bool take_run_input(void *request, const char *value)
{
    return inputs_add_source(&((run_request *)request)->inputs, value);
}

static bool take_run_shape(void *request, const char *value)
{
    return inputs_add_shape(&((run_request *)request)->inputs, value);
}

static bool run_take_device(void *request, const char *value)
{
    run_request *r = request;
    devices_release(&r->devices);
    visible_limit(value);
    r->all_devices = value && strstr(value, ":all");
    return devices_parse(value, &r->devices);
}

static bool take_shard(void *request, const char *value)
{
    return shard_parse(value, &((run_request *)request)->shard);
}

static bool take_explain(void *request, const char *value)
{
    run_request *r = request;
    r->explain = true;
    r->timeline = value ? value : r->timeline;
    return !value || option_is_file("--explain-load", value);
}

static bool take_output_dir(void *request, const char *value)
{
    ((run_request *)request)->output_dir = value;
    return destination_directory("--output-dir", value);
}

static bool take_run_model(void *request, const char *value)
{
    return option_only(&((run_request *)request)->model, value);
}

const tool_option run_options[] = {
    OPTION_TAKE(take_run_input, "--input", "NAME=SOURCE",
                "what input NAME gets: FILE.npy, FILE.pb (ONNX), random or zeros\n"
                "(default: its default in the model, else random).\n"
                "A directory: the model runs once with each file in it, in the order of their names;\n"
                "@FILE: with each file that a line of FILE names"),
    OPTION_TAKE(take_run_shape, "--shape", "NAME=2x3x224",
                "shape of a random or zeros input; unknown dims are 1 otherwise"),
    OPTION_INT(run_request, seed, INT64_MIN, INT64_MAX, "--seed", "N", "of random inputs (default: 0)"),
    OPTION_TAKE(take_output_dir, "--output-dir", "DIR",
                "save outputs as DIR/NAME.npy, or .pb where NumPy has no such type"),
    OPTION_TAKE(run_take_device, "--device", "DEVICE",
                "KIND or KIND:NUMBER, as graphc devices lists them (default: cpu); several: KIND:all,\n"
                "KIND:0,2-3.\n"
                "Inputs or repetitions are then split over them"),
    OPTION_TEXT(run_request, fallback, "--fallback", "cpu",
                "run ops that the device has no kernel for on the CPU; otherwise they are an error"),
    OPTION_INT(run_request, threads, 0, 1024, "--threads", "N",
               "CPU threads of one operator (default: one per physical core, at most the CPU quota)"),
    OPTION_INT(run_request, memory_limit, 1, INT64_MAX, "--memory-limit", "BYTES",
               "memory that the model may have on each device: weights, activations, workspaces; what goes\n"
               "beyond is an error. graphc inspect says what it needs"),
    OPTION_INT(run_request, multiprocessors, 1, INT64_MAX, "--multiprocessors", "N",
               "compute on so many of each GPU's multiprocessors only (default: all)"),
    OPTION_TEXT(run_request, compile, "--compile", "WHEN",
                "when kernels are generated that neither the plan nor the cache has: background, while runs\n"
                "interpret them; first, before anything runs; never (default: GRAPHRT_COMPILE, else\n"
                "background)"),
    OPTION_INT(run_request, contexts, 1, 64, "--contexts", "N",
               "runs at a time on each device: copies and reading of inputs overlap computing (default: 1)"),
    OPTION_INT(run_request, repeat, 1, 100000000, "--repeat", "N",
               "run N times and report latencies (default: 1)"),
    OPTION_TAKE(take_shard, "--shard", "auto|I/N",
                "work on every Nth of the inputs, from number I, and go on where an earlier job ended;\n"
                "auto: as MPI or Slurm has started this process. Needs a directory of inputs and\n"
                "--output-dir, which gets manifests"),
    OPTION_TEXT(run_request, trust_option, "--trust", "all|none|KEY", TRUST_HELP),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(run_request, json, "--json", "report as JSON on standard output"),
    OPTION_TAKE(take_explain, "--explain-load", "[=FILE.html]",
                "what loading did and when, for each device; also as a picture in FILE.html"),
    OPTION_FILE(run_request, trace, "--trace", "FILE.json",
                "write what loading, runs, requests and their steps did and when, for ui.perfetto.dev or\n"
                "chrome://tracing; devices that have a clock run once more afterwards, step by step"),
    OPTION_TABLE_END,
};

enum { AHEAD = 4 }; /* runs that are prepared or wait to be shown, for each context */

static size_t most_in_flight(const run_request *r)
{
    return AHEAD * r->devices.n * (size_t)r->contexts;
}

typedef struct run_state {
    const run_request *request;
    grt_runtime *runtime;
    grt_model *model;
    grt_session **sessions;
    grt_pool *pool;
    run_report *report;
    input_lists lists;
    manifest done;      /* of a sharded job */
    grt_value **values; /* of all runs; NULL: each reads its own */
    const char **sources;
    double origin_ms, sessions_at_ms, load_ms;
} run_state;

static bool show_load(void *user, const grt_load_progress *progress)
{
    (void)user;
    progress_show(progress->fraction, progress->phase);
    return !interrupt_asked(NULL);
}

static grt_status open_sessions(run_state *s)
{
    const run_request *r = s->request;
    const char *const *names = (const char *const *)r->devices.names;
    const double begin = s->origin_ms = now_ms();
    const grt_sessions_options options = {.struct_size = sizeof options,
                                          .threads = (int32_t)r->threads,
                                          .fallback = r->fallback,
                                          .memory_limit = (uint64_t)r->memory_limit,
                                          .multiprocessors = r->multiprocessors,
                                          .compile = r->compile,
                                          .progress = show_load};
    /* Room for all: who waits for it would not see an interrupt. */
    const grt_pool_options pool = {
        .struct_size = sizeof pool, .contexts = (int32_t)r->contexts, .queue = (int32_t)most_in_flight(r)};
    grt_status status = grt_runtime_create(&s->runtime);
    if (status == GRT_OK)
        status = loaded_model(s->runtime, r->model, names[0], r->trust, &s->model);
    s->sessions_at_ms = now_ms() - begin;
    if (status == GRT_OK)
        status = grt_sessions_create(s->model, names, r->devices.n, &options, s->sessions);
    if (status == GRT_OK)
        status = grt_pool_create(s->sessions, r->devices.n, &pool, &s->pool);
    s->load_ms = now_ms() - begin;
    progress_clear();
    return status;
}

static bool load_sessions(run_state *s)
{
    s->sessions = calloc(s->request->devices.n, sizeof *s->sessions);
    if (!s->sessions)
        tool_error("out of memory");
    return s->sessions && (open_sessions(s) == GRT_OK || tool_fail() == EXIT_GOOD);
}

/* Those of all runs, if no directory gives each its own. */
static bool create_inputs(run_state *s)
{
    const size_t n = grt_model_input_count(s->model);
    if (s->lists.n_files)
        return true;
    s->values = calloc(n + 1, sizeof *s->values);
    s->sources = calloc(n + 1, sizeof *s->sources);
    if (!s->values || !s->sources)
        tool_error("out of memory");
    return s->values && s->sources &&
           inputs_create(s->model, &s->request->inputs, (uint64_t)s->request->seed, s->values, s->sources);
}

/* What a sharded job has to show is noted when it is safe in its files. */
static bool show_and_note(void *user, const finished_run *run)
{
    run_state *s = user;
    const bool ok = run_report_show(s->report, run);
    return ok && (run->error || !s->request->shard.count ||
                  manifest_add(&s->done, input_lists_number(&s->lists, run->index),
                               input_lists_file(&s->lists, run->index), run->ms));
}

static bool run_and_report(run_state *s)
{
    const run_request *r = s->request;
    run_report report = {.request = r,
                         .lists = &s->lists,
                         .values = s->values,
                         .sources = s->sources,
                         .load = {.title = r->model,
                                  .model = s->model,
                                  .runtime = s->runtime,
                                  .sessions = s->sessions,
                                  .n = r->devices.n,
                                  .pool = s->pool,
                                  .origin_ms = s->origin_ms,
                                  .sessions_at_ms = s->sessions_at_ms,
                                  .total_ms = s->load_ms},
                         .results = r->json ? json_array() : NULL};
    runs all = {.model = s->model,
                .pool = s->pool,
                .lists = &s->lists,
                .values = s->values,
                .seed = (uint64_t)r->seed,
                .n = (s->lists.n_files ? s->lists.n_files : 1) * (size_t)r->repeat,
                .most_in_flight = most_in_flight(r),
                .show = show_and_note,
                .user = s};
    s->report = &report;
    const bool has_place = run_report_begin(&report);
    if (r->trace)
        spans_start();
    const bool ok = has_place && (!r->timeline || explain_html(&report.load, r->timeline)) &&
                    runs_all(&all) && run_report_end(&report, &all) && !all.failed &&
                    (!r->trace || trace_write(r->trace, &report.load, s->values));
    if (r->trace) {
        spans_stop();
        spans_release();
    }
    json_decref(report.results);
    runs_release(&all);
    return ok;
}

/* Leaves what this process has to do. */
static bool take_part(run_state *s)
{
    const shard *part = &s->request->shard;
    if (!s->lists.n_files || !s->request->output_dir || s->request->repeat > 1 || s->request->json) {
        tool_error("--shard needs a directory or list of inputs and --output-dir, and goes with neither "
                   "--repeat nor --json");
        return false;
    }
    if (!manifest_open(&s->done, s->request->output_dir, s->request->model, part, &s->lists) ||
        !input_lists_keep(&s->lists, part->index, part->count, s->done.done))
        return false;
    tool_print("shard %zu of %zu (%s): %zu inputs to run; of all %zu, %zu were done before\n", part->index,
               part->count, part->launcher, s->lists.n_files, s->done.n, s->done.n_done);
    return true;
}

static bool is_trace_possible(const run_state *s)
{
    const bool ok = !s->request->trace || !s->lists.n_files;
    if (!ok)
        tool_error("--trace is of one set of inputs: it goes with no directory or list of them");
    return ok;
}

static int run_model(const run_request *request)
{
    run_state s = {.request = request, .done = {.job = -1, .lines = -1}};
    interrupt_watch();
    bool ok = input_lists_open(&s.lists, &request->inputs) && (!request->shard.count || take_part(&s));
    if (ok && !(request->shard.count && !s.lists.n_files))
        ok = is_trace_possible(&s) && load_sessions(&s) && create_inputs(&s) && run_and_report(&s);
    inputs_release_values(s.values, s.model ? grt_model_input_count(s.model) : 0);
    free(s.sources);
    grt_pool_release(s.pool);
    for (size_t i = 0; s.sessions && i < request->devices.n; i++)
        grt_session_release(s.sessions[i]);
    free(s.sessions);
    grt_model_release(s.model);
    grt_runtime_release(s.runtime);
    input_lists_release(&s.lists);
    manifest_close(&s.done);
    interrupt_end();
    return ok ? EXIT_GOOD : EXIT_BAD;
}

int run_command(const tool_command *command, int argc, char **argv)
{
    run_request request = {.repeat = 1, .contexts = 1};
    int code = EXIT_BAD;
    if (options_parse(command, argc, argv, &request, take_run_model, &code) &&
        option_given(command, request.model) && (request.devices.n || run_take_device(&request, NULL)) &&
        trust_read(request.trust_option, &request.trust)) {
        if (request.shard.count && request.all_devices)
            shard_devices(&request.shard, &request.devices);
        code = run_model(&request);
    }
    inputs_release(&request.inputs);
    free(request.trust);
    devices_release(&request.devices);
    return code;
}
