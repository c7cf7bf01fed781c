/* SPDX-License-Identifier: Apache-2.0 */
/* Runs beside the caller's own CUDA work: results on its stream, one context on two streams, graphs that
 * outlive captured objects, the thread's current device. */
#include "tests/device/device.h"
#include "tests/differential/model.h"

#include <cuda.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUSY_BYTES = 512 << 20, BUSY_TIMES = 40 };

static bool keep_busy(cudaStream_t stream, void *memory)
{
    for (int i = 0; i < BUSY_TIMES; i++)
        CUDA(cudaMemsetAsync(memory, i, BUSY_BYTES, stream));
    return true;
}

static grt_tensor on_device(int32_t rank, int64_t rows, int64_t columns, void *data)
{
    return (grt_tensor){.dtype = GRT_DTYPE_FLOAT,
                        .rank = rank,
                        .dims = {rows, columns},
                        .data = data,
                        .memory = GRT_MEMORY_DEVICE};
}

static bool all_are(const float *x, int n, float wanted)
{
    for (int i = 0; i < n; i++)
        EXPECT(x[i] == wanted, "element %d is %g, expected %g", i, (double)x[i], (double)wanted);
    return true;
}

/* The second half of x: a part of a value, which no memory of the caller's can take in place. */
bool parts_on_the_callers_stream(const char *path)
{
    enum { N = 1 << 16 };
    subject s;
    node n = {.op = "Split", .n_in = 1, .out = GRT_DTYPE_FLOAT, .n_more = 1, .which = 1, .n_attributes = 1};
    void *busy, *pinned;
    float *x, *y, *host = malloc(N * sizeof *host);
    cudaStream_t stream;
    (void)path;
    n.in[0] = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2 * N}};
    n.attributes[0] = (attribute){.name = "num_outputs", .ints = {2}, .n = -1};
    if (!subject_model(&s, &n))
        return false;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc(&busy, BUSY_BYTES));
    CUDA(cudaMalloc((void **)&x, 2 * N * sizeof *x));
    CUDA(cudaMalloc((void **)&y, N * sizeof *y));
    CUDA(cudaHostAlloc(&pinned, 2 * N * sizeof *x, 0));
    grt_tensor in = on_device(1, 2 * N, 0, x), out = on_device(1, N, 0, y);
    DONE(grt_context_set_input(s.context, 0, &in));
    DONE(grt_context_set_output(s.context, 0, &out));
    for (int run = 1; run <= 4; run++) { /* step by step, captured, replayed */
        for (int i = 0; i < 2 * N; i++)
            ((float *)pinned)[i] = (float)run;
        if (!keep_busy(stream, busy))
            return false;
        CUDA(cudaMemcpyAsync(x, pinned, 2 * N * sizeof *x, cudaMemcpyHostToDevice, stream));
        DONE(grt_context_run_async(s.context, stream));
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaMemcpy(host, y, N * sizeof *y, cudaMemcpyDeviceToHost));
        if (!all_are(host, N, (float)run))
            return false;
    }
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
    CUDA(cudaFree(busy));
    CUDA(cudaFreeHost(pinned));
    free(host);
    subject_release(&s);
    return true;
}

