/* SPDX-License-Identifier: Apache-2.0 */
/* A device fails: its session is lost and no other, pools send their requests elsewhere, each is answered
 * once, and the lane goes on with another session. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"
#include "tests/unit/suite.h"

#include <graphrt/faults.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 8, REQUESTS = 300, COPIES = 60 };

static grt_model *model;
static float x[N];
static const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, N}, .data = x};

/* mirror:1 fails after so many copies. */
static void open_failing(void)
{
    char text[32];
    snprintf(text, sizeof text, "1:%d", (int)COPIES);
    setenv("GRAPHRT_MIRROR_FAULT", text, 1);
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "rows,8");
    onnx_node(&m, m.graph, "Neg", "x", "y");
    onnx_output(&m, m.graph, "y");
    model = onnx_open(&m, runtime);
    onnx_release(&m);
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
}

static grt_session *open_on(const char *device)
{
    grt_session *session;
    OK(grt_session_create(model, device, NULL, &session));
    return session;
}

static void lose(grt_session *session)
{
    grt_context *context;
    grt_status status = GRT_OK;
    OK(grt_context_create(session, &context));
    OK(grt_context_set_input(context, 0, &in));
    for (int i = 0; i <= COPIES && status == GRT_OK; i++)
        status = grt_context_run(context);
    ck_assert_int_eq(status, GRT_STATUS_DEVICE);
    grt_context_release(context);
}

START_TEST(no_other_session_is_lost)
{
    grt_context *context;
    open_failing();
    grt_session *failing = open_on("mirror:1"), *other = open_on("mirror:0");
    OK(grt_session_check(failing));
    lose(failing);
    ck_assert_int_eq(grt_session_check(failing), GRT_STATUS_DEVICE);
    ck_assert_msg(strstr(grt_last_error(), "mirror:1 is lost: "), "%s", grt_last_error());
    OK(grt_context_create(other, &context));
    OK(grt_context_set_input(context, 0, &in));
    OK(grt_context_run(context));
    OK(grt_session_check(other));
    grt_context_release(context);
    grt_session_release(failing);
    grt_session_release(other);
    grt_model_release(model);
}
END_TEST

static atomic_int answered[REQUESTS];

static void note_answer(void *user, grt_request *request)
{
    (void)request;
    atomic_fetch_add((atomic_int *)user, 1);
}

static grt_status submit(grt_pool *pool, int i, grt_request **out_request)
{
    const grt_submission submission = {.struct_size = sizeof submission,
                                       .inputs = &in,
                                       .n_inputs = 1,
                                       .done = note_answer,
                                       .user = &answered[i]};
    return grt_pool_submit_with(pool, &submission, out_request);
}

static void check_answer(grt_request *request, int i)
{
    grt_tensor y;
    OK(grt_request_wait(request));
    OK(grt_request_get_output(request, 0, &y));
    ck_assert_float_eq(((float *)y.data)[3], -3);
    grt_request_release(request);
    (void)i;
}

static size_t run_all(grt_pool *pool, size_t session)
{
    static grt_request *requests[REQUESTS];
    size_t there = 0;
    memset(answered, 0, sizeof answered);
    for (int i = 0; i < REQUESTS; i++)
        OK(submit(pool, i, &requests[i]));
    for (int i = 0; i < REQUESTS; i++) {
        grt_request_info info = {.struct_size = sizeof info};
        OK(grt_request_wait(requests[i]));
        OK(grt_request_get_info(requests[i], &info));
        there += info.session == session;
        check_answer(requests[i], i);
    }
    OK(grt_pool_drain(pool, 0));
    for (int i = 0; i < REQUESTS; i++)
        ck_assert_int_eq(answered[i], 1);
    return there;
}

/* One by one, and in batches. */
START_TEST(requests_go_elsewhere)
{
    grt_pool *pool;
    open_failing();
    grt_session *sessions[] = {open_on("mirror:0"), open_on("mirror:1")};
    const grt_pool_options options = {
        .struct_size = sizeof options, .contexts = 2, .queue = REQUESTS, .max_batch = _i ? 4 : 0};
    OK(grt_pool_create(sessions, 2, &options, &pool));
    for (int i = 0; i < 20 && grt_session_check(sessions[1]) == GRT_OK; i++)
        (void)run_all(pool, 1);
    ck_assert_int_eq(grt_session_check(sessions[1]), GRT_STATUS_DEVICE);
    ck_assert_uint_eq(run_all(pool, 1), 0);
    grt_pool_stats stats = {.struct_size = sizeof stats};
    OK(grt_pool_get_stats(pool, 0, &stats));
    ck_assert_uint_eq(stats.failed, 0);
    ck_assert_uint_eq(stats.succeeded, stats.submitted);
    grt_session *fresh = open_on("mirror:2");
    OK(grt_pool_replace_session(pool, 0, 1, fresh));
    grt_session_release(fresh);
    ck_assert_uint_gt(run_all(pool, 1), 0);
    ck_assert_int_eq(grt_pool_replace_session(pool, 0, 2, sessions[0]), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_pool_replace_session(pool, 0, 0, sessions[1]), GRT_STATUS_DEVICE);
    grt_pool_release(pool);
    grt_session_release(sessions[0]);
    grt_session_release(sessions[1]);
    grt_model_release(model);
}
END_TEST

START_TEST(nothing_is_left)
{
    grt_pool *pool;
    grt_request *requests[REQUESTS] = {0};
    int failed = 0;
    open_failing();
    grt_session *session = open_on("mirror:1");
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 2, .queue = REQUESTS};
    OK(grt_pool_create(&session, 1, &options, &pool));
    memset(answered, 0, sizeof answered);
    for (int i = 0; i < REQUESTS; i++)
        if (submit(pool, i, &requests[i]) != GRT_OK) {
            ck_assert_msg(strstr(grt_last_error(), "grt_pool_replace_session"), "%s", grt_last_error());
            requests[i] = NULL;
        }
    for (int i = 0; i < REQUESTS; i++) {
        const grt_status status = requests[i] ? grt_request_wait(requests[i]) : GRT_STATUS_DEVICE;
        failed += status == GRT_STATUS_DEVICE;
        ck_assert(status == GRT_OK || status == GRT_STATUS_DEVICE);
        grt_request_release(requests[i]);
    }
    OK(grt_pool_drain(pool, 0));
    for (int i = 0; i < REQUESTS; i++)
        ck_assert_int_eq(answered[i], requests[i] != NULL);
    ck_assert_int_gt(failed, REQUESTS - COPIES);
    ck_assert_int_eq(submit(pool, 0, &requests[0]), GRT_STATUS_DEVICE);
    grt_session *fresh = open_on("mirror:3");
    OK(grt_pool_replace_session(pool, 0, 0, fresh));
    ck_assert_uint_eq(run_all(pool, 0), REQUESTS);
    grt_session_release(fresh);
    grt_pool_release(pool);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

Suite *suite_test_lost(void);
Suite *suite_test_lost(void)
{
    Suite *s = suite_create("test_lost");
    TCase *t = tcase_create("test_lost");
    tcase_add_checked_fixture(t, runtime_open, runtime_close);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, no_other_session_is_lost);
    tcase_add_loop_test(t, requests_go_elsewhere, 0, 2);
    tcase_add_test(t, nothing_is_left);
    suite_add_tcase(s, t);
    return s;
}
