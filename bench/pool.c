/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool adds to a run, and how long a run goes on after it was stopped.
 *
 *     pool MODEL [DEVICE [RUNS]]      MODEL has one float32 input; unknown dims are 1
 *
 * Prints the median and the 99th percentile of: a run in a context, in a second one, as those of pools are,
 * and with inputs and outputs bound anew; grt_pool_run; a request that is submitted and waited for, and its
 * submission alone; what of that is the system's, which wakes a thread; the same from a callback. One at a
 * time, in turns of 100, so that all have the same neighbours; and how much more than the first each median
 * is. Then a run and a request while spans are told, in turns of 100 with such without. */
#include <graphrt/graphrt.h>
#include <graphrt/processes.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 500, TURN = 100 };

typedef struct subject {
    grt_context *context, *second; /* made before the pool, and after it */
    grt_pool *pool;
    size_t remote; /* the pool's lane with a process */
    grt_tensor in, out;
    sem_t called;
} subject;

static void must(grt_status status, const char *what)
{
    if (status == GRT_OK)
        return;
    fprintf(stderr, "pool: %s: %s\n", what, grt_last_error());
    exit(1);
}

static double run_context(subject *s)
{
    const double begin = grt_clock_ms();
    must(grt_context_run(s->context), "run");
    return grt_clock_ms() - begin;
}

static double run_second(subject *s)
{
    const double begin = grt_clock_ms();
    must(grt_context_run(s->second), "run");
    return grt_clock_ms() - begin;
}

/* As a pool does for each request. */
static double bind_and_run_second(subject *s)
{
    const double begin = grt_clock_ms();
    must(grt_context_set_input(s->second, 0, &s->in), "set input");
    must(grt_context_set_output(s->second, 0, &s->out), "set output");
    must(grt_context_run(s->second), "run");
    return grt_clock_ms() - begin;
}

static double run_pool(subject *s)
{
    const double begin = grt_clock_ms();
    must(grt_pool_run(s->pool, &s->in, 1, &s->out, 1), "grt_pool_run");
    return grt_clock_ms() - begin;
}

static double submitting;

static double submit_and_wait(subject *s)
{
    grt_request *r;
    const double begin = grt_clock_ms();
    must(grt_pool_submit(s->pool, &s->in, 1, &s->out, 1, &r), "grt_pool_submit");
    submitting = grt_clock_ms() - begin;
    must(grt_request_wait(r), "request");
    const double end = grt_clock_ms();
    grt_request_release(r);
    return end - begin;
}

static double submit_to_process(subject *s)
{
    grt_request *r;
    const grt_submission submission = {.struct_size = sizeof submission,
                                       .lane = s->remote,
                                       .inputs = &s->in,
                                       .n_inputs = 1,
                                       .outputs = &s->out,
                                       .n_outputs = 1};
    const double begin = grt_clock_ms();
    must(grt_pool_submit_with(s->pool, &submission, &r), "grt_pool_submit_with");
    must(grt_request_wait(r), "request in a process");
    const double end = grt_clock_ms();
    grt_request_release(r);
    return end - begin;
}

static double submit_alone(subject *s)
{
    (void)submit_and_wait(s);
    return submitting;
}

/* A thread that sleeps, and does nothing when it is woken. */
static struct sleeper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ending;
} sleeper = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void *sleep_again_and_again(void *user)
{
    (void)user;
    pthread_mutex_lock(&sleeper.lock);
    while (!sleeper.ending)
        pthread_cond_wait(&sleeper.wake, &sleeper.lock);
    pthread_mutex_unlock(&sleeper.lock);
    return NULL;
}

/* After a run, as a submission is. */
static double wake_sleeper(subject *s)
{
    (void)run_context(s);
    const double begin = grt_clock_ms();
    pthread_mutex_lock(&sleeper.lock);
    pthread_cond_signal(&sleeper.wake);
    pthread_mutex_unlock(&sleeper.lock);
    return grt_clock_ms() - begin;
}

static void start_sleeper(void)
{
    if (pthread_create(&sleeper.thread, NULL, sleep_again_and_again, NULL))
        exit(1);
}

static void end_sleeper(void)
{
    pthread_mutex_lock(&sleeper.lock);
    sleeper.ending = true;
    pthread_cond_signal(&sleeper.wake);
    pthread_mutex_unlock(&sleeper.lock);
    pthread_join(sleeper.thread, NULL);
}

static double called_at;
static double submitting_called; /* the submission alone */

static void note_call(void *user, grt_request *request)
{
    called_at = grt_clock_ms();
    grt_request_release(request);
    sem_post(&((subject *)user)->called);
}

static double submit_and_be_called(subject *s)
{
    const grt_submission submission = {.struct_size = sizeof submission,
                                       .inputs = &s->in,
                                       .n_inputs = 1,
                                       .outputs = &s->out,
                                       .n_outputs = 1,
                                       .done = note_call,
                                       .user = s};
    const double begin = grt_clock_ms();
    must(grt_pool_submit_with(s->pool, &submission, NULL), "grt_pool_submit_with");
    submitting_called = grt_clock_ms() - begin;
    while (sem_wait(&s->called) != 0)
        ;
    return called_at - begin;
}