/* The run on the free stream waits for the one on the busy stream, so its result remains. */
bool one_context_on_two_streams(const char *path)
{
    enum { N = 4096 };
    subject s;
    void *busy;
    float *x[2], host[N];
    cudaStream_t streams[2];
    const grt_tensor type = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {N}};
    grt_tensor out;
    (void)path;
    if (!subject_node(&s, "Abs", GRT_DTYPE_FLOAT, &type, 1, 1))
        return false;
    CUDA(cudaMalloc(&busy, BUSY_BYTES));
    for (int k = 0; k < 2; k++) {
        CUDA(cudaStreamCreateWithFlags(&streams[k], cudaStreamNonBlocking));
        CUDA(cudaMalloc((void **)&x[k], N * sizeof *x[k]));
        for (int i = 0; i < N; i++)
            host[i] = (float)(-1 - k);
        CUDA(cudaMemcpy(x[k], host, sizeof host, cudaMemcpyHostToDevice));
    }
    for (int run = 0; run < 5; run++) {
        if (!keep_busy(streams[0], busy))
            return false;
        for (int k = 0; k < 2; k++) {
            const grt_tensor in = on_device(1, N, 0, x[k]);
            DONE(grt_context_set_input(s.context, 0, &in));
            DONE(grt_context_run_async(s.context, streams[k]));
        }
        DONE(grt_context_get_output(s.context, 0, &out));
        CUDA(cudaDeviceSynchronize());
        CUDA(cudaMemcpy(host, out.data, sizeof host, cudaMemcpyDeviceToHost));
        if (!all_are(host, N, 2))
            return false;
        /* and a run that waits, behind one that does not */
        grt_tensor in = on_device(1, N, 0, x[0]);
        if (!keep_busy(streams[1], busy))
            return false;
        DONE(grt_context_run_async(s.context, streams[1]));
        DONE(grt_context_set_input(s.context, 0, &in));
        DONE(grt_context_run(s.context));
        DONE(grt_context_get_output(s.context, 0, &out));
        if (!all_are(out.data, N, 1))
            return false;
        EXPECT(cudaStreamQuery(streams[1]) == cudaSuccess, "the run before is not done");
    }
    for (int k = 0; k < 2; k++) {
        CUDA(cudaStreamDestroy(streams[k]));
        CUDA(cudaFree(x[k]));
    }
    CUDA(cudaFree(busy));
    subject_release(&s);
    return true;
}

enum { ROWS = 1000, COLUMNS = 8, CELLS = ROWS * COLUMNS };

static bool run_with_rows(const subject *s, int64_t rows)
{
    float *host = calloc((size_t)rows * COLUMNS, sizeof *host);
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, COLUMNS}, .data = host};
    DONE(grt_context_set_input(s->context, 0, &in));
    DONE(grt_context_set_output(s->context, 0, NULL));
    DONE(grt_context_run(s->context));
    free(host);
    return true;
}

bool callers_graph_after_other_sizes(const char *path)
{
    subject s;
    node n = {.op = "Softmax", .then = "Transpose", .n_in = 1, .out = GRT_DTYPE_FLOAT};
    float *x, *y, expected[CELLS], found[CELLS], host[CELLS];
    void *garbage[8];
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    (void)path;
    n.in[0] = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {-1, COLUMNS}};
    if (!subject_model(&s, &n))
        return false;
    for (int i = 0; i < CELLS; i++)
        host[i] = (float)(i * 7 % 31) / 8;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&x, sizeof host));
    CUDA(cudaMalloc((void **)&y, sizeof host));
    CUDA(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    const grt_tensor in = on_device(2, ROWS, COLUMNS, x), out = on_device(2, COLUMNS, ROWS, y);
    DONE(grt_context_set_input(s.context, 0, &in));
    DONE(grt_context_set_output(s.context, 0, &out));
    DONE(grt_context_run(s.context));
    CUDA(cudaMemcpy(expected, y, sizeof expected, cudaMemcpyDeviceToHost));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    DONE(grt_context_run_async(s.context, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&launchable, graph, 0));
    for (int64_t k = 1; k <= 20; k++) /* more combinations than are kept, and larger ones */
        if (!run_with_rows(&s, ROWS * k + 1))
            return false;
    for (int k = 0; k < 8; k++) { /* freed memory is reused */
        CUDA(cudaMalloc(&garbage[k], sizeof host));
        CUDA(cudaMemset(garbage[k], 0x7f, sizeof host));
    }
    CUDA(cudaMemset(y, 0, sizeof host));
    CUDA(cudaDeviceSynchronize()); /* the stream does not wait for the default one's work */
    CUDA(cudaGraphLaunch(launchable, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(found, y, sizeof found, cudaMemcpyDeviceToHost));
    EXPECT(!memcmp(found, expected, sizeof found), "element 0 is %g, expected %g", (double)found[0],
           (double)expected[0]);
    for (int k = 0; k < 8; k++) {
        CUDA(cudaMemcpy(found, garbage[k], sizeof found, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < sizeof found; i++)
            EXPECT(((unsigned char *)found)[i] == 0x7f, "the graph wrote into memory of others");
        CUDA(cudaFree(garbage[k]));
    }
    CUDA(cudaGraphExecDestroy(launchable));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
    subject_release(&s);
    return true;
}

/* An input that is not bound has its default, which lies in the plan. */
bool defaults_in_the_callers_graph(const char *path)
{
    enum { N = 200000 };
    subject s;
    node n = {.op = "Add", .n_in = 2, .out = GRT_DTYPE_FLOAT, .preset = {false, true}};
    float *host = malloc(N * sizeof *host), *x, *y;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    (void)path;
    for (int i = 0; i < N; i++)
        host[i] = 3;
    n.in[0] = n.in[1] = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {N}, .data = host};
    if (!subject_model(&s, &n))
        return false;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&x, N * sizeof *x));
    CUDA(cudaMalloc((void **)&y, N * sizeof *y));
    CUDA(cudaMemcpy(x, host, N * sizeof *x, cudaMemcpyHostToDevice));
    const grt_tensor in = on_device(1, N, 0, x), out = on_device(1, N, 0, y);
    DONE(grt_context_set_input(s.context, 0, &in));
    DONE(grt_context_set_output(s.context, 0, &out));
    for (int run = 0; run < 4; run++) {
        DONE(grt_context_run_async(s.context, stream));
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaMemcpy(host, y, N * sizeof *y, cudaMemcpyDeviceToHost));
        if (!all_are(host, N, 6))
            return false;
    }
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    DONE(grt_context_run_async(s.context, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&launchable, graph, 0));
    const grt_tensor other = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {N}, .data = host}; /* sixes */
    DONE(grt_context_set_input(s.context, 1, &other));
    DONE(grt_context_run(s.context));
    CUDA(cudaGraphLaunch(launchable, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(host, y, N * sizeof *y, cudaMemcpyDeviceToHost));
    if (!all_are(host, N, 6))
        return false;
    CUDA(cudaGraphExecDestroy(launchable));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
    free(host);
    subject_release(&s);
    return true;
}

