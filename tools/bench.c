/* SPDX-License-Identifier: Apache-2.0 */
/* graphrun bench: latency, throughput, load phases and memory of models, each in a fresh process, and of all
 * of them in one pool. */
#include "tools/bench_html.h"
#include "tools/bench_report.h"
#include "tools/bench_samples.h"
#include "tools/bench_together.h"
#include "tools/commands.h"
#include "tools/inputs.h"
#include "tools/latencies.h"
#include "tools/load.h"
#include "tools/loaded.h"
#include "tools/piped.h"
#include "tools/profile.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/throughput.h"
#include "tools/trust.h"
#include "tools/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct bench {
    const char *device, *fallback, *trust_option;
    char *trust;
    const char **models;
    size_t n;
    input_specs inputs;
    int64_t threads, warmup, repeat, seed, profile, contexts;
    double seconds, rate, deadline;
    const char *concurrency, *page;
    bool json, pinned, process, together;
    json_t *reports, *mix; /* mix: of all models at once; NULL: none */
    bool failed;
} bench;

enum { MAX_RUNS = 1000000, HOST_RUNS = 20, DEVICE_RUNS = 50 };

static bool take_bench_input(void *request, const char *value)
{
    return inputs_add_source(&((bench *)request)->inputs, value);
}

static bool take_bench_shape(void *request, const char *value)
{
    return inputs_add_shape(&((bench *)request)->inputs, value);
}

static bool take_bench_model(void *request, const char *value)
{
    bench *b = request;
    b->models[b->n] = value;
    return piped_take(&b->models[b->n++]);
}

const tool_option bench_options[] = {
    OPTION_TEXT(bench, device, "--device", "DEVICE",
                "KIND or KIND:NUMBER, as graphc devices lists them (default: cpu)"),
    OPTION_TEXT(bench, fallback, "--fallback", "cpu",
                "run ops that the device has no kernel for on the CPU; otherwise they are an error"),
    OPTION_INT(bench, threads, 0, 1024, "--threads", "N",
               "CPU threads of one operator (default: one per physical core, at most the CPU quota)"),
    OPTION_INT(bench, warmup, 0, 1000000, "--warmup", "N",
               "runs before measuring, the first of them is first_run_ms (default: 5)"),
    OPTION_INT(bench, repeat, 1, MAX_RUNS, "--repeat", "N",
               "measured runs (default: as many as fit in --seconds, at least 10)"),
    OPTION_NUMBER(bench, seconds, 0, "--seconds", "S", "time to measure for (default: 3)"),
    OPTION_TAKE(take_bench_input, "--input", "NAME=SOURCE", "as in graphrun MODEL; for all models given"),
    OPTION_TAKE(take_bench_shape, "--shape", "NAME=2x3x224", "as in graphrun MODEL; for all models given"),
    OPTION_INT(bench, seed, INT64_MIN, INT64_MAX, "--seed", "N", "of random inputs (default: 0)"),
    OPTION_INT(bench, profile, 1, 100000, "--profile", "N",
               "report the N steps that take longest, and the time of each kind of op"),
    OPTION_INT(bench, contexts, 1, 64, "--contexts", "N",
               "also the throughput of a pool with N contexts, whose copies and runs overlap"),
    OPTION_TEXT(bench, concurrency, "--concurrency", "N,...",
                "also latencies with N clients, each of which asks again once it is answered; one after the\n"
                "other, in a pool with as many contexts, or --contexts"),
    OPTION_NUMBER(
        bench, rate, 0, "--rate", "R",
        "also latencies at R requests a second that do not wait for each other, from when each was\n"
        "due"),
    OPTION_NUMBER(
        bench, deadline, 0, "--deadline", "MS",
        "with --concurrency or --rate: the share of requests that are answered in this time, and by\n"
        "how much the others miss it"),
    OPTION_FLAG(bench, process, "--process",
                "with --concurrency or --rate: the session that is asked is in a process of its own"),
    OPTION_FLAG(
        bench, together, "--together",
        "with --concurrency or --rate: then all models at once, in one pool, with so many clients or\n"
        "requests a second of each"),
    OPTION_FLAG(bench, pinned, "--pinned", "the pool's inputs and outputs lie in page-locked memory"),
    OPTION_TEXT(bench, trust_option, "--trust", "all|none|KEY", TRUST_HELP),
    OPTION_CUSTOM_OPS,
    OPTION_FILE(
        bench, page, "--report", "FILE.html",
        "also a page with pictures: latencies, throughput over clients, what threads do, memory; with\n"
        "--json, what they show"),
    OPTION_FLAG(bench, json, "--json",
                "report as a JSON array, one object per model; with --together, an object that has it"),
    OPTION_TABLE_END,
};

