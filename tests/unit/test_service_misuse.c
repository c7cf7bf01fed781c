/* SPDX-License-Identifier: Apache-2.0 */
/* Pools in careless hands: callbacks that call what would wait for them, deadlines and options at the ends of
 * their ranges, a child that fork() made, and what is done after the end. Each works, or says what is wrong.
 */
#include "tests/unit/service.h"

#include <check.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- in a callback ---- */

enum { ROOM = 3 }; /* of service_open_small */

typedef struct misuse {
    grt_pool *pool;
    grt_request *filling[ROOM];
    atomic_int called;
} misuse;

/* The queue is full, and the context that would make room is the callback's. */
static void fill_queue(misuse *m, const grt_submission *s)
{
    grt_request *none = NULL;
    for (int i = 0; i < ROOM; i++)
        OK(grt_pool_submit_with(m->pool, s, &m->filling[i]));
    REFUSED_AS(GRT_STATUS_BUSY, grt_pool_submit_with(m->pool, s, &none), "no room");
    ck_assert_ptr_null(none);
}

static void wait_for_itself(void *user, grt_request *r)
{
    misuse *m = user;
    loop_call c;
    grt_replay_info replay = {.struct_size = sizeof replay};
    fill_queue(m, &service_loop_of(&c, &service_three)->s);
    REFUSED(grt_pool_drain(m->pool, 0), "in a callback");
    REFUSED(grt_pool_shutdown(m->pool, grt_clock_ms() + SERVICE_LONG_MS), "in a callback");
    REFUSED(grt_pool_run(m->pool, c.in, 2, NULL, 0), "in a callback");
    REFUSED(grt_request_wait(m->filling[0]), "in a callback");
    ck_assert_int_eq(grt_request_wait_until(m->filling[0], grt_clock_ms() + 1), GRT_STATUS_BUSY);
    const grt_status told =
        grt_pool_get_replay(m->pool, 0, &replay); /* no idle context may have run: it says so */
    ck_assert(told == GRT_OK || told == GRT_STATUS_INVALID_ARGUMENT);
    grt_pool_release(m->pool); /* does nothing */
    OK(grt_request_wait(r));   /* which is done */
    grt_request_release(r);
    atomic_fetch_add(&m->called, 1);
}

START_TEST(in_a_callback)
{
    misuse m = {.pool = service_open_small(_i)};
    loop_call c;
    service_loop_of(&c, &service_three)->s.done = wait_for_itself;
    c.s.user = &m;
    OK(grt_pool_submit_with(m.pool, &c.s, NULL));
    while (!atomic_load(&m.called))
        service_sleep_ms(1);
    for (int i = 0; i < ROOM; i++)
        service_expect(m.filling[i], GRT_OK);
    OK(grt_pool_shutdown(m.pool, 0));
    grt_pool_release(m.pool);
}
END_TEST

static void stop_others(void *user, grt_request *r)
{
    grt_pool_cancel(user);
    grt_request_release(r);
}

/* A pool's callback may use another pool as it likes. */
static void run_elsewhere(void *user, grt_request *r)
{
    loop_call c;
    service_loop_of(&c, &service_three);
    OK(grt_pool_run(user, c.in, 2, NULL, 0));
    OK(grt_pool_drain(user, 0));
    grt_request_release(r);
    atomic_fetch_add(&service_n_called, 1);
}

START_TEST(cancels_and_other_pools_in_a_callback)
{
    grt_pool *pool = service_open_small(_i), *other = service_open_small(_i);
    grt_request *open[ROOM];
    loop_call c;
    service_loop_of(&c, &service_three)->s.done = stop_others;
    c.s.user = pool;
    grt_request *running = service_block(pool);
    c.s.priority = INT32_MAX;
    OK(grt_pool_submit_with(pool, &c.s, NULL));
    for (int i = 1; i < ROOM; i++)
        open[i] = service_run_loop(pool, &service_for_ever);
    grt_request_cancel(running);
    service_expect(running, GRT_STATUS_CANCELLED);
    for (int i = 1; i < ROOM; i++)
        service_expect(open[i], GRT_STATUS_CANCELLED);
    service_loop_of(&c, &service_three)->s.done = run_elsewhere;
    c.s.user = other;
    OK(grt_pool_submit_with(pool, &c.s, NULL));
    OK(grt_pool_drain(pool, 0));
    ck_assert_int_eq(service_n_called, 1);
    grt_pool_release(pool);
    grt_pool_release(other);
}
END_TEST

