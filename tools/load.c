/* SPDX-License-Identifier: Apache-2.0 */
/* See load.h. A latency is from when the request was due until it was done: with a rate, the time that it had
 * to wait because the one before it was late counts. */
#include "tools/load.h"

#include "tools/report.h"

#include <graphrt/processes.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_CLIENTS = 1024, MAX_SAMPLES = 4000000 };

typedef struct test {
    grt_pool *pool;
    const grt_tensor *inputs;
    size_t n_inputs;
    double begin_ms, end_ms;
    pthread_mutex_t lock; /* of what follows */
    double *ms;
    size_t n, capacity;
    bool failed;
} test;

/* One request of an open loop. */
typedef struct shot {
    test *test;
    double due_ms;
} shot;

static void load_add_sample(test *t, double ms)
{
    pthread_mutex_lock(&t->lock);
    if (t->n == t->capacity && t->n < MAX_SAMPLES) {
        const size_t capacity = t->capacity ? 2 * t->capacity : 4096;
        double *grown = realloc(t->ms, capacity * sizeof *grown);
        t->failed = t->failed || !grown;
        t->ms = grown ? grown : t->ms;
        t->capacity = grown ? capacity : t->capacity;
    }
    if (t->n < t->capacity)
        t->ms[t->n++] = ms;
    pthread_mutex_unlock(&t->lock);
}

static void fail_test(test *t)
{
    pthread_mutex_lock(&t->lock);
    if (!t->failed)
        tool_fail();
    t->failed = true;
    pthread_mutex_unlock(&t->lock);
}

static void *ask_again_and_again(void *user)
{
    test *t = user;
    double now = grt_clock_ms();
    while (now < t->end_ms && !t->failed) {
        const double begin = now;
        if (grt_pool_run(t->pool, t->inputs, t->n_inputs, NULL, 0) != GRT_OK) {
            fail_test(t);
            break;
        }
        now = grt_clock_ms();
        if (begin >= t->begin_ms)
            load_add_sample(t, now - begin);
    }
    return NULL;
}

