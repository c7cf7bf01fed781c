/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between the host and the device: from and to page-locked memory, in the caller's stream and graph,
 * and in a pool, in sizes that drivers treat differently. Sums are what the device computes, so that every
 * element is known. */
#include "tests/device/device.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1500001 };
static const int64_t sizes[] = {1, 16383, 16384, 65535, 65536, 65537, 524287, 524288, 524289, MOST};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static bool open_sum(subject *s)
{
    const grt_tensor x = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {-1}}, both[] = {x, x};
    return subject_node(s, "Add", GRT_DTYPE_FLOAT, both, 2, 2);
}

static grt_tensor vector(float *data, int64_t n, grt_memory memory)
{
    return (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {n}, .data = data, .memory = memory};
}

static void fill(float *x, int64_t n, int seed)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((i * 31 + seed) % 4093);
}

static bool is_sum(const float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        EXPECT(y[i] == a[i] + b[i], "element %ld of %ld is %g, expected %g", (long)i, (long)n, (double)y[i],
               (double)(a[i] + b[i]));
    return true;
}

/* Memory for two inputs and an output, pageable or not. */
typedef struct buffers {
    float *at[3];
    grt_memory memory;
} buffers;

static bool buffers_make(buffers *b, const subject *s, grt_memory memory)
{
    b->memory = memory;
    for (int i = 0; i < 3; i++)
        if (memory == GRT_MEMORY_PINNED) {
            void *data;
            DONE(grt_session_alloc_host(s->session, MOST * sizeof(float), &data));
            b->at[i] = data;
        } else {
            EXPECT((b->at[i] = malloc(MOST * sizeof(float))), "out of memory");
        }
    return true;
}

static void buffers_release(buffers *b, const subject *s)
{
    for (int i = 0; i < 3; i++)
        if (b->memory == GRT_MEMORY_PINNED)
            grt_session_free_host(s->session, b->at[i]);
        else
            free(b->at[i]);
}

static bool bind(const subject *s, const buffers *b, int64_t n, bool output)
{
    const grt_tensor in[] = {vector(b->at[0], n, b->memory), vector(b->at[1], n, b->memory)},
                     out = vector(b->at[2], n, b->memory);
    DONE(grt_context_set_input(s->context, 0, &in[0]));
    DONE(grt_context_set_input(s->context, 1, &in[1]));
    DONE(grt_context_set_output(s->context, 0, output ? &out : NULL));
    return true;
}

bool copies_of_all_sizes(const char *path)
{
    (void)path;
    subject s;
    buffers all[2];
    if (!open_sum(&s) || !buffers_make(&all[0], &s, GRT_MEMORY_HOST) ||
        !buffers_make(&all[1], &s, GRT_MEMORY_PINNED))
        return false;
    for (int round = 0; round < 4 * N_SIZES; round++) {
        const buffers *b = &all[round % 2];
        const int64_t n = sizes[round / 2 % N_SIZES];
        const bool bound = round / 2 / N_SIZES;
        grt_tensor found;
        fill(b->at[0], n, round);
        fill(b->at[1], n, 3 * round + 1);
        memset(b->at[2], 0x55, (size_t)n * sizeof(float));
        if (!bind(&s, b, n, bound))
            return false;
        DONE(grt_context_run(s.context));
        DONE(grt_context_get_output(s.context, 0, &found));
        EXPECT(!bound || found.data == b->at[2], "the result lies elsewhere");
        if (!is_sum(found.data, b->at[0], b->at[1], n))
            return false;
    }
    buffers_release(&all[0], &s);
    buffers_release(&all[1], &s);
    subject_release(&s);
    return true;
}

/* Page-locked memory in enqueued runs: twice as they are, then from a graph of the caller's. */
bool copies_in_the_callers_stream(const char *path)
{
    (void)path;
    enum { SIZE = 524289 };
    subject s;
    buffers b;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    if (!open_sum(&s) || !buffers_make(&b, &s, GRT_MEMORY_PINNED) || !bind(&s, &b, SIZE, true))
        return false;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 0; round < 4; round++) {
        fill(b.at[0], SIZE, round);
        fill(b.at[1], SIZE, 5 * round);
        memset(b.at[2], 0x55, SIZE * sizeof(float));
        if (round < 2)
            DONE(grt_context_run_async(s.context, stream));
        if (round == 2) {
            CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
            DONE(grt_context_run_async(s.context, stream));
            CUDA(cudaStreamEndCapture(stream, &graph));
            CUDA(cudaGraphInstantiate(&executable, graph, 0));
        }
        if (round >= 2)
            CUDA(cudaGraphLaunch(executable, stream));
        CUDA(cudaStreamSynchronize(stream));
        if (!is_sum(b.at[2], b.at[0], b.at[1], SIZE))
            return false;
    }
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    buffers_release(&b, &s);
    subject_release(&s);
    return true;
}

/* Requests of pageable and page-locked memory, several in flight. */
bool pool_of_contexts(const char *path)
{
    (void)path;
    enum { IN_FLIGHT = 6, REQUESTS = 120 };
    subject s;
    buffers all[IN_FLIGHT];
    grt_request *requests[IN_FLIGHT] = {0};
    grt_pool *pool;
    int64_t n[IN_FLIGHT];
    if (!open_sum(&s))
        return false;
    for (int i = 0; i < IN_FLIGHT; i++)
        if (!buffers_make(&all[i], &s, i % 2 ? GRT_MEMORY_PINNED : GRT_MEMORY_HOST))
            return false;
    DONE(grt_pool_create(&s.session, 1, NULL, &pool));
    for (int k = 0; k < REQUESTS + IN_FLIGHT; k++) {
        const int i = k % IN_FLIGHT;
        const buffers *b = &all[i];
        grt_tensor found;
        if (requests[i]) {
            DONE(grt_request_wait(requests[i]));
            DONE(grt_request_get_output(requests[i], 0, &found));
            if (!is_sum(found.data, b->at[0], b->at[1], n[i]))
                return false;
        }
        grt_request_release(requests[i]);
        requests[i] = NULL;
        if (k >= REQUESTS)
            continue;
        n[i] = sizes[k % N_SIZES];
        fill(b->at[0], n[i], k);
        fill(b->at[1], n[i], 7 * k);
        const grt_tensor in[] = {vector(b->at[0], n[i], b->memory), vector(b->at[1], n[i], b->memory)},
                         out = vector(b->at[2], n[i], b->memory);
        DONE(grt_pool_submit(pool, in, 2, &out, k % 4 < 2, &requests[i]));
    }
    grt_pool_release(pool);
    for (int i = 0; i < IN_FLIGHT; i++)
        buffers_release(&all[i], &s);
    subject_release(&s);
    return true;
}
