/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on many devices at once: equal results, shared weights, and both ways to handle failures. */
#include "tests/unit/files.h"
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include "backends/registry.h"
#include "src/session/session.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 96, LAYERS = 6, MANY = 2300 };

static const char *const mirrors[] = {"mirror:0", "mirror:1", "mirror:2", "mirror:3",
                                      "mirror:4", "mirror:5", "mirror:6", "mirror:7"};
enum { N = sizeof mirrors / sizeof *mirrors };

/* x [2,size] through LAYERS products with size x size weights */
static onnx_model products(int size)
{
    onnx_model m = onnx_create();
    char dims[32], x[32];
    snprintf(dims, sizeof dims, "%d,%d", size, size);
    snprintf(x, sizeof x, "2,%d", size);
    onnx_input(&m, m.graph, "x0", GRT_DTYPE_FLOAT, x);
    const int layers = size == MANY ? 1 : LAYERS;
    for (int i = 0; i < layers; i++) {
        char inputs[32], output[32], name[32];
        const size_t n = (size_t)size * (size_t)size;
        float *data = grt_arena_calloc(m.arena, n, sizeof *data);
        for (size_t k = 0; k < n; k++)
            data[k] = (float)((k * 7 + (size_t)i) % 13) / 100.0f - 0.06f;
        snprintf(name, sizeof name, "w%d", i);
        snprintf(inputs, sizeof inputs, "x%d,w%d", i, i);
        snprintf(output, sizeof output, i + 1 < layers ? "x%d" : "y", i + 1);
        onnx_initializer(&m, m.graph, onnx_raw(&m, name, GRT_DTYPE_FLOAT, dims, data, n * sizeof *data));
        onnx_node(&m, m.graph, "MatMul", inputs, output);
    }
    onnx_output(&m, m.graph, "y");
    return m;
}

static grt_model *open_model(int size)
{
    onnx_model m = products(size);
    grt_model *model = onnx_open(&m, runtime);
    onnx_release(&m);
    return model;
}

static float first_output(grt_session *session, int size)
{
    grt_context *context;
    float *x = malloc(2 * (size_t)size * sizeof *x);
    for (int i = 0; i < 2 * size; i++)
        x[i] = (float)(i % 5);
    grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, size}, .data = x}, out;
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
    const float y = ((const float *)out.data)[1];
    grt_context_release(context);
    free(x);
    return y;
}

static void release_sessions(grt_session **sessions, size_t n)
{
    for (size_t i = 0; i < n; i++)
        grt_session_release(sessions[i]);
}

START_TEST(all_compute_the_same)
{
    grt_model *model = open_model(ROWS);
    grt_session *sessions[N + 2] = {0}, *cpu;
    const char *chosen[N + 2] = {"cpu", "null:5"};
    memcpy(chosen + 2, mirrors, sizeof mirrors);
    const grt_sessions_options options = {.struct_size = sizeof options, .threads = 1};
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &cpu), GRT_OK);
    ck_assert_msg(grt_sessions_create(model, chosen, N + 2, &options, sessions) == GRT_OK, "%s",
                  grt_last_error());
    ck_assert_str_eq(grt_last_error(), "");
    const float expected = first_output(cpu, ROWS);
    ck_assert(expected != 0.0f);
    for (size_t i = 0; i < N + 2; i++) {
        grt_load_info info = {.struct_size = sizeof info};
        const grt_phase *phases;
        ck_assert_int_eq(grt_session_get_load(sessions[i], &info), GRT_OK);
        ck_assert_uint_eq(info.host_bytes + info.peer_bytes,
                          i < 2 ? 0 : LAYERS * ROWS * ROWS * sizeof(float));
        ck_assert_uint_ge(grt_session_phases(sessions[i], &phases), 3);
        const float y = first_output(sessions[i], ROWS);
        ck_assert(i == 1 ? y == 0.0f : fabsf(y - expected) <= 1e-4f * fabsf(expected));
    }
    grt_session_release(cpu);
    grt_model_release(model);
    release_sessions(sessions, N + 2);
}
END_TEST

