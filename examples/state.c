/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that carry state: several at once, served by one context.
 *
 *     state MODEL DEVICE OUTPUT=INPUT [STREAMS [STEPS]]
 *
 * Each stream has a grt_state of its own. The first two streams get ones, the others zeros, as every input
 * that is not state; unknown dims are 1. In the middle the first stream is saved and goes on from that once
 * more, in a context of its own. Exit status: 0 if both ends of it, and the second stream, have equal states.
 */
#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 16, MAX_STREAMS = 64 };

typedef struct program {
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_context *context, *other;
    grt_state *streams[MAX_STREAMS];
    int n_streams, steps;
    void *zeros[MAX_INPUTS], *ones[MAX_INPUTS];
    char *output, *input;
} program;

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "state: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* Inputs that are no state, of 0 or, where they are float32, of 1. */
static bool bind_inputs(const program *p, grt_context *context, void *const *data)
{
    for (size_t i = 0; i < grt_model_input_count(p->model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (!ok(grt_model_input(p->model, i, &info), "input"))
            return false;
        grt_tensor t = {.dtype = info.dtype, .rank = info.rank, .data = data[i]};
        for (int32_t k = 0; k < info.rank; k++)
            t.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
        if (data[i] && !ok(grt_context_set_input(context, i, &t), "bind"))
            return false;
    }
    return true;
}

static bool make_inputs(program *p)
{
    for (size_t i = 0; i < grt_model_input_count(p->model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (!ok(grt_model_input(p->model, i, &info), "input"))
            return false;
        if (!strcmp(info.name, p->input) || info.has_default)
            continue;
        grt_tensor t = {.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            t.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
        p->zeros[i] = calloc(grt_tensor_bytes(&t) + 1, 1);
        p->ones[i] = calloc(grt_tensor_bytes(&t) + 1, 1);
        if (!p->zeros[i] || !p->ones[i])
            return false;
        for (int64_t k = 0; info.dtype == GRT_DTYPE_FLOAT && k < grt_tensor_elements(&t); k++)
            ((float *)p->ones[i])[k] = 1;
    }
    return true;
}

/* The state's input with its unknown dims taken as 1: zeros of that. */
static bool make_streams(program *p)
{
    grt_tensor initial = {0};
    const grt_state_pair pair = {.output = p->output, .input = p->input, .initial = &initial};
    for (size_t i = 0; i < grt_model_input_count(p->model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (!ok(grt_model_input(p->model, i, &info), "input"))
            return false;
        if (strcmp(info.name, p->input) != 0)
            continue;
        initial = (grt_tensor){.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            initial.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
    }
    for (int s = 0; s < p->n_streams; s++)
        if (!ok(grt_state_create(p->session, &pair, 1, &p->streams[s]), "state"))
            return false;
    return true;
}

/* A step of stream s: the state is handed to the context, which copies nothing. */
static bool step(const program *p, grt_context *context, int s)
{
    return ok(grt_context_set_state(context, p->streams[s]), "set state") &&
           bind_inputs(p, context, s < 2 ? p->ones : p->zeros) && ok(grt_context_run(context), "run");
}

static bool equal(grt_state *a, const grt_value *b, const char *what)
{
    grt_value *value = NULL;
    grt_tensor t, u;
    if (!ok(grt_state_save(a, 0, &value), "save") || !ok(grt_value_tensor(value, &t), what) ||
        !ok(grt_value_tensor(b, &u), what))
        return false;
    const size_t bytes = grt_tensor_bytes(&t);
    const bool same = bytes == grt_tensor_bytes(&u) && !memcmp(t.data, u.data, bytes);
    printf("%s: %s\n", what, same ? "equal" : "different");
    grt_value_release(value);
    return same;
}

static bool serve(program *p)
{
    grt_value *middle = NULL, *end = NULL;
    grt_tensor t;
    bool good = true;
    for (int i = 0; good && i < p->steps; i++) {
        if (i == p->steps / 2)
            good = ok(grt_state_save(p->streams[0], 0, &middle), "save");
        for (int s = 0; good && s < p->n_streams; s++)
            good = step(p, p->context, s);
    }
    good = good && ok(grt_context_set_state(p->context, NULL), "set state") &&
           ok(grt_state_save(p->streams[0], 0, &end), "save") && equal(p->streams[1], end, "two streams") &&
           ok(grt_value_tensor(middle, &t), "value") &&
           ok(grt_state_restore(p->streams[0], 0, &t), "restore");
    for (int i = p->steps / 2; good && i < p->steps; i++)
        good = step(p, p->other, 0);
    good = good && equal(p->streams[0], end, "a stream and its second half again");
    grt_value_release(middle);
    grt_value_release(end);
    return good;
}

static bool open_all(program *p, const char *path, const char *device)
{
    return ok(grt_runtime_create(&p->runtime), "runtime") &&
           ok(grt_model_open(p->runtime, path, &p->model), "model") &&
           ok(grt_session_create(p->model, device, NULL, &p->session), "session") &&
           ok(grt_context_create(p->session, &p->context), "context") &&
           ok(grt_context_create(p->session, &p->other), "context") &&
           grt_model_input_count(p->model) <= MAX_INPUTS && make_inputs(p) && make_streams(p);
}

static void close_all(program *p)
{
    grt_context_release(p->context);
    grt_context_release(p->other);
    for (int s = 0; s < p->n_streams; s++)
        grt_state_release(p->streams[s]);
    grt_session_release(p->session);
    grt_model_release(p->model);
    grt_runtime_release(p->runtime);
    for (int i = 0; i < MAX_INPUTS; i++) {
        free(p->zeros[i]);
        free(p->ones[i]);
    }
}

int main(int argc, char **argv)
{
    program p = {.n_streams = argc > 4 ? atoi(argv[4]) : 8, .steps = argc > 5 ? atoi(argv[5]) : 20};
    char *equals = argc > 3 ? strchr(argv[3], '=') : NULL;
    if (!equals || p.n_streams < 2 || p.n_streams > MAX_STREAMS || p.steps < 2) {
        fprintf(stderr, "usage: state MODEL DEVICE OUTPUT=INPUT [STREAMS [STEPS]]\n");
        return 2;
    }
    *equals = 0;
    p.output = argv[3];
    p.input = equals + 1;
    const bool good = open_all(&p, argv[1], argv[2]) && serve(&p);
    close_all(&p);
    return good ? 0 : 1;
}
