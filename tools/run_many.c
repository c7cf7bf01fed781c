/* SPDX-License-Identifier: Apache-2.0 */
/* graphrun on several devices, with several contexts, or with several inputs: a thread for each context of
 * each device, which reads its inputs too, jobs handed out as they come, results shown in the order of the
 * jobs. One that fails is reported; the others go on. */
#include "tools/explain.h"
#include "tools/latencies.h"
#include "tools/loaded.h"
#include "tools/options.h"
#include "tools/outputs.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/run.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { AHEAD = 4 }; /* results that wait to be shown, for each thread */

typedef struct file_list {
    char **paths; /* NULL: the input's source is no directory */
    size_t n;
} file_list;

typedef struct job {
    bool done, failed;
    size_t device;
    double ms;
    char *error;
    grt_value **outputs;
} job;

typedef struct many {
    const run_request *r;
    grt_runtime *runtime;
    grt_model *model;
    grt_session **sessions;
    grt_context **contexts; /* of the threads, first one for each device; NULL where none could be made */
    size_t n_threads;
    file_list *lists; /* per input spec */
    size_t n_files;   /* 0: there are no lists */
    job *jobs;
    size_t n_jobs, n_outputs;
    size_t shown, next; /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double sessions_at_ms, load_ms, run_ms;
    json_t *array; /* NULL: text */
    size_t failures;
} many;

typedef struct worker {
    many *m;
    size_t index, device;
    pthread_t thread;
} worker;

/* ---- lists ---- */

