/* SPDX-License-Identifier: Apache-2.0 */
/* Constant indices that are ranges become slices, however they are written; others stay. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <stdio.h>

static void slice_updates_check(const char *text, const char *ops)
{
    ir_text_check(text, "slice_updates", ops);
}

START_TEST(all_of_it)
{
    /* an index for every element, as the TorchScript exporter writes x[...] = y */
    slice_updates_check("in x f32 2,3\n"
                        "in y f32 2,3\n"
                        "const i i64 2,3,2 0 0 0 1 0 2 1 0 1 1 1 2\n"
                        "z = ScatterND x i y\n"
                        "o = Relu z\n"
                        "out o\n",
                        "Relu");
    /* rows, counted from the end */
    slice_updates_check("in x f32 2,3\n"
                        "in y f32 2,3\n"
                        "const i i64 2,1 -2 -1\n"
                        "z = ScatterND x i y\n"
                        "o = Relu z\n"
                        "out o\n",
                        "Relu");
}
END_TEST

START_TEST(a_range)
{
    slice_updates_check("in x f32 5,3\n"
                        "in y f32 2,3\n"
                        "const i i64 2,1 1 2\n"
                        "z = ScatterND x i y\n"
                        "out z\n",
                        "graphrt::WriteSlice");
    /* int32 indices, one step, in both dims */
    slice_updates_check("in x f32 5,4\n"
                        "in y f32 3,2\n"
                        "const i i32 3,2,2 0 1 0 3 2 1 2 3 4 1 4 3\n"
                        "z = ScatterND x i y\n"
                        "out z\n",
                        "graphrt::WriteSlice");
    /* a single row */
    slice_updates_check("in x f32 5,3\n"
                        "in y f32 3\n"
                        "const i i64 1 4\n"
                        "z = ScatterND x i y\n"
                        "out z\n",
                        "Reshape graphrt::WriteSlice");
}
END_TEST

START_TEST(indices_in_one_list_or_in_another_order)
{
    slice_updates_check("in x f32 5,4\n"
                        "in y f32 4\n"
                        "const i i64 4,2 1 2 1 3 2 2 2 3\n"
                        "z = ScatterND x i y\n"
                        "out z\n",
                        "Reshape graphrt::WriteSlice");
    slice_updates_check("in x f32 5,4\n"
                        "in y f32 2,3\n"
                        "const i i64 2,3,2 1 2 2 2 3 2 1 3 2 3 3 3\n"
                        "z = ScatterND x i y\n"
                        "out z\n",
                        "Transpose graphrt::WriteSlice");
}
END_TEST

START_TEST(elements_along_an_axis)
{
    slice_updates_check("in x f32 2,5,2\n"
                        "in y f32 2,2,2\n"
                        "const i i64 2,2,2 1 1 3 3 1 1 3 3\n"
                        "z = ScatterElements x i y axis=1\n"
                        "out z\n",
                        "graphrt::WriteSlice");
    /* fewer of the other dims */
    slice_updates_check("in x f32 3,5\n"
                        "in y f32 1,2\n"
                        "const i i64 1,2 2 3\n"
                        "z = ScatterElements x i y axis=-1\n"
                        "out z\n",
                        "graphrt::WriteSlice");
}
END_TEST

START_TEST(sums)
{
    slice_updates_check("in x f32 5,3\n"
                        "in y f32 2,3\n"
                        "const i i64 2,1 1 2\n"
                        "z = ScatterND x i y reduction=add\n"
                        "out z\n",
                        "Slice Add graphrt::WriteSlice");
    slice_updates_check("in x f32 2,3\n"
                        "in y f32 2,3\n"
                        "const i i64 2,1 0 1\n"
                        "z = ScatterND x i y reduction=add\n"
                        "out z\n",
                        "Add");
    slice_updates_check("in x f32 5,3\n"
                        "in y f32 2,3\n"
                        "const i i64 2,1 1 2\n"
                        "z = ScatterND x i y reduction=max\n"
                        "out z\n",
                        "ScatterND");
}
END_TEST

START_TEST(into_a_constant)
{
    slice_updates_check("const x f32 5,3 7\n"
                        "in y f32 2,3\n"
                        "const i i64 2,1 1 2\n"
                        "z = ScatterND x i y\n"
                        "out z\n",
                        "Pad");
    slice_updates_check("const x f32 5,1 7 8 7 7 7\n"
                        "in y f32 2,1\n"
                        "const i i64 2,1 1 2\n"
                        "z = ScatterND x i y\n"
                        "out z\n",
                        "graphrt::WriteSlice");
}
END_TEST

