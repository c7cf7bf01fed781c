/* SPDX-License-Identifier: Apache-2.0 */
/* No-ops vanish, chains of reshapes and transposes shrink, and the outputs keep names and values. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <string.h>

/* Parts without elements are left out of a Concat; ones of a number for each row are no factor, but those for
 * each column may be a norm's scale. */
START_TEST(empty_parts_and_factors_of_one)
{
    ir_text_check("in x f32 2,3\nin e f32 2,0\nin z f32 2,1\na = Concat e x axis=1\n"
                  "y = Concat a e z axis=-1\nout y\n",
                  "simplify", "Concat");
    ir_text_check("in x f32 2,3\nconst o f32 2,1 1\nr = Relu x\ny = Mul r o\nout y\n", "simplify", "Relu");
    ir_text_check("in x f32 2,3\nconst o f32 2,1 1 2\nr = Relu x\ny = Mul r o\nout y\n", "simplify",
                  "Relu Mul");
    ir_text_check("in x f32 2,3\nconst o f32 3 1\nr = Relu x\ny = Mul r o\nout y\n", "simplify", "Relu Mul");
}
END_TEST

/* All there is, in order, is a Reshape; other rows by GatherND are Gather's. */
START_TEST(gathers_by_constants)
{
    ir_text_check("in x f32 2,3,4\nconst i i64 3 0 1 -1\nr = Relu x\ny = Gather r i axis=1\nout y\n",
                  "simplify", "Relu");
    ir_text_check("in x f32 2,6,4\nconst i i64 2,3 0 1 2 3 -2 5\ny = Gather x i axis=1\nout y\n", "simplify",
                  "Reshape");
    ir_text_check("in x f32 2,3,4\nconst i i64 3 0 2 1\ny = Gather x i axis=1\nout y\n", "simplify",
                  "Gather");
    ir_text_check("in x f32 2,4,4\nconst i i64 3 0 1 2\ny = Gather x i axis=1\nout y\n", "simplify", "Slice");
    ir_text_check("in x f32 2,1,4\nconst i i64 1 0\ny = Gather x i axis=1\nout y\n", "simplify", "Gather");
    ir_text_check("in x f32 2,2,3\nconst i i64 4,1,2 0 0 0 1 -1 0 1 -1\ny = GatherND x i\nout y\n",
                  "simplify", "Reshape");
    ir_text_check("in x f32 2,2,3\nconst i i64 4,2 0 0 1 0 0 1 1 1\ny = GatherND x i\nout y\n", "simplify",
                  "GatherND");
    ir_text_check("in x f32 2,2,3\nconst i i64 2,2 0 0 0 1\ny = GatherND x i\nout y\n", "simplify",
                  "GatherND");
    ir_text_check("in x f32 3,2\nconst i i64 2,1 -1 0\ny = GatherND x i\nout y\n", "simplify", "Gather");
    ir_text_check("in x f32 2,2,3\nconst i i64 2,2,1 0 1 0 1\ny = GatherND x i batch_dims=1\nout y\n",
                  "simplify", "GatherND");
    ir_text_check("in x f32 2,4,4\nconst i i64 2 -2 3\ny = Gather x i axis=-1\nout y\n", "simplify", "Slice");
    ir_text_check("in x f32 2,4,4\nconst i i64 1,2 2 3\ny = Gather x i axis=1\nout y\n", "simplify",
                  "Gather");
    ir_text_check("in x i64 4\nconst i i64 2 1 2\ny = Gather x i\nout y\n", "simplify", "Gather");
}
END_TEST

/* Indices are read as far as the compile's budget goes: many nodes may share a long list. */
START_TEST(reading_indices_takes_of_the_budget)
{
    static const char *const texts[] = {
        "in x f32 2,3\nconst i i64 3 0 1 2\nr = Relu x\ny = Gather r i axis=1\nout y\n",
        "in x f32 2,4\nconst i i64 3 1 2 3\nr = Relu x\ny = Gather r i axis=1\nout y\n",
        "in x f32 3,2\nconst i i64 3,1 0 1 2\nr = Relu x\ny = GatherND r i\nout y\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int32_t enough = 0; enough < 2; enough++) {
            ir_module *module = ir_text(texts[i]);
            module->budget.operations = enough ? 100 : 2;
            ir_text_pass(module, "simplify");
            ck_assert_int_eq(enough, !strstr(ir_text_ops(module), "Gather"));
            ir_module_release(module);
        }
}
END_TEST

