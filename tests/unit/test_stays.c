/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that move nothing at the dims of a run: their results lie where their input lies. */
#include "tests/unit/opened.h"

#include <check.h>

enum { WIDTH = 16, MOST = 3 * 3 * WIDTH };

/* n = -x, of [batch,tokens,16]. Outputs, all of which may be n: its transpose to [tokens,batch,16], its first
 * 100 tokens, it expanded to one batch, it backwards along tokens, and n; and the transpose of x. */
static onnx_model moves(void)
{
    static const int64_t zero = 0, hundred = 100, one = 1, back = -1, least = INT64_MIN, shape[] = {1, 1, 1},
                         order[] = {1, 0, 2};
    const struct {
        const char *name, *dims;
        const int64_t *values;
        size_t n;
    } constants[] = {{"zero", "1", &zero, 1}, {"hundred", "1", &hundred, 1}, {"one", "1", &one, 1},
                     {"back", "1", &back, 1}, {"least", "1", &least, 1},     {"shape", "3", shape, 3}};
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "batch,tokens,16");
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        onnx_initializer(&m, m.graph,
                         onnx_raw(&m, constants[i].name, GRT_DTYPE_INT64, constants[i].dims,
                                  constants[i].values, constants[i].n * sizeof(int64_t)));
    onnx_node(&m, m.graph, "Neg", "x", "n");
    Onnx__NodeProto *const transposes[] = {onnx_node(&m, m.graph, "Transpose", "n", "turned"),
                                           onnx_node(&m, m.graph, "Transpose", "x", "input_turned")};
    for (size_t i = 0; i < 2; i++) {
        Onnx__AttributeProto *perm =
            onnx_attr(&m, transposes[i], "perm", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
        perm->n_ints = 3;
        perm->ints = grt_arena_memdup(m.arena, order, sizeof order);
    }
    onnx_node(&m, m.graph, "Slice", "n,zero,hundred,one", "first");
    onnx_node(&m, m.graph, "Expand", "n,shape", "wide");
    onnx_node(&m, m.graph, "Slice", "n,back,least,one,back", "backwards");
    static const char *const outputs[] = {"turned", "first", "wide", "backwards", "n", "input_turned"};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        onnx_output(&m, m.graph, outputs[i]);
    return m;
}

enum { TURNED, FIRST, WIDE, BACKWARDS, N, INPUT_TURNED, OUTPUTS };

static const float *stays_output(size_t i)
{
    grt_tensor out;
    ck_assert_int_eq(grt_context_get_output(context, i, &out), GRT_OK);
    return out.data;
}

static void check_values(const float *x, int64_t batch, int64_t tokens)
{
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < tokens; t++)
            for (int64_t k = 0; k < WIDTH; k++) {
                const int64_t at = (b * tokens + t) * WIDTH + k, turned = (t * batch + b) * WIDTH + k,
                              back = (b * tokens + tokens - 1 - t) * WIDTH + k;
                ck_assert_float_eq(stays_output(N)[at], -x[at]);
                ck_assert_float_eq(stays_output(TURNED)[turned], -x[at]);
                ck_assert_float_eq(stays_output(INPUT_TURNED)[turned], x[at]);
                ck_assert_float_eq(stays_output(FIRST)[at], -x[at]);
                ck_assert_float_eq(stays_output(WIDE)[at], -x[at]);
                ck_assert_float_eq(stays_output(BACKWARDS)[back], -x[at]);
            }
}

static void run_with(float *x, int64_t batch, int64_t tokens)
{
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = {batch, tokens, WIDTH}, .data = x};
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    check_values(x, batch, tokens);
}

/* Dims change from run to run and come back; with outputs of the caller's, who gets all of them. */
START_TEST(as_the_dims_are)
{
    static const int64_t dims[][2] = {{1, 3}, {2, 3}, {3, 1}, {1, 3}, {1, 1}, {2, 2}, {0, 2}, {3, 1}};
    float x[MOST], theirs[OUTPUTS][MOST];
    onnx_model m = moves();
    open_on(&m, NULL, devices[_i], NULL);
    for (int i = 0; i < MOST; i++)
        x[i] = (float)(i + 1);
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        run_with(x, dims[i][0], dims[i][1]);
        const bool one = dims[i][0] == 1 || dims[i][1] == 1;
        if (_i || dims[i][0] == 0)
            continue;
        ck_assert_int_eq(stays_output(TURNED) == stays_output(N), one);
        ck_assert_ptr_eq(stays_output(FIRST), stays_output(N));
        ck_assert_ptr_eq(stays_output(WIDE), stays_output(N));
        ck_assert_ptr_ne(stays_output(BACKWARDS), stays_output(N));
    }
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        for (size_t k = 0; k < OUTPUTS; k++) {
            const grt_tensor out = {.dtype = GRT_DTYPE_FLOAT,
                                    .rank = 3,
                                    .dims = {dims[i][k == TURNED || k == INPUT_TURNED],
                                             dims[i][k != TURNED && k != INPUT_TURNED], WIDTH},
                                    .data = theirs[k]};
            ck_assert_int_eq(grt_context_set_output(context, k, &out), GRT_OK);
        }
        run_with(x, dims[i][0], dims[i][1]);
        for (size_t k = 0; k < OUTPUTS; k++)
            ck_assert_ptr_eq(stays_output(k), theirs[k]);
    }
    close_all();
}
END_TEST

Suite *suite_test_stays(void)
{
    Suite *suite = suite_create("stays");
    TCase *tests = tcase_create("stays");
    tcase_add_checked_fixture(tests, runtime_open, runtime_close);
    tcase_add_loop_test(tests, as_the_dims_are, 0, N_DEVICES);
    suite_add_tcase(suite, tests);
    return suite;
}
