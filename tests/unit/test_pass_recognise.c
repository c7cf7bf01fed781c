/* SPDX-License-Identifier: Apache-2.0 */
/* Exported decompositions of activations and normalisations are recognised. */
#include "graph/passes/rewrite.h"
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* As ONNX Runtime saves a product with bias, and the residual behind it. */
START_TEST(gemm_of_flattened_rows)
{
    ir_text_check("in x f32 2,3,4\n"
                  "in r f32 2,3,5\n"
                  "const w f32 4,5\n"
                  "const b f32 5\n"
                  "const flat i64 2 6 4\n"
                  "const back i64 3 2 3 5\n"
                  "a = Reshape x flat\n"
                  "g = Gemm a w b\n"
                  "c = Reshape g back\n"
                  "y = Add c r\n"
                  "out y\n",
                  "recognise", "Reshape Gemm Reshape MatMul Add Add");
    ir_text_check("in x f32 6,4\n"
                  "in r f32 2,3,5\n"
                  "const w f32 5,4\n"
                  "const back i64 3 2 3 5\n"
                  "g = Gemm x w transB=1\n"
                  "c = Reshape g back\n"
                  "y = Add c r\n"
                  "out y\n",
                  "recognise", "Gemm Reshape Add");
}
END_TEST

/* Nothing is added to the mean: epsilon is 0. */
START_TEST(rms_without_epsilon)
{
    ir_text_check("in x f32 2,3,8\nconst w f32 8\nconst two f32 - 2\nconst last i64 1 -1\nq = Mul x x\n"
                  "m = ReduceMean q last\nr = Sqrt m\nf = Reciprocal r\nn = Mul x f\ny = Mul w n\nout y\n",
                  "recognise", "Mul ReduceMean Sqrt Reciprocal Mul RMSNormalization");
    ir_text_check("in x f32 2,3,8\nconst w f32 8\nconst last i64 1 -1\nq = Mul x x\nm = ReduceMean q last\n"
                  "r = Sqrt m\nz = Neg m\nn = Div x r\ny = Mul w n\nout y\nout z\n",
                  "recognise", "Mul ReduceMean Sqrt Neg Div Mul");
}
END_TEST

START_TEST(silu)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Sigmoid x\n"
                  "y = Mul x a\n"
                  "out y\n",
                  "recognise", "Sigmoid Swish");
}
END_TEST

START_TEST(quick_gelu)
{
    ir_text_check("in x f32 2,3\n"
                  "const c f32 - 1.702\n"
                  "s = Mul x c\n"
                  "a = Sigmoid s\n"
                  "y = Mul a x\n"
                  "out y\n",
                  "recognise", "Mul Sigmoid Swish");
}
END_TEST

START_TEST(gelu_by_erf)
{
    ir_text_check("in x f32 2,3\n"
                  "const r f32 - 1.41421356\n"
                  "const one f32 - 1\n"
                  "const half f32 - 0.5\n"
                  "a = Div x r\n"
                  "b = Erf a\n"
                  "c = Add b one\n"
                  "d = Mul x c\n"
                  "y = Mul d half\n"
                  "out y\n",
                  "recognise", "Div Erf Add Mul Gelu");
}
END_TEST

START_TEST(gelu_by_tanh)
{
    ir_text_check("in x f32 2,3\n"
                  "const k f32 - 0.044715\n"
                  "const r f32 - 0.7978845608\n"
                  "const one f32 - 1\n"
                  "const half f32 - 0.5\n"
                  "q = Mul x x\n"
                  "u = Mul q x\n"
                  "a = Mul u k\n"
                  "b = Add x a\n"
                  "c = Mul b r\n"
                  "d = Tanh c\n"
                  "e = Add d one\n"
                  "f = Mul half x\n"
                  "y = Mul f e\n"
                  "out y\n",
                  "recognise", "Mul Mul Mul Add Mul Tanh Add Mul Gelu");
}
END_TEST

