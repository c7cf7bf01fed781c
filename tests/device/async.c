/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueued runs: on a stream of the caller's, with changing buffers, in the caller's own graph, from two
 * threads. Their results are those of grt_context_run, bit for bit. */
#include "tests/device/device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SETS = 3, BATCH = 4 };

/* Inputs and what the model makes of them, on the host; a set of buffers on the device for each. */
typedef struct sets {
    grt_tensor in, out; /* types */
    size_t in_bytes, out_bytes;
    float *inputs[SETS], *expected[SETS];
    void *device_in[SETS], *device_out[SETS];
} sets;

static bool type_of(const grt_io_info *info, grt_tensor *out)
{
    *out = (grt_tensor){.dtype = info->dtype, .rank = info->rank};
    for (int32_t k = 0; k < info->rank; k++)
        out->dims[k] = info->dims[k] < 0 ? BATCH : info->dims[k];
    return info->dtype == GRT_DTYPE_FLOAT;
}

static bool sets_make(sets *all, const subject *s)
{
    grt_io_info in = {.struct_size = sizeof in}, out = {.struct_size = sizeof out};
    grt_tensor result;
    DONE(grt_model_input(s->model, 0, &in));
    DONE(grt_model_output(s->model, 0, &out));
    EXPECT(type_of(&in, &all->in) && type_of(&out, &all->out),
           "the model's input and output must be float32");
    all->in_bytes = grt_tensor_bytes(&all->in);
    all->out_bytes = grt_tensor_bytes(&all->out);
    for (int k = 0; k < SETS; k++) {
        all->inputs[k] = malloc(all->in_bytes);
        all->expected[k] = malloc(all->out_bytes);
        for (size_t i = 0; i < all->in_bytes / sizeof(float); i++)
            all->inputs[k][i] = (float)((i * 7919 + (size_t)k * 131) % 1000) / 500 - 1;
        grt_tensor bound = all->in;
        bound.data = all->inputs[k];
        DONE(grt_context_set_input(s->context, 0, &bound));
        DONE(grt_context_run(s->context));
        DONE(grt_context_get_output(s->context, 0, &result));
        EXPECT(grt_tensor_bytes(&result) == all->out_bytes, "the output has another size");
        memcpy(all->expected[k], result.data, all->out_bytes);
        CUDA(cudaMalloc(&all->device_in[k], all->in_bytes));
        CUDA(cudaMalloc(&all->device_out[k], all->out_bytes));
        CUDA(cudaMemcpy(all->device_in[k], all->inputs[k], all->in_bytes, cudaMemcpyHostToDevice));
    }
    EXPECT(memcmp(all->expected[0], all->expected[1], all->out_bytes) != 0, "all inputs give the same");
    return true;
}

static void sets_release(sets *all)
{
    for (int k = 0; k < SETS; k++) {
        free(all->inputs[k]);
        free(all->expected[k]);
        cudaFree(all->device_in[k]);
        cudaFree(all->device_out[k]);
    }
}

static bool bind(const sets *all, grt_context *context, int in, int out)
{
    grt_tensor t = all->in;
    t.memory = GRT_MEMORY_DEVICE;
    t.data = all->device_in[in];
    DONE(grt_context_set_input(context, 0, &t));
    t = all->out;
    t.memory = GRT_MEMORY_DEVICE;
    t.data = all->device_out[out];
    DONE(grt_context_set_output(context, 0, &t));
    return true;
}