START_TEST(what_is_no_slice_stays)
{
    static const char *const indices[] = {
        "const i i64 3,2 0 0 1 1 2 2\n", /* a diagonal */
        "const i i64 3,2 0 0 0 1 0 3\n", /* steps that differ */
        "const i i64 3,2 0 2 0 1 0 0\n", /* backwards */
        "const i i64 3,2 0 1 0 1 0 2\n", /* twice */
        "const i i64 3,2 0 0 0 1 1 0\n", /* a row and a bit */
    };
    for (size_t k = 0; k < sizeof indices / sizeof *indices; k++) {
        char text[256];
        snprintf(text, sizeof text, "in x f32 4,4\nin y f32 3\n%sz = ScatterND x i y\nout z\n", indices[k]);
        slice_updates_check(text, "ScatterND");
    }
    slice_updates_check("in x f32 3,3\n"
                        "in y f32 2,2\n"
                        "const i i64 2,2 0 1 1 2\n"
                        "z = ScatterElements x i y axis=0\n"
                        "out z\n",
                        "ScatterElements");
}
END_TEST

/* Fails when it runs, with the message of the op. */
START_TEST(an_index_outside_stays)
{
    ir_module *module = ir_text("in x f32 3,2\n"
                                "in y f32 2,2\n"
                                "const i i64 2,1 2 3\n"
                                "z = ScatterND x i y\n"
                                "out z\n");
    ck_assert_int_eq(ir_text_pass(module, "slice_updates"), 0);
    ck_assert_str_eq(ir_text_ops(module), "ScatterND");
    ir_module_release(module);
}
END_TEST

START_TEST(dims_that_no_index_names_may_be_open)
{
    slice_updates_check("in x f32 5,n\n"
                        "in y f32 2,n\n"
                        "const i i64 2,1 1 2\n"
                        "z = ScatterND x i y\n"
                        "out z\n",
                        "graphrt::WriteSlice");
}
END_TEST

/* x[:, 1:][..., 1:] += y by torch.export: in the end, what was written is written again, by brackets. */
START_TEST(writes_of_writes)
{
    static const char text[] = "in x f32 2,4,5\n"
                               "in y f32 2,3,4\n"
                               "const one i64 1 1\n"
                               "const last i64 1 2\n"
                               "const end i64 1 9\n"
                               "const three i64 3,1 1 2 3\n"
                               "const four i64 4,1 1 2 3 4\n"
                               "a = Slice x one end one\n"
                               "b = Slice a one end last\n"
                               "s = Add b y\n"
                               "sr = Transpose s perm=2,0,1\n"
                               "ar = Transpose a perm=2,0,1\n"
                               "cr = ScatterND ar four sr\n"
                               "ct = Transpose cr perm=2,1,0\n"
                               "xt = Transpose x perm=1,0,2\n"
                               "dt = ScatterND xt three ct\n"
                               "d = Transpose dt perm=1,0,2\n"
                               "e = Slice d one end one\n"
                               "er = Transpose e perm=2,0,1\n"
                               "f = Slice e one end last\n"
                               "fr = Transpose f perm=2,0,1\n"
                               "gr = ScatterND er four fr\n"
                               "gt = Transpose gr perm=2,1,0\n"
                               "dt2 = Transpose d perm=1,0,2\n"
                               "ht = ScatterND dt2 three gt\n"
                               "h = Transpose ht perm=1,0,2\n"
                               "out h\n";
    slice_updates_check(text, NULL);
    ir_text_check(text, "", "Slice Add graphrt::WriteSlice");
}
END_TEST

START_TEST(the_last_write_counts)
{
    slice_updates_check("in x f32 5,3\n"
                        "in y f32 2,3\n"
                        "in z f32 2,3\n"
                        "const i i64 2,1 1 2\n"
                        "const from i64 1 1\n"
                        "const to i64 1 3\n"
                        "const axis i64 1 0\n"
                        "a = ScatterND x i y\n"
                        "b = ScatterND a i z\n"
                        "c = Slice b from to axis\n"
                        "d = Relu c\n"
                        "out b\n"
                        "out d\n",
                        "graphrt::WriteSlice graphrt::WriteSlice Relu");
    /* what was read before it was overwritten is not what was written */
    slice_updates_check("in x f32 5,3\n"
                        "in y f32 2,3\n"
                        "const i i64 2,1 1 2\n"
                        "const from i64 1 1\n"
                        "const to i64 1 3\n"
                        "const axis i64 1 0\n"
                        "a = Slice x from to axis\n"
                        "b = ScatterND x i y\n"
                        "c = ScatterND b i a\n"
                        "out c\n",
                        NULL);
}
END_TEST