static bool is_directory(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool run_has_lists(const run_request *r)
{
    for (size_t i = 0; i < r->inputs.n; i++)
        if (is_directory(r->inputs.items[i].source))
            return true;
    return false;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool list_files(const char *directory, file_list *out)
{
    struct dirent **entries = NULL;
    const int n = scandir(directory, &entries, is_visible, alphasort);
    bool ok = n > 0;
    if (!ok)
        tool_error("%s: %s", directory, n < 0 ? strerror(errno) : "has no files");
    out->paths = ok ? calloc((size_t)n, sizeof *out->paths) : NULL;
    for (int i = 0; i < n; i++) {
        const size_t size = strlen(directory) + strlen(entries[i]->d_name) + 2;
        char *path = out->paths ? malloc(size) : NULL;
        if (path) {
            snprintf(path, size, "%s/%s", directory, entries[i]->d_name);
            out->paths[out->n++] = path;
        }
        free(entries[i]);
    }
    free(entries);
    if (ok && out->n < (size_t)n) {
        tool_error("out of memory");
        ok = false;
    }
    return ok;
}

static bool list_inputs(many *m)
{
    const input_specs *specs = &m->r->inputs;
    m->lists = calloc(specs->n + 1, sizeof *m->lists);
    for (size_t i = 0; m->lists && i < specs->n; i++) {
        if (!is_directory(specs->items[i].source))
            continue;
        if (!list_files(specs->items[i].source, &m->lists[i]))
            return false;
        if (m->n_files && m->lists[i].n != m->n_files) {
            tool_error("%s has %zu files, another input's directory %zu", specs->items[i].source,
                       m->lists[i].n, m->n_files);
            return false;
        }
        m->n_files = m->lists[i].n;
    }
    m->n_jobs = (m->n_files ? m->n_files : 1) * (size_t)m->r->repeat;
    m->jobs = calloc(m->n_jobs, sizeof *m->jobs);
    if (!m->lists || !m->jobs)
        tool_error("out of memory");
    return m->lists && m->jobs;
}

/* The file that tells a job from others; NULL without lists. */
static const char *file_of(const many *m, size_t index)
{
    for (size_t i = 0; m->n_files && i < m->r->inputs.n; i++)
        if (m->lists[i].n)
            return m->lists[i].paths[index % m->n_files];
    return NULL;
}

/* ---- loading ---- */

static bool show_load(void *user, const grt_load_progress *progress)
{
    (void)user;
    progress_show(progress->fraction, progress->phase);
    return true;
}

static bool load(many *m)
{
    const run_request *r = m->r;
    const double begin = now_ms();
    const grt_sessions_options options = {.struct_size = sizeof options,
                                          .threads = (int32_t)r->threads,
                                          .fallback = r->fallback,
                                          .progress = show_load};
    m->sessions = calloc(r->devices.n, sizeof *m->sessions);
    m->n_threads = r->devices.n * (size_t)r->contexts;
    m->contexts = calloc(m->n_threads, sizeof *m->contexts);
    if (!m->sessions || !m->contexts) {
        tool_error("out of memory");
        return false;
    }
    grt_status status = grt_runtime_create(&m->runtime);
    if (status == GRT_OK)
        status = loaded_model(m->runtime, r->model, r->devices.names[0], r->trust, &m->model);
    m->sessions_at_ms = now_ms() - begin;
    if (status == GRT_OK)
        status = grt_sessions_create(m->model, (const char *const *)r->devices.names, r->devices.n, &options,
                                     m->sessions);
    m->load_ms = now_ms() - begin;
    progress_clear();
    if (status != GRT_OK)
        return tool_fail() == EXIT_GOOD;
    m->n_outputs = grt_model_output_count(m->model);
    return true;
}

/* ---- jobs, in threads ---- */

static char *last_error(void)
{
    return strdup(grt_last_error());
}

static bool bind(const many *m, grt_context *context, size_t index, grt_value **values, const char **sources)
{
    const input_specs *all = &m->r->inputs;
    input_specs mine = {.n = all->n, .items = calloc(all->n + 1, sizeof *mine.items)};
    for (size_t i = 0; mine.items && i < all->n; i++) {
        mine.items[i] = all->items[i];
        if (m->n_files && m->lists[i].n)
            mine.items[i].source = m->lists[i].paths[index % m->n_files];
    }
    const bool ok =
        mine.items && inputs_bind(m->model, context, &mine, (uint64_t)m->r->seed, values, sources);
    free(mine.items);
    return ok;
}

static bool keep_outputs(const many *m, grt_context *context, job *j)
{
    j->outputs = calloc(m->n_outputs + 1, sizeof *j->outputs);
    for (size_t i = 0; j->outputs && i < m->n_outputs; i++)
        if (grt_context_get_output_value(context, i, &j->outputs[i]) != GRT_OK)
            return false;
    return j->outputs != NULL;
}

static void do_job(many *m, grt_context *context, size_t index, job *j)
{
    const double begin = now_ms();
    const grt_status status = grt_context_run(context);
    j->ms = now_ms() - begin;
    j->failed = status != GRT_OK || ((m->n_files || index == 0) && !keep_outputs(m, context, j));
    if (j->failed)
        j->error = last_error();
}

/* A job with inputs of its own. */
static void do_listed_job(many *m, grt_context *context, size_t index, job *j)
{
    const size_t n = grt_model_input_count(m->model);
    grt_value **values = calloc(n + 1, sizeof *values);
    const char **sources = calloc(n + 1, sizeof *sources);
    if (values && sources && bind(m, context, index, values, sources))
        do_job(m, context, index, j);
    else
        j->error = strdup("its inputs cannot be used");
    inputs_release_values(values, n);
    free(sources);
}

/* The next job, once what was finished is not too far ahead of what was shown. */
static bool take_job(many *m, size_t *out_index)
{
    pthread_mutex_lock(&m->lock);
    const size_t most = AHEAD * m->n_threads;
    while (m->n_files && m->next < m->n_jobs && m->next - m->shown >= most)
        pthread_cond_wait(&m->changed, &m->lock);
    const bool more = m->next < m->n_jobs;
    *out_index = m->next;
    m->next += more;
    pthread_mutex_unlock(&m->lock);
    return more;
}

static void *work(void *arg)
{
    const worker *w = arg;
    many *m = w->m;
    grt_context *context = NULL;
    size_t index;
    const grt_status made = grt_context_create(m->sessions[w->device], &context);
    char *why = made == GRT_OK ? NULL : last_error();
    /* repetitions of one input: it is bound once */
    const size_t n = grt_model_input_count(m->model);
    grt_value **values = calloc(n + 1, sizeof *values);
    const char **sources = calloc(n + 1, sizeof *sources);
    const bool once = !m->n_files && context && values && sources;
    const bool bound = once && bind(m, context, 0, values, sources);
    while (take_job(m, &index)) {
        job result = {.device = w->device, .failed = true};
        if (!context)
            result.error = strdup(why ? why : "out of memory");
        else if (once && !bound)
            result.error = strdup("its inputs cannot be used");
        else if (once)
            do_job(m, context, index, &result);
        else
            do_listed_job(m, context, index, &result);
        pthread_mutex_lock(&m->lock);
        result.done = true;
        m->jobs[index] = result;
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->lock);
    }
    m->contexts[w->index] = context;
    inputs_release_values(values, n);
    free(sources);
    free(why);
    return NULL;
}

/* ---- showing ---- */

static bool save(const many *m, size_t index, const char *name, const grt_value *value, char **out_path)
{
    char directory[4096];
    *out_path = NULL;
    if (!m->r->output_dir)
        return true;
    if (m->n_files)
        snprintf(directory, sizeof directory, "%s/%06zu", m->r->output_dir, index);
    else
        snprintf(directory, sizeof directory, "%s", m->r->output_dir);
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        tool_error("%s: %s", directory, strerror(errno));
        return false;
    }
    return outputs_save(directory, name, value, out_path);
}