/* The data must be the result of input k; it is cleared afterwards. */
static bool holds(const sets *all, void *data, int k)
{
    float *found = malloc(all->out_bytes);
    CUDA(cudaMemcpy(found, data, all->out_bytes, cudaMemcpyDeviceToHost));
    const bool same = memcmp(found, all->expected[k], all->out_bytes) == 0;
    EXPECT(same, "element 0 is %g, expected %g", (double)found[0], (double)all->expected[k][0]);
    CUDA(cudaMemset(data, 0xff, all->out_bytes));
    free(found);
    return true;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool enqueued_runs(const char *path)
{
    enum {
        RUNS = 201,
        MOST_US = 100
    }; /* a generous limit: other work on the machine must not fail the test */
    subject s;
    sets all = {0};
    cudaStream_t stream;
    double us[RUNS];
    grt_tensor result;
    if (!subject_open(&s, path) || !sets_make(&all, &s))
        return false;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!bind(&all, s.context, 0, 0))
        return false;
    for (int i = 0; i < RUNS; i++) {
        const double begin = now_us();
        DONE(grt_context_run_async(s.context, stream));
        us[i] = now_us() - begin;
        CUDA(cudaStreamSynchronize(stream));
        if (i < 5 && !holds(&all, all.device_out[0], 0))
            return false;
    }
    qsort(us, RUNS, sizeof *us, ascending);
    printf("  enqueuing a run: median %.1f us, best %.1f us\n", us[RUNS / 2], us[0]);
    EXPECT(us[RUNS / 2] < MOST_US, "more than %d us", MOST_US);
    /* the same buffers through a run that waits, then outputs that stay in the context's memory on the device
     */
    DONE(grt_context_run(s.context));
    if (!holds(&all, all.device_out[0], 0))
        return false;
    DONE(grt_context_set_output(s.context, 0, NULL));
    DONE(grt_context_run_async(s.context, stream));
    DONE(grt_context_get_output(s.context, 0, &result));
    EXPECT(result.memory == GRT_MEMORY_DEVICE && result.device == 0, "the output is not on the device");
    CUDA(cudaStreamSynchronize(stream));
    const bool same = holds(&all, result.data, 0);
    grt_tensor host = all.in;
    host.data = all.inputs[0];
    DONE(grt_context_set_input(s.context, 0, &host));
    EXPECT(grt_context_run_async(s.context, stream) == GRT_STATUS_INVALID_ARGUMENT, "host memory was taken");
    CUDA(cudaStreamDestroy(stream));
    sets_release(&all);
    subject_release(&s);
    return same;
}

/* Inputs and outputs that alternate, as in double buffering, on two streams, one after another. */
bool other_sets_of_buffers(const char *path)
{
    subject s;
    sets all = {0};
    cudaStream_t streams[2];
    if (!subject_open(&s, path) || !sets_make(&all, &s))
        return false;
    for (int i = 0; i < 2; i++)
        CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    for (int i = 0; i < 40; i++) {
        const int in = i % SETS, out = i / 2 % SETS;
        if (!bind(&all, s.context, in, out))
            return false;
        DONE(grt_context_run_async(s.context, streams[i % 2]));
        CUDA(cudaStreamSynchronize(streams[i % 2]));
        if (!holds(&all, all.device_out[out], in))
            return false;
    }
    /* enqueued in order on one stream, without waiting */
    for (int k = 0; k < SETS; k++) {
        if (!bind(&all, s.context, k, k))
            return false;
        DONE(grt_context_run_async(s.context, streams[0]));
    }
    CUDA(cudaStreamSynchronize(streams[0]));
    for (int k = 0; k < SETS; k++)
        if (!holds(&all, all.device_out[k], k))
            return false;
    for (int i = 0; i < 2; i++)
        CUDA(cudaStreamDestroy(streams[i]));
    sets_release(&all);
    subject_release(&s);
    return true;
}

/* The caller captures a copy, a run and a copy; the graph works on whatever the buffers hold when it is
 * launched. */
bool callers_own_graph(const char *path)
{
    subject s;
    sets all = {0};
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    if (!subject_open(&s, path) || !sets_make(&all, &s) || !bind(&all, s.context, 0, 0))
        return false;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DONE(grt_context_run_async(s.context, stream)); /* the dims run once before they are captured */
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaMemcpyAsync(all.device_in[0], all.device_in[2], all.in_bytes, cudaMemcpyDeviceToDevice, stream));
    DONE(grt_context_run_async(s.context, stream));
    CUDA(cudaMemcpyAsync(all.device_out[1], all.device_out[0], all.out_bytes, cudaMemcpyDeviceToDevice,
                         stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&launchable, graph, 0));
    for (int i = 0; i < 3; i++) {
        const int k = i % 2;
        CUDA(cudaMemcpy(all.device_in[2], all.inputs[k], all.in_bytes, cudaMemcpyHostToDevice));
        CUDA(cudaGraphLaunch(launchable, stream));
        CUDA(cudaStreamSynchronize(stream));
        if (!holds(&all, all.device_out[1], k))
            return false;
    }
    CUDA(cudaGraphExecDestroy(launchable));
    CUDA(cudaGraphDestroy(graph));
    /* and the context goes on by itself */
    CUDA(cudaMemcpy(all.device_in[0], all.inputs[0], all.in_bytes, cudaMemcpyHostToDevice));
    DONE(grt_context_run(s.context));
    const bool same = holds(&all, all.device_out[0], 0);
    CUDA(cudaStreamDestroy(stream));
    sets_release(&all);
    subject_release(&s);
    return same;
}

