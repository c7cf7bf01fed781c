/* SPDX-License-Identifier: Apache-2.0 */
/* See load.h. A latency is from when the request was due until it was done: with a rate, the time that it had
 * to wait because the one before it was late counts. */
#include "tools/load.h"

#include "tools/report.h"

#include <graphrt/processes.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_CLIENTS = 1024, MAX_SAMPLES = 4000000 };

struct test;

/* A lane of the pool: one model's requests. */
typedef struct target {
    struct test *test;
    const load_model *of;
    size_t lane;
    grt_tensor *inputs;
    size_t n_inputs;
    size_t unanswered;      /* of an open loop */
    atomic_size_t answered; /* of those that were due */
    pthread_mutex_t lock;   /* of what follows */
    double *ms;
    size_t n, capacity;
} target;

typedef struct test {
    grt_pool *pool;
    target *targets;
    size_t n;
    double begin_ms, end_ms;
    atomic_bool failed;
    atomic_bool overloaded; /* requests of an open loop are cancelled */
    bool is_open_loop;
} test;

/* One request of an open loop. */
typedef struct shot {
    target *target;
    double due_ms;
} shot;

static void load_add_sample(target *t, double ms)
{
    pthread_mutex_lock(&t->lock);
    if (t->n == t->capacity && t->n < MAX_SAMPLES) {
        const size_t capacity = t->capacity ? 2 * t->capacity : 4096;
        double *grown = realloc(t->ms, capacity * sizeof *grown);
        if (!grown)
            t->test->failed = true;
        t->ms = grown ? grown : t->ms;
        t->capacity = grown ? capacity : t->capacity;
    }
    if (t->n < t->capacity)
        t->ms[t->n++] = ms;
    pthread_mutex_unlock(&t->lock);
}

static void fail_test(test *t)
{
    if (!atomic_exchange(&t->failed, true))
        tool_fail();
}

static grt_submission submission_to(const target *t)
{
    return (grt_submission){
        .struct_size = sizeof(grt_submission), .lane = t->lane, .inputs = t->inputs, .n_inputs = t->n_inputs};
}

/* Lane 0 alone has a call for it. */
static grt_status ask(const target *t)
{
    const grt_submission submission = submission_to(t);
    grt_request *request;
    if (t->test->n == 1)
        return grt_pool_run(t->test->pool, t->inputs, t->n_inputs, NULL, 0);
    grt_status status = grt_pool_submit_with(t->test->pool, &submission, &request);
    if (status == GRT_OK) {
        status = grt_request_wait(request);
        grt_request_release(request);
    }
    return status;
}

static void *ask_again_and_again(void *user)
{
    target *t = user;
    test *all = t->test;
    double now = grt_clock_ms();
    while (now < all->end_ms && !all->failed) {
        const double begin = now;
        if (ask(t) != GRT_OK) {
            fail_test(all);
            break;
        }
        now = grt_clock_ms();
        if (begin >= all->begin_ms)
            load_add_sample(t, now - begin);
    }
    return NULL;
}

