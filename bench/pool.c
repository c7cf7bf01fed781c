/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool adds to a run, and how long a run goes on after it was stopped.
 *
 *     pool MODEL [DEVICE [RUNS]]      MODEL has one float32 input; unknown dims are 1
 *
 * Prints the median and the 99th percentile of: a run in a context; grt_pool_run; a request that is submitted
 * and waited for, and its submission alone; the same from a callback. One at a time. */
#include <graphrt/graphrt.h>

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 2000 };

typedef struct subject {
    grt_context *context;
    grt_pool *pool;
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

static double submit_alone(subject *s)
{
    (void)submit_and_wait(s);
    return submitting;
}

static double called_at;

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
    while (sem_wait(&s->called) != 0)
        ;
    return called_at - begin;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, subject *s, double (*once)(subject *s), long runs)
{
    double *ms = malloc((size_t)runs * sizeof *ms);
    if (!ms)
        exit(1);
    for (int i = 0; i < WARM_UP; i++)
        (void)once(s);
    for (long i = 0; i < runs; i++)
        ms[i] = once(s);
    qsort(ms, (size_t)runs, sizeof *ms, compare_times);
    printf("%-28s min %8.2f us, median %8.2f us, p99 %8.2f us\n", name, 1e3 * ms[0], 1e3 * ms[runs / 2],
           1e3 * ms[runs * 99 / 100]);
    free(ms);
}

static void open_subject(subject *s, const char *path, const char *device)
{
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_io_info info = {.struct_size = sizeof info};
    const grt_compile_options compile = {.struct_size = sizeof compile, .target = device};
    const grt_session_options options = {.struct_size = sizeof options, .threads = 1};
    must(grt_runtime_create(&runtime), "runtime");
    must(grt_model_open_with(runtime, path, &compile, &model), path);
    must(grt_session_create(model, device, &options, &session), "session");
    must(grt_context_create(session, &s->context), "context");
    must(grt_pool_create(&session, 1, NULL, &s->pool), "grt_pool_create");
    must(grt_model_input(model, 0, &info), "input");
    s->in = (grt_tensor){.dtype = info.dtype, .rank = info.rank};
    for (int32_t i = 0; i < info.rank; i++)
        s->in.dims[i] = info.dims[i] < 0 ? 1 : info.dims[i];
    s->in.data = calloc(grt_tensor_bytes(&s->in) + 1, 1);
    must(grt_context_set_input(s->context, 0, &s->in), "set input");
    must(grt_context_output_dims(s->context, 0, &s->out), "output");
    s->out.data = malloc(grt_tensor_bytes(&s->out) + 1);
    must(grt_context_set_output(s->context, 0, &s->out), "set output");
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
    measure("run in a context", &s, run_context, runs);
    measure("grt_pool_run", &s, run_pool, runs);
    measure("submit and wait", &s, submit_and_wait, runs);
    measure("submit", &s, submit_alone, runs);
    measure("submit until called back", &s, submit_and_be_called, runs);
    grt_pool_release(s.pool);
    grt_context_release(s.context);
    sem_destroy(&s.called);
    free(s.in.data);
    free(s.out.data);
    return 0;
}
