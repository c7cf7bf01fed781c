/* SPDX-License-Identifier: Apache-2.0 */
/* A system that does not let the process make as many threads as it wants: sessions have fewer, runs go on,
 * nothing exits. In place of a limit of the system's, which would need another user: pthread_create fails
 * while too many threads are there.
 *
 * usage: few_threads MODEL. The last line is "N passed, N failed, N skipped". */
#define _GNU_SOURCE
#pragma GCC visibility push(default) /* for all libraries to find */
#include <dlfcn.h>
#include <errno.h>
#include <graphrt/graphrt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int there, most = 1000; /* threads beside the first */
static int passed, failed;

typedef struct start {
    void *(*function)(void *);
    void *argument;
} start;

static void *counted(void *argument)
{
    start s = *(start *)argument;
    free(argument);
    void *result = s.function(s.argument);
    atomic_fetch_sub(&there, 1);
    return result;
}

int pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*function)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    start *s = malloc(sizeof *s);
    if (!s || atomic_fetch_add(&there, 1) >= atomic_load(&most)) {
        atomic_fetch_sub(&there, s != NULL);
        free(s);
        return EAGAIN;
    }
    *s = (start){function, argument};
    return real(out, attr, counted, s);
}

static void check(bool fine, const char *what)
{
    passed += fine;
    failed += !fine;
    printf("%s: %s\n", fine ? "ok" : "FAILED", what);
}

typedef struct trial {
    grt_model *model;
    grt_session *session;
    bool ran;
} trial;

static bool run(grt_session *session, grt_model *model)
{
    grt_context *context = NULL;
    grt_io_info info = {.struct_size = sizeof info};
    bool fine = grt_context_create(session, &context) == GRT_OK && grt_model_input(model, 0, &info) == GRT_OK;
    grt_tensor x = {.dtype = info.dtype, .rank = info.rank};
    for (int32_t i = 0; i < x.rank; i++)
        x.dims[i] = info.dims[i] < 0 ? 32 : info.dims[i]; /* enough work for a team */
    x.data = calloc(1, grt_tensor_bytes(&x));
    fine = fine && x.data && grt_context_set_input(context, 0, &x) == GRT_OK &&
           grt_context_run(context) == GRT_OK;
    if (!fine)
        printf("%s\n", grt_last_error());
    grt_context_release(context);
    free(x.data);
    return fine;
}

static void *run_in_thread(void *argument)
{
    trial *t = argument;
    t->ran = run(t->session, t->model);
    return NULL;
}

static void ended(void)
{
    if (!passed && !failed)
        puts("FAILED: the process was ended");
}

int main(int argc, char **argv)
{
    grt_runtime *runtime;
    trial t = {0};
    const grt_session_options options = {.struct_size = sizeof options, .threads = 4};
    if (argc != 2 || grt_runtime_create(&runtime) != GRT_OK ||
        grt_model_open(runtime, argv[1], &t.model) != GRT_OK) {
        fprintf(stderr, "usage: few_threads MODEL\n");
        return 2;
    }
    atexit(ended);
    atomic_store(&most, 1);
    check(grt_session_create(t.model, "cpu", &options, &t.session) == GRT_OK, "a session");
    check(grt_session_threads(t.session) == 2, "it has the threads that are to be had");
    check(run(t.session, t.model), "it runs on them");
    grt_session_release(t.session);

    atomic_store(&most, 1000);
    pthread_t other;
    check(grt_session_create(t.model, "cpu", &options, &t.session) == GRT_OK &&
              grt_session_threads(t.session) == 4,
          "four threads");
    atomic_store(&most, atomic_load(&there) + 1); /* for the thread, and none for its team */
    check(!pthread_create(&other, NULL, run_in_thread, &t) && !pthread_join(other, NULL) && t.ran,
          "a run of another thread that can have no team");
    grt_session_release(t.session);
    grt_model_release(t.model);
    grt_runtime_release(runtime);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