/* Zeros around pixels are the convolution's, from behind moves too; those around channels, of other values,
 * in other modes and with another reader in between are not. */
START_TEST(pad_before_a_convolution)
{
    static const char image[] = "in x f32 1,4,6,5\n"
                                "const w f32 3,4,3,3\n"
                                "const p i64 8 %s\n"
                                "const v f32 - %s\n"
                                "a = Pad x p v%s\n"
                                "y = Conv a w pads=0,1,0,0\n"
                                "out y\n";
    const char *const cases[][4] = {{"0 0 1 2 0 0 0 3", "0", "", "Conv"},
                                    {"0 0 -1 2 0 0 0 3", "0", "", "Pad Conv"},
                                    {"0 0 1 2 0 0 0 3", "1", "", "Pad Conv"},
                                    {"0 0 1 2 0 0 0 3", "0", " mode=edge", "Pad Conv"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, image, cases[i][0], cases[i][1], cases[i][2]);
        ir_text_check(text, "simplify", cases[i][3]);
    }
    ir_text_check("in x f32 1,2,6,5\nconst w f32 3,4,3,3\nconst p i64 8 0 1 0 0 0 1 0 0\na = Pad x p\n"
                  "y = Conv a w\nout y\n",
                  "simplify", "Pad Conv");
}
END_TEST

START_TEST(pad_before_moves_and_a_convolution)
{
    static const char line[] = "in x f32 2,7,4\n"
                               "const w f32 3,4,1,3\n"
                               "const p i64 6 0 2 0 0 1 0\n"
                               "const u i64 1 1\n"
                               "a = Pad x p\n"
                               "b = Unsqueeze a u\n"
                               "c = Transpose b perm=0,3,1,2\n"
                               "y = Conv c w\n"
                               "out y\n%s";
    char text[512];
    snprintf(text, sizeof text, line, "");
    ir_text_check(text, "simplify", "Unsqueeze Transpose Conv");
    snprintf(text, sizeof text, line, "out b\n");
    ir_text_check(text, "simplify", "Pad Unsqueeze Transpose Conv");
}
END_TEST

START_TEST(no_ops_vanish)
{
    ir_text_check("in x f32 2,3\n"
                  "const zero f32 - 0\n"
                  "const one f32 1 1\n"
                  "a = Identity x\n"
                  "b = Add a zero\n"
                  "c = Mul one b\n"
                  "d = Dropout c\n"
                  "e = Relu d\n"
                  "out e\n",
                  "simplify", "Relu");
}
END_TEST

START_TEST(a_neutral_constant_that_broadcasts_stays)
{
    ir_text_check("in x f32 3\n"
                  "const zero f32 2,3 0\n"
                  "y = Add x zero\n"
                  "z = Relu y\n"
                  "out z\n",
                  "simplify", "Add Relu");
}
END_TEST

/* As PyTorch writes a vector's normalisation. */
START_TEST(what_broadcasts_anyway_is_not_expanded)
{
    ir_text_check("in x f32 2,3\n"
                  "in n f32 2,1\n"
                  "const shape i64 2 2 3\n"
                  "a = Expand n shape\n"
                  "y = Div x a\n"
                  "z = Mul a a\n"
                  "out y\n"
                  "out z\n",
                  "simplify", "Expand Div Mul");
    ir_text_check("in x f32 2,3\n"
                  "in n f32 2,1\n"
                  "const shape i64 2 2 3\n"
                  "a = Expand n shape\n"
                  "y = Div x a\n"
                  "out y\n",
                  "simplify", "Div");
}
END_TEST