/* Of all threads of this process. */
static double processor_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Runs until `repeat` or the time is over; returns their number, 0 on failure. *out_processor_ms: of the run
 * that took least, which other work on the machine disturbs least. */
static size_t measure_latencies(const bench *b, grt_context *context, double **out_ms,
                                double *out_processor_ms)
{
    size_t n = 0, capacity = 0;
    double begin = now_ms(), end = begin + b->seconds * 1e3, now = begin;
    while (b->repeat ? n < (size_t)b->repeat : n < 10 || (now < end && n < MAX_RUNS)) {
        if (n == capacity) {
            capacity = capacity ? capacity * 2 : 1024;
            double *grown = realloc(*out_ms, capacity * sizeof *grown);
            if (!grown)
                return 0;
            *out_ms = grown;
        }
        const double start = now_ms(), used_before = processor_ms();
        if (grt_context_run(context) != GRT_OK)
            return 0;
        const double used = processor_ms() - used_before;
        now = now_ms();
        *out_processor_ms = n && *out_processor_ms < used ? *out_processor_ms : used;
        (*out_ms)[n++] = now - start;
        progress_show(b->repeat ? (double)n / (double)b->repeat : (now - begin) / (end - begin), "measuring");
    }
    progress_clear();
    return n;
}

/* Median host time outside kernels, of runs of their own: timing costs a little. */
static double host_time(grt_context *context)
{
    double samples[HOST_RUNS];
    size_t n = 0;
    grt_context_set_timing(context, true);
    while (n < HOST_RUNS && grt_context_run(context) == GRT_OK) {
        grt_context_stats stats = {.struct_size = sizeof stats};
        if (grt_context_get_stats(context, &stats) != GRT_OK)
            break;
        samples[n++] = stats.host_us;
    }
    grt_context_set_timing(context, false);
    return latencies_of(samples, n).p50;
}

/* Median time on the device without copies in and out; 0 if it has no clock. */
static double device_time(grt_context *context)
{
    double samples[DEVICE_RUNS];
    size_t n = 0;
    if (!grt_context_time_device(context, true))
        return 0;
    while (n < DEVICE_RUNS && grt_context_run(context) == GRT_OK) {
        grt_context_stats stats = {.struct_size = sizeof stats};
        if (grt_context_get_stats(context, &stats) != GRT_OK)
            break;
        samples[n++] = stats.device_ms;
    }
    grt_context_time_device(context, false);
    return latencies_of(samples, n).p50;
}

static json_t *bench_report(const bench *b, const char *model, const loaded *l, double first_ms,
                            double used_ms, double *ms, size_t n)
{
    json_t *r = json_object();
    const latencies p = latencies_of(ms, n);
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    long peak = usage.ru_maxrss; /* before the runs with timing */
    json_object_set_new(r, "model", json_text(model));
    json_object_set_new(r, "device", json_text(b->device ? b->device : "cpu"));
    json_object_set_new(r, "threads", json_integer(grt_session_threads(l->session)));
    json_object_set_new(r, "warmup", json_integer(b->warmup));
    json_object_set_new(r, "runs", json_integer((json_int_t)n));
    json_object_set_new(r, "latency_ms", latencies_json(&p));
    json_object_set_new(r, "processor_ms", json_real(used_ms));
    json_object_set_new(r, "throughput_per_s", json_real(p.mean > 0 ? 1e3 / p.mean : 0));
    json_object_set_new(r, "load_ms", json_phases(l->model, l->session, l->total_ms));
    json_object_set_new(r, "first_run_ms", json_real(first_ms));
    json_object_set_new(r, "device_ms", json_real(device_time(l->context)));
    json_object_set_new(r, "host_us", json_real(host_time(l->context)));
    if (b->profile)
        json_object_set_new(r, "profile", profile_measure(l->context, l->model, b->profile));
    json_object_set_new(r, "peak_rss_bytes", json_integer((json_int_t)peak * 1024));
    return r;
}

