/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of models whose rows are not plain: of strings, of several dtypes, with other dims that change from
 * request to request, and rows in numbers that no memory has. */
#include "tests/unit/service.h"

#include <check.h>
#include <string.h>

enum { REQUESTS = 4, ROWS = 8 };

static grt_pool *open_rows(onnx_model *m, int device)
{
    const grt_pool_options options = {
        .struct_size = sizeof options, .contexts = 1, .max_batch = ROWS, .queue = 16, .max_delay_ms = 20};
    return service_open_pool(service_open(m), devices[device], &options);
}

static grt_request *submit_one(grt_pool *pool, const grt_tensor *in, size_t n_in)
{
    grt_request *r;
    OK(grt_pool_submit(pool, in, n_in, NULL, 0, &r));
    return r;
}

static uint64_t batched_rows(grt_pool *pool)
{
    grt_pool_stats stats = {.struct_size = sizeof stats};
    OK(grt_pool_get_stats(pool, 0, &stats));
    return stats.batch_rows;
}

/* y [N,4] = the two columns of x, twice */
static onnx_model doubled_columns(grt_dtype dtype)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", dtype, "N,2");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Concat", "x,x", "y"), "axis", 1);
    onnx_output(&m, m.graph, "y");
    return m;
}

START_TEST(strings)
{
    static const grt_string words[] = {{"", 0}, {"a", 1}, {"two\0bytes", 9}, {"three", 5}};
    onnx_model m = doubled_columns(GRT_DTYPE_STRING);
    grt_pool *pool = open_rows(&m, _i);
    grt_request *r[REQUESTS];
    grt_string rows[REQUESTS][2];
    for (int i = 0; i < REQUESTS; i++) {
        rows[i][0] = words[i];
        rows[i][1] = words[REQUESTS - 1 - i];
        const grt_tensor in = {.dtype = GRT_DTYPE_STRING, .rank = 2, .dims = {1, 2}, .data = rows[i]};
        r[i] = submit_one(pool, &in, 1);
    }
    for (int i = 0; i < REQUESTS; i++) {
        grt_tensor y;
        ck_assert_msg(grt_request_wait(r[i]) == GRT_OK, "%s", grt_last_error());
        OK(grt_request_get_output(r[i], 0, &y));
        ck_assert_int_eq(y.dims[0], 1);
        ck_assert_int_eq(y.dims[1], 4);
        for (int k = 0; k < 4; k++) {
            const grt_string *found = &((const grt_string *)y.data)[k], *wanted = &rows[i][k % 2];
            ck_assert_uint_eq(found->size, wanted->size);
            ck_assert(!wanted->size || memcmp(found->data, wanted->data, wanted->size) == 0);
        }
        grt_request_release(r[i]);
    }
    grt_pool_release(pool);
}
END_TEST

/* y [N,M] = x + x: rows of 3 and of 5 elements are in no batch together. */
START_TEST(two_symbols)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,M");
    onnx_node(&m, m.graph, "Add", "x,x", "y");
    onnx_output(&m, m.graph, "y");
    grt_pool *pool = open_rows(&m, _i);
    float x[REQUESTS][5];
    grt_request *r[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, i % 2 ? 5 : 3}, .data = x[i]};
        for (int k = 0; k < 5; k++)
            x[i][k] = (float)(10 * i + k);
        r[i] = submit_one(pool, &in, 1);
    }
    for (int i = 0; i < REQUESTS; i++) {
        grt_tensor y;
        ck_assert_msg(grt_request_wait(r[i]) == GRT_OK, "%s", grt_last_error());
        OK(grt_request_get_output(r[i], 0, &y));
        ck_assert_int_eq(y.dims[1], i % 2 ? 5 : 3);
        for (int k = 0; k < y.dims[1]; k++)
            ck_assert_float_eq(((const float *)y.data)[k], 2 * x[i][k]);
        grt_request_release(r[i]);
    }
    ck_assert_uint_le(batched_rows(pool), REQUESTS);
    grt_pool_release(pool);
}
END_TEST