static double submit_for_a_call(subject *s)
{
    (void)submit_and_be_called(s);
    return submitting_called;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One way to run the model. */
typedef struct way {
    const char *name;
    double (*once)(subject *s);
    bool alone; /* not a whole run: there is nothing to compare */
    double *ms;
} way;

static way ways[] = {
    {.name = "run in a context", .once = run_context},
    {.name = "run in a second context", .once = run_second},
    {.name = "the same, bound anew", .once = bind_and_run_second},
    {.name = "grt_pool_run", .once = run_pool},
    {.name = "submit and wait", .once = submit_and_wait},
    {.name = "submit", .once = submit_alone, .alone = true},
    {.name = "waking a thread alone", .once = wake_sleeper, .alone = true},
    {.name = "submit until called back", .once = submit_and_be_called},
    {.name = "the submission alone", .once = submit_for_a_call, .alone = true},
    {.name = "submit, wait, in a process", .once = submit_to_process},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

static void print_way(const way *w, long runs)
{
    qsort(w->ms, (size_t)runs, sizeof *w->ms, compare_times);
    const double median = w->ms[runs / 2];
    printf("%-28s min %8.2f us, median %8.2f us, p99 %8.2f us", w->name, 1e3 * w->ms[0], 1e3 * median,
           1e3 * w->ms[runs * 99 / 100]);
    if (!w->alone && w != ways)
        printf(", %+.2f us", 1e3 * (median - ways[0].ms[runs / 2]));
    printf("\n");
}

static void measure_ways(subject *s, long runs)
{
    for (int k = 0; k < N_WAYS; k++) {
        if (!(ways[k].ms = malloc((size_t)runs * sizeof(double))))
            exit(1);
        for (int i = 0; i < WARM_UP; i++)
            (void)ways[k].once(s);
    }
    for (long i = 0; i < runs; i += TURN)
        for (int k = 0; k < N_WAYS; k++)
            for (long at = i; at < i + TURN && at < runs; at++)
                ways[k].ms[at] = ways[k].once(s);
    for (int k = 0; k < N_WAYS; k++)
        print_way(&ways[k], runs);
    for (int k = 0; k < N_WAYS; k++)
        free(ways[k].ms);
}

/* The listener of a profiler does more than this, and less than a tool that writes. */
static void count_span(void *user, const grt_span *span)
{
    if (span->kind <= GRT_SPAN_COPY_OUT)
        atomic_fetch_add_explicit((atomic_long *)user, 1, memory_order_relaxed);
}

static double median_of(double *ms, long n)
{
    qsort(ms, (size_t)n, sizeof *ms, compare_times);
    return ms[n / 2];
}

static void compare_told(const char *name, subject *s, double (*once)(subject *s), long runs)
{
    double *ms[2] = {malloc((size_t)runs * sizeof(double)), malloc((size_t)runs * sizeof(double))};
    atomic_long spans = 0;
    if (!ms[0] || !ms[1])
        exit(1);
    for (long i = 0; i < runs; i += TURN)
        for (int told = 0; told < 2; told++) {
            grt_trace_set(told ? count_span : NULL, &spans);
            for (long k = i; k < i + TURN && k < runs; k++)
                ms[told][k] = once(s);
        }
    grt_trace_set(NULL, NULL);
    const double off = 1e3 * median_of(ms[0], runs), on = 1e3 * median_of(ms[1], runs);
    printf("%-28s median %8.2f us, told %8.2f us (%+.1f %%), %.1f spans\n", name, off, on,
           100 * (on / off - 1), (double)spans / (double)runs);
    free(ms[0]);
    free(ms[1]);
}

static void open_subject(subject *s, const char *path, const char *device)
{
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_io_info info = {.struct_size = sizeof info};
    char kind[32] = "cpu";
    sscanf(device, "%31[a-z]", kind);
    const grt_compile_options compile = {.struct_size = sizeof compile, .target = kind};
    const grt_session_options options = {.struct_size = sizeof options, .threads = 1, .compile = "first"};
    must(grt_runtime_create(&runtime), "runtime");
    must(grt_model_open_with(runtime, path, &compile, &model), path);
    must(grt_session_create(model, device, &options, &session), "session");
    must(grt_context_create(session, &s->context), "context");
    must(grt_pool_create(&session, 1, NULL, &s->pool), "grt_pool_create");
    const grt_process_options processes = {.struct_size = sizeof processes, .threads = 1};
    must(grt_pool_add_processes(s->pool, model, &device, 1, NULL, &processes, &s->remote), "processes");
    must(grt_model_input(model, 0, &info), "input");
    s->in = (grt_tensor){.dtype = info.dtype, .rank = info.rank};
    for (int32_t i = 0; i < info.rank; i++)
        s->in.dims[i] = info.dims[i] < 0 ? 1 : info.dims[i];
    s->in.data = calloc(grt_tensor_bytes(&s->in) + 1, 1);
    must(grt_context_set_input(s->context, 0, &s->in), "set input");
    must(grt_context_output_dims(s->context, 0, &s->out), "output");
    s->out.data = malloc(grt_tensor_bytes(&s->out) + 1);
    must(grt_context_set_output(s->context, 0, &s->out), "set output");
    must(grt_context_create(session, &s->second), "second context");
    must(grt_context_set_input(s->second, 0, &s->in), "set input");
    must(grt_context_set_output(s->second, 0, &s->out), "set output");
    sem_init(&s->called, 0, 0);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
}

int main(int argc, char **argv)
{
    subject s = {0};
    const long runs = argc > 3 ? strtol(argv[3], NULL, 10) : 20000;
    if (argc < 2 || runs < 100) {
        fprintf(stderr, "usage: pool MODEL [DEVICE [RUNS (100 or more)]]\n");
        return 2;
    }
    open_subject(&s, argv[1], argc > 2 ? argv[2] : "cpu");
    start_sleeper();
    measure_ways(&s, runs);
    end_sleeper();
    compare_told("run, spans", &s, run_context, runs);
    compare_told("submit and wait, spans", &s, submit_and_wait, runs);
    grt_pool_release(s.pool);
    grt_context_release(s.context);
    grt_context_release(s.second);
    sem_destroy(&s.called);
    free(s.in.data);
    free(s.out.data);
    return 0;
}