static int contexts_of_timeline(const bench *b)
{
    enum { CONTEXTS = 2 };
    return b->contexts ? (int)b->contexts : CONTEXTS;
}

/* What the pictures of --report show. `ms` is sorted. False if it failed. */
static bool add_pictures(const bench *b, const loaded *l, grt_value *const *values, const double *ms,
                         size_t n, json_t *report)
{
    const load_model model = {.model = l->model, .session = l->session, .values = values};
    if (!b->page)
        return true;
    json_t *timeline = samples_timeline(&model, 1, contexts_of_timeline(b));
    if (!timeline)
        return tool_fail() == EXIT_GOOD;
    json_object_set_new(report, "timeline", timeline);
    json_object_set_new(report, "distribution", samples_distribution(ms, n));
    json_object_set_new(report, "memory", samples_take_memory());
    return true;
}

/* --contexts is about the pool of the clients then. */
static bool is_loaded(const bench *b)
{
    return b->concurrency || b->rate > 0;
}

static load_options load_of(const bench *b)
{
    return (load_options){.concurrency = b->concurrency,
                          .rate = b->rate,
                          .contexts = (int32_t)b->contexts,
                          .seconds = b->seconds,
                          .deadline_ms = b->deadline,
                          .device = !b->process ? NULL
                                    : b->device ? b->device
                                                : "cpu",
                          .threads = (int32_t)b->threads,
                          .fallback = b->fallback};
}

/* False if it failed. */
static bool add_load(const bench *b, const loaded *l, grt_value *const *values, json_t *report)
{
    const load_options options = load_of(b);
    const load_model model = {.model = l->model, .session = l->session, .values = values};
    return !is_loaded(b) || json_object_set_new(report, "load", load_measure(&model, 1, &options)) == 0;
}

/* NULL if it was not asked for, or failed. */
static json_t *pool_report(const bench *b, const loaded *l, grt_value *const *values)
{
    const throughput_options options = {
        .contexts = (int32_t)b->contexts, .pinned = b->pinned, .seconds = b->seconds};
    double per_s;
    if (!b->contexts || is_loaded(b) ||
        !throughput_measure(l->model, l->session, l->context, values, &options, &per_s))
        return NULL;
    return json_pack("{s:I,s:b,s:f}", "contexts", (json_int_t)b->contexts, "pinned", (int)b->pinned,
                     "throughput_per_s", per_s);
}

static bool warm_up(const bench *b, grt_context *context, double *out_first_ms)
{
    for (int64_t i = 0; i < b->warmup || i == 0; i++) {
        double begin = now_ms();
        if (grt_context_run(context) != GRT_OK)
            return false;
        if (i == 0)
            *out_first_ms = now_ms() - begin;
    }
    return true;
}

static int bench_together(const bench *b, int fd)
{
    const together_options options = {.device = b->device,
                                      .fallback = b->fallback,
                                      .trust = b->trust,
                                      .threads = (int32_t)b->threads,
                                      .inputs = &b->inputs,
                                      .seed = (uint64_t)b->seed,
                                      .load = load_of(b),
                                      .has_pictures = b->page != NULL,
                                      .timeline_contexts = contexts_of_timeline(b)};
    json_t *report = together_measure(b->models, b->n, &options);
    const int code = report && json_dumpfd(report, fd, 0) == 0 ? EXIT_GOOD : EXIT_BAD;
    json_decref(report);
    return code;
}

/* In a process of its own: so that peak memory and load times are this model's. After the last, all of them.
 */