START_TEST(weights_are_there_once)
{
    grt_model *model = open_model(ROWS);
    grt_session *a, *b, *pair[2];
    const char *const twice[] = {"mirror:3", "mirror:3"};
    grt_load_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(grt_session_create(model, "mirror:3", NULL, &a), GRT_OK);
    ck_assert_int_eq(grt_session_create(model, "mirror:3", NULL, &b), GRT_OK);
    ck_assert_ptr_eq(a->weights[0].data, b->weights[0].data);
    ck_assert_int_eq(grt_session_get_load(b, &info), GRT_OK);
    ck_assert_uint_eq(info.host_bytes + info.peer_bytes + info.read_bytes, 0);
    const float y = first_output(a, ROWS);
    grt_session_release(a);
    ck_assert(first_output(b, ROWS) == y);
    grt_session_release(b);
    ck_assert_int_eq(grt_sessions_create(model, twice, 2, NULL, pair), GRT_OK);
    ck_assert_ptr_eq(pair[0]->weights[0].data, pair[1]->weights[0].data);
    ck_assert(first_output(pair[1], ROWS) == y);
    release_sessions(pair, 2);
    grt_model_release(model);
}
END_TEST

START_TEST(failures_name_the_device)
{
    grt_model *model = open_model(ROWS);
    const char *const chosen[] = {"mirror:0", "mirror:9", "null:1", "null:8"};
    grt_session *sessions[4] = {0};
    grt_sessions_options options = {.struct_size = sizeof options};
    ck_assert_int_eq(grt_sessions_create(model, chosen, 4, &options, sessions), GRT_STATUS_DEVICE);
    /* The first that fails stops the others, and either may be the first. */
    ck_assert(strstr(grt_last_error(), "no device mirror:9") || strstr(grt_last_error(), "no device null:8"));
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_null(sessions[i]);
    ck_assert_int_eq(grt_sessions_create(model, chosen, 3, &options, sessions), GRT_STATUS_DEVICE);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "no device mirror:9"));
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_null(sessions[i]);
    options.partial = true;
    ck_assert_int_eq(grt_sessions_create(model, chosen, 4, &options, sessions), GRT_OK);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "no device mirror:9"));
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "no device null:8"));
    ck_assert(sessions[0] && !sessions[1] && sessions[2] && !sessions[3]);
    release_sessions(sessions, 4);
    ck_assert_int_eq(grt_sessions_create(model, chosen + 3, 1, &options, sessions), GRT_STATUS_DEVICE);
    const char *const wrong[] = {"cpu", "warp:1"};
    ck_assert_int_eq(grt_sessions_create(model, wrong, 2, NULL, sessions), GRT_STATUS_DEVICE);
    ck_assert_int_eq(grt_sessions_create(model, wrong, 0, NULL, sessions), GRT_STATUS_INVALID_ARGUMENT);
    options.upload = "by mail";
    ck_assert_int_eq(grt_sessions_create(model, chosen, 1, &options, sessions), GRT_STATUS_INVALID_ARGUMENT);
    grt_model_release(model);
}
END_TEST

typedef struct watcher {
    int left, calls;
    double last;
    bool backwards;
} watcher;

static bool watch(void *user, const grt_load_progress *progress)
{
    watcher *w = user;
    w->calls++;
    w->backwards = w->backwards || progress->fraction < w->last || progress->fraction > 1;
    w->last = progress->fraction;
    return w->left-- > 0;
}

