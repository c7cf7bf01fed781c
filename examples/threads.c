/* SPDX-License-Identifier: Apache-2.0 */
/* One session, many threads: the weights exist once, every thread has a context of its own, and no run takes
 * a lock.
 *
 *     threads MODEL [THREADS [RUNS]]
 *
 * Every thread runs the model on the same input and compares each result with the first one, byte by byte.
 */
#include <graphrt/graphrt.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_THREADS = 256, MAX_INPUTS = 64 };

/* What the threads share; read-only once they run. */
struct job {
    grt_session *session;
    grt_tensor inputs[MAX_INPUTS];
    size_t n_inputs;
    grt_tensor expected; /* output 0 */
    int runs;
};

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "threads: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* An input of the model's type, unknown dims 1: a ramp in 0..1 for floats, zeros for all else. */
static bool make_input(const grt_model *model, size_t index, grt_tensor *out)
{
    grt_io_info info = {.struct_size = sizeof info};
    if (!ok(grt_model_input(model, index, &info), "input"))
        return false;
    *out = (grt_tensor){.dtype = info.dtype, .rank = info.rank};
    for (int32_t i = 0; i < info.rank; i++)
        out->dims[i] = info.dims[i] < 0 ? 1 : info.dims[i];
    size_t bytes = grt_tensor_bytes(out);
    if (info.kind != GRT_KIND_TENSOR || bytes == SIZE_MAX) {
        fprintf(stderr, "threads: input %s is not a tensor of known rank\n", info.name);
        return false;
    }
    out->data = calloc(bytes ? bytes : 1, 1);
    if (out->data && info.dtype == GRT_DTYPE_FLOAT)
        for (int64_t i = 0, n = grt_tensor_elements(out); i < n; i++)
            ((float *)out->data)[i] = (float)i / (float)n;
    return out->data != NULL;
}

static bool bind_inputs(grt_context *context, const struct job *job)
{
    for (size_t i = 0; i < job->n_inputs; i++)
        if (!ok(grt_context_set_input(context, i, &job->inputs[i]), "set input"))
            return false;
    return true;
}

/* One thread's life: NULL if every run gave the expected bytes. */
static void *work(void *argument)
{
    const struct job *job = argument;
    grt_context *context = NULL;
    grt_tensor output;
    bool fine = ok(grt_context_create(job->session, &context), "context") && bind_inputs(context, job);
    for (int i = 0; fine && i < job->runs; i++) {
        fine =
            ok(grt_context_run(context), "run") && ok(grt_context_get_output(context, 0, &output), "output");
        if (fine && memcmp(output.data, job->expected.data, grt_tensor_bytes(&output)) != 0) {
            fprintf(stderr, "threads: a result differs\n");
            fine = false;
        }
    }
    grt_context_release(context);
    return fine ? NULL : argument;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool run_threads(struct job *job, int n)
{
    pthread_t threads[MAX_THREADS];
    bool fine = true;
    int started = 0;
    double start = now();
    while (started < n && pthread_create(&threads[started], NULL, work, job) == 0)
        started++;
    for (int i = 0; i < started; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        fine = fine && !failed;
    }
    double seconds = now() - start;
    if (fine && started == n)
        printf("%3d threads: %8.0f runs/s, every result the same\n", n, (double)n * job->runs / seconds);
    return fine && started == n;
}

/* The first run, whose output all others must repeat; then 1, 2, 4 ... n threads. */
static bool compare(struct job *job, int n)
{
    grt_context *context = NULL;
    bool fine = ok(grt_context_create(job->session, &context), "context") && bind_inputs(context, job) &&
                ok(grt_context_run(context), "run") &&
                ok(grt_context_get_output(context, 0, &job->expected), "output");
    for (int i = 1; fine && i < n; i *= 2)
        fine = run_threads(job, i);
    fine = fine && run_threads(job, n);
    grt_context_release(context); /* expected lives in its memory */
    return fine;
}

/* 0 if the text is no number. */
static int number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    return *end || value < 0 || value > 1000000 ? 0 : (int)value;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? number(argv[2]) : 4;
    struct job job = {.runs = argc > 3 ? number(argv[3]) : 100};
    if (argc < 2 || argc > 4 || n < 1 || n > MAX_THREADS || job.runs < 1) {
        fprintf(stderr, "usage: threads MODEL [THREADS (1-%d) [RUNS]]\n", MAX_THREADS);
        return 2;
    }
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    /* Threads of an operator: 1, so that contexts and not operators share out the cores. */
    grt_session_options options = {.struct_size = sizeof options, .threads = 1};
    bool fine = ok(grt_runtime_create(&runtime), "runtime") &&
                ok(grt_model_open(runtime, argv[1], &model), "model") &&
                ok(grt_session_create(model, "cpu", &options, &job.session), "session") &&
                grt_model_input_count(model) <= MAX_INPUTS;
    while (fine && job.n_inputs < grt_model_input_count(model)) {
        fine = make_input(model, job.n_inputs, &job.inputs[job.n_inputs]);
        job.n_inputs += fine;
    }
    fine = fine && compare(&job, n);
    for (size_t i = 0; i < job.n_inputs; i++)
        free(job.inputs[i].data);
    grt_session_release(job.session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
