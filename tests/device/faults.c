/* SPDX-License-Identifier: Apache-2.0 */
/* Faults on devices are reported as errors, and the process goes on where the driver allows it. */
#include "tests/device/device.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool wrong_pointers_are_refused(const char *path)
{
    subject s;
    float *host = aligned_alloc(64, 4096);
    void *pinned, *device;
    (void)path;
    const grt_tensor in = {
        .dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {16}, .data = host, .memory = GRT_MEMORY_DEVICE};
    setenv("GRAPHRT_DEBUG", "1", 1);
    if (!subject_node(&s, "Relu", GRT_DTYPE_FLOAT, &in, 1, 1))
        return false;
    CUDA(cudaHostAlloc(&pinned, 4096, 0));
    CUDA(cudaMalloc(&device, 4096));
    grt_tensor t = in;
    EXPECT(grt_context_set_input(s.context, 0, &t) == GRT_STATUS_INVALID_ARGUMENT, "host memory was taken");
    EXPECT(strstr(grt_last_error(), "'x0'") && strstr(grt_last_error(), "memory of cuda:0 is wanted"), "%s",
           grt_last_error());
    t.data = pinned;
    EXPECT(grt_context_set_output(s.context, 0, &t) == GRT_STATUS_INVALID_ARGUMENT,
           "pinned memory was taken");
    EXPECT(strstr(grt_last_error(), "host memory"), "%s", grt_last_error());
    t.data = (char *)device + 4;
    EXPECT(grt_context_set_input(s.context, 0, &t) == GRT_STATUS_INVALID_ARGUMENT,
           "unaligned memory was taken");
    t.data = device;
    t.device = 1;
    EXPECT(grt_context_set_input(s.context, 0, &t) == GRT_STATUS_INVALID_ARGUMENT,
           "another device's memory was taken");
    t.device = 0;
    DONE(grt_context_set_input(s.context, 0, &t)); /* valid runs still work */
    DONE(grt_context_run(s.context));
    subject_release(&s);
    CUDA(cudaFreeHost(pinned));
    CUDA(cudaFree(device));
    free(host);
    return true;
}

/* Leave so much of the device's memory free, or less. */
static bool take_all_but(size_t leave, void **out_taken)
{
    size_t left, total;
    CUDA(cudaMemGetInfo(&left, &total));
    EXPECT(left > leave, "only %zu bytes are free", left);
    CUDA(cudaMalloc(out_taken, left - leave));
    return true;
}

static bool says_memory(void)
{
    EXPECT(strstr(grt_last_error(), "cuda:0 is out of memory: ") &&
               strstr(grt_last_error(), " bytes wanted, ") && strstr(grt_last_error(), " free"),
           "%s", grt_last_error());
    return true;
}

bool too_little_memory_for_weights(const char *path)
{
    enum { N = 8192 }; /* a matrix of 256 MiB */
    subject s;
    void *taken;
    grt_session *second;
    float *w = calloc((size_t)N * N, sizeof *w);
    float x[N] = {1};
    (void)path;
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, N}, .data = x},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {N, N}, .data = w}};
    w[0] = 3;
    if (!subject_node(&s, "MatMul", GRT_DTYPE_FLOAT, in, 2, 1))
        return false;
    free(w);
    grt_context_release(s.context);
    grt_session_release(s.session);
    s.context = NULL;
    s.session = NULL;
    if (!take_all_but((size_t)128 << 20, &taken))
        return false;
    for (int i = 0; i < 3; i++) {
        EXPECT(grt_session_create(s.model, "cuda:0", NULL, &second) == GRT_STATUS_OUT_OF_MEMORY, "%s",
               grt_last_error());
        EXPECT(strstr(grt_last_error(), "the model's weights") && says_memory(), "%s", grt_last_error());
    }
    CUDA(cudaFree(taken));
    DONE(grt_session_create(s.model, "cuda:0", NULL, &s.session));
    DONE(grt_context_create(s.session, &s.context));
    DONE(grt_context_set_input(s.context, 0, &in[0]));
    DONE(grt_context_run(s.context));
    grt_tensor result;
    DONE(grt_context_get_output(s.context, 0, &result));
    EXPECT(((const float *)result.data)[0] == 3, "%g", (double)((const float *)result.data)[0]);
    subject_release(&s);
    return true;
}

