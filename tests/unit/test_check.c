/* SPDX-License-Identifier: Apache-2.0 */
/* grt_check_model says what compiling would: yes to what compiles, no to what does not, and what stands in
 * the way. */
#include "tests/unit/files.h"
#include "tests/unit/onnx_model.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct told {
    size_t n;
    grt_status first;
    char text[512];
} told;

static void note(void *user, const grt_finding *finding)
{
    told *t = user;
    if (!t->n++) {
        t->first = finding->status;
        snprintf(t->text, sizeof t->text, "%s|%s|%s", finding->op, finding->node, finding->message);
    }
}

/* Checks the model and compiles it: both must agree. */
static told check_both(onnx_model *m)
{
    char source[FILES_NAME], plan[FILES_NAME];
    told t = {0};
    size_t n = 0;
    files_fresh(source);
    files_fresh(plan);
    onnx_write(m, source);
    ck_assert_msg(grt_check_model(source, NULL, note, &t, &n) == GRT_OK, "%s", grt_last_error());
    ck_assert_uint_eq(n, t.n);
    const grt_status status = grt_compile(source, NULL, plan);
    ck_assert_msg((status == GRT_OK) == (n == 0), "check has %zu findings (%s), compiling ends with %s: %s",
                  n, t.text, grt_status_text(status), status == GRT_OK ? "" : grt_last_error());
    if (n)
        ck_assert_int_eq(status, t.first);
    unlink(source);
    unlink(plan);
    return t;
}

START_TEST(what_compiles_has_no_findings)
{
    onnx_model m = onnx_relu();
    ck_assert_uint_eq(check_both(&m).n, 0);
    onnx_release(&m);
}
END_TEST

/* An op that can be said with others, but not where its heads are a symbol. */
START_TEST(an_expansion_that_cannot_be_made)
{
    onnx_model m = onnx_create();
    onnx_opset(&m, "ai.onnx.preview", 1);
    for (int i = 0; i < 3; i++)
        onnx_input(&m, m.graph, (const char *[]){"q", "k", "v"}[i], GRT_DTYPE_FLOAT, "b,heads,s,8");
    onnx_node(&m, m.graph, "FlexAttention", "q,k,v", "y")->domain = (char *)(uintptr_t) "ai.onnx.preview";
    onnx_output(&m, m.graph, "y");
    const told t = check_both(&m);
    ck_assert_uint_eq(t.n, 1);
    ck_assert_int_eq(t.first, GRT_STATUS_UNSUPPORTED);
    ck_assert_msg(!strncmp(t.text, "ai.onnx.preview::FlexAttention|", 31), "%s", t.text);
    onnx_release(&m);
}
END_TEST

/* Seen only once the constants in front of it are folded. */
START_TEST(a_shape_that_folding_finds_wrong)
{
    const int64_t two[] = {2, 2}, ten[] = {1, 5};
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "3,4");
    onnx_initializer(&m, m.graph, onnx_raw(&m, "a", GRT_DTYPE_INT64, "2", two, sizeof two));
    onnx_initializer(&m, m.graph, onnx_raw(&m, "b", GRT_DTYPE_INT64, "2", ten, sizeof ten));
    onnx_node(&m, m.graph, "Pow", "a,b", "shape");
    onnx_node(&m, m.graph, "Reshape", "x,shape", "y");
    onnx_output(&m, m.graph, "y");
    const told t = check_both(&m);
    ck_assert_uint_eq(t.n, 1);
    ck_assert_int_eq(t.first, GRT_STATUS_INVALID_MODEL);
    ck_assert_msg(strstr(t.text, "Reshape") && strstr(t.text, "64 elements"), "%s", t.text);
    onnx_release(&m);
}
END_TEST

/* No limit is no limit, in the plan's file too. */
START_TEST(more_operands_than_a_short_counts)
{
    enum { N = 40000 };
    static const char *const ops[] = {"Concat", "Sum", "Max"};
    static char inputs[2 * N];
    for (int i = 0; i < N; i++)
        memcpy(inputs + (size_t)2 * (size_t)i, "x,", 2);
    inputs[2 * N - 1] = '\0';
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, ops[_i], inputs, "y");
    if (!_i)
        onnx_attr_int(&m, node, "axis", 0);
    onnx_output(&m, m.graph, "y");
    ck_assert_uint_eq(check_both(&m).n, 0);
    grt_runtime *runtime;
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    grt_model_release(onnx_open_plan(&m, runtime, NULL));
    grt_runtime_release(runtime);
    onnx_release(&m);
}
END_TEST

Suite *suite_test_check(void);
Suite *suite_test_check(void)
{
    Suite *suite = suite_create("check");
    TCase *tests = tcase_create("check");
    tcase_add_test(tests, what_compiles_has_no_findings);
    tcase_add_test(tests, an_expansion_that_cannot_be_made);
    tcase_add_test(tests, a_shape_that_folding_finds_wrong);
    tcase_add_loop_test(tests, more_operands_than_a_short_counts, 0, 3);
    suite_add_tcase(suite, tests);
    return suite;
}
