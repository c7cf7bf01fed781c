/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "bench/subject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void must(grt_status status, const char *what)
{
    if (status == GRT_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, grt_last_error());
    exit(1);
}

/* Dims of the output follow from those of the input. */
static void find_dims(subject *s)
{
    grt_context *context;
    grt_io_info info = {.struct_size = sizeof info};
    must(grt_model_input(s->model, 0, &info), "input");
    s->in = (grt_tensor){.dtype = info.dtype, .rank = info.rank};
    for (int32_t i = 0; i < info.rank; i++)
        s->in.dims[i] = info.dims[i] < 0 ? 1 : info.dims[i];
    grt_tensor in = alloc_rows(s, &s->in, s->in.dims[0], GRT_MEMORY_HOST);
    must(grt_context_create(s->session, &context), "context");
    must(grt_context_set_input(context, 0, &in), "set input");
    must(grt_context_output_dims(context, 0, &s->out), "output");
    s->out.data = NULL;
    grt_context_release(context);
    free_rows(s, &in);
}

subject open_subject(grt_runtime *runtime, const char *path, const char *device, int32_t priority,
                     int64_t multiprocessors)
{
    subject s = {0};
    char kind[32] = "cpu";
    sscanf(device, "%31[a-z]", kind);
    const grt_compile_options compile = {.struct_size = sizeof compile, .target = kind};
    const bool plan = strlen(path) > 4 && !strcmp(path + strlen(path) - 4, ".grt");
    const grt_session_options options = {
        .struct_size = sizeof options, .priority = priority, .multiprocessors = multiprocessors};
    must(grt_model_open_with(runtime, path, plan ? NULL : &compile, &s.model), path);
    const grt_status status = grt_session_create(s.model, device, &options, &s.session);
    if (!multiprocessors)
        must(status, "session");
    if (s.session)
        find_dims(&s);
    return s;
}

void close_subject(const subject *s)
{
    grt_session_release(s->session);
    grt_model_release(s->model);
}

grt_tensor alloc_rows(const subject *s, const grt_tensor *row, int64_t rows, grt_memory memory)
{
    grt_tensor t = *row;
    t.dims[0] = rows;
    t.memory = memory;
    const size_t bytes = grt_tensor_bytes(&t);
    if (memory == GRT_MEMORY_PINNED)
        must(grt_session_alloc_host(s->session, bytes, &t.data), "memory of the host");
    else
        must((t.data = malloc(bytes + 1)) ? GRT_OK : GRT_STATUS_OUT_OF_MEMORY, "memory of the host");
    memset(t.data, 0, bytes);
    return t;
}

void free_rows(const subject *s, const grt_tensor *t)
{
    if (t->memory == GRT_MEMORY_PINNED)
        grt_session_free_host(s->session, t->data);
    else
        free(t->data);
}

int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