#define CACHE(rows)                 \
    "in x f32 2,8,3\n"              \
    "in y f32 2," rows ",3\n"       \
    "in at i64 " rows ",1\n"        \
    "const two i64 - 2\n"           \
    "i = Mod at two\n"              \
    "xt = Transpose x perm=1,0,2\n" \
    "yt = Transpose y perm=1,0,2\n" \
    "zt = ScatterND xt i yt\n"      \
    "z = Transpose zt perm=1,0,2\n" \
    "out z\n"

/* index_copy of one token by torch.export: the cache is not moved. */
START_TEST(rows_at_computed_places)
{
    slice_updates_check(CACHE("1"), "Mod Transpose Transpose Reshape Shape Expand ScatterElements Transpose");
    slice_updates_check(CACHE("3"), "Mod Transpose Transpose ScatterND Transpose"); /* of eight: too many */
}
END_TEST

/* Two writes fill a constant: one behind the other. */
#define FILLED(first, second, rest)                    \
    "in a f32 3,2\nin b f32 " second "\n"              \
    "const z f32 3,4 0\nconst i i64 3,2,2 " first "\n" \
    "const j i64 " rest "\n"                           \
    "v = ScatterND z i a\nw = Identity v\ny = ScatterND w j b\no = Relu y\nout o\n"

START_TEST(what_was_padded_is_written)
{
    slice_updates_check(FILLED("0 0 0 1 1 0 1 1 2 0 2 1", "3,2", "3,2,2 0 2 0 3 1 2 1 3 2 2 2 3"),
                        "Pad Identity Concat Relu");
    slice_updates_check(FILLED("0 2 0 3 1 2 1 3 2 2 2 3", "3,2", "3,2,2 0 0 0 1 1 0 1 1 2 0 2 1"),
                        "Pad Identity Concat Relu");
    /* a part of it, or of what is there */
    slice_updates_check(FILLED("0 0 0 1 1 0 1 1 2 0 2 1", "3,1", "3,1,2 0 2 1 2 2 2"),
                        "Pad Identity graphrt::WriteSlice Relu");
    slice_updates_check(FILLED("0 0 0 1 1 0 1 1 2 0 2 1", "3,2", "3,2,2 0 1 0 2 1 1 1 2 2 1 2 2"),
                        "Pad Identity graphrt::WriteSlice Relu");
    slice_updates_check(FILLED("0 1 0 2 1 1 1 2 2 1 2 2", "3,1", "3,1,2 0 3 1 3 2 3"),
                        "Pad Identity graphrt::WriteSlice Relu");
}
END_TEST

/* Rows of n numbers, written side by side. */
#define ROWS(first, second)                             \
    "in x f32 4,n\nin a f32 2,n\nin b f32 " second "\n" \
    "const i i64 2,1 " first "\n"

START_TEST(what_is_written_side_by_side)
{
    slice_updates_check(ROWS("0 1", "2,n") "const j i64 2,1 2 3\n"
                                           "v = ScatterND x i a\nw = ScatterND v j b\no = Relu w\nout o\n",
                        "graphrt::WriteSlice Concat Relu");
    /* from the back, in three parts, past an Identity */
    slice_updates_check(ROWS("2 3", "1,n") "const j i64 1,1 0\nconst k i64 1,1 1\n"
                                           "v = ScatterND x i a\nr = Relu b\nu = Identity v\n"
                                           "w = ScatterND u j b\ny = ScatterND w k r\n"
                                           "o = Relu y\nout o\n",
                        "graphrt::WriteSlice Relu Identity graphrt::WriteSlice Concat Relu");
    /* a row is left, or written twice */
    slice_updates_check(ROWS("0 1", "1,n") "const j i64 1,1 3\n"
                                           "v = ScatterND x i a\nw = ScatterND v j b\no = Relu w\nout o\n",
                        "graphrt::WriteSlice graphrt::WriteSlice Relu");
    slice_updates_check(ROWS("1 2", "2,n") "const j i64 2,1 2 3\n"
                                           "v = ScatterND x i a\nw = ScatterND v j b\no = Relu w\nout o\n",
                        "graphrt::WriteSlice graphrt::WriteSlice Relu");
    /* every other row */
    slice_updates_check(ROWS("0 2", "2,n") "const j i64 2,1 1 3\n"
                                           "v = ScatterND x i a\nw = ScatterND v j b\no = Relu w\nout o\n",
                        "graphrt::WriteSlice graphrt::WriteSlice Relu");
}
END_TEST

UNIT_SUITE(test_pass_slice_updates, NULL, NULL, all_of_it, a_range, indices_in_one_list_or_in_another_order,
           elements_along_an_axis, sums, into_a_constant, what_is_no_slice_stays, an_index_outside_stays,
           dims_that_no_index_names_may_be_open, writes_of_writes, the_last_write_counts,
           rows_at_computed_places, what_was_padded_is_written, what_is_written_side_by_side)