static void run_clients(test *t, int n)
{
    pthread_t threads[MAX_CLIENTS];
    int started = 0;
    while (started < n && pthread_create(&threads[started], NULL, ask_again_and_again, t) == 0)
        started++;
    if (started < n) {
        tool_error("%d clients could not be started: the system gives %d threads", n, started);
        t->failed = true;
    }
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static void note_answer(void *user, grt_request *request)
{
    shot *s = user;
    if (grt_request_wait_until(request, 0) != GRT_OK)
        fail_test(s->test);
    else if (s->due_ms >= s->test->begin_ms)
        load_add_sample(s->test, grt_clock_ms() - s->due_ms);
    grt_request_release(request);
    free(s);
}

static void wait_until(double ms)
{
    const struct timespec at = {.tv_sec = (time_t)(ms / 1e3),
                                .tv_nsec = (long)((ms - 1e3 * (double)(time_t)(ms / 1e3)) * 1e6)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

static bool shoot(test *t, double due_ms)
{
    shot *s = malloc(sizeof *s);
    if (!s)
        return false;
    *s = (shot){t, due_ms};
    const grt_submission submission = {.struct_size = sizeof submission,
                                       .inputs = t->inputs,
                                       .n_inputs = t->n_inputs,
                                       .done = note_answer,
                                       .user = s};
    if (grt_pool_submit_with(t->pool, &submission, NULL) == GRT_OK)
        return true;
    free(s);
    return false;
}

static void run_at_rate(test *t, double rate)
{
    const double step = 1e3 / rate;
    for (double due = grt_clock_ms(); due < t->end_ms && !t->failed; due += step) {
        wait_until(due);
        if (!shoot(t, due))
            fail_test(t);
    }
    if (grt_pool_drain(t->pool, 0) != GRT_OK)
        fail_test(t);
}

/* After latencies_of, which has sorted them. */
static json_t *deadline_report(const test *t, double deadline_ms)
{
    size_t met = 0;
    while (met < t->n && t->ms[met] <= deadline_ms)
        met++;
    for (size_t i = met; i < t->n; i++)
        t->ms[i] -= deadline_ms;
    const latencies missed = latencies_of(t->ms + met, t->n - met);
    return json_pack("{s:f,s:f,s:o}", "ms", deadline_ms, "met", t->n ? (double)met / (double)t->n : 0.0,
                     "missed_by_ms", latencies_json(&missed));
}

static json_t *report_of(test *t, int clients, const load_options *options, int32_t contexts, double seconds)
{
    const latencies l = latencies_of(t->ms, t->n);
    json_t *r = json_pack("{s:i,s:o,s:f}", "contexts", (int)contexts, "latency_ms", latencies_json(&l),
                          "throughput_per_s", (double)t->n / seconds);
    json_object_set_new(r, clients ? "clients" : "rate",
                        clients ? json_integer(clients) : json_real(options->rate));
    if (options->deadline_ms > 0)
        json_object_set_new(r, "deadline", deadline_report(t, options->deadline_ms));
    return r;
}

static bool open_load_pool(const grt_model *model, grt_session *session, const load_options *options,
                           const grt_pool_options *with, grt_pool **out_pool)
{
    const grt_process_options process = {
        .struct_size = sizeof process, .threads = options->threads, .fallback = options->fallback};
    size_t lane;
    if (!options->device)
        return grt_pool_create(&session, 1, with, out_pool) == GRT_OK;
    return grt_pool_create(NULL, 0, NULL, out_pool) == GRT_OK &&
           grt_pool_add_processes(*out_pool, (grt_model *)model, &options->device, 1, with, &process,
                                  &lane) == GRT_OK;
}

/* A fifth of the time more, first, in which contexts prepare and captures are made. */
static json_t *measure_load(const grt_model *model, grt_session *session, const grt_tensor *inputs,
                            size_t n_inputs, const load_options *options, int clients)
{
    enum { QUEUE = 1 << 20 };
    const int32_t contexts = options->contexts ? options->contexts
                             : clients         ? (clients < 64 ? clients : 64)
                                               : 1;
    const grt_pool_options pool = {
        .struct_size = sizeof pool, .contexts = contexts, .queue = clients ? clients : QUEUE};
    test t = {.inputs = inputs, .n_inputs = n_inputs};
    json_t *report = NULL;
    if (!open_load_pool(model, session, options, &pool, &t.pool)) {
        tool_fail();
        grt_pool_release(t.pool);
        return NULL;
    }
    pthread_mutex_init(&t.lock, NULL);
    t.begin_ms = grt_clock_ms() + options->seconds * 200;
    t.end_ms = t.begin_ms + options->seconds * 1e3;
    if (clients)
        run_clients(&t, clients);
    else
        run_at_rate(&t, options->rate);
    grt_pool_release(t.pool);
    if (!t.failed)
        report = report_of(&t, clients, options, contexts, (grt_clock_ms() - t.begin_ms) / 1e3);
    pthread_mutex_destroy(&t.lock);
    free(t.ms);
    return report;
}

static bool next_count(const char **list, int *out_count)
{
    char *end;
    const long n = strtol(*list, &end, 10);
    if (end == *list || n < 1 || n > MAX_CLIENTS || (*end && *end != ','))
        return false;
    *out_count = (int)n;
    *list = *end ? end + 1 : end;
    return true;
}

bool load_options_check(const load_options *options)
{
    int n;
    for (const char *at = options->concurrency; at && *at;)
        if (!next_count(&at, &n)) {
            tool_error("--concurrency wants numbers from 1 to %d, as in 1,2,4, found '%s'", (int)MAX_CLIENTS,
                       options->concurrency);
            return false;
        }
    return true;
}

static bool take_tensors(const grt_model *model, grt_value *const *values, grt_tensor *out)
{
    for (size_t i = 0; i < grt_model_input_count(model); i++)
        if (values[i] && grt_value_tensor(values[i], &out[i]) != GRT_OK)
            return false;
    return true;
}

json_t *load_measure(const grt_model *model, grt_session *session, grt_value *const *values,
                     const load_options *options)
{
    const size_t n = grt_model_input_count(model);
    grt_tensor *inputs = calloc(n + 1, sizeof *inputs);
    json_t *all = json_array();
    bool ok = inputs && all && take_tensors(model, values, inputs);
    if (!ok)
        tool_fail();
    for (const char *at = options->concurrency; ok && at && *at;) {
        int clients;
        ok = next_count(&at, &clients) &&
             json_array_append_new(all, measure_load(model, session, inputs, n, options, clients)) == 0;
    }
    if (ok && options->rate > 0)
        ok = json_array_append_new(all, measure_load(model, session, inputs, n, options, 0)) == 0;
    free(inputs);
    if (ok)
        return all;
    json_decref(all);
    return NULL;
}