static bool show_outputs(const many *m, size_t index, const job *j, json_t *array)
{
    bool ok = true;
    for (size_t i = 0; j->outputs && ok && i < m->n_outputs; i++) {
        grt_io_info info = {.struct_size = sizeof info};
        char *path;
        if (grt_model_output(m->model, i, &info) != GRT_OK)
            continue;
        ok = save(m, index, info.name, j->outputs[i], &path);
        if (array) {
            json_t *object = outputs_json(info.name, j->outputs[i]);
            if (path)
                json_object_set_new(object, "file", json_text(path));
            json_array_append_new(array, object);
        } else {
            outputs_print(info.name, j->outputs[i]);
            if (path)
                tool_print("  saved as %s\n", path);
        }
        free(path);
    }
    return ok;
}

static void show_job(many *m, size_t index, job *j)
{
    const char *file = file_of(m, index), *device = m->r->devices.names[j->device];
    json_t *object = m->array ? json_object() : NULL, *outputs = NULL;
    progress_clear();
    if (object) {
        json_object_set_new(object, "index", json_integer((json_int_t)index));
        json_object_set_new(object, "input", file ? json_text(file) : json_null());
        json_object_set_new(object, "device", json_text(device));
        json_object_set_new(object, "ms", j->failed ? json_null() : json_real(j->ms));
        json_object_set_new(object, "error", j->failed ? json_text(j->error ? j->error : "?") : json_null());
        json_object_set_new(object, "outputs", outputs = json_array());
        json_array_append_new(m->array, object);
    } else if (file && !j->failed)
        tool_print("%s: on %s, %.3f ms\n", file, device, j->ms);
    if (j->failed)
        tool_error("run %zu%s%s%s on %s failed: %s", index, file ? " (" : "", file ? file : "",
                   file ? ")" : "", device, j->error ? j->error : "?");
    if (!show_outputs(m, index, j, outputs))
        j->failed = true;
    m->failures += j->failed;
}

/* Runs without lists give the same each time: only the first and those that fail are shown. */
static void show_all(many *m)
{
    for (size_t i = 0; i < m->n_jobs; i++) {
        pthread_mutex_lock(&m->lock);
        while (!m->jobs[i].done)
            pthread_cond_wait(&m->changed, &m->lock);
        job j = m->jobs[i];
        pthread_mutex_unlock(&m->lock);
        if (m->n_files || i == 0 || j.failed)
            show_job(m, i, &j);
        for (size_t k = 0; j.outputs && k < m->n_outputs; k++)
            grt_value_release(j.outputs[k]);
        free(j.outputs);
        free(j.error);
        pthread_mutex_lock(&m->lock);
        m->jobs[i].failed = j.failed;
        m->shown = i + 1;
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->lock);
        progress_show((double)(i + 1) / (double)m->n_jobs, "running");
    }
    progress_clear();
}

