/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Concat: parts whose axes are exchanged on their way. */
#include "backends/shared/concat.h"
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/onnx_model.h"
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <string.h>

static const float pair[] = {1, 2, 3, 4, 5, 6}, lines[] = {10, 20, 30, 40};
static const int64_t pair_dims[] = {2, 3}, lines_dims[] = {2, 2};

static void concat_begin(op_runner *r, const int64_t *perms, size_t n, int64_t axis)
{
    op_begin(r, "graphrt", "Concat");
    op_add(r, GRT_DTYPE_FLOAT, 2, pair_dims, pair);
    op_add(r, GRT_DTYPE_FLOAT, 2, lines_dims, lines);
    op_ints(r, "perms", perms, n);
    op_int(r, "axis", axis);
}

static void concat_check(const int64_t *perms, int64_t axis, const int64_t *dims, const float *want)
{
    op_runner r;
    concat_begin(&r, perms, 4, axis);
    op_run_ok(&r, 1);
    ck_assert_int_eq(r.out[0].t.rank, 2);
    ck_assert_mem_eq(r.out[0].t.dims, dims, 2 * sizeof *dims);
    ck_assert_mem_eq(r.out[0].t.data, want, 10 * sizeof *want);
    op_end(&r);
}

START_TEST(parts_are_exchanged)
{
    concat_check((int64_t[]){1, 0, 0, 1}, 0, (int64_t[]){5, 2}, (float[]){1, 4, 2, 5, 3, 6, 10, 20, 30, 40});
    concat_check((int64_t[]){1, 0, 1, 0}, 0, (int64_t[]){5, 2}, (float[]){1, 4, 2, 5, 3, 6, 10, 30, 20, 40});
    concat_check((int64_t[]){0, 1, 1, 0}, -1, (int64_t[]){2, 5}, (float[]){1, 2, 3, 10, 30, 4, 5, 6, 20, 40});
}
END_TEST

/* Tokens in front of heads, behind a cache: those of one keep their order. */
START_TEST(order_at_these_sizes)
{
    const int64_t perms[] = {0, 1, 2, 3, 0, 2, 1, 3};
    const grt_moved_concat c = {.axis = 2, .perms = perms};
    const grt_tensor whole = {.rank = 4, .dims = {2, 3, 9, 4}}, several = {.rank = 4, .dims = {2, 2, 3, 4}},
                     single = {.rank = 4, .dims = {2, 1, 3, 4}}, one = {.rank = 4, .dims = {2, 2, 1, 4}};
    grt_moved_part part;
    int64_t at = 7;
    grt_moved_part_of(&c, 1, &several, &whole, &at, &part);
    ck_assert(!part.stays);
    ck_assert_int_eq(at, 9);
    ck_assert_int_eq(part.offset, 28);
    ck_assert_int_eq(part.dims[1], 3);
    ck_assert_int_eq(part.from[1], 4);
    ck_assert_int_eq(part.from[2], 12);
    grt_moved_part_of(&c, 0, &several, &whole, &at, &part);
    ck_assert(part.stays);
    grt_moved_part_of(&c, 1, &single, &whole, &at, &part);
    ck_assert(part.stays);
    grt_moved_part_of(&c, 1, &one, &whole, &at, &part);
    ck_assert(part.stays);
}
END_TEST

static void concat_refuse(const int64_t *perms, size_t n, int64_t axis, const char *why)
{
    op_runner r;
    concat_begin(&r, perms, n, axis);
    ck_assert_int_ne(op_run(&r, 1), GRT_OK);
    ck_assert_msg(strstr(grt_last_error(), why) && strstr(grt_last_error(), "graphrt::Concat node 'tested'"),
                  "expected '%s' in '%s'", why, grt_last_error());
    op_end(&r);
}

