/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of requests over all devices of a kind: copies of the next request and of the last one's results
 * go on while one computes, and each request goes to the device that has the fewest.
 *
 *     pool MODEL [KIND [REQUESTS]]
 *
 * KIND is "cpu" or "cuda". MODEL has one float32 input; its data lies in page-locked memory, so that copies
 * need no staging. Every result is compared with the first one of the same input, byte by byte.
 */
#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_DEVICES = 64, INPUTS = 2, IN_FLIGHT = 16 };

/* A request under way, with memory of its own for the result. */
struct slot {
    grt_request *request;
    grt_tensor output;
    int input;
};

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "pool: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A session on every device, made in parallel; their number, 0 on failure. */
static int open_sessions(grt_model *model, const char *kind, grt_session **sessions)
{
    static char names[MOST_DEVICES][32];
    const char *devices[MOST_DEVICES];
    int32_t n = 0;
    if (!ok(grt_device_count(kind, &n), "devices"))
        return 0;
    if (n < 1)
        fprintf(stderr, "pool: there is no device of kind %s\n", kind);
    n = n < MOST_DEVICES ? n : MOST_DEVICES;
    for (int32_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "%s:%d", kind, i);
        devices[i] = names[i];
    }
    return n > 0 && ok(grt_sessions_create(model, devices, (size_t)n, NULL, sessions), "sessions") ? n : 0;
}

/* Page-locked memory for a tensor of known dims. */
static bool give_memory(grt_session *session, grt_tensor *tensor)
{
    tensor->memory = GRT_MEMORY_PINNED;
    return ok(grt_session_alloc_host(session, grt_tensor_bytes(tensor), &tensor->data), "memory");
}

static bool make_inputs(const grt_model *model, grt_session *session, grt_tensor inputs[INPUTS])
{
    grt_io_info info = {.struct_size = sizeof info};
    if (!ok(grt_model_input(model, 0, &info), "input"))
        return false;
    if (grt_model_input_count(model) != 1 || info.dtype != GRT_DTYPE_FLOAT || info.rank < 0) {
        fprintf(stderr, "pool: the model must have one input, of float32\n");
        return false;
    }
    for (int k = 0; k < INPUTS; k++) {
        inputs[k] = (grt_tensor){.dtype = info.dtype, .rank = info.rank};
        for (int32_t i = 0; i < info.rank; i++)
            inputs[k].dims[i] = info.dims[i] < 0 ? 1 : info.dims[i];
        if (!give_memory(session, &inputs[k]))
            return false;
        for (int64_t i = 0, n = grt_tensor_elements(&inputs[k]); i < n; i++)
            ((float *)inputs[k].data)[i] = (float)((i + 7 * k) % 100) / 100;
    }
    return true;
}

/* What every later request with this input must give. */
static bool expect(grt_pool *pool, const grt_tensor *input, grt_session *session, grt_tensor *expected)
{
    grt_request *request = NULL;
    grt_tensor found;
    bool fine = ok(grt_pool_submit(pool, input, 1, NULL, 0, &request), "submit") &&
                ok(grt_request_wait(request), "run") &&
                ok(grt_request_get_output(request, 0, &found), "output");
    if (fine) {
        *expected = found;
        expected->data = NULL;
        fine = give_memory(session, expected);
    }
    if (fine)
        memcpy(expected->data, found.data, grt_tensor_bytes(&found));
    grt_request_release(request);
    return fine;
}

/* Wait for what the slot has under way, if it has, and look at the result. */
static bool collect(struct slot *s, const grt_tensor expected[INPUTS])
{
    bool fine = true;
    if (s->request) {
        fine = ok(grt_request_wait(s->request), "run");
        if (fine &&
            memcmp(s->output.data, expected[s->input].data, grt_tensor_bytes(&expected[s->input])) != 0) {
            fprintf(stderr, "pool: a result differs\n");
            fine = false;
        }
    }
    grt_request_release(s->request);
    s->request = NULL;
    return fine;
}

static bool serve(grt_pool *pool, grt_session *session, const grt_tensor inputs[INPUTS], int requests)
{
    struct slot slots[IN_FLIGHT] = {0};
    grt_tensor expected[INPUTS] = {0};
    bool fine = true;
    for (int k = 0; fine && k < INPUTS; k++)
        fine = expect(pool, &inputs[k], session, &expected[k]);
    for (int i = 0; fine && i < IN_FLIGHT; i++) {
        slots[i].output = expected[0];
        slots[i].output.data = NULL;
        fine = give_memory(session, &slots[i].output);
    }
    const double start = now();
    for (int r = 0; fine && r < requests; r++) {
        struct slot *s = &slots[r % IN_FLIGHT];
        fine = collect(s, expected);
        s->input = r % INPUTS;
        fine = fine && ok(grt_pool_submit(pool, &inputs[s->input], 1, &s->output, 1, &s->request), "submit");
    }
    for (int i = 0; i < IN_FLIGHT; i++) /* also after a failure: their memory is in use */
        fine = collect(&slots[i], expected) && fine;
    if (fine)
        printf("%d requests, %.0f a second, every result the same\n", requests, requests / (now() - start));
    for (int i = 0; i < IN_FLIGHT; i++)
        grt_session_free_host(session, slots[i].output.data);
    for (int k = 0; k < INPUTS; k++)
        grt_session_free_host(session, expected[k].data);
    return fine;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 2 ? argv[2] : "cpu";
    const long requests = argc > 3 ? strtol(argv[3], NULL, 10) : 1000;
    if (argc < 2 || argc > 4 || requests < 1 || requests > 1000000000) {
        fprintf(stderr, "usage: pool MODEL [KIND [REQUESTS]]\n");
        return 2;
    }
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    grt_session *sessions[MOST_DEVICES] = {0};
    grt_pool *pool = NULL;
    grt_tensor inputs[INPUTS] = {0};
    const grt_compile_options options = {.struct_size = sizeof options, .target = kind};
    bool fine = ok(grt_runtime_create(&runtime), "runtime") &&
                ok(grt_model_open_with(runtime, argv[1], &options, &model), "model");
    const int n = fine ? open_sessions(model, kind, sessions) : 0;
    fine = n > 0 && make_inputs(model, sessions[0], inputs) &&
           ok(grt_pool_create(sessions, (size_t)n, NULL, &pool), "pool") &&
           serve(pool, sessions[0], inputs, (int)requests);
    grt_pool_release(pool);
    for (int k = 0; k < INPUTS; k++)
        grt_session_free_host(sessions[0], inputs[k].data);
    for (int i = 0; i < n; i++)
        grt_session_release(sessions[i]);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