/* ---- numbers ---- */

START_TEST(deadlines_of_all_kinds)
{
    static const struct {
        double deadline_ms;
        grt_status status;
    } cases[] = {{0, GRT_OK},
                 {-0.0, GRT_OK},
                 {-1, GRT_STATUS_DEADLINE_EXCEEDED},
                 {-DBL_MAX, GRT_STATUS_DEADLINE_EXCEEDED},
                 {-INFINITY, GRT_STATUS_DEADLINE_EXCEEDED},
                 {1e-300, GRT_STATUS_DEADLINE_EXCEEDED},
                 {NAN, GRT_STATUS_DEADLINE_EXCEEDED},
                 {(double)INT64_MAX, GRT_OK},
                 {DBL_MAX, GRT_OK},
                 {INFINITY, GRT_OK}};
    grt_pool *pool = service_open_small(_i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        loop_call c;
        service_loop_of(&c, &service_three)->s.deadline_ms = cases[i].deadline_ms;
        c.s.priority = i % 2 ? INT32_MIN : INT32_MAX;
        service_expect(service_submit(pool, &c.s), cases[i].status);
        grt_request *r = service_submit(pool, &c.s);
        const grt_status looked = grt_request_wait_until(r, cases[i].status == GRT_OK ? DBL_MAX : -1);
        ck_assert(looked == cases[i].status || looked == GRT_STATUS_BUSY);
        grt_request_release(r);
    }
    grt_request *running = service_block(pool);
    ck_assert_int_eq(grt_pool_drain(pool, -1), GRT_STATUS_BUSY);
    ck_assert_int_eq(grt_pool_drain(pool, NAN), GRT_STATUS_BUSY);
    ck_assert_int_eq(grt_pool_shutdown(pool, -INFINITY), GRT_STATUS_DEADLINE_EXCEEDED);
    service_expect(running, GRT_STATUS_CANCELLED);
    grt_pool_release(pool);
}
END_TEST

START_TEST(options_out_of_range)
{
    static const grt_pool_options wrong[] = {{.contexts = -1},
                                             {.contexts = 65},
                                             {.contexts = INT32_MAX},
                                             {.queue = -1},
                                             {.max_batch = -1},
                                             {.max_batch = 65537},
                                             {.max_delay_ms = -1},
                                             {.max_delay_ms = NAN},
                                             {.share = -1},
                                             {.share = NAN},
                                             {.share = INFINITY},
                                             {.device_runs = -1},
                                             {.padding = (grt_padding)7, .max_batch = 4}};
    grt_model *model = service_open_rows();
    grt_session *session;
    grt_pool *pool = NULL;
    OK(grt_session_create(model, devices[_i], NULL, &session));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        grt_pool_options options = wrong[i];
        options.struct_size = sizeof options;
        const grt_status status = grt_pool_create(&session, 1, &options, &pool);
        ck_assert_msg(status == GRT_STATUS_INVALID_ARGUMENT, "case %zu: %s", i, grt_status_text(status));
        ck_assert_ptr_null(pool);
    }
    OK(grt_pool_create(NULL, 0, NULL, &pool)); /* no lane yet */
    loop_call c;
    grt_request *none;
    REFUSED(grt_pool_submit_with(pool, &service_loop_of(&c, &service_three)->s, &none), "no lane 0");
    REFUSED(grt_pool_run(pool, c.in, 2, NULL, 0), "no lane 0");
    c.s.lane = SIZE_MAX;
    REFUSED(grt_pool_submit_with(pool, &c.s, &none), "no lane");
    grt_pool_stats stats = {.struct_size = sizeof stats};
    REFUSED(grt_pool_get_stats(pool, 0, &stats), "no lane 0");
    grt_replay_info replay = {.struct_size = sizeof replay};
    REFUSED(grt_pool_get_replay(pool, 0, &replay), "no lane 0");
    grt_pool_release(pool);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