/* Without it the sum has one row. */
START_TEST(an_expansion_that_gives_the_shape_stays)
{
    ir_text_check("in x f32 1,3\n"
                  "in n f32 2,1\n"
                  "const shape i64 2 2 3\n"
                  "a = Expand n shape\n"
                  "b = Expand x shape\n"
                  "y = Add a b\n"
                  "out y\n",
                  "simplify", "Expand Add");
}
END_TEST

START_TEST(an_output_that_is_an_input_keeps_its_node)
{
    ir_text_check("in x f32 2,3\n"
                  "y = Identity x\n"
                  "out y\n",
                  "simplify", "Identity");
}
END_TEST

START_TEST(two_outputs_of_one_value_keep_both_names)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Relu x\n"
                  "b = Identity a\n"
                  "c = Identity a\n"
                  "out b\n"
                  "out c\n",
                  "simplify", "Relu Identity");
}
END_TEST

START_TEST(inverse_casts)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Cast x to=11\n"
                  "b = Cast a to=1\n"
                  "c = Relu b\n"
                  "out c\n",
                  "simplify", "Cast Relu");
}
END_TEST

START_TEST(a_cast_that_loses_stays)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Cast x to=7\n"
                  "b = Cast a to=1\n"
                  "out b\n",
                  "simplify", "Cast Cast");
}
END_TEST