static void check_ops(grt_text *text, const char *expected)
{
    ir_module *module = ir_text(grt_text_get(text));
    (void)ir_text_pass(module, "recognise");
    ck_assert_str_eq(ir_text_ops(module), expected);
    ir_module_release(module);
    grt_text_release(text);
}

static void check_half_gelus(const char *type, const char *root, const char *cubic, const char *expected[2])
{
    grt_text text = {0};
    grt_text_add(&text,
                 "in x %s 2,3\nconst r %s - %s\nconst one %s - 1\nconst half %s - 0.5\n"
                 "a = Div x r\nb = Erf a\nc = Add b one\nd = Mul x c\ny = Mul d half\nout y\n",
                 type, type, root, type, type);
    check_ops(&text, expected[0]);
    grt_text_add(&text,
                 "in x %s 2,3\nconst k %s - %s\nconst r %s - 0.7978845608\nconst one %s - 1\n"
                 "const half %s - 0.5\nq = Mul x x\nu = Mul q x\na = Mul u k\nb = Add x a\nc = Mul b r\n"
                 "d = Tanh c\ne = Add d one\nf = Mul half x\ny = Mul f e\nout y\n",
                 type, type, cubic, type, type, type);
    check_ops(&text, expected[1]);
}

/* Models in half hold the constants as numbers of 16 bits. The numbers next to those are other functions. */
START_TEST(gelu_of_halves)
{
    const char *gelus[2] = {"Div Erf Add Mul Gelu", "Mul Mul Mul Add Mul Tanh Add Mul Gelu"};
    const char *others[2] = {"Div Erf Add Mul Mul", "Mul Mul Mul Add Mul Tanh Add Mul Mul"};
    check_half_gelus("f16", "1.41421356", "0.044715", gelus);
    check_half_gelus("f16", "1.4150390625", "0.04473876953125", others);
    check_half_gelus("f16", "1.4130859375", "0.044677734375", others);
    check_half_gelus("f32", "1.4140625", "0.04470825", others);
}
END_TEST

START_TEST(rms_norm)
{
    ir_text_check("in x f32 2,3\n"
                  "const ax i64 1 -1\n"
                  "const e f32 - 0.01\n"
                  "const w f32 3 1 2 3\n"
                  "q = Mul x x\n"
                  "m = ReduceMean q ax\n"
                  "a = Add m e\n"
                  "s = Sqrt a\n"
                  "r = Reciprocal s\n"
                  "u = Mul x r\n"
                  "y = Mul w u\n"
                  "out y\n",
                  "recognise", "Mul ReduceMean Add Sqrt Reciprocal Mul RMSNormalization");
}
END_TEST

START_TEST(layer_norm)
{
    ir_text_check("in x f32 2,3\n"
                  "const ax i64 1 -1\n"
                  "const e f32 - 0.01\n"
                  "const w f32 3 1 2 3\n"
                  "const b f32 3 0 1 -1\n"
                  "m = ReduceMean x ax\n"
                  "d = Sub x m\n"
                  "q = Mul d d\n"
                  "v = ReduceMean q ax\n"
                  "a = Add v e\n"
                  "s = Sqrt a\n"
                  "u = Div d s\n"
                  "t = Mul u w\n"
                  "y = Add t b\n"
                  "out y\n",
                  "recognise", "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul LayerNormalization");
}
END_TEST

/* A norm of heads is put where they are in rows; one over tokens stays, and one that scales heads by
 * themselves. */
START_TEST(norm_of_heads)
{
    static const char form[] = "in x f32 2,3,8\n"
                               "const f i64 4 2 3 2 4\n"
                               "const w f32 4\n"
                               "r = Reshape x f\n"
                               "t = Transpose r perm=%s\n"
                               "y = RMSNormalization t w\n"
                               "out y\n";
    char text[256];
    snprintf(text, sizeof text, form, "0,2,1,3");
    ir_text_check(text, "recognise", "Reshape Transpose RMSNormalization Transpose");
    snprintf(text, sizeof text, form, "1,2,0,3");
    ir_text_check(text, "recognise", "Reshape Transpose RMSNormalization");
    ir_text_check("in x f32 2,2,8\n"
                  "const f i64 4 2 2 2 4\n"
                  "const w f32 2,1,4\n" /* a scale for each head, and as many heads as tokens */
                  "r = Reshape x f\n"
                  "t = Transpose r perm=0,2,1,3\n"
                  "y = LayerNormalization t w\n"
                  "out y\n",
                  "recognise", "Reshape Transpose LayerNormalization");
}
END_TEST