START_TEST(many_lanes)
{
    enum { LANES = 60 };
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 1};
    grt_pool *pool = service_open_small(_i);
    grt_request *requests[LANES + 1];
    grt_model *model = service_open_loop();
    grt_session *session;
    size_t lane;
    OK(grt_session_create(
        model, devices[_i],
        &(grt_session_options){sizeof(grt_session_options), .threads = 1, .fallback = "cpu"}, &session));
    for (int i = 0; i < LANES; i++)
        OK(grt_pool_add(pool, &session, 1, &options, &lane));
    for (size_t i = 0; i <= LANES; i++) {
        loop_call c;
        service_loop_of(&c, &service_three)->s.lane = i;
        requests[i] = service_submit(pool, &c.s);
    }
    for (int i = 0; i <= LANES; i++)
        service_expect(requests[i], GRT_OK);
    grt_pool_release(pool);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* ---- rows ---- */

static grt_request *submit_rows(grt_pool *pool, int64_t n)
{
    static float x[4 * 3];
    static int64_t index[4];
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {n, 3}, .data = n ? x : NULL},
                             {.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {n}, .data = n ? index : NULL}};
    grt_request *r;
    OK(grt_pool_submit(pool, in, 2, NULL, 0, &r));
    return r;
}

/* No rows are a request, too; fewer than none are not, and do not harm those beside them. */
START_TEST(batches_beside_none)
{
    const grt_pool_options options = {
        .struct_size = sizeof options, .contexts = 1, .queue = 16, .max_batch = 8, .max_delay_ms = 5};
    grt_pool *pool = service_open_pool(service_open_rows(), devices[_i], &options);
    grt_request *r[] = {submit_rows(pool, 2), submit_rows(pool, 0), submit_rows(pool, -3),
                        submit_rows(pool, 1)};
    static const int64_t rows[] = {2, 0, -1, 1};
    for (int i = 0; i < 4; i++) {
        grt_tensor y;
        const grt_status status = grt_request_wait(r[i]);
        ck_assert_int_eq(status, rows[i] < 0 ? GRT_STATUS_INVALID_ARGUMENT : GRT_OK);
        if (rows[i] >= 0) {
            OK(grt_request_get_output(r[i], 0, &y));
            ck_assert_int_eq(y.dims[0], rows[i]);
        }
        grt_request_release(r[i]);
    }
    grt_pool_release(pool);
}
END_TEST

/* ---- the end ---- */

START_TEST(after_the_shutdown)
{
    grt_pool *pool = service_open_small(_i);
    struct pollfd polled = {.events = POLLIN};
    grt_request *mine, *taken = NULL;
    loop_call c;
    OK(grt_pool_get_fd(pool, &polled.fd));
    service_loop_of(&c, &service_three)->s.collect = true;
    OK(grt_pool_submit_with(pool, &c.s, &mine));
    OK(grt_pool_shutdown(pool, 0));
    OK(grt_pool_shutdown(pool, 1)); /* again */
    ck_assert_int_eq(poll(&polled, 1, 0), 1);
    OK(grt_pool_take_done(pool, &taken));
    ck_assert_ptr_eq(taken, mine);
    ck_assert_int_eq(poll(&polled, 1, 0), 0);
    ck_assert_int_eq(grt_pool_take_done(pool, &taken), GRT_STATUS_BUSY);
    ck_assert_int_eq(grt_pool_run(pool, c.in, 2, NULL, 0), GRT_STATUS_CANCELLED);
    grt_pool_cancel(pool);
    OK(grt_pool_drain(pool, 0));
    grt_pool_release(pool);
    grt_request_cancel(mine);
    service_expect(mine, GRT_OK); /* it outlives its pool */
}
END_TEST

/* ---- a child ---- */

#define CHILD(condition)           \
    do {                           \
        if (!(condition))          \
            _exit(__LINE__ & 127); \
    } while (0)