START_TEST(progress_and_cancelling)
{
    grt_model *model = open_model(ROWS);
    watcher w = {.left = 1 << 20};
    grt_session *sessions[N];
    grt_sessions_options options = {
        .struct_size = sizeof options, .progress = watch, .user = &w, .max_parallel = 3};
    ck_assert_int_eq(grt_sessions_create(model, mirrors, N, &options, sessions), GRT_OK);
    ck_assert(!w.backwards);
    ck_assert_int_ge(w.calls, 4 * N);
    release_sessions(sessions, N);
    const int calls = 4 * N;
    options.max_parallel = 0;
    for (int after = 0; after < calls - 1; after++) {
        w = (watcher){.left = after};
        grt_session *none[N] = {0};
        grt_status status = grt_sessions_create(model, mirrors, N, &options, none);
        ck_assert(status == GRT_STATUS_CANCELLED);
        ck_assert_ptr_null(none[0]);
        ck_assert_int_eq(w.calls, after + 1); /* not asked again */
    }
    ck_assert_int_eq(grt_sessions_create(model, mirrors, N, NULL, sessions), GRT_OK);
    release_sessions(sessions, N);
    grt_model_release(model);
}
END_TEST

static void *create_some(void *arg)
{
    grt_model *model = arg;
    grt_session *sessions[N];
    for (int i = 0; i < 5; i++) {
        if (grt_sessions_create(model, mirrors, N, NULL, sessions) != GRT_OK)
            return arg;
        release_sessions(sessions, N);
    }
    return NULL;
}

START_TEST(from_many_threads)
{
    grt_model *model = open_model(ROWS);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, create_some, model), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        ck_assert_ptr_null(result);
    }
    grt_model_release(model);
}
END_TEST

static void write_plan(const char *path)
{
    onnx_model m = products(MANY);
    const grt_compile_options options = {.struct_size = sizeof options, .target = "mirror"};
    onnx_compile(&m, &options, path);
    onnx_release(&m);
}

/* The checksum of many weights is left to the sessions: a wrong byte is found by the first, on any device. */
START_TEST(many_weights_are_checked_by_sessions)
{
    char path[FILES_NAME];
    const char *const chosen[] = {"mirror:1", "cpu", "mirror:2", "mirror:6"};
    grt_session *sessions[4];
    grt_model *model;
    files_fresh(path);
    write_plan(path);
    for (int broken = 0; broken < 2; broken++) {
        if (broken) {
            FILE *f = fopen(path, "r+b");
            ck_assert_ptr_nonnull(f);
            fseek(f, (long)17 << 20, SEEK_SET);
            fputc('!', f);
            fclose(f);
        }
        for (size_t n = 1; n <= 4; n += 3) {
            ck_assert_int_eq(grt_model_open(runtime, path, &model), GRT_OK);
            ck_assert_ptr_nonnull(model->check);
            grt_status status = grt_sessions_create(model, chosen, n, NULL, sessions);
            ck_assert_int_eq(status, broken ? GRT_STATUS_INVALID_PLAN : GRT_OK);
            if (broken)
                ck_assert_ptr_nonnull(strstr(grt_last_error(), "checksum"));
            else {
                if (n == 4)
                    ck_assert(first_output(sessions[0], MANY) == first_output(sessions[3], MANY));
                release_sessions(sessions, n);
            }
            grt_model_release(model);
        }
    }
    unlink(path);
}
END_TEST