/* The ops that are left, without what nobody reads; the outputs are the same. */
static void check_in_rows(const char *text, const char *expected)
{
    ir_text_check(text, "recognise", NULL);
    ir_module *m = ir_text(text);
    ir_text_pass(m, "recognise");
    ir_text_pass(m, "dce");
    ck_assert_str_eq(ir_text_ops(m), expected);
    ir_module_release(m);
}

/* So are a scale in front of a rotation, which cuts rows, and a division by the length of rows, whatever the
 * Transpose of all three parts is. Where others read the transpose, or only a scale is there, nothing moves.
 */
START_TEST(rows_of_heads)
{
    static const char heads[] = "in x f32 2,3,8\n"
                                "const f i64 4 2 3 2 4\n"
                                "const c f32 - 0.5\n"
                                "const e f32 - 0.001\n"
                                "const l i64 1 -1\n"
                                "const d i64 4 2 2 3 4\n"
                                "r = Reshape x f\n"
                                "t = Transpose r perm=0,2,1,3\n";
    static const char length[] = "n = ReduceL2 t l keepdims=1\n"
                                 "m = Clip n e\n"
                                 "w = Expand m d\n"
                                 "y = Div t w\n"
                                 "out y\n";
    static const char rotated[] = "s = Mul t c\n"
                                  "a,b = Split s axis=-1 num_outputs=2\n"
                                  "y = Concat b a axis=-1\n"
                                  "out y\n";
    static const char scaled[] = "y = Mul t c\n"
                                 "out y\n";
    static const char read_elsewhere[] = "z = Relu t\n"
                                         "out z\n";
    char text[640];
    snprintf(text, sizeof text, "%s%s", heads, length);
    check_in_rows(text, "Reshape ReduceL2 Clip Div Transpose");
    snprintf(text, sizeof text, "%s%s", heads, rotated);
    check_in_rows(text, "Reshape Mul Transpose Split Concat");
    snprintf(text, sizeof text, "%s%s", heads, scaled);
    check_in_rows(text, "Reshape Transpose Mul");
    snprintf(text, sizeof text, "%s%s%s", heads, length, read_elsewhere);
    check_in_rows(text, "Reshape Transpose ReduceL2 Clip Expand Div Relu");
}
END_TEST

/* One of the parts that lie side by side is read where they are. */
START_TEST(rows_of_a_part)
{
    static const char form[] = "in x f32 2,3,24\n"
                               "const f i64 5 2 3 3 2 4\n"
                               "const l i64 1 %d\n"
                               "const i i64 - 1\n"
                               "r = Reshape x f\n"
                               "t = Transpose r perm=2,0,3,1,4\n"
                               "g = Gather t i axis=0\n"
                               "n = ReduceL2 g l keepdims=1\n"
                               "y = Div g n\n"
                               "out y\n";
    char text[384];
    snprintf(text, sizeof text, form, -1);
    check_in_rows(text, "Reshape Gather ReduceL2 Div Transpose");
    snprintf(text, sizeof text, form, 2); /* over tokens */
    check_in_rows(text, "Reshape Transpose Gather ReduceL2 Div");
}
END_TEST

/* As TensorFlow writes it, x times a scale that holds the deviation; whether the mean is read once more
 * decides. */