/* The first dim is a symbol that another dim has, too: a batch would change both. */
START_TEST(rows_that_are_columns)
{
    const grt_pool_options options = {.struct_size = sizeof options, .max_batch = ROWS};
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,N");
    onnx_node(&m, m.graph, "Add", "x,x", "y");
    onnx_output(&m, m.graph, "y");
    grt_model *model = service_open(&m);
    grt_session *session;
    grt_pool *pool = NULL;
    OK(grt_session_create(model, "cpu", NULL, &session));
    ck_assert_int_eq(grt_pool_create(&session, 1, &options, &pool), GRT_STATUS_INVALID_ARGUMENT);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* y [N,3] = a + float(b) where c, of three dtypes; a request whose dtype is wrong fails alone. */
START_TEST(several_dtypes)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "a", GRT_DTYPE_FLOAT, "N,3");
    onnx_input(&m, m.graph, "b", GRT_DTYPE_INT8, "N,3");
    onnx_input(&m, m.graph, "c", GRT_DTYPE_BOOL, "N,1");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Cast", "b", "wide"), "to", GRT_DTYPE_FLOAT);
    onnx_node(&m, m.graph, "Add", "a,wide", "sum");
    onnx_node(&m, m.graph, "Where", "c,sum,a", "y");
    onnx_output(&m, m.graph, "y");
    grt_pool *pool = open_rows(&m, _i);
    static const float a[] = {1, 2, 3};
    static const int8_t b[] = {-1, 0, 127};
    static const bool c[] = {true};
    grt_request *r[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        const grt_tensor in[] = {
            {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 3}, .data = (void *)(uintptr_t)a},
            {.dtype = i == 1 ? GRT_DTYPE_UINT8 : GRT_DTYPE_INT8,
             .rank = 2,
             .dims = {1, 3},
             .data = (void *)(uintptr_t)b},
            {.dtype = GRT_DTYPE_BOOL, .rank = 2, .dims = {1, 1}, .data = (void *)(uintptr_t)c}};
        r[i] = submit_one(pool, in, 3);
    }
    for (int i = 0; i < REQUESTS; i++) {
        grt_tensor y;
        ck_assert_int_eq(grt_request_wait(r[i]), i == 1 ? GRT_STATUS_INVALID_ARGUMENT : GRT_OK);
        if (i != 1) {
            OK(grt_request_get_output(r[i], 0, &y));
            for (int k = 0; k < 3; k++)
                ck_assert_float_eq(((const float *)y.data)[k], a[k] + (float)b[k]);
        }
        grt_request_release(r[i]);
    }
    grt_pool_release(pool);
}
END_TEST

/* What is claimed is neither allocated nor read; those beside it are served. */
START_TEST(rows_beyond_memory)
{
    static const int64_t claimed[] = {INT64_MAX, INT64_MAX / 2 + 1, INT64_C(1) << 60, INT64_MIN, -1};
    onnx_model m = doubled_columns(GRT_DTYPE_FLOAT);
    grt_pool *pool = open_rows(&m, _i);
    static float x[2] = {1, 2};
    for (size_t i = 0; i < sizeof claimed / sizeof *claimed; i++) {
        const grt_tensor huge = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {claimed[i], 2}, .data = x},
                         wide = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, claimed[i]}, .data = x},
                         good = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 2}, .data = x};
        grt_request *r[] = {submit_one(pool, &good, 1), submit_one(pool, &huge, 1),
                            submit_one(pool, &wide, 1)};
        ck_assert_msg(grt_request_wait(r[0]) == GRT_OK, "%s", grt_last_error());
        for (int k = 1; k < 3; k++) {
            const grt_status status = grt_request_wait(r[k]);
            ck_assert_msg(status == GRT_STATUS_INVALID_ARGUMENT || status == GRT_STATUS_OUT_OF_MEMORY,
                          "case %zu, %d: %s", i, k, grt_status_text(status));
        }
        for (int k = 0; k < 3; k++)
            grt_request_release(r[k]);
    }
    grt_pool_release(pool);
}
END_TEST

Suite *suite_test_service_rows(void);
Suite *suite_test_service_rows(void)
{
    Suite *suite = suite_create("service rows");
    TCase *tc = tcase_create("service rows");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, strings, 0, N_DEVICES);
    tcase_add_loop_test(tc, two_symbols, 0, N_DEVICES);
    tcase_add_test(tc, rows_that_are_columns);
    tcase_add_loop_test(tc, several_dtypes, 0, N_DEVICES);
    tcase_add_loop_test(tc, rows_beyond_memory, 0, N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}