/* What is not finite is so in a wider type, too; in a narrower one other numbers are infinite. */
START_TEST(tests_of_what_was_widened)
{
    static const struct {
        const char *text;
        grt_dtype tested;
    } cases[] = {
        {"in x f16 2,3\na = Cast x to=11\nb = IsInf a\nout b\n", GRT_DTYPE_FLOAT16},
        {"in x f16 2,3\nw = Cast x to=1\na = Cast w to=11\nb = IsInf a\nout b\n", GRT_DTYPE_FLOAT16},
        {"in x f32 2,3\na = Cast x to=10\nb = IsInf a\nout b\n", GRT_DTYPE_FLOAT16},
        {"in x i32 2,3\na = Cast x to=11\nb = IsInf a\nout b\n", GRT_DTYPE_DOUBLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ir_module *module = ir_text(cases[i].text);
        (void)ir_text_pass(module, "simplify");
        ck_assert_int_eq(ir_in(ir_text_node(module, "IsInf", 0), 0)->type.dtype, cases[i].tested);
        ir_module_release(module);
    }
}
END_TEST

START_TEST(reshape_of_reshape)
{
    ir_text_check("in x f32 2,3\n"
                  "const s i64 1 6\n"
                  "const t i64 2 3 2\n"
                  "a = Reshape x s\n"
                  "b = Reshape a t\n"
                  "c = Relu b\n"
                  "out c\n",
                  "simplify", "Reshape Relu");
}
END_TEST

START_TEST(reshape_to_the_same_shape)
{
    ir_text_check("in x f32 n,4\n"
                  "const s i64 2 -1 4\n"
                  "a = Reshape x s\n"
                  "b = Relu a\n"
                  "out b\n",
                  "simplify", "Relu");
}
END_TEST

START_TEST(a_reshape_with_a_zero_dim)
{
    ir_text_check("in x f32 0,4\n"
                  "const s i64 1 0\n"
                  "const t i64 2 2 0\n"
                  "a = Reshape x s allowzero=1\n"
                  "b = Reshape a t allowzero=1\n"
                  "c = Relu b\n"
                  "out c\n",
                  "simplify", "Reshape Relu");
}
END_TEST

START_TEST(transposes_join)
{
    ir_text_check("in x f32 2,3,4\n"
                  "a = Transpose x perm=1,2,0\n"
                  "b = Transpose a perm=1,2,0\n"
                  "c = Relu b\n"
                  "out c\n",
                  "simplify", "Transpose Relu");
}
END_TEST

START_TEST(transposes_cancel)
{
    ir_text_check("in x f32 2,3,4\n"
                  "a = Transpose x perm=1,2,0\n"
                  "b = Transpose a perm=2,0,1\n"
                  "c = Relu b\n"
                  "out c\n",
                  "simplify", "Relu");
}
END_TEST

/* Biases by distance: a table of heads is transposed instead of what is looked up in it. */
START_TEST(a_transpose_of_looked_up_rows)
{
    ir_text_check("in i i64 3,2\nconst t f32 4,5\na = Gather t i\nb = Transpose a perm=2,0,1\nc = Relu b\n"
                  "out c\n",
                  "simplify", "Transpose Gather Relu");
    ir_text_check("in i i64 3\nconst t f32 2,4,5\na = Gather t i axis=1\nb = Transpose a perm=2,0,1\n"
                  "c = Relu b\nout c\n",
                  "simplify", "Transpose Gather Relu");
    ir_text_check("in i i64 3\nconst t f32 2,4,5\na = Gather t i axis=1\nb = Transpose a perm=1,2,0\n"
                  "c = Relu b\nout c\n",
                  "simplify", "Transpose Gather Relu");
}
END_TEST

/* The indices themselves are turned, or what is looked up has another reader, or lies in no constant. */
START_TEST(other_transposes_of_rows_stay)
{
    ir_text_check("in i i64 3,2\nconst t f32 4,5\na = Gather t i\nb = Transpose a perm=2,1,0\nc = Relu b\n"
                  "out c\n",
                  "simplify", "Gather Transpose Relu");
    ir_text_check("in i i64 3,2\nconst t f32 4,5\na = Gather t i\nb = Transpose a perm=1,2,0\nc = Relu b\n"
                  "out c\n",
                  "simplify", "Gather Transpose Relu");
    ir_text_check("in i i64 3,2\nconst t f32 4,5\na = Gather t i\nb = Transpose a perm=2,0,1\nc = Relu b\n"
                  "d = Relu a\nout c\nout d\n",
                  "simplify", "Gather Transpose Relu Relu");
    ir_text_check("in i i64 3,2\nin t f32 4,5\na = Gather t i\nb = Transpose a perm=2,0,1\nc = Relu b\n"
                  "out c\n",
                  "simplify", "Gather Transpose Relu");
}
END_TEST

/* Frequencies by positions. */
START_TEST(a_transpose_of_an_outer_product)
{
    ir_text_check("in p f32 1,1,n\nconst f f32 1,4,1\na = MatMul f p\nb = Transpose a perm=0,2,1\nc = Cos b\n"
                  "out c\n",
                  "simplify", "Reshape Reshape Mul Cos");
    ir_text_check("in p f32 1,2,n\nconst f f32 1,4,2\na = MatMul f p\nb = Transpose a perm=0,2,1\nc = Cos b\n"
                  "out c\n",
                  "simplify", "MatMul Transpose Cos");
    ir_text_check("in p f32 2,1,n\nconst f f32 2,4,1\na = MatMul f p\nb = Transpose a perm=1,0,2\nc = Cos b\n"
                  "out c\n",
                  "simplify", "MatMul Transpose Cos");
}
END_TEST

START_TEST(transposes_of_what_is_joined)
{
    /* keys of DeepSeek: a part that all heads share, beside one of each head */
    ir_text_check("in x f32 2,5,3,4\nin y f32 2,1,5,2\nconst s i64 4 1 3 1 1\na = Transpose x perm=0,2,1,3\n"
                  "b = Expand y s\nc = Concat a b axis=3\nd = Transpose c perm=0,1,3,2\ne = Relu d\nout e\n",
                  "simplify", "Reshape Expand Concat Transpose Relu");
    ir_text_check("in x f32 2,5,3,4\nin y f32 2,1,5,2\nconst s i64 4 1 3 1 1\na = Transpose x perm=0,2,1,3\n"
                  "b = Expand y s\nc = Concat a b axis=3\nd = Relu c\nout d\n",
                  "simplify", "Transpose Expand Concat Relu");
    ir_text_check("in x f32 2,5,3,4\nin y f32 1,3,5,2\nconst s i64 4 2 1 1 1\na = Transpose x perm=0,2,1,3\n"
                  "b = Expand y s\nc = Concat a b axis=3\nd = Transpose c perm=0,1,3,2\ne = Relu d\nout e\n",
                  "simplify", "Transpose Expand Concat Transpose Relu");
    ir_text_check("in x f32 2,3,4\nin y f32 2,3,5\na = Transpose x perm=1,2,0\nb = Transpose y perm=1,2,0\n"
                  "c = Concat a b axis=1\nd = Relu c\nout d\n",
                  "simplify", "Concat Transpose Relu");
    ir_text_check("in x f32 2,3,4\nin y f32 3,2,4\na = Transpose x perm=1,0,2\n"
                  "c = Concat a y axis=2\nd = Relu c\nout d\n",
                  "simplify", "Transpose Concat Relu");
    ir_text_check("in x f32 2,3,4\nin y f32 2,3,4\na = Transpose x perm=1,0,2\nb = Transpose y perm=1,0,2\n"
                  "c = Concat a b axis=2\nd = Relu c\ne = Relu a\nout d\nout e\n",
                  "simplify", "Transpose Transpose Concat Relu Relu");
}
END_TEST

START_TEST(a_transpose_of_ones_is_a_reshape)
{
    ir_text_check("in x f32 1,3,4\n"
                  "a = Transpose x perm=1,0,2\n"
                  "b = Relu a\n"
                  "out b\n",
                  "simplify", "Reshape Relu");
}
END_TEST

START_TEST(keys_of_attention)
{
    ir_text_check("in x f32 2,3,5,4\n"
                  "const s i64 3 6 5 4\n"
                  "const t i64 4 2 3 4 5\n"
                  "a = Reshape x s\n"
                  "b = Transpose a perm=0,2,1\n"
                  "c = Reshape b t\n"
                  "d = Relu c\n"
                  "out d\n",
                  "simplify", "Transpose Relu");
}
END_TEST

/* Batch, heads and rows are open but for the heads: a Reshape could not say both others. */
START_TEST(keys_of_attention_of_open_dims)
{
    ir_module *m = ir_text("in x f32 n,3,m,4\n"
                           "const zero i64 1 0\n"
                           "const two i64 1 2\n"
                           "const three i64 1 3\n"
                           "const four i64 1 4\n"
                           "const rest i64 1 -1\n"
                           "shape = Shape x\n"
                           "batch = Slice shape zero two\n"
                           "rows = Slice shape two three\n"
                           "s = Concat rest rows four axis=0\n"
                           "t = Concat batch four rows axis=0\n"
                           "a = Reshape x s\n"
                           "b = Transpose a perm=0,2,1\n"
                           "c = Reshape b t\n"
                           "d = Relu c\n"
                           "out d\n");
    ir_text_pass(m, "");
    ck_assert_str_eq(ir_text_ops(m), "Transpose Relu");
    ir_module_release(m);
}
END_TEST

/* [n, m, 12] -> [n, m, 3, 4] -> [n, m, 12] */
START_TEST(reshapes_of_open_dims)
{
    ir_text_check("in x f32 n,m,12\n"
                  "const s i64 4 0 0 3 4\n"
                  "const t i64 3 0 0 12\n"
                  "a = Reshape x s\n"
                  "b = Reshape a t\n"
                  "c = Relu b\n"
                  "out c\n",
                  "", "Relu");
}
END_TEST

START_TEST(slices_go_first)
{
    ir_text_check("in x f32 2,4,3\n"
                  "const b i64 1 0\n"
                  "const e i64 1 1\n"
                  "const ax i64 1 0\n"
                  "t = Transpose x perm=1,0,2\n"
                  "a = Slice t b e ax\n"
                  "c = Squeeze a ax\n"
                  "d = Relu c\n"
                  "out d\n",
                  "simplify", "Slice Reshape Relu");
}
END_TEST

/* Rows and columns that were added to fill windows. */
START_TEST(slices_of_slices)
{
    ir_text_check("in x f32 2,9,9,3\n"
                  "const b i64 1 0\n"
                  "const b1 i64 1 -8\n"
                  "const e i64 1 8\n"
                  "const e1 i64 1 99\n"
                  "const st i64 1 2\n"
                  "const a1 i64 1 1\n"
                  "const a2 i64 1 -2\n"
                  "r = Slice x b e a1\n"
                  "c = Slice r b1 e1 a2 st\n"
                  "d = Relu c\n"
                  "out d\n",
                  "simplify", "Slice Relu");
}
END_TEST

START_TEST(slices_that_stay_apart)
{
    static const char *const both = "Slice Slice Relu";
    ir_text_check("in x f32 9,3\nconst b i64 1 1\nconst e i64 1 8\nconst ax i64 1 0\n"
                  "r = Slice x b e ax\nc = Slice r b e ax\nd = Relu c\nout d\n",
                  "simplify", both);
    ir_text_check("in x f32 9,9\nconst b i64 1 1\nconst e i64 1 8\nconst a0 i64 1 0\nconst a1 i64 1 1\n"
                  "r = Slice x b e a0\nc = Slice r b e a1\nd = Relu c\nout d\nout r\n",
                  "simplify", both);
}
END_TEST

START_TEST(powers)
{
    ir_text_check("in x f32 2,3\n"
                  "const two f32 - 2\n"
                  "const three f32 - 3\n"
                  "const half f32 - 0.5\n"
                  "a = Pow x two\n"
                  "b = Pow x three\n"
                  "c = Pow a half\n"
                  "out b\n"
                  "out c\n",
                  "simplify", "Mul Mul Mul Sqrt");
}
END_TEST

START_TEST(one_divided_by)
{
    ir_text_check("in x f32 2,3\nconst one f32 -  1\ny = Div one x\nout y\n", "simplify", "Reciprocal");
    ir_text_check("in x f32 3\nconst one f32 2,1 1\ny = Div one x\nout y\n", "simplify", "Div");
}
END_TEST

START_TEST(a_whole_slice)
{
    ir_text_check("in x f32 2,3\n"
                  "const b i64 2 0 0\n"
                  "const e i64 2 2 99\n"
                  "a = Slice x b e\n"
                  "c = Relu a\n"
                  "out c\n",
                  "simplify", "Relu");
}
END_TEST

START_TEST(a_reversing_slice_stays)
{
    ir_text_check("in x f32 2,3\n"
                  "const b i64 1 -1\n"
                  "const e i64 1 -99\n"
                  "const ax i64 1 1\n"
                  "const st i64 1 -1\n"
                  "a = Slice x b e ax st\n"
                  "c = Relu a\n"
                  "out c\n",
                  "simplify", "Slice Relu");
}
END_TEST

START_TEST(repeated_inputs)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Identity x\n"
                  "b = Add a a\n"
                  "out b\n",
                  "simplify", "Add");
}
END_TEST