START_TEST(layer_norm_with_a_shift)
{
    static const char form[] = "in x f32 2,3\n"
                               "const ax i64 1 -1\n"
                               "const e f32 - 0.01\n"
                               "const w f32 3 1 2 3\n"
                               "const b f32 3 0 1 -1\n"
                               "m = ReduceMean x ax\n"
                               "d = Sub x m\n"
                               "q = Mul d d\n"
                               "v = ReduceMean q ax\n"
                               "a = Add v e\n"
                               "s = Sqrt a\n"
                               "%s"
                               "t = Mul %s\n"
                               "n = Mul m g\n"
                               "o = Sub b n\n"
                               "y = Add %s\n"
                               "out y\n%s",
                      reciprocal[] = "r = Reciprocal s\ng = Mul r w\n", quotient[] = "g = Div w s\n";
    const char *const cases[][4] = {{reciprocal, "x g", "t o", ""},
                                    {quotient, "g x", "o t", ""},
                                    {reciprocal, "x g", "t o", "out m\n"},
                                    {reciprocal, "d g", "t o", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text, form, cases[i][0], cases[i][1], cases[i][2], cases[i][3]);
        ir_text_check(text, "recognise", NULL);
        ir_module *m = ir_text(text);
        ir_text_pass(m, "recognise");
        ck_assert_int_eq(strstr(ir_text_ops(m), "LayerNormalization") != NULL, i < 2);
        ir_module_release(m);
    }
}
END_TEST

/* Over the channels of images, with a factor and a term for each; not over rows, and not with factors of
 * pixels. */
START_TEST(layer_norm_of_channels)
{
    static const char
        form[] = "in x f32 2,3,4,5\n"
                 "const ax i64 1 %s\n"
                 "const e f32 - 0.01\n"
                 "const w f32 %s\n"
                 "const b f32 %s\n"
                 "m = ReduceMean x ax\n"
                 "d = Sub x m\n"
                 "q = Mul d d\n"
                 "v = ReduceMean q ax\n"
                 "a = Add v e\n"
                 "s = Sqrt a\n"
                 "u = Div d s\n"
                 "t = Mul u w\n"
                 "y = Add t b\n"
                 "out y\n",
        whole[] = "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Transpose LayerNormalization Transpose",
        none[] = "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Add";
    const char *const cases[][4] = {{"1", "1,3,1,1", "3,1,1", whole},
                                    {"-3", "3,1,1", "3,1,1", whole},
                                    {"2", "1,3,1,1", "3,1,1", none},
                                    {"1", "3,4,5", "3,1,1", none},
                                    {"1", "3,1,1", "5", none}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text, form, cases[i][0], cases[i][1], cases[i][2]);
        ir_text_check(text, "recognise", cases[i][3]);
    }
}
END_TEST

START_TEST(layer_norm_without_bias)
{
    ir_text_check("in x f32 2,3\n"
                  "const ax i64 1 -1\n"
                  "const e f32 - 0.01\n"
                  "const w f32 3 1 2 3\n"
                  "m = ReduceMean x ax\n"
                  "d = Sub x m\n"
                  "q = Mul d d\n"
                  "v = ReduceMean q ax\n"
                  "a = Add v e\n"
                  "s = Sqrt a\n"
                  "r = Reciprocal s\n"
                  "u = Mul d r\n"
                  "y = Mul w u\n"
                  "out y\n",
                  "recognise", "ReduceMean Sub Mul ReduceMean Add Sqrt Reciprocal Mul LayerNormalization");
}
END_TEST

START_TEST(group_norm)
{
    ir_text_check("in x f32 2,6,4,5\n"
                  "const s f32 3\n"
                  "const b f32 3\n"
                  "const w f32 6,1,1\n"
                  "const v f32 1,6,1,1\n"
                  "const n i64 3 2 3 -1\n"
                  "const m i64 4 2 6 4 5\n"
                  "r = Reshape x n\n"
                  "i = InstanceNormalization r s b epsilon=0.01\n"
                  "g = Reshape i m\n"
                  "a = Mul g w\n"
                  "y = Add v a\n"
                  "out y\n",
                  "recognise",
                  "Reshape InstanceNormalization GroupNormalization GroupNormalization GroupNormalization");
}
END_TEST