START_TEST(what_is_no_order_is_refused)
{
    concat_refuse((int64_t[]){1, 0, 0, 1}, 4, 1, "input 1 has size 2 in dim 0, the inputs before it have 3");
    concat_refuse((int64_t[]){1, 0, 0, 1}, 4, 2, "attribute axis is 2");
    concat_refuse((int64_t[]){0, 0, 0, 1}, 4, 0,
                  "entry 1 of attribute perms for input 0 names axis 0 for the second time");
    concat_refuse((int64_t[]){1, 0, 0, 2}, 4, 0,
                  "entry 1 of attribute perms for input 1 is 2; expected one in [0, 2)");
    concat_refuse((int64_t[]){1, 0, -1, 1}, 4, 0,
                  "entry 0 of attribute perms for input 1 is -1; expected one in [0, 2)");
    concat_refuse((int64_t[]){1, 0, 0}, 3, 0, "attribute perms has 3 entries for 2 inputs");
    concat_refuse((int64_t[]){0, 0}, 2, 0, "input 0 has rank 2; attribute perms has 1 entries for it");
    concat_refuse((int64_t[]){0, 1, 2, 0, 1, 2}, 6, 0, "attribute perms has 3 entries for it");
    concat_refuse(NULL, 0, 0, "attribute perms has 0 entries");
}
END_TEST

/* In a model the tensors are named, too. */
START_TEST(a_refusal_names_all)
{
    ir_module *m = ir_text_read("in x f32 2,3\nin w f32 2,3\n"
                                "y = graphrt::Concat x w axis=0 perms=0,1,1,1\nout y\n");
    ck_assert_int_eq(ir_infer(m), GRT_STATUS_INVALID_MODEL);
    static const char *const parts[] = {
        "graphrt::Concat node 'y'", "entry 1 of attribute perms for input 1 names axis 1 for the second time",
        "'x' float32[2x3]", "'w' float32[2x3]"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(grt_last_error(), parts[i]) != NULL, "%s", grt_last_error());
    ir_module_release(m);
}
END_TEST

/* A token and several, twice each: what is prepared for sizes serves every run. */
static void check_tokens(grt_context *context, int64_t tokens)
{
    enum { HEADS = 2, SIZE = 3, PAST = 2, MOST = 4 };
    float past[HEADS * PAST * SIZE], x[MOST * HEADS * SIZE];
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = {HEADS, PAST, SIZE}, .data = past},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = {tokens, HEADS, SIZE}, .data = x}};
    grt_tensor out;
    fill_floats(past, HEADS * PAST * SIZE, 1);
    fill_floats(x, MOST * HEADS * SIZE, 2);
    for (size_t i = 0; i < 2; i++)
        ck_assert_msg(grt_context_set_input(context, i, &in[i]) == GRT_OK, "%s", grt_last_error());
    for (int run = 0; run < 2; run++) {
        ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
        ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
        ck_assert_int_eq(out.dims[1], PAST + tokens);
        const float *y = out.data;
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t t = 0; t < PAST + tokens; t++, y += SIZE)
                ck_assert_mem_eq(
                    y, t < PAST ? past + (h * PAST + t) * SIZE : x + ((t - PAST) * HEADS + h) * SIZE,
                    SIZE * sizeof *y);
    }
}

START_TEST(sizes_change)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "past", GRT_DTYPE_FLOAT, "2,p,3");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "t,2,3");
    Onnx__AttributeProto *perm = onnx_attr(&m, onnx_node(&m, m.graph, "Transpose", "x", "turned"), "perm",
                                           ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t axes[] = {1, 0, 2};
    perm->n_ints = 3;
    perm->ints = axes;
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Concat", "past,turned", "y"), "axis", 1);
    onnx_output(&m, m.graph, "y");
    grt_runtime *runtime;
    grt_session *session;
    grt_context *context;
    grt_step_info step = {.struct_size = sizeof step};
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    const grt_compile_options options = {.struct_size = sizeof options, .enable_passes = "moved_parts"};
    grt_model *model = onnx_open_plan(&m, runtime, &options);
    ck_assert_int_eq(grt_model_step(model, 0, &step), GRT_OK);
    ck_assert_str_eq(step.op, "Concat");
    ck_assert_msg(grt_session_create(model, "cpu", NULL, &session) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    check_tokens(context, 1);
    check_tokens(context, 4);
    check_tokens(context, 1);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    onnx_release(&m);
}
END_TEST

UNIT_SUITE(test_concat, NULL, NULL, parts_are_exchanged, order_at_these_sizes, what_is_no_order_is_refused,
           a_refusal_names_all, sizes_change)