static void use_in_child(grt_pool *pool, grt_request *done, grt_request *open)
{
    loop_call c;
    grt_request *none;
    grt_tensor y;
    int fd;
    grt_pool_stats stats = {.struct_size = sizeof stats};
    service_loop_of(&c, &service_three);
    CHILD(grt_pool_submit_with(pool, &c.s, &none) == GRT_STATUS_INVALID_ARGUMENT);
    CHILD(strstr(grt_last_error(), "fork()"));
    CHILD(grt_pool_run(pool, c.in, 2, NULL, 0) == GRT_STATUS_INVALID_ARGUMENT);
    CHILD(grt_pool_drain(pool, 0) == GRT_STATUS_INVALID_ARGUMENT);
    CHILD(grt_pool_get_stats(pool, 0, &stats) == GRT_STATUS_INVALID_ARGUMENT);
    CHILD(grt_pool_get_fd(pool, &fd) == GRT_STATUS_INVALID_ARGUMENT);
    CHILD(grt_request_wait(open) == GRT_STATUS_INVALID_ARGUMENT && strstr(grt_last_error(), "fork()"));
    CHILD(grt_request_wait_until(open, 0) == GRT_STATUS_INVALID_ARGUMENT);
    CHILD(grt_request_wait(done) == GRT_OK && grt_request_get_output(done, 0, &y) == GRT_OK);
    CHILD(*(float *)y.data == 8);
    grt_request_cancel(open);
    grt_pool_cancel(pool);
    grt_request_release(open);
    grt_request_release(done);
    grt_pool_release(pool);
}

/* What the child makes itself works: sessions on the CPU may be used there. ThreadSanitizer allows a child no
 * threads. */
static void serve_in_child(grt_session *session)
{
#if defined __SANITIZE_THREAD__
    (void)session;
#else
    grt_pool *pool;
    loop_call c;
    service_loop_of(&c, &service_three);
    CHILD(grt_pool_create(&session, 1, NULL, &pool) == GRT_OK);
    CHILD(grt_pool_run(pool, c.in, 2, NULL, 0) == GRT_OK);
    grt_request *r;
    CHILD(grt_pool_submit_with(pool, &c.s, &r) == GRT_OK && grt_request_wait(r) == GRT_OK);
    grt_request_release(r);
    grt_pool_release(pool);
#endif
}

START_TEST(in_a_child)
{
    const grt_session_options with = {.struct_size = sizeof with, .threads = 1};
    grt_model *model = service_open_loop();
    grt_session *session;
    grt_pool *pool;
    int status;
    OK(grt_session_create(model, "cpu", &with, &session));
    OK(grt_pool_create(&session, 1, NULL, &pool));
    grt_request *done = service_run_loop(pool, &service_three);
    OK(grt_request_wait(done));
    grt_request *open = service_block(pool);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        use_in_child(pool, done, open);
        serve_in_child(session);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "the child ended with %#x", (unsigned)status);
    grt_request_cancel(open);
    service_expect(open, GRT_STATUS_CANCELLED);
    service_expect(done, GRT_OK);
    grt_pool_release(pool);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

Suite *suite_test_service_misuse(void);
Suite *suite_test_service_misuse(void)
{
    Suite *suite = suite_create("service_misuse");
    TCase *tc = tcase_create("service_misuse");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, in_a_callback, 0, N_DEVICES);
    tcase_add_loop_test(tc, cancels_and_other_pools_in_a_callback, 0, N_DEVICES);
    tcase_add_loop_test(tc, deadlines_of_all_kinds, 0, N_DEVICES);
    tcase_add_loop_test(tc, options_out_of_range, 0, N_DEVICES);
    tcase_add_loop_test(tc, many_lanes, 0, N_DEVICES);
    tcase_add_loop_test(tc, batches_beside_none, 0, N_DEVICES);
    tcase_add_loop_test(tc, after_the_shutdown, 0, N_DEVICES);
#ifndef __SANITIZE_ADDRESS__ /* whose allocator a thread of the parent may have locked when it forks */
    tcase_add_test(tc, in_a_child);
#else
    (void)in_a_child;
#endif
    suite_add_tcase(suite, tc);
    return suite;
}
