/* SPDX-License-Identifier: Apache-2.0 */
/* A pool that goes on when devices fail, and that moves to another device while it serves.
 *
 *     faults MODEL [REQUESTS [DEVICE...]]
 *
 * One lane has a session on each DEVICE ("cpu" twice by default). The first is moved to the last device and
 * back, a few times, as one would before maintenance; a session that is lost with its device is replaced by
 * one on the next device. Requests have zeros as inputs, unknown dims being 1; each is answered once.
 */
#include <graphrt/faults.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_DEVICES = 16, MOST_INPUTS = 64, CLIENTS = 4, MOVES = 5 };

typedef struct service {
    grt_model *model;
    grt_pool *pool;
    const char *devices[MOST_DEVICES];
    grt_session *sessions[MOST_DEVICES]; /* that serve now */
    size_t n;
    grt_tensor inputs[MOST_INPUTS];
    size_t n_inputs;
    atomic_long left; /* requests that nobody has submitted yet */
    atomic_long answered, failed;
} service;

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "faults: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

static bool make_inputs(service *s)
{
    for (; s->n_inputs < grt_model_input_count(s->model); s->n_inputs++) {
        grt_io_info info = {.struct_size = sizeof info};
        grt_tensor *t = &s->inputs[s->n_inputs];
        if (s->n_inputs == MOST_INPUTS || !ok(grt_model_input(s->model, s->n_inputs, &info), "input"))
            return false;
        if (info.has_default)
            continue; /* dtype NONE takes it */
        *t = (grt_tensor){.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            t->dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
        if (!(t->data = calloc(grt_tensor_bytes(t) + 1, 1)))
            return false;
    }
    return true;
}

static void *ask(void *user)
{
    service *s = user;
    while (atomic_fetch_sub(&s->left, 1) > 0) {
        const grt_status status = grt_pool_run(s->pool, s->inputs, s->n_inputs, NULL, 0);
        atomic_fetch_add(ok(status, "a request") ? &s->answered : &s->failed, 1);
    }
    return NULL;
}

/* The session that served is the caller's, and not the pool's any more. After errors of CUDA a process has no
 * access to that GPU, so a lost session is not made again where it was. */
static bool replace(service *s, size_t index, const char *device)
{
    grt_session *fresh;
    if (!ok(grt_session_create(s->model, device, NULL, &fresh), device))
        return false;
    if (!ok(grt_pool_replace_session(s->pool, 0, index, fresh), "replace")) {
        grt_session_release(fresh);
        return false;
    }
    grt_session_release(s->sessions[index]);
    s->sessions[index] = fresh;
    return true;
}

static bool replace_lost(service *s)
{
    bool good = true;
    for (size_t i = 0; i < s->n; i++)
        if (grt_session_check(s->sessions[i]) != GRT_OK) {
            fprintf(stderr, "faults: session %zu is lost: %s\n", i, grt_last_error());
            good &= replace(s, i, s->devices[(i + 1) % s->n]);
        }
    return good;
}

static bool look_after(service *s)
{
    int moves = 0;
    bool good = true;
    while (good && (atomic_load(&s->left) > 0 || moves < MOVES)) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        good = replace_lost(s);
        if (good && moves < MOVES)
            good = replace(s, 0, s->devices[++moves % 2 ? s->n - 1 : 0]);
    }
    printf("the first session was moved %d times\n", moves);
    return good;
}

static bool serve(service *s)
{
    pthread_t clients[CLIENTS];
    int n = 0;
    const long wanted = atomic_load(&s->left);
    while (n < CLIENTS && pthread_create(&clients[n], NULL, ask, s) == 0)
        n++;
    const bool good = look_after(s);
    for (int i = 0; i < n; i++)
        pthread_join(clients[i], NULL);
    printf("%ld requests: %ld answered, %ld failed\n", wanted, atomic_load(&s->answered),
           atomic_load(&s->failed));
    return good && atomic_load(&s->answered) == wanted;
}

static bool open_service(service *s, grt_runtime *runtime, const char *path)
{
    bool good = ok(grt_model_open(runtime, path, &s->model), path) && make_inputs(s);
    for (size_t i = 0; good && i < s->n; i++)
        good = ok(grt_session_create(s->model, s->devices[i], NULL, &s->sessions[i]), s->devices[i]);
    return good && ok(grt_pool_create(s->sessions, s->n, NULL, &s->pool), "pool");
}

static void close_service(service *s)
{
    grt_pool_release(s->pool);
    for (size_t i = 0; i < s->n; i++)
        grt_session_release(s->sessions[i]);
    grt_model_release(s->model);
    for (size_t i = 0; i < s->n_inputs; i++)
        free(s->inputs[i].data);
}

int main(int argc, char **argv)
{
    service s = {.devices = {"cpu", "cpu"}, .n = 2};
    grt_runtime *runtime = NULL;
    atomic_store(&s.left, argc > 2 ? strtol(argv[2], NULL, 10) : 10000);
    if (argc < 2 || argc - 3 > MOST_DEVICES || atomic_load(&s.left) < 1) {
        fprintf(stderr, "usage: faults MODEL [REQUESTS [DEVICE...]]\n");
        return 2;
    }
    if (argc > 3)
        s.n = (size_t)argc - 3;
    for (int i = 3; i < argc; i++)
        s.devices[i - 3] = argv[i];
    const bool good =
        ok(grt_runtime_create(&runtime), "runtime") && open_service(&s, runtime, argv[1]) && serve(&s);
    close_service(&s);
    grt_runtime_release(runtime);
    return !good;
}