/* So many of each model. */
static void run_clients(test *t, int clients)
{
    const size_t n = (size_t)clients * t->n;
    pthread_t *threads = calloc(n, sizeof *threads);
    size_t started = 0;
    while (threads && started < n &&
           pthread_create(&threads[started], NULL, ask_again_and_again, &t->targets[started % t->n]) == 0)
        started++;
    if (started < n) {
        tool_error("%zu clients could not be started: the system gives %zu threads", n, started);
        t->failed = true;
    }
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

static void note_answer(void *user, grt_request *request)
{
    shot *s = user;
    test *t = s->target->test;
    const grt_status status = grt_request_wait_until(request, 0);
    if (status != GRT_OK && !(status == GRT_STATUS_CANCELLED && t->overloaded))
        fail_test(t);
    else if (status == GRT_OK && s->due_ms >= t->begin_ms) {
        load_add_sample(s->target, grt_clock_ms() - s->due_ms);
        s->target->answered++;
    }
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

static bool shoot(target *t, double due_ms)
{
    shot *s = malloc(sizeof *s);
    if (!s)
        return false;
    *s = (shot){t, due_ms};
    grt_submission submission = submission_to(t);
    submission.done = note_answer;
    submission.user = s;
    if (grt_pool_submit_with(t->test->pool, &submission, NULL) == GRT_OK)
        return true;
    free(s);
    return false;
}

/* Those that a rate beyond what the models can do leaves in the queue would take any time: what is not
 * answered after the time of the measurement once more is cancelled. */
static void answer_what_is_open(test *t, double until_ms)
{
    if (grt_pool_drain(t->pool, until_ms) == GRT_OK)
        return;
    t->overloaded = true;
    grt_pool_cancel(t->pool);
    if (grt_pool_drain(t->pool, 0) != GRT_OK)
        fail_test(t);
}

/* The models take turns. What is due and was not sent is not answered either. */
static void run_at_rate(test *t, double rate)
{
    const double step = 1e3 / (rate * (double)t->n), begin = grt_clock_ms();
    const double until_ms = t->end_ms + (t->end_ms - t->begin_ms);
    double due = begin;
    for (size_t i = 0; due < t->end_ms && grt_clock_ms() < until_ms && !t->failed;
         due = begin + step * (double)++i) {
        wait_until(due);
        if (!shoot(&t->targets[i % t->n], due))
            fail_test(t);
    }
    answer_what_is_open(t, until_ms);
    for (size_t i = 0; i < t->n; i++) {
        target *of = &t->targets[i];
        const double due_before = floor((t->begin_ms - begin) / step),
                     all = floor((t->end_ms - begin) / step);
        const double n = floor((all - due_before) / (double)t->n) - (double)of->answered;
        of->unanswered = n > 1 ? (size_t)n : 0; /* one more or less is a matter of whose turn it is */
    }
}

/* After latencies_of, which has sorted them. */
static json_t *deadline_report(double *ms, size_t n, size_t unanswered, double deadline_ms)
{
    size_t met = 0;
    while (met < n && ms[met] <= deadline_ms)
        met++;
    for (size_t i = met; i < n; i++)
        ms[i] -= deadline_ms;
    const latencies missed = latencies_of(ms + met, n - met);
    return json_pack("{s:f,s:f,s:o}", "ms", deadline_ms, "met",
                     n + unanswered ? (double)met / (double)(n + unanswered) : 0.0, "missed_by_ms",
                     latencies_json(&missed));
}

static json_t *report_samples(double *ms, size_t n, size_t unanswered, const load_options *options,
                              double seconds)
{
    const latencies l = latencies_of(ms, n);
    json_t *r =
        json_pack("{s:o,s:f}", "latency_ms", latencies_json(&l), "throughput_per_s", (double)n / seconds);
    if (options->deadline_ms > 0)
        json_object_set_new(r, "deadline", deadline_report(ms, n, unanswered, options->deadline_ms));
    return r;
}

/* Of all models together; NULL if there is no memory. */
static json_t *report_all(const test *t, const load_options *options, double seconds)
{
    size_t n = 0, at = 0, unanswered = 0;
    for (size_t i = 0; i < t->n; i++) {
        n += t->targets[i].n;
        unanswered += t->targets[i].unanswered;
    }
    double *ms = malloc((n + 1) * sizeof *ms);
    if (!ms) {
        tool_error("out of memory");
        return NULL;
    }
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->targets[i].n; k++)
            ms[at++] = t->targets[i].ms[k];
    json_t *r = report_samples(ms, n, unanswered, options, seconds);
    free(ms);
    if (t->is_open_loop)
        json_object_set_new(r, "unanswered", json_integer((json_int_t)unanswered));
    return r;
}

static json_t *report_of(test *t, int clients, const load_options *options, int32_t contexts, double seconds)
{
    json_t *r = report_all(t, options, seconds), *models = t->n > 1 && r ? json_array() : NULL;
    if (!r)
        return NULL;
    json_object_set_new(r, "contexts", json_integer(contexts));
    json_object_set_new(r, clients ? "clients" : "rate",
                        clients ? json_integer(clients) : json_real(options->rate));
    for (size_t i = 0; models && i < t->n; i++) {
        json_t *one =
            report_samples(t->targets[i].ms, t->targets[i].n, t->targets[i].unanswered, options, seconds);
        json_object_set_new(one, "model", json_text(t->targets[i].of->name));
        json_array_append_new(models, one);
    }
    if (models)
        json_object_set_new(r, "models", models);
    return r;
}

static bool open_lane(test *t, target *to, const load_options *options, const grt_pool_options *with)
{
    const grt_process_options process = {
        .struct_size = sizeof process, .threads = options->threads, .fallback = options->fallback};
    grt_session *session = to->of->session;
    if (!options->device)
        return grt_pool_add(t->pool, &session, 1, with, &to->lane) == GRT_OK;
    return grt_pool_add_processes(t->pool, (grt_model *)to->of->model, &options->device, 1, with, &process,
                                  &to->lane) == GRT_OK;
}

static bool open_load_pool(test *t, const load_options *options, const grt_pool_options *with)
{
    bool ok = grt_pool_create(NULL, 0, NULL, &t->pool) == GRT_OK;
    for (size_t i = 0; ok && i < t->n; i++)
        ok = open_lane(t, &t->targets[i], options, with);
    return ok;
}

/* A fifth of the time more, first, in which contexts prepare and captures are made. */
static json_t *measure_load(target *targets, size_t n, const load_options *options, int clients)
{
    enum { QUEUE = 1 << 20 };
    const int32_t contexts = options->contexts ? options->contexts
                             : clients         ? (clients < 64 ? clients : 64)
                                               : 1;
    const grt_pool_options pool = {
        .struct_size = sizeof pool, .contexts = contexts, .queue = clients ? clients : QUEUE};
    test t = {.targets = targets, .n = n, .is_open_loop = !clients};
    json_t *report = NULL;
    for (size_t i = 0; i < n; i++) {
        targets[i].test = &t;
        targets[i].n = 0;
        targets[i].unanswered = targets[i].answered = 0;
    }
    if (!open_load_pool(&t, options, &pool)) {
        tool_fail();
        grt_pool_release(t.pool);
        return NULL;
    }
    t.begin_ms = grt_clock_ms() + options->seconds * 200;
    t.end_ms = t.begin_ms + options->seconds * 1e3;
    if (clients)
        run_clients(&t, clients);
    else
        run_at_rate(&t, options->rate);
    grt_pool_release(t.pool);
    if (!t.failed)
        report = report_of(&t, clients, options, contexts, (grt_clock_ms() - t.begin_ms) / 1e3);
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

static bool open_target(target *t, const load_model *model)
{
    t->of = model;
    t->n_inputs = grt_model_input_count(model->model);
    t->inputs = calloc(t->n_inputs + 1, sizeof *t->inputs);
    pthread_mutex_init(&t->lock, NULL);
    for (size_t i = 0; t->inputs && i < t->n_inputs; i++)
        if (model->values[i] && grt_value_tensor(model->values[i], &t->inputs[i]) != GRT_OK)
            return false;
    return t->inputs != NULL;
}

static void close_target(target *t)
{
    if (!t->of)
        return;
    pthread_mutex_destroy(&t->lock);
    free(t->inputs);
    free(t->ms);
}

json_t *load_measure(const load_model *models, size_t n, const load_options *options)
{
    target *targets = calloc(n, sizeof *targets);
    json_t *all = json_array();
    bool ok = targets && all;
    for (size_t i = 0; ok && i < n; i++)
        ok = open_target(&targets[i], &models[i]);
    if (!ok)
        tool_fail();
    for (const char *at = options->concurrency; ok && at && *at;) {
        int clients;
        ok = next_count(&at, &clients) &&
             json_array_append_new(all, measure_load(targets, n, options, clients)) == 0;
    }
    if (ok && options->rate > 0)
        ok = json_array_append_new(all, measure_load(targets, n, options, 0)) == 0;
    for (size_t i = 0; targets && i < n; i++)
        close_target(&targets[i]);
    free(targets);
    if (ok)
        return all;
    json_decref(all);
    return NULL;
}