static bool run_jobs(many *m)
{
    const size_t n = m->n_threads;
    worker *workers = calloc(n, sizeof *workers);
    if (!workers) {
        tool_error("out of memory");
        return false;
    }
    const double begin = now_ms();
    size_t started = 0;
    for (; started < n; started++) {
        workers[started] = (worker){.m = m, .index = started, .device = started % m->r->devices.n};
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    if (started)
        show_all(m);
    else
        tool_error("no thread can be made");
    for (size_t i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    m->run_ms = now_ms() - begin;
    free(workers);
    return started > 0;
}

static load_report report_of(const many *m)
{
    return (load_report){.title = m->r->model,
                         .model = m->model,
                         .sessions = m->sessions,
                         .contexts = m->contexts,
                         .n = m->r->devices.n,
                         .sessions_at_ms = m->sessions_at_ms,
                         .total_ms = m->load_ms};
}

/* Latencies of one device's runs that did not fail. */
static latencies latencies_on(const many *m, size_t device, double *room)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_jobs; i++)
        if (!m->jobs[i].failed && m->jobs[i].device == device)
            room[n++] = m->jobs[i].ms;
    return latencies_of(room, n);
}

static bool summarize(many *m, double *room)
{
    const load_report report = report_of(m);
    const double rate = m->run_ms > 0 ? 1e3 * (double)(m->n_jobs - m->failures) / m->run_ms : 0;
    json_t *devices = m->array ? json_array() : NULL;
    if (!m->array && m->r->explain)
        explain_text(&report);
    if (!m->array)
        tool_print("load %.1f ms; %zu runs on %zu devices in %.1f ms, %.1f a second, %zu failed\n",
                   m->load_ms, m->n_jobs, m->r->devices.n, m->run_ms, rate, m->failures);
    for (size_t d = 0; d < m->r->devices.n; d++) {
        const latencies found = latencies_on(m, d, room);
        char text[LATENCIES_TEXT_SIZE];
        if (!m->array) {
            tool_print("  %-10s %6zu runs: %s\n", m->r->devices.names[d], found.n,
                       latencies_text(&found, text));
            continue;
        }
        json_t *device = json_object();
        json_object_set_new(device, "device", json_text(m->r->devices.names[d]));
        json_object_set_new(device, "runs", json_integer((json_int_t)found.n));
        json_object_set_new(device, "latency_ms", latencies_json(&found));
        json_array_append_new(devices, device);
    }
    if (!m->array)
        return true;
    json_t *object = json_object();
    json_object_set_new(object, "model", json_text(m->r->model));
    json_object_set_new(object, "devices", devices);
    json_object_set_new(object, "runs", m->array);
    json_object_set_new(object, "failed", json_integer((json_int_t)m->failures));
    json_object_set_new(object, "run_ms", json_real(m->run_ms));
    json_object_set_new(object, "throughput_per_s", json_real(rate));
    json_object_set_new(object, "load", explain_json(&report));
    m->array = NULL;
    return json_print(object);
}

static bool run_and_show(many *m)
{
    const run_request *r = m->r;
    if (r->output_dir && mkdir(r->output_dir, 0777) != 0 && errno != EEXIST) {
        tool_error("%s: %s", r->output_dir, strerror(errno));
        return false;
    }
    if (!list_inputs(m) || !load(m))
        return false;
    const load_report report = report_of(m);
    if (r->timeline && !explain_html(&report, r->timeline))
        return false;
    double *room = malloc(m->n_jobs * sizeof *room);
    const bool ok = room && run_jobs(m) && summarize(m, room) && !m->failures;
    free(room);
    return ok;
}

int run_many(const run_request *r)
{
    many m = {.r = r, .array = r->json ? json_array() : NULL};
    pthread_mutex_init(&m.lock, NULL);
    pthread_cond_init(&m.changed, NULL);
    const bool ok = run_and_show(&m);
    for (size_t i = 0; m.contexts && i < m.n_threads; i++)
        grt_context_release(m.contexts[i]);
    for (size_t i = 0; m.sessions && i < r->devices.n; i++)
        grt_session_release(m.sessions[i]);
    grt_model_release(m.model);
    grt_runtime_release(m.runtime);
    for (size_t i = 0; m.lists && i < r->inputs.n; i++) {
        for (size_t k = 0; k < m.lists[i].n; k++)
            free(m.lists[i].paths[k]);
        free(m.lists[i].paths);
    }
    json_decref(m.array);
    free(m.lists);
    free(m.jobs);
    free(m.sessions);
    free(m.contexts);
    pthread_mutex_destroy(&m.lock);
    pthread_cond_destroy(&m.changed);
    return ok ? EXIT_GOOD : EXIT_BAD;
}