/* Host memory for results is allocated once; a copy that the caller has taken is the caller's. */
START_TEST(results_keep_their_memory)
{
    grt_model *model = open_model(ROWS);
    grt_session *session;
    grt_context *context;
    float x[2 * ROWS];
    for (int i = 0; i < 2 * ROWS; i++)
        x[i] = (float)(i % 5);
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, ROWS}, .data = x};
    grt_tensor first, second, kept;
    grt_value *copy;
    ck_assert_int_eq(grt_session_create(model, "mirror:0", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert_int_eq(grt_context_get_output(context, 0, &first), GRT_OK);
    ck_assert_int_eq(grt_context_get_output_value(context, 0, &copy), GRT_OK);
    const float y = ((const float *)first.data)[0], none = 0;
    ck_assert(y != none);
    memset(x, 0, sizeof x);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert_int_eq(grt_context_get_output(context, 0, &second), GRT_OK);
    ck_assert_ptr_eq(first.data, second.data);
    ck_assert(((const float *)second.data)[0] == none);
    ck_assert_int_eq(grt_value_tensor(copy, &kept), GRT_OK);
    ck_assert(((const float *)kept.data)[0] == y);
    grt_value_release(copy);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* ---- weights on their way ---- */

static const grt_phase *phase_of(const grt_session *session, const char *name)
{
    const grt_phase *phases;
    const size_t n = grt_session_phases(session, &phases);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(phases[i].name, name))
            return &phases[i];
    ck_abort_msg("there is no phase '%s'", name);
    return NULL;
}

/* The mirror has 16 processors, four at a time. */
START_TEST(parts_of_a_device)
{
    grt_model *model = open_model(ROWS);
    grt_session *whole, *few, *most, *none;
    grt_session_options options = {.struct_size = sizeof options, .multiprocessors = 5};
    OK(grt_session_create(model, "mirror:2", &options, &few));
    OK(grt_session_create(model, "mirror:2", NULL, &whole)); /* with the weights that the first brought */
    REFUSED_AS(GRT_STATUS_OUT_OF_MEMORY,
               (options.multiprocessors = 9, grt_session_create(model, "mirror:2", &options, &none)),
               "9 multiprocessors of mirror:2: mirror:2 has 8 processors left");
    options.multiprocessors = 8;
    OK(grt_session_create(model, "mirror:2", &options, &most));
    const float expected = first_output(whole, ROWS);
    ck_assert(first_output(few, ROWS) == expected && first_output(most, ROWS) == expected);
    grt_session_release(most);
    options.multiprocessors = 5; /* of what the last had */
    OK(grt_session_create(model, "mirror:2", &options, &most));
    ck_assert(first_output(most, ROWS) == expected);
    grt_session_release(few);
    grt_session_release(most);
    options.multiprocessors = 16;
    OK(grt_session_create(model, "mirror:2", &options, &most));
    ck_assert(first_output(most, ROWS) == expected);
    grt_session_release(most);
    grt_session_release(whole);
    options.multiprocessors = 17;
    REFUSED(grt_session_create(model, "mirror:2", &options, &none), "has 16 processors, 17 are wanted");
    options.multiprocessors = -1;
    REFUSED(grt_session_create(model, "mirror:2", &options, &none), "-1 are wanted");
    REFUSED_AS(GRT_STATUS_UNSUPPORTED, grt_session_create(model, "cpu", &options, &none),
               "leave multiprocessors 0");
    grt_model_release(model);
}
END_TEST

static bool overlaps(grt_model *model)
{
    grt_session *session;
    ck_assert_int_eq(grt_session_create(model, "mirror:0", NULL, &session), GRT_OK);
    const grt_phase *driver = phase_of(session, "start driver"), *open = phase_of(session, "open device"),
                    *weights = phase_of(session, "weights"), *kernels = phase_of(session, "create kernels");
    ck_assert(driver->end_ms <= open->begin_ms && open->end_ms <= weights->begin_ms);
    ck_assert(weights->begin_ms <= kernels->begin_ms && weights->begin_ms <= weights->end_ms);
    const bool found = weights->end_ms > kernels->begin_ms;
    grt_session_release(session);
    return found;
}

/* Kernels do not wait for weights, unless a busy machine lets one thread wait for the other. */
START_TEST(phases_of_a_session)
{
    enum { TRIES = 50 };
    grt_model *model = open_model(MANY);
    int tries = 1;
    while (!overlaps(model))
        ck_assert_int_lt(++tries, TRIES);
    grt_model_release(model);
}
END_TEST

static Onnx__GraphProto *branch(onnx_model *m, const char *op, const char *output)
{
    Onnx__GraphProto *g = onnx_graph(m, output);
    onnx_node(m, g, op, "x", output);
    onnx_output(m, g, output);
    return g;
}

/* A condition, whose branches run on the host. */
static grt_model *open_condition(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "c", GRT_DTYPE_BOOL, "");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    Onnx__GraphProto *then = branch(&m, "Neg", "a"), *other = branch(&m, "Abs", "b");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "If", "c", "y");
    onnx_attr(&m, node, "then_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = then;
    onnx_attr(&m, node, "else_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = other;
    onnx_output(&m, m.graph, "y");
    grt_model *model = onnx_open(&m, runtime);
    onnx_release(&m);
    return model;
}

static int32_t team_on(grt_model *model, const char *device)
{
    const grt_session_options options = {
        .struct_size = sizeof options, .threads = 4 * GRT_MOST_PREPARING, .fallback = "cpu"};
    grt_session *made;
    ck_assert_msg(grt_session_create(model, device, &options, &made) == GRT_OK, "%s", grt_last_error());
    const int32_t team = grt_session_team(made);
    grt_session_release(made);
    return team;
}

/* Threads of a team have to be made by each thread that runs: who needs none for its kernels makes few. */
START_TEST(team_of_a_session)
{
    grt_model *model = open_model(ROWS), *condition = open_condition();
    ck_assert_int_eq(team_on(model, "mirror:0"), GRT_MOST_PREPARING);
    ck_assert_int_eq(team_on(model, "cpu"), 4 * GRT_MOST_PREPARING);
    ck_assert_int_eq(team_on(condition, "mirror:0"), 4 * GRT_MOST_PREPARING);
    grt_model_release(model);
    grt_model_release(condition);
}
END_TEST

typedef struct filler {
    grt_resident *resident;
    grt_status status;
    atomic_bool filled;
} filler;

static void *fill_later(void *data)
{
    filler *f = data;
    usleep(5000);
    atomic_store(&f->filled, true);
    if (f->status != GRT_OK)
        grt_fail(f->status, "the disk is gone");
    grt_resident_settle(f->resident, f->status);
    return NULL;
}

/* Who runs something before a session is ready waits for its weights, and learns of a failure. */
START_TEST(waiting_for_weights)
{
    static const grt_status statuses[] = {GRT_OK, GRT_STATUS_IO};
    const grt_backend *backend = grt_backend_find("mirror");
    const grt_resident_key key = {.backend = backend, .content = 1, .bytes = 100};
    grt_residents *residents;
    grt_device *device;
    ck_assert_int_eq(grt_residents_create(&residents), GRT_OK);
    ck_assert_int_eq(backend->device_open(0, &device), GRT_OK);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        filler f = {.status = statuses[i]};
        bool fill;
        pthread_t thread;
        ck_assert_int_eq(grt_resident_take(residents, &key, device, &f.resident, &fill), GRT_OK);
        ck_assert(fill);
        ck_assert_int_eq(pthread_create(&thread, NULL, fill_later, &f), 0);
        ck_assert_int_eq(grt_resident_wait(f.resident), statuses[i]);
        ck_assert(atomic_load(&f.filled));
        pthread_join(thread, NULL);
        grt_resident_give(f.resident);
    }
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "the disk is gone"));
    grt_device_close(device);
    grt_residents_release(residents);
}
END_TEST

Suite *suite_test_sessions(void)
{
    Suite *suite = suite_create("sessions");
    TCase *tests = tcase_create("sessions");
    tcase_add_checked_fixture(tests, runtime_open, runtime_close);
    tcase_add_test(tests, all_compute_the_same);
    tcase_add_test(tests, weights_are_there_once);
    tcase_add_test(tests, failures_name_the_device);
    tcase_add_test(tests, progress_and_cancelling);
    tcase_add_test(tests, from_many_threads);
    tcase_add_test(tests, many_weights_are_checked_by_sessions);
    tcase_add_test(tests, results_keep_their_memory);
    tcase_add_test(tests, phases_of_a_session);
    tcase_add_test(tests, parts_of_a_device);
    tcase_add_test(tests, waiting_for_weights);
#ifndef __SANITIZE_THREAD__ /* which does not know GNU's OpenMP, and takes its barriers for races */
    tcase_add_test(tests, team_of_a_session);
#else
    (void)team_of_a_session;
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
