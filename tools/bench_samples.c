/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench_samples.h"

#include "tools/report.h"
#include "tools/spans.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

json_t *samples_distribution(const double *sorted_ms, size_t n)
{
    enum { COLUMNS = 40 };
    json_t *columns = json_array();
    const double low = sorted_ms[0], high = sorted_ms[(n * 95 + 99) / 100 - 1];
    size_t i = 0;
    for (int k = 1; k <= COLUMNS + 1; k++) {
        const double up_to = k > COLUMNS ? sorted_ms[n - 1] : low + (high - low) * k / COLUMNS;
        const size_t first = i;
        while (i < n && (sorted_ms[i] <= up_to || k > COLUMNS))
            i++;
        json_array_append_new(columns,
                              json_pack("{s:f,s:I}", "up_to_ms", up_to, "runs", (json_int_t)(i - first)));
    }
    return columns;
}

enum { MOST_LOOKS = 400, FIRST_STEP_MS = 5 };

static struct memory_watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t end;
    bool started, ending;
    double begin_ms, step_ms;
    size_t n;
    struct {
        double ms, bytes;
    } looks[MOST_LOOKS];
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    const bool ok = fscanf(f, "%ld %ld", &pages, &resident) == 2;
    fclose(f);
    return ok ? (double)resident * (double)sysconf(_SC_PAGESIZE) : 0;
}

/* Twice as seldom once there are too many. */
static void look_at_memory(void)
{
    if (watch.n == MOST_LOOKS) {
        for (watch.n = 0; watch.n < MOST_LOOKS / 2; watch.n++)
            watch.looks[watch.n] = watch.looks[2 * watch.n];
        watch.step_ms *= 2;
    }
    watch.looks[watch.n].ms = now_ms() - watch.begin_ms;
    watch.looks[watch.n++].bytes = resident_bytes();
}

static void *watch_memory(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&watch.lock);
    while (!watch.ending) {
        struct timespec until;
        look_at_memory();
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(watch.step_ms * 1e6);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&watch.end, &watch.lock, &until);
    }
    look_at_memory();
    pthread_mutex_unlock(&watch.lock);
    return NULL;
}

bool samples_watch_memory(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch.end, &attributes);
    pthread_condattr_destroy(&attributes);
    watch.begin_ms = now_ms();
    watch.step_ms = FIRST_STEP_MS;
    watch.started = pthread_create(&watch.thread, NULL, watch_memory, NULL) == 0;
    return watch.started;
}

json_t *samples_take_memory(void)
{
    if (!watch.started)
        return json_array();
    pthread_mutex_lock(&watch.lock);
    watch.ending = true;
    pthread_cond_signal(&watch.end);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    watch.started = false;
    json_t *looks = json_array();
    for (size_t i = 0; i < watch.n; i++)
        json_array_append_new(looks, json_pack("{s:f,s:I}", "ms", watch.looks[i].ms, "rss_bytes",
                                               (json_int_t)watch.looks[i].bytes));
    return looks;
}

typedef struct timeline {
    const load_model *models; /* one for each lane */
    size_t n;
    json_t *bars;
    double begin_ms;
} timeline;

static void find_begin(void *user, const recorded_span *s)
{
    timeline *t = user;
    if (t->begin_ms == 0 || s->begin_ms < t->begin_ms)
        t->begin_ms = s->begin_ms;
}

static void add_bar(void *user, const recorded_span *s)
{
    const timeline *t = user;
    if (s->kind == GRT_SPAN_REQUEST || s->kind == GRT_SPAN_QUEUE)
        return;
    char name[256];
    const bool copies = s->kind == GRT_SPAN_COPY_IN || s->kind == GRT_SPAN_COPY_OUT;
    if (t->n > 1 && copies && s->lane < t->n)
        snprintf(name, sizeof name, "%s", t->models[s->lane].name);
    else
        snprintf(name, sizeof name, "%s%s%s", s->op, *s->op ? " " : "", s->name);
    json_array_append_new(t->bars, json_pack("{s:i,s:s,s:o,s:f,s:f}", "thread", s->thread, "kind",
                                             span_kind_text(s->kind), "name", json_text(name), "begin_ms",
                                             s->begin_ms - t->begin_ms, "end_ms", s->end_ms - t->begin_ms));
}

/* So many of each model, which take turns. */
static grt_status run_requests(grt_pool *pool, const load_model *models, size_t n, int of_each)
{
    enum { MOST = 1024 };
    grt_request *requests[MOST];
    grt_status status = GRT_OK;
    size_t submitted = 0;
    for (; status == GRT_OK && submitted < (size_t)of_each * n && submitted < MOST; submitted++) {
        const load_model *m = &models[submitted % n];
        const grt_submission submission = {.struct_size = sizeof submission,
                                           .lane = submitted % n,
                                           .values = (const grt_value *const *)m->values,
                                           .n_inputs = grt_model_input_count(m->model)};
        status = grt_pool_submit_with(pool, &submission, &requests[submitted]);
    }
    if (status != GRT_OK)
        submitted--;
    const grt_status drained =
        grt_pool_drain(pool, 0); /* by its own threads: who waits for a request helps */
    for (size_t i = 0; i < submitted && status == GRT_OK; i++)
        status = drained == GRT_OK ? grt_request_wait(requests[i]) : drained;
    for (size_t i = 0; i < submitted; i++)
        grt_request_release(requests[i]);
    return status;
}

json_t *samples_timeline(const load_model *models, size_t n, int contexts)
{
    enum { WARM = 4, SHOWN = 2 }; /* requests of each context */
    const grt_pool_options options = {
        .struct_size = sizeof options, .contexts = contexts, .queue = WARM * contexts};
    timeline t = {.models = models, .n = n, .bars = json_array()};
    grt_pool *pool = NULL;
    size_t lane;
    grt_status status = grt_pool_create(NULL, 0, NULL, &pool);
    for (size_t i = 0; status == GRT_OK && i < n; i++) {
        grt_session *session = models[i].session;
        status = grt_pool_add(pool, &session, 1, &options, &lane);
    }
    if (status == GRT_OK) /* the first of each context prepares, and the second is captured */
        status = run_requests(pool, models, n, WARM * contexts);
    spans_start();
    if (status == GRT_OK)
        status = run_requests(pool, models, n, SHOWN * contexts);
    spans_stop();
    grt_pool_release(pool);
    spans_each(find_begin, &t);
    spans_each(add_bar, &t);
    spans_release();
    if (status == GRT_OK)
        return t.bars;
    json_decref(t.bars);
    return NULL;
}
