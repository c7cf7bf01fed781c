/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of many clients, served by a pool: a state for each of them, and requests that run with it.
 *
 *     streams MODEL DEVICE OUTPUT=INPUT [STREAMS [STEPS]]
 *
 * Each stream submits all its steps at once; the pool runs them in this order, and steps of different streams
 * side by side. Inputs that are not state are zeros, unknown dims 1. Exit status: 0 if all streams end with
 * equal states.
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
    grt_pool *pool;
    grt_tensor inputs[MAX_INPUTS]; /* that of the state has no dtype: it is not given */
    size_t n_inputs;
    struct stream {
        grt_state *state;
        int done, failed; /* callbacks of one state come one after the other */
    } streams[MAX_STREAMS];
    int n_streams, steps;
    char *output, *input;
} program;

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "streams: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* Zeros for input i; for that of the state, they are what it begins with. */
static bool make_input(program *p, size_t i, grt_tensor *initial)
{
    grt_io_info info = {.struct_size = sizeof info};
    if (!ok(grt_model_input(p->model, i, &info), "input"))
        return false;
    grt_tensor t = {.dtype = info.dtype, .rank = info.rank};
    for (int32_t k = 0; k < info.rank; k++)
        t.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
    if (strcmp(info.name, p->input) == 0) {
        *initial = t;
        return true;
    }
    t.data = calloc(grt_tensor_bytes(&t) + 1, 1);
    if (!info.has_default)
        p->inputs[i] = t;
    else
        free(t.data);
    return info.has_default || t.data;
}

static bool make_streams(program *p)
{
    grt_tensor initial = {0};
    const grt_state_pair pair = {.output = p->output, .input = p->input, .initial = &initial};
    for (size_t i = 0; i < p->n_inputs; i++)
        if (!make_input(p, i, &initial))
            return false;
    for (int s = 0; s < p->n_streams; s++)
        if (!ok(grt_state_create(p->session, &pair, 1, &p->streams[s].state), "state"))
            return false;
    return true;
}

/* By a thread of the pool: here a client would get its part of the result. */
static void step_is_done(void *user, grt_request *request)
{
    struct stream *stream = user;
    stream->done++;
    stream->failed += grt_request_wait(request) != GRT_OK; /* does not wait: it is done */
    grt_request_release(request);
}

static bool serve(program *p)
{
    bool good = true;
    for (int i = 0; good && i < p->steps; i++)
        for (int s = 0; good && s < p->n_streams; s++) {
            const grt_submission submission = {.struct_size = sizeof submission,
                                               .inputs = p->inputs,
                                               .n_inputs = p->n_inputs,
                                               .done = step_is_done,
                                               .user = &p->streams[s],
                                               .state = p->streams[s].state};
            good = ok(grt_pool_submit_with(p->pool, &submission, NULL), "submit");
        }
    return ok(grt_pool_drain(p->pool, 0), "drain") && good;
}

/* The states are the caller's again once their requests are done. */
static bool check_stream(const program *p, int s, const grt_value *first)
{
    grt_value *value = NULL;
    grt_tensor t, u;
    if (p->streams[s].done != p->steps || p->streams[s].failed ||
        !ok(grt_state_save(p->streams[s].state, 0, &value), "save") ||
        !ok(grt_value_tensor(value, &t), "value") || !ok(grt_value_tensor(first, &u), "value"))
        return false;
    const bool same = !memcmp(t.data, u.data, grt_tensor_bytes(&t));
    grt_value_release(value);
    return same;
}

static bool compare(const program *p)
{
    grt_value *first = NULL;
    bool same = ok(grt_state_save(p->streams[0].state, 0, &first), "save");
    for (int s = 0; same && s < p->n_streams; s++)
        same = check_stream(p, s, first);
    grt_value_release(first);
    printf("%d streams of %d steps: %s\n", p->n_streams, p->steps, same ? "equal" : "different");
    return same;
}

static bool open_all(program *p, const char *path, const char *device)
{
    const grt_session_options one_thread = {.struct_size = sizeof one_thread, .threads = 1};
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 2, .queue = 256};
    if (!ok(grt_runtime_create(&p->runtime), "runtime") ||
        !ok(grt_model_open(p->runtime, path, &p->model), "model") ||
        !ok(grt_session_create(p->model, device, &one_thread, &p->session), "session") ||
        !ok(grt_pool_create(&p->session, 1, &options, &p->pool), "pool"))
        return false;
    p->n_inputs = grt_model_input_count(p->model);
    return p->n_inputs <= MAX_INPUTS && make_streams(p);
}

static void close_all(program *p)
{
    grt_pool_release(p->pool);
    for (int s = 0; s < p->n_streams; s++)
        grt_state_release(p->streams[s].state);
    grt_session_release(p->session);
    grt_model_release(p->model);
    grt_runtime_release(p->runtime);
    for (int i = 0; i < MAX_INPUTS; i++)
        free(p->inputs[i].data);
}

int main(int argc, char **argv)
{
    program p = {.n_streams = argc > 4 ? atoi(argv[4]) : 8, .steps = argc > 5 ? atoi(argv[5]) : 20};
    char *equals = argc > 3 ? strchr(argv[3], '=') : NULL;
    if (!equals || p.n_streams < 1 || p.n_streams > MAX_STREAMS || p.steps < 1) {
        fprintf(stderr, "usage: streams MODEL DEVICE OUTPUT=INPUT [STREAMS [STEPS]]\n");
        return 2;
    }
    *equals = 0;
    p.output = argv[3];
    p.input = equals + 1;
    const bool good = open_all(&p, argv[1], argv[2]) && serve(&p) && compare(&p);
    close_all(&p);
    return good ? 0 : 1;
}