START_TEST(a_sum_of_two_is_an_add)
{
    ir_text_check("in x f32 2,3\n"
                  "in y f32 3\n"
                  "a = Sum x y\n"
                  "b = Sum a\n"
                  "c = Sum b x y\n"
                  "out c\n",
                  "simplify", "Add Sum");
}
END_TEST

UNIT_SUITE(test_pass_simplify, NULL, NULL, no_ops_vanish, reading_indices_takes_of_the_budget,
           tests_of_what_was_widened, a_neutral_constant_that_broadcasts_stays,
           what_broadcasts_anyway_is_not_expanded, an_expansion_that_gives_the_shape_stays,
           an_output_that_is_an_input_keeps_its_node, two_outputs_of_one_value_keep_both_names, inverse_casts,
           a_cast_that_loses_stays, reshape_of_reshape, reshape_to_the_same_shape, a_reshape_with_a_zero_dim,
           transposes_join, transposes_cancel, a_transpose_of_looked_up_rows, other_transposes_of_rows_stay,
           a_transpose_of_ones_is_a_reshape, keys_of_attention, keys_of_attention_of_open_dims,
           reshapes_of_open_dims, slices_go_first, slices_of_slices, slices_that_stay_apart, powers,
           one_divided_by, a_whole_slice, a_reversing_slice_stays, empty_parts_and_factors_of_one,
           gathers_by_constants, pad_before_a_convolution, pad_before_moves_and_a_convolution,
           repeated_inputs, a_transpose_of_an_outer_product, transposes_of_what_is_joined,
           a_sum_of_two_is_an_add)
