/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in time beside other work: requests with deadlines on a session whose work goes first, and as many
 * others as the device takes; threads that both sessions share; messages of the library.
 *
 *     latency MODEL [DEVICE [REQUESTS [DEADLINE_MS [MULTIPROCESSORS]]]]
 *
 * MULTIPROCESSORS: the two sessions get so many each of a GPU; without it the one with deadlines has priority
 * on the device. Inputs are zeros, unknown dims 1. Prints how many requests were in time. Exit status: 0 if
 * every request was answered, in time or not.
 */
#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 16, OTHERS = 4, FIRST = 5 /* the highest priority that devices have */ };

typedef struct program {
    grt_runtime *runtime;
    grt_model *model;
    grt_session *urgent, *other;
    grt_pool *pool;
    size_t other_lane;
    grt_tensor inputs[MOST_INPUTS];
    size_t n_inputs;
} program;

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "latency: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* What goes wrong, or works less well than it could, in whatever thread. */
static void print_message(void *user, const grt_log_message *message)
{
    (void)user;
    fprintf(stderr, "latency: [%s] %s\n", message->category, message->text);
}

static bool open_sessions(program *p, const char *path, const char *device, int64_t multiprocessors)
{
    char kind[32] = "cpu";
    sscanf(device, "%31[a-z]", kind);
    const grt_compile_options compile = {.struct_size = sizeof compile, .target = kind};
    grt_session_options options = {
        .struct_size = sizeof options, .priority = FIRST, .multiprocessors = multiprocessors};
    if (!ok(grt_runtime_create(&p->runtime), "runtime") ||
        !ok(grt_runtime_set_threads(p->runtime, 2), "threads") || /* of both together */
        !ok(grt_model_open_with(p->runtime, path, &compile, &p->model), path) ||
        !ok(grt_session_create(p->model, device, &options, &p->urgent), "session"))
        return false;
    options.priority = 0;
    return ok(grt_session_create(p->model, device, &options, &p->other), "session");
}

static bool make_input(program *p, size_t i)
{
    grt_io_info info = {.struct_size = sizeof info};
    if (!ok(grt_model_input(p->model, i, &info), "input"))
        return false;
    if (info.has_default)
        return true;
    grt_tensor t = {.dtype = info.dtype, .rank = info.rank, .memory = GRT_MEMORY_PINNED};
    for (int32_t k = 0; k < info.rank; k++)
        t.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
    if (!ok(grt_session_alloc_host(p->urgent, grt_tensor_bytes(&t), &t.data), "memory"))
        return false;
    memset(t.data, 0, grt_tensor_bytes(&t));
    p->inputs[i] = t;
    return true;
}

/* Lane 0 serves those in a hurry: its requests go first in the pool, and its session's work on the device. */
static bool open_pool(program *p)
{
    const grt_pool_options urgent = {.struct_size = sizeof urgent, .contexts = 1},
                           other = {.struct_size = sizeof other, .contexts = 1, .queue = OTHERS};
    p->n_inputs = grt_model_input_count(p->model);
    for (size_t i = 0; i < p->n_inputs; i++)
        if (p->n_inputs > MOST_INPUTS || !make_input(p, i))
            return false;
    return ok(grt_pool_create(&p->urgent, 1, &urgent, &p->pool), "pool") &&
           ok(grt_pool_add(p->pool, &p->other, 1, &other, &p->other_lane), "lane");
}

static void forget(void *user, grt_request *request)
{
    (void)user;
    grt_request_release(request);
}

/* As many as fit. */
static void keep_device_busy(const program *p)
{
    const grt_submission s = {.struct_size = sizeof s,
                              .lane = p->other_lane,
                              .inputs = p->inputs,
                              .n_inputs = p->n_inputs,
                              .done = forget};
    while (grt_pool_try_submit(p->pool, &s, NULL) == GRT_OK)
        ;
}

static bool serve(const program *p, int requests, double deadline_ms)
{
    bool good = true;
    for (int i = 0; good && i < requests; i++) {
        const grt_submission s = {.struct_size = sizeof s,
                                  .inputs = p->inputs,
                                  .n_inputs = p->n_inputs,
                                  .deadline_ms = grt_clock_ms() + deadline_ms,
                                  .priority = 1};
        grt_request *request;
        keep_device_busy(p);
        const grt_status submitted = grt_pool_submit_with(p->pool, &s, &request);
        if (submitted == GRT_STATUS_DEADLINE_EXCEEDED) /* there was no room until then */
            continue;
        good = ok(submitted, "submit");
        if (!good)
            break;
        const grt_status status = grt_request_wait(request);
        good = status == GRT_STATUS_DEADLINE_EXCEEDED || ok(status, "request");
        grt_request_release(request);
    }
    return ok(grt_pool_drain(p->pool, 0), "drain") && good;
}

static bool report(const program *p, double deadline_ms)
{
    grt_pool_stats urgent = {.struct_size = sizeof urgent}, other = {.struct_size = sizeof other};
    grt_histogram all = {.struct_size = sizeof all};
    if (!ok(grt_pool_get_stats(p->pool, 0, &urgent), "figures") ||
        !ok(grt_pool_get_stats(p->pool, p->other_lane, &other), "figures") ||
        !ok(grt_pool_get_histogram(p->pool, 0, GRT_POOL_TOTAL, &all), "figures"))
        return false;
    printf("in time (%g ms): %llu, late: %llu; p50 %.3f, p99 %.3f, p99.9 %.3f, at most %.3f ms; %llu others "
           "beside them\n",
           deadline_ms, (unsigned long long)urgent.succeeded, (unsigned long long)urgent.late, all.p50_ms,
           all.p99_ms, all.p99_9_ms, all.max_ms, (unsigned long long)other.succeeded);
    return urgent.submitted == urgent.succeeded + urgent.late;
}

static void close_program(program *p)
{
    grt_pool_release(p->pool);
    for (size_t i = 0; i < MOST_INPUTS; i++)
        if (p->inputs[i].data)
            grt_session_free_host(p->urgent, p->inputs[i].data);
    grt_session_release(p->urgent);
    grt_session_release(p->other);
    grt_model_release(p->model);
    grt_runtime_release(p->runtime);
}

int main(int argc, char **argv)
{
    program p = {0};
    if (argc < 2 || argc > 6) {
        fprintf(stderr, "usage: latency MODEL [DEVICE [REQUESTS [DEADLINE_MS [MULTIPROCESSORS]]]]\n");
        return 2;
    }
    const double deadline_ms = argc > 4 ? atof(argv[4]) : 20;
    grt_log_set(GRT_LOG_WARNING, print_message, NULL);
    const bool good = open_sessions(&p, argv[1], argc > 2 ? argv[2] : "cpu", argc > 5 ? atoi(argv[5]) : 0) &&
                      open_pool(&p) && serve(&p, argc > 3 ? atoi(argv[3]) : 1000, deadline_ms) &&
                      report(&p, deadline_ms);
    close_program(&p);
    return !good;
}
