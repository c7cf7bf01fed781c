/* SPDX-License-Identifier: Apache-2.0 */
/* A fault on a GPU in a process of a pool: that process is replaced, and each request is answered once. The
 * pool's process opens no device. */
#include "tests/device/device.h"
#include "tests/device/fragile.h"
#include "tests/differential/model.h"

#include <graphrt/processes.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 64, CLIENTS = 4, REQUESTS = 200, FAULTS = 3 };

typedef struct client {
    grt_pool *pool;
    int id, right, lost, wrong;
    atomic_int *called;
} client;

static void count_call(void *user, grt_request *request)
{
    (void)request;
    atomic_fetch_add((atomic_int *)user, 1);
}

/* Of COLUMNS numbers beside `value`. */
static grt_status ask(client *c, float value, bool *out_right)
{
    float x[COLUMNS];
    grt_request *request;
    grt_tensor y;
    for (int i = 0; i < COLUMNS; i++)
        x[i] = (float)i;
    x[COLUMNS / 2] = value;
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, COLUMNS}, .data = x};
    const grt_submission submission = {.struct_size = sizeof submission,
                                       .inputs = &in,
                                       .n_inputs = 1,
                                       .done = count_call,
                                       .user = c->called};
    grt_status status = grt_pool_submit_with(c->pool, &submission, &request);
    if (status != GRT_OK)
        return status;
    status = grt_request_wait(request);
    *out_right = status == GRT_OK && grt_request_get_output(request, 0, &y) == GRT_OK &&
                 grt_tensor_bytes(&y) == sizeof x && memcmp(y.data, x, sizeof x) == 0;
    grt_request_release(request);
    return status;
}

static void *ask_all(void *user)
{
    client *c = user;
    for (int i = 0; i < REQUESTS; i++) {
        bool right = false;
        const grt_status status = ask(c, (float)(1000 + c->id), &right);
        c->right += right;
        c->lost += status == GRT_STATUS_DEVICE;
        c->wrong += !right && status != GRT_STATUS_DEVICE;
    }
    return NULL;
}

static bool open_fragile(grt_runtime *runtime, grt_model **out_model)
{
    size_t size;
    const node n = {.op = "Fragile",
                    .domain = "org.example",
                    .n_in = 1,
                    .out = GRT_DTYPE_FLOAT,
                    .in = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {-1, COLUMNS}}}};
    const grt_compile_options options = {.struct_size = sizeof options, .target = "cuda"};
    void *bytes = model_bytes(&n, &size);
    EXPECT(bytes, "out of memory");
    DONE(fragile_register());
    DONE(grt_model_open_memory_with(runtime, bytes, size, &options, out_model));
    free(bytes);
    return true;
}

static bool started(grt_pool *pool, uint64_t *out_n)
{
    *out_n = 0;
    for (size_t i = 0; i < 2; i++) {
        grt_process_info info = {.struct_size = sizeof info};
        DONE(grt_pool_get_process(pool, 0, i, &info));
        EXPECT(!info.lost, "process %zu is not replaced any more", i);
        *out_n += info.started;
    }
    return true;
}

static bool faults_alone(client *c)
{
    bool right = false;
    DONE(ask(c, 1, &right));
    EXPECT(right, "the first answer is wrong");
    EXPECT(ask(c, FRAGILE_FAULT, &right) == GRT_STATUS_DEVICE, "the fault was no error");
    printf("  %s\n", grt_last_error());
    DONE(ask(c, 2, &right));
    EXPECT(right, "the answer behind the fault is wrong");
    EXPECT(atomic_load(c->called) == 3, "%d calls for 3 requests", atomic_load(c->called));
    return true;
}

static bool faults_beside_others(client *first)
{
    pthread_t threads[CLIENTS];
    client clients[CLIENTS];
    int right = 0, lost = 0;
    const int before = atomic_load(first->called);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){.pool = first->pool, .id = i, .called = first->called};
        EXPECT(pthread_create(&threads[i], NULL, ask_all, &clients[i]) == 0, "no thread");
    }
    for (int i = 0; i < FAULTS; i++) {
        bool none;
        EXPECT(ask(first, FRAGILE_FAULT, &none) == GRT_STATUS_DEVICE, "the fault was no error");
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        right += clients[i].right;
        lost += clients[i].lost;
        EXPECT(!clients[i].wrong, "%d answers are wrong", clients[i].wrong);
    }
    EXPECT(right + lost == CLIENTS * REQUESTS, "%d and %d answers", right, lost);
    /* Those that were beside two faults. */
    EXPECT(lost <= 2 * FAULTS * CLIENTS, "%d requests are lost", lost);
    const int calls = atomic_load(first->called) - before;
    EXPECT(calls == CLIENTS * REQUESTS + FAULTS, "%d calls for %d requests", calls,
           CLIENTS * REQUESTS + FAULTS);
    printf("  %d right, %d lost beside %d faults, %d calls\n", right, lost, FAULTS, calls);
    return true;
}

bool faults_in_processes(const char *path)
{
    static const char *const devices[] = {"cuda:0", "cuda:0"};
    const grt_process_options processes = {
        .struct_size = sizeof processes, .program = "/proc/self/exe", .most_failures = 10};
    atomic_int called = 0;
    client c = {.called = &called};
    grt_runtime *runtime;
    grt_model *model;
    uint64_t before, after;
    size_t lane;
    (void)path;
    DONE(grt_runtime_create(&runtime));
    if (!open_fragile(runtime, &model))
        return false;
    DONE(grt_pool_create(NULL, 0, NULL, &c.pool));
    DONE(grt_pool_add_processes(c.pool, model, devices, 2, NULL, &processes, &lane));
    if (!faults_alone(&c) || !started(c.pool, &before) || !faults_beside_others(&c))
        return false;
    bool right = false;
    DONE(ask(&c, 3, &right));
    EXPECT(right, "the last answer is wrong");
    if (!started(c.pool, &after))
        return false;
    EXPECT(after > before && before > 2, "%d processes were started, then %d", (int)before, (int)after);
    grt_pool_release(c.pool);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return true;
}