/* The Reshape in front may be one of several that were joined. */
START_TEST(group_norm_of_other_dims)
{
    static const char text[] = "in x f32 2,12,2,5\n"
                               "const s f32 %d\n"
                               "const b f32 %d\n"
                               "const n i64 3 2 %d -1\n"
                               "const m i64 4 %s\n"
                               "r = Reshape x n\n"
                               "i = InstanceNormalization r s b epsilon=0.01\n"
                               "y = Reshape i m\n"
                               "out y\n";
    static const struct {
        int groups;
        const char *dims, *expected;
    } cases[] = {{3, "2 6 4 5", "Reshape InstanceNormalization Reshape GroupNormalization"},
                 {4, "2 6 4 5", "Reshape InstanceNormalization Reshape"},
                 {3, "4 6 2 5", "Reshape InstanceNormalization Reshape"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char written[512];
        const int n = cases[i].groups;
        snprintf(written, sizeof written, text, n, n, n, cases[i].dims);
        ir_text_check(written, "recognise", cases[i].expected);
    }
}
END_TEST

START_TEST(a_factor_along_another_dim_stays)
{
    ir_text_check("in x f32 2,4,3,4\n"
                  "const s f32 4\n"
                  "const b f32 4\n"
                  "const w f32 4\n"
                  "const v f32 4,3,1\n"
                  "g = GroupNormalization x s b num_groups=2\n"
                  "h = GroupNormalization x s b num_groups=2\n"
                  "y = Mul g w\n"
                  "z = Mul h v\n"
                  "out y\n"
                  "out z\n",
                  "recognise", "GroupNormalization GroupNormalization Mul Mul");
}
END_TEST

START_TEST(a_result_that_others_use_stops_it)
{
    ir_text_check("in x f32 2,3\n"
                  "a = Sigmoid x\n"
                  "y = Mul x a\n"
                  "out y\n"
                  "out a\n",
                  "recognise", "Sigmoid Mul");
}
END_TEST

/* 16-bit models normalise in float32. Rounding comes once instead of twice, so only the ops are compared. */
START_TEST(rms_norm_between_casts)
{
    ir_module *module = ir_text("in x f16 3,3\n"
                                "in w f16 3\n"
                                "const ax i64 1 -1\n"
                                "const e f32 - 0.01\n"
                                "f = Cast x to=1\n"
                                "q = Mul f f\n"
                                "m = ReduceMean q ax\n"
                                "a = Add m e\n"
                                "s = Sqrt a\n"
                                "r = Reciprocal s\n"
                                "u = Mul f r\n"
                                "n = Cast u to=10\n"
                                "y = Mul w n\n"
                                "out y\n");
    ir_text_pass(module, "recognise");
    const ir_node *norm = ir_text_node(module, "RMSNormalization", 0);
    ck_assert_ptr_eq(ir_in(norm, 0), module->main->inputs[0]);
    ck_assert_int_eq(norm->out[0]->type.dtype, GRT_DTYPE_FLOAT16);
    ir_module_release(module);
}
END_TEST

/* Where the file is float32 in front of it, and the model is narrowed, the norm reads what it is narrowed to.
 */
START_TEST(rms_norm_before_a_cast)
{
    for (int narrows = 0; narrows < 2; narrows++) {
        ir_module *module = ir_text("in x f32 3,3\n"
                                    "in w f16 3\n"
                                    "const ax i64 1 -1\n"
                                    "const e f32 - 0.01\n"
                                    "q = Mul x x\n"
                                    "m = ReduceMean q ax\n"
                                    "a = Add m e\n"
                                    "s = Sqrt a\n"
                                    "r = Reciprocal s\n"
                                    "u = Mul x r\n"
                                    "n = Cast u to=10\n"
                                    "y = Mul w n\n"
                                    "out y\n");
        const grt_target target = ir_text_target();
        pass_context context = {.module = module,
                                .target = &target,
                                .level = 2,
                                .precision = narrows ? GRT_PRECISION_FLOAT16 : 0};
        ck_assert_int_eq(pass_recognise(&context), GRT_OK);
        if (narrows) {
            const ir_node *norm = ir_text_node(module, "RMSNormalization", 0);
            ck_assert_ptr_nonnull(rewrite_producer(ir_in(norm, 0), "Cast"));
            ck_assert_int_eq(norm->out[0]->type.dtype, GRT_DTYPE_FLOAT16);
        } else {
            ck_assert_int_eq(context.changed, 0);
        }
        ir_module_release(module);
    }
}
END_TEST

START_TEST(another_axis_is_no_rms_norm)
{
    ir_text_check("in x f32 3,3\n"
                  "const ax i64 1 0\n"
                  "const e f32 - 0.01\n"
                  "const w f32 3 1 2 3\n"
                  "q = Mul x x\n"
                  "m = ReduceMean q ax\n"
                  "a = Add m e\n"
                  "s = Sqrt a\n"
                  "u = Div x s\n"
                  "y = Mul w u\n"
                  "out y\n",
                  "recognise", "Mul ReduceMean Add Sqrt Div Mul");
}
END_TEST

static void check_unit_rows(const char *bound, grt_precision precision, const char *expected)
{
    grt_text text = {0};
    grt_text_add(&text,
                 "in x f32 2,3,5\n"
                 "const ax i64 1 -1\n"
                 "const e f32 - %s\n"
                 "n = ReduceL2 x ax\n"
                 "c = Clip n e\n"
                 "y = Div x c\n"
                 "out y\n",
                 bound);
    ir_module *module = ir_text(grt_text_get(&text));
    grt_target target = ir_text_target();
    pass_context context = {.module = module, .target = &target, .level = 2, .precision = precision};
    ck_assert_int_eq(pass_recognise(&context), GRT_OK);
    ck_assert_int_eq(pass_dce(&context), GRT_OK);
    ck_assert_str_eq(ir_text_ops(module), expected);
    ir_module_release(module);
    grt_text_release(&text);
}

/* A bound that float16 numbers can be below of, or numbers of float32, are divided by the bound. */
START_TEST(unit_rows_of_float16)
{
    check_unit_rows("1e-12", GRT_PRECISION_FLOAT16, "LpNormalization");
    check_unit_rows("1e-6", GRT_PRECISION_FLOAT16, "ReduceL2 Clip Div");
    check_unit_rows("1e-12", GRT_PRECISION_BFLOAT16, "ReduceL2 Clip Div");
    check_unit_rows("1e-12", GRT_PRECISION_TF32, "ReduceL2 Clip Div");
}
END_TEST

Suite *suite_test_pass_recognise(void)
{
    Suite *suite = suite_create("pass_recognise");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, gemm_of_flattened_rows);
    tcase_add_test(tc, silu);
    tcase_add_test(tc, rms_without_epsilon);
    tcase_add_test(tc, quick_gelu);
    tcase_add_test(tc, gelu_by_erf);
    tcase_add_test(tc, gelu_by_tanh);
    tcase_add_test(tc, gelu_of_halves);
    tcase_add_test(tc, rms_norm);
    tcase_add_test(tc, layer_norm);
    tcase_add_test(tc, norm_of_heads);
    tcase_add_test(tc, rows_of_heads);
    tcase_add_test(tc, rows_of_a_part);
    tcase_add_test(tc, layer_norm_with_a_shift);
    tcase_add_test(tc, layer_norm_of_channels);
    tcase_add_test(tc, layer_norm_without_bias);
    tcase_add_test(tc, group_norm);
    tcase_add_test(tc, group_norm_of_other_dims);
    tcase_add_test(tc, a_factor_along_another_dim_stays);
    tcase_add_test(tc, a_result_that_others_use_stops_it);
    tcase_add_test(tc, rms_norm_between_casts);
    tcase_add_test(tc, rms_norm_before_a_cast);
    tcase_add_test(tc, another_axis_is_no_rms_norm);
    tcase_add_test(tc, unit_rows_of_float16);
    suite_add_tcase(suite, tc);
    return suite;
}
