/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/service.h"

#include <check.h>
#include <stdlib.h>
#include <time.h>

const char *service_program(void)
{
    const char *named = getenv("GRAPHRUN");
    return named ? named : "./graphrun";
}

void service_sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* ---- models ---- */

grt_model *service_open(onnx_model *m)
{
    grt_model *model = onnx_open(m, runtime);
    onnx_release(m);
    return model;
}

grt_model *service_open_loop(void)
{
    onnx_model m = onnx_create();
    Onnx__GraphProto *body = onnx_graph(&m, "body");
    onnx_input(&m, m.graph, "trips", GRT_DTYPE_INT64, "");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1");
    onnx_input(&m, body, "i", GRT_DTYPE_INT64, "");
    onnx_input(&m, body, "go", GRT_DTYPE_BOOL, "");
    onnx_input(&m, body, "state", GRT_DTYPE_FLOAT, "1");
    onnx_node(&m, body, "Add", "state,state", "next");
    onnx_output(&m, body, "go");
    onnx_output(&m, body, "next");
    Onnx__NodeProto *loop = onnx_node(&m, m.graph, "Loop", "trips,,x", "y");
    onnx_attr(&m, loop, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
    onnx_output(&m, m.graph, "y");
    return service_open(&m);
}

grt_model *service_open_rows(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,3");
    onnx_input(&m, m.graph, "index", GRT_DTYPE_INT64, "N");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "table", "9,3"));
    onnx_node(&m, m.graph, "Gather", "table,index", "row");
    onnx_node(&m, m.graph, "Add", "row,x", "y");
    onnx_output(&m, m.graph, "y");
    return service_open(&m);
}

grt_pool *service_open_pool(grt_model *model, const char *device, const grt_pool_options *options)
{
    const grt_session_options with = {.struct_size = sizeof with, .threads = 1, .fallback = "cpu"};
    grt_session *session;
    grt_pool *pool;
    ck_assert_msg(grt_session_create(model, device, &with, &session) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(grt_pool_create(&session, 1, options, &pool) == GRT_OK, "%s", grt_last_error());
    grt_session_release(session);
    grt_model_release(model);
    return pool;
}

size_t service_add_lane(grt_pool *pool, grt_model *model, const char *device, const grt_pool_options *options)
{
    const grt_session_options with = {.struct_size = sizeof with, .threads = 1, .fallback = "cpu"};
    grt_session *session;
    size_t lane;
    ck_assert_int_eq(grt_session_create(model, device, &with, &session), GRT_OK);
    ck_assert_msg(grt_pool_add(pool, &session, 1, options, &lane) == GRT_OK, "%s", grt_last_error());
    grt_session_release(session);
    grt_model_release(model);
    return lane;
}

/* ---- requests of the loop ---- */

const int64_t service_for_ever = INT64_C(1) << 60, service_three = 3;
static float one[1] = {1};

loop_call *service_loop_of(loop_call *c, const int64_t *trips)
{
    *c = (loop_call){.in = {{.dtype = GRT_DTYPE_INT64, .data = (void *)(uintptr_t)trips},
                            {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {1}, .data = one}}};
    c->s = (grt_submission){.struct_size = sizeof c->s, .inputs = c->in, .n_inputs = 2};
    return c;
}

grt_request *service_submit(grt_pool *pool, const grt_submission *s)
{
    grt_request *r = NULL;
    ck_assert_msg(grt_pool_submit_with(pool, s, &r) == GRT_OK, "%s", grt_last_error());
    return r;
}

grt_request *service_run_loop(grt_pool *pool, const int64_t *trips)
{
    loop_call c;
    return service_submit(pool, &service_loop_of(&c, trips)->s);
}

grt_request *service_block(grt_pool *pool)
{
    grt_pool_stats stats = {.struct_size = sizeof stats};
    grt_request *r = service_run_loop(pool, &service_for_ever);
    do {
        service_sleep_ms(1);
        ck_assert_int_eq(grt_pool_get_stats(pool, 0, &stats), GRT_OK);
    } while (stats.waiting);
    return r;
}

void service_expect(grt_request *r, grt_status expected)
{
    const grt_status status = grt_request_wait(r);
    ck_assert_msg(status == expected, "%s: %s", grt_status_text(status), grt_last_error());
    if (status == GRT_OK) {
        grt_tensor y;
        ck_assert_int_eq(grt_request_get_output(r, 0, &y), GRT_OK);
        ck_assert_float_eq(*(float *)y.data, 8);
    }
    grt_request_release(r);
}

grt_pool *service_open_small(int i)
{
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 1, .queue = 3};
    return service_open_pool(service_open_loop(), devices[i], &options);
}

/* ---- callbacks ---- */

atomic_int service_n_called;
intptr_t service_called[SERVICE_MOST_CALLS];

static void note_call(void *user, grt_request *r)
{
    ck_assert_ptr_eq(grt_request_user(r), user);
    ck_assert_int_ne(grt_request_wait_until(r, 0), GRT_STATUS_BUSY);
    service_called[atomic_fetch_add(&service_n_called, 1)] = (intptr_t)user;
    grt_request_release(r);
}

void service_call_back(grt_pool *pool, const int64_t *trips, size_t lane, int priority, intptr_t user)
{
    loop_call c;
    service_loop_of(&c, trips);
    c.s.lane = lane;
    c.s.priority = priority;
    c.s.done = note_call;
    c.s.user = (void *)user;
    ck_assert_msg(grt_pool_submit_with(pool, &c.s, NULL) == GRT_OK, "%s", grt_last_error());
}