typedef struct thread_work {
    const subject *s;
    const sets *all;
    int k;
    bool passed;
} thread_work;

static bool run_many_times(const thread_work *w)
{
    grt_context *context;
    grt_tensor result, bound = w->all->in;
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DONE(grt_context_create(w->s->session, &context));
    for (int i = 0; i < 200; i++) {
        const int k = (w->k + i / 50) % 2 ? w->k : SETS - 1; /* the set changes now and then */
        if (i % 2) { /* enqueued, into a buffer that is this thread's */
            if (!bind(w->all, context, k, w->k))
                return false;
            DONE(grt_context_run_async(context, stream));
            CUDA(cudaStreamSynchronize(stream));
            if (!holds(w->all, w->all->device_out[w->k], k))
                return false;
            continue;
        }
        bound.data = w->all->inputs[k];
        DONE(grt_context_set_input(context, 0, &bound));
        DONE(grt_context_set_output(context, 0, NULL));
        DONE(grt_context_run(context));
        DONE(grt_context_get_output(context, 0, &result));
        EXPECT(memcmp(result.data, w->all->expected[k], w->all->out_bytes) == 0,
               "thread %d, run %d: another result", w->k, i);
    }
    grt_context_release(context);
    CUDA(cudaStreamDestroy(stream));
    return true;
}

static void *work(void *arg)
{
    thread_work *w = arg;
    w->passed = run_many_times(w);
    return NULL;
}

/* One session, a context for each thread, at the same time. */
bool two_contexts_in_two_threads(const char *path)
{
    subject s;
    sets all = {0};
    pthread_t threads[2];
    thread_work works[2];
    if (!subject_open(&s, path) || !sets_make(&all, &s))
        return false;
    for (int k = 0; k < 2; k++) {
        works[k] = (thread_work){.s = &s, .all = &all, .k = k};
        EXPECT(pthread_create(&threads[k], NULL, work, &works[k]) == 0, "no thread");
    }
    for (int k = 0; k < 2; k++)
        pthread_join(threads[k], NULL);
    sets_release(&all);
    subject_release(&s);
    return works[0].passed && works[1].passed;
}

bool replay_is_reported(const char *path)
{
    subject s;
    sets all = {0};
    grt_replay_info replay = {.struct_size = sizeof replay};
    if (!subject_open(&s, path) || !sets_make(&all, &s)) /* three runs with the same pointers on the device */
        return false;
    DONE(grt_context_get_replay(s.context, &replay));
    EXPECT(replay.supported && replay.graphs == 1 && !*replay.reason, "%d graphs; %s", replay.graphs,
           replay.reason);
    sets_release(&all);
    subject_release(&s);
    float x[6] = {0, 1, 0, 2, 3, 0};
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {6}, .data = x};
    if (!subject_node(&s, "NonZero", GRT_DTYPE_INT64, &in, 1, 1))
        return false;
    DONE(grt_context_set_input(s.context, 0, &in));
    DONE(grt_context_run(s.context));
    DONE(grt_context_get_replay(s.context, &replay));
    EXPECT(!strcmp(replay.op, "NonZero") && !strcmp(replay.reason, "its result's size depends on data"),
           "%s: %s", replay.op, replay.reason);
    EXPECT(grt_context_run_async(s.context, NULL) == GRT_STATUS_INVALID_ARGUMENT, "host memory was taken");
    subject_release(&s);
    return true;
}