typedef struct thread_work {
    const subject *s;
    bool passed;
} thread_work;

static bool in_a_thread_without_one(const subject *s)
{
    CUresult (*get)(CUcontext *);
    enum cudaDriverEntryPointQueryResult result;
    CUcontext now = NULL;
    grt_context *context;
    float x[16] = {0};
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {16}, .data = x};
    void *function = NULL;
    CUDA(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 12000, cudaEnableDefault, &result));
    memcpy(&get, &function, sizeof get);
    EXPECT(get(&now) == CUDA_SUCCESS && !now, "a new thread has a context");
    DONE(grt_context_create(s->session, &context));
    EXPECT(get(&now) == CUDA_SUCCESS && !now, "creating a context left one behind");
    DONE(grt_context_set_input(context, 0, &in));
    for (int i = 0; i < 3; i++)
        DONE(grt_context_run(context));
    DONE(grt_context_run_async(context, NULL) == GRT_STATUS_INVALID_ARGUMENT ? GRT_OK : GRT_STATUS_INTERNAL);
    EXPECT(get(&now) == CUDA_SUCCESS && !now, "running left one behind");
    grt_context_release(context);
    EXPECT(get(&now) == CUDA_SUCCESS && !now, "releasing left one behind");
    return true;
}

static void *work(void *arg)
{
    thread_work *w = arg;
    w->passed = in_a_thread_without_one(w->s);
    return NULL;
}

bool current_device_is_given_back(const char *path)
{
    subject s;
    pthread_t thread;
    int devices = 0, now = -1;
    float x[16] = {0};
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {16}, .data = x};
    (void)path;
    if (!subject_node(&s, "Abs", GRT_DTYPE_FLOAT, &in, 1, 1))
        return false;
    thread_work w = {.s = &s};
    EXPECT(pthread_create(&thread, NULL, work, &w) == 0, "no thread");
    pthread_join(thread, NULL);
    if (!w.passed)
        return false;
    CUDA(cudaGetDeviceCount(&devices));
    if (devices > 1) { /* this thread works on another GPU */
        CUDA(cudaSetDevice(1));
        DONE(grt_context_set_input(s.context, 0, &in));
        DONE(grt_context_run(s.context));
        CUDA(cudaGetDevice(&now));
        EXPECT(now == 1, "device %d is current", now);
    }
    subject_release(&s);
    if (devices > 1) {
        CUDA(cudaGetDevice(&now));
        EXPECT(now == 1, "device %d is current", now);
    }
    return true;
}