/* A run that wants more than the card has: x [N,1] + y [1,M] is all of it, twice. */
bool too_little_memory_for_a_run(const char *path)
{
    subject s;
    size_t before = 0, left, total;
    enum { M = 1 << 20 };
    (void)path;
    CUDA(cudaMemGetInfo(&left, &total));
    const int64_t rows = (int64_t)(total / M / sizeof(float)) * 2;
    float *x = calloc((size_t)rows, sizeof *x), *y = calloc(M, sizeof *y);
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, 1}, .data = x},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, M}, .data = y}};
    if (!subject_node(&s, "Add", GRT_DTYPE_FLOAT, in, 2, 2))
        return false;
    DONE(grt_context_set_input(s.context, 0, &in[0]));
    DONE(grt_context_set_input(s.context, 1, &in[1]));
    CUDA(cudaMemGetInfo(&before, &total));
    for (int i = 0; i < 3; i++)
        EXPECT(grt_context_run(s.context) == GRT_STATUS_OUT_OF_MEMORY && says_memory(), "%s",
               grt_last_error());
    CUDA(cudaMemGetInfo(&left, &total));
    EXPECT(left == before, "%zu bytes are free, after the first it were %zu", left, before);
    subject_release(&s);
    if (!subject_open(&s, path)) /* the process goes on */
        return false;
    subject_release(&s);
    free(x);
    free(y);
    return true;
}

/* Memory that is freed after it was bound: the kernel reads unmapped memory. */
static bool read_freed_memory(subject *s, grt_status *out_status)
{
    enum { N = 64 << 20 };
    void *gone;
    float *x = calloc(N, sizeof *x);
    grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {N}, .data = x};
    if (!subject_node(s, "Relu", GRT_DTYPE_FLOAT, &in, 1, 1))
        return false;
    DONE(grt_context_set_input(s->context, 0, &in));
    DONE(grt_context_run(s->context));
    free(x);
    CUDA(cudaMalloc(&gone, N * sizeof *x));
    in.data = gone;
    in.memory = GRT_MEMORY_DEVICE;
    DONE(grt_context_set_input(s->context, 0, &in));
    CUDA(cudaFree(gone));
    *out_status = grt_context_run(s->context);
    return true;
}

static bool goes_on_elsewhere(const subject *s, const char *path, grt_session *other)
{
    grt_session *cpu;
    grt_context *context = NULL;
    grt_model *model;
    EXPECT(grt_context_run(s->context) == GRT_STATUS_DEVICE, "it ran again");
    EXPECT(strstr(grt_last_error(), "is lost"), "%s", grt_last_error());
    EXPECT(grt_context_create(s->session, &context) != GRT_OK || grt_context_run(context) != GRT_OK,
           "a new context works");
    grt_context_release(context);
    DONE(grt_model_open(s->runtime, path, &model));
    DONE(grt_session_create(model, "cpu", NULL, &cpu));
    DONE(grt_context_create(cpu, &context));
    grt_context_release(context);
    grt_session_release(cpu);
    grt_model_release(model);
    if (other) { /* a second GPU, if the machine has one */
        float x[4] = {-1, 2, -3, 4};
        const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {4}, .data = x};
        grt_tensor out;
        context = NULL;
        grt_status status = grt_context_create(other, &context);
        if (status == GRT_OK)
            status = grt_context_set_input(context, 0, &in);
        if (status == GRT_OK)
            status = grt_context_run(context);
        if (status == GRT_OK) {
            DONE(grt_context_get_output(context, 0, &out));
            EXPECT(((const float *)out.data)[3] == 4, "cuda:1 computes wrongly");
        } else /* drivers differ in this: some end the process's work on all GPUs */
            EXPECT(status == GRT_STATUS_DEVICE && strstr(grt_last_error(), "is lost"), "%s",
                   grt_last_error());
        grt_context_release(context);
    }
    return true;
}

/* A fault of a kernel ends the process's work on this GPU, and perhaps on others; sessions on the CPU still
 * work. */
bool illegal_address(const char *path)
{
    subject s, small = {0};
    grt_session *other = NULL;
    grt_status status;
    int32_t devices = 0;
    float x[4] = {0};
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {4}, .data = x};
    DONE(grt_device_count("cuda", &devices));
    if (devices > 1) {
        if (!subject_node(&small, "Relu", GRT_DTYPE_FLOAT, &in, 1, 1))
            return false;
        DONE(grt_session_create(small.model, "cuda:1", NULL, &other));
    }
    if (!read_freed_memory(&s, &status))
        return false;
    EXPECT(status == GRT_STATUS_DEVICE, "%s", status == GRT_OK ? "it ran" : grt_last_error());
    EXPECT(strstr(grt_last_error(), "cudaErrorIllegalAddress") &&
               strstr(grt_last_error(), "context on cuda:0 is lost"),
           "%s", grt_last_error());
    printf("  %s\n", grt_last_error());
    if (!goes_on_elsewhere(&s, path, other))
        return false;
    grt_session_release(other);
    subject_release(&small);
    subject_release(&s);
    return true;
}

bool illegal_address_while_debugging(const char *path)
{
    subject s;
    grt_status status;
    (void)path;
    setenv("GRAPHRT_DEBUG", "1", 1);
    if (!read_freed_memory(&s, &status))
        return false;
    EXPECT(status == GRT_STATUS_DEVICE && !strncmp(grt_last_error(), "Relu node 'Relu': ", 18), "%s",
           grt_last_error());
    subject_release(&s);
    return true;
}
