/* SPDX-License-Identifier: Apache-2.0 */
/* Products over a softmax that do not become Attention say why; others say nothing. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

static void keep_reason(void *user, const grt_finding *finding)
{
    grt_text_add(user, "%s; ", finding->message);
}

/* The passes that forms meet before `attention`, and that. */
static void check_reason(const char *graph, const char *expected)
{
    grt_text found = {0};
    ir_module *module = ir_text(graph);
    const grt_target target = ir_text_target();
    pass_context context = {.module = module,
                            .target = &target,
                            .level = 2,
                            .near_misses = {.tell = keep_reason, .user = &found}};
    ck_assert_int_eq(pass_legalise(&context), GRT_OK);
    ck_assert_int_eq(pass_softmax(&context), GRT_OK);
    ck_assert_int_eq(pass_dce(&context), GRT_OK);
    ck_assert_int_eq(pass_attention(&context), GRT_OK);
    ck_assert_str_eq(grt_text_get(&found), expected);
    grt_text_release(&found);
    ir_module_release(module);
}

#define LOOKS "this looks like attention, but "
#define SIDES "in q f32 2,4,5,8\nin kt f32 2,4,8,5\nin v f32 2,4,5,8\nqk = MatMul q kt\n"

START_TEST(queries_folded_with_heads)
{
    check_reason("in q f32 2,20,8\nin kt f32 2,8,5\nin v f32 2,5,8\n"
                 "const apart i64 4 2 5 4 5\nconst folded i64 3 2 20 5\n"
                 "qk = MatMul q kt\ns = Reshape qk apart\np = Softmax s\nf = Reshape p folded\n"
                 "y = MatMul f v\nout y\n",
                 LOOKS "batch and heads of queries, keys and values do not go together; ");
    /* keys differ along the rows that the softmax has last */
    check_reason("in q f32 2,3,5,8\nin kt f32 2,3,8,5\nin v f32 2,5,5,8\n"
                 "qk = MatMul q kt\nt = Transpose qk perm=0,2,1,3\np = Softmax t\ny = MatMul p v\nout y\n",
                 LOOKS "queries are moved into dims that keys or values have; ");
}
END_TEST

START_TEST(transposed_scores)
{
    check_reason("in k f32 2,4,5,8\nin qt f32 2,4,8,6\nin v f32 2,4,5,8\nin mask f32 5,6\n"
                 "kq = MatMul k qt\nm = Add kq mask\np = Softmax m axis=-2\n"
                 "pt = Transpose p perm=0,1,3,2\ny = MatMul pt v\nout y\n",
                 LOOKS "a mask lies on transposed scores; ");
    check_reason("in k f32 2,4,5,8\nin qt f32 2,4,8,6\nin vt f32 2,4,8,6\n"
                 "kq = MatMul k qt\np = Softmax kq axis=-2\npt = Transpose p perm=0,1,3,2\n"
                 "y = MatMul vt pt\nout y\n",
                 LOOKS "its scores are transposed: the softmax is not over their last dim; ");
}
END_TEST

START_TEST(changed_weights)
{
    check_reason(SIDES "in mask f32 4,5,1\np = Softmax qk\nw = Mul p mask\ny = MatMul w v\nout y\n",
                 LOOKS "its weights are changed between softmax and values, as by a mask of heads; ");
    check_reason(SIDES "const mix f32 4,4\np = Softmax qk\n"
                       "pt = Transpose p perm=0,2,3,1\nm = MatMul pt mix\nw = Transpose m perm=0,3,1,2\n"
                       "y = MatMul w v\nout y\n",
                 LOOKS "a product by a weight lies between its softmax and the values, as of heads that "
                       "talk; ");
    /* the difference of two maps of weights */
    check_reason("in q f32 2,4,5,8\nin kt f32 2,4,8,5\nin v f32 2,2,5,8\nqk = MatMul q kt\np = Softmax qk\n"
                 "const apart i64 5 2 2 2 5 5\nconst i0 i64 - 0\nconst i1 i64 - 1\nr = Reshape p apart\n"
                 "a = Gather r i0 axis=2\nb = Gather r i1 axis=2\nw = Sub a b\ny = MatMul w v\nout y\n",
                 LOOKS "its weights are changed between softmax and values, as by a mask of heads; ");
}
END_TEST

#define EXPONENTIALS \
    SIDES "const last i64 1 -1\nx = ReduceMax qk last\nd = Sub qk x\ne = Exp d\ns = ReduceSum e last\n"

START_TEST(other_softmaxes)
{
    check_reason(EXPONENTIALS "const one f32 - 1\nt = Add s one\np = Div e t\ny = MatMul p v\nout y\n",
                 LOOKS "its softmax is written out and is not exponentials divided by their sum; ");
    check_reason(EXPONENTIALS "u = MatMul e v\ny = Div u s\nout y\n",
                 LOOKS "its exponentials are multiplied by the values before they are divided by their "
                       "sum; ");
}
END_TEST

START_TEST(two_dims)
{
    check_reason("in q f32 5,8\nin kt f32 8,5\nin v f32 5,8\nqk = MatMul q kt\np = Softmax qk\n"
                 "y = MatMul p v\nout y\n",
                 LOOKS "the scores have fewer than three dims; ");
}
END_TEST

/* Products by weights, softmaxes of no product, what an attention's result goes into. */
START_TEST(others_say_nothing)
{
    check_reason(SIDES "p = Softmax qk\ny = MatMul p v\nconst w f32 8,3\nz = MatMul y w\nout z\n", "");
    check_reason("in x f32 5,8\nin v f32 3,8\nconst w f32 8,3\nx1 = MatMul x w\np = Softmax x1\n"
                 "y = MatMul p v\nout y\n",
                 "");
    check_reason("in x f32 5,8\nin z f32 8,5\nconst v f32 5,8\nx1 = MatMul x z\np = Softmax x1\n"
                 "y = MatMul p v\nout y\n",
                 "");
    check_reason(
        "in x f32 5,8\nin z f32 8,5\nin u f32 5,3\nx1 = MatMul x z\ne = Exp x1\ny = MatMul e u\nout y\n", "");
    /* of a chain of attentions only the one that is near */
    check_reason(SIDES "in mask f32 4,5,1\np = Softmax qk\nw = Mul p mask\ny = MatMul w v\n"
                       "const o f32 8,8\ny1 = MatMul y o\ny2 = Add y1 q\nt = MatMul y2 kt\nr = Softmax t\n"
                       "z = MatMul r v\nout z\n",
                 LOOKS "its weights are changed between softmax and values, as by a mask of heads; ");
}
END_TEST

UNIT_SUITE(test_attention_near, NULL, NULL, queries_folded_with_heads, transposed_scores, changed_weights,
           other_softmaxes, two_dims, others_say_nothing)