static int bench_one(void *user, size_t index, int fd)
{
    const bench *b = user;
    if (index == b->n)
        return bench_together(b, fd);
    const char *model = b->models[index];
    loaded l = {0};
    if (b->page && !samples_watch_memory())
        tool_error("memory cannot be watched: there is no thread for it");
    if (loaded_open(&l, model, b->device, b->fallback, (int32_t)b->threads, b->trust) != GRT_OK) {
        tool_fail();
        loaded_release(&l);
        return EXIT_BAD;
    }
    size_t n_inputs = grt_model_input_count(l.model), runs = 0;
    grt_value **values = calloc(n_inputs + 1, sizeof *values);
    const char **sources = calloc(n_inputs + 1, sizeof *sources);
    double *ms = NULL, first_ms = 0, used_ms = 0;
    int code = EXIT_BAD;
    if (values && sources &&
        inputs_bind(l.model, l.context, &b->inputs, (uint64_t)b->seed, values, sources)) {
        if (warm_up(b, l.context, &first_ms))
            runs = measure_latencies(b, l.context, &ms, &used_ms);
        if (!runs)
            tool_fail();
    }
    if (runs) {
        json_t *report = bench_report(b, model, &l, first_ms, used_ms, ms, runs),
               *pool = pool_report(b, &l, values);
        if (pool)
            json_object_set_new(report, "pool", pool);
        const bool ok = (pool || !b->contexts || is_loaded(b)) && add_load(b, &l, values, report) &&
                        add_pictures(b, &l, values, ms, runs, report);
        code = ok && json_dumpfd(report, fd, 0) == 0 ? EXIT_GOOD : EXIT_BAD;
        json_decref(report);
    }
    free(ms);
    free(sources);
    inputs_release_values(values, n_inputs);
    loaded_release(&l);
    return code;
}

static bool bench_done(void *user, size_t index, const worker_result *result)
{
    bench *b = user;
    json_t *report = result->code == 0 ? json_loads(result->text, 0, NULL) : NULL;
    if (!report) {
        b->failed = true;
        if (result->code < 0)
            tool_error("%s: %s", index < b->n ? b->models[index] : "together", result->text);
        return true;
    }
    if (index < b->n) {
        if (!b->json)
            bench_report_print(report);
        json_array_append_new(b->reports, report);
        return true;
    }
    together_compare(report, b->reports);
    if (!b->json)
        bench_report_print_together(report);
    b->mix = report;
    return true;
}

static bool is_pool_possible(const bench *b)
{
    const load_options load = {.concurrency = b->concurrency};
    if (!load_options_check(&load))
        return false;
    if (b->pinned && !b->contexts)
        tool_error("--pinned is about the pool's memory: it needs --contexts N");
    else if (b->deadline > 0 && !is_loaded(b))
        tool_error("--deadline is about requests: it needs --concurrency or --rate");
    else if (b->process && !is_loaded(b))
        tool_error("--process is about requests: it needs --concurrency or --rate");
    else if (b->together && !is_loaded(b))
        tool_error("--together is about requests: it needs --concurrency or --rate");
    else if (b->together && b->n < 2)
        tool_error("--together is about several models: there is one");
    else
        return true;
    return false;
}

static bool show_reports(const bench *b)
{
    bool ok = true;
    if (b->json && b->together && b->mix)
        ok = json_print(json_pack("{s:O,s:O}", "models", b->reports, "together", b->mix));
    else if (b->json && !b->together && json_array_size(b->reports))
        ok = json_print(json_incref(b->reports));
    if (ok && b->page && json_array_size(b->reports))
        ok = bench_html(b->page, b->reports, b->mix);
    return ok;
}

int bench_command(const tool_command *command, int argc, char **argv)
{
    bench b = {.warmup = 5,
               .seconds = 3,
               .models = calloc((size_t)argc + 1, sizeof(char *)),
               .reports = json_array()};
    int code = EXIT_BAD;
    if (b.models && b.reports && options_parse(command, argc, argv, &b, take_bench_model, &code) &&
        option_given(command, b.n ? b.models[0] : NULL) && trust_read(b.trust_option, &b.trust) &&
        is_pool_possible(&b)) {
        enum { A_DAY = 86400 };
        const bool ok = workers_run(b.n + b.together, &(worker_options){.jobs = 1, .limit_s = A_DAY},
                                    bench_one, bench_done, &b) &&
                        show_reports(&b);
        code = ok && !b.failed ? EXIT_GOOD : EXIT_BAD;
    }
    json_decref(b.reports);
    json_decref(b.mix);
    inputs_release(&b.inputs);
    free(b.trust);
    free(b.models);
    return code;
}
