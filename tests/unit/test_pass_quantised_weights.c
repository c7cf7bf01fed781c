/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: weights of float products stay as small as the file has them. */
#include "graph/passes/quantised.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/quantised_text.h"
#include "tests/unit/suite.h"

#include "src/base/tensor.h"

#include <stdio.h>
#include <string.h>

/* Large ones would be widened in every run. */
START_TEST(large_weights_of_float_products_stay_small)
{
    ir_text_check("in x f32 2,512\n"
                  "const w i8 512,600" WEIGHTS "const ws f32 - 0.03125\n"
                  "wd = DequantizeLinear w ws\n"
                  "y = MatMul x wd\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x f32 2,512\n"
                  "const w u8 600,512" WEIGHTS "const ws f32 600,16 0.03125 0.5\n"
                  "const wz u8 600,16 7 200\n"
                  "const b f32 600 1 2 3\n"
                  "wd = DequantizeLinear w ws wz axis=1 block_size=32\n"
                  "y = Gemm x wd b transB=1\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x f16 2,512\n"
                  "const w i8 512,600" WEIGHTS "const ws f16 16,600 0.03125 0.5\n"
                  "wd = DequantizeLinear w ws axis=0 block_size=32\n"
                  "y = MatMul x wd\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x i64 2,3\n"
                  "const w u8 600,512" WEIGHTS "const ws f32 600,16 0.03125 0.5\n"
                  "wd = DequantizeLinear w ws axis=1 block_size=32\n"
                  "y = Gather wd x\n"
                  "out y\n",
                  "quantised", "graphrt::WGather");
}
END_TEST

/* What a script makes of a file's weights: they would be widened in every run, too. */
START_TEST(large_weights_that_casts_widen_stay_small)
{
    static const char *const scales[] = {"-", "1", "600", "1,600"};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "in x f32 2,512\n"
                 "const w i8 512,600" WEIGHTS "const ws f32 %s 0.03125 0.5\n"
                 "wf = Cast w to=1\n"
                 "wd = Mul %s\n"
                 "y = MatMul x wd\n"
                 "out y\n",
                 scales[i], i % 2 ? "wf ws" : "ws wf");
        ir_text_check(text, "quantised", "graphrt::WMatMul");
    }
    ir_text_check("in x f32 2,600\n"
                  "const w u8 512,600" WEIGHTS "const ws f32 512,1 0.03125 0.5\nconst wz f32 512,1 7 200\n"
                  "wf = Cast w to=1\n"
                  "wc = Sub wf wz\n"
                  "wd = Mul wc ws\n"
                  "wt = Transpose wd perm=1,0\n"
                  "y = MatMul x wt\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x i64 2,3\n"
                  "const w i8 600,512" WEIGHTS "const ws f32 600,1 0.03125 0.5\n"
                  "wf = Cast w to=1\n"
                  "wd = Mul wf ws\n"
                  "y = Gather wd x\n"
                  "out y\n",
                  "quantised", "graphrt::WGather");
}
END_TEST

/* Zero points that no byte is, and scales along two axes, are arithmetic. */
START_TEST(casts_that_are_no_dequantisation_stay)
{
    ir_text_check("in x f32 2,512\n"
                  "const w i8 512,600" WEIGHTS "const ws f32 - 0.03125\nconst wz f32 - 0.5\n"
                  "wf = Cast w to=1\n"
                  "wc = Sub wf wz\n"
                  "wd = Mul wc ws\n"
                  "y = MatMul x wd\n"
                  "out y\n",
                  "quantised", "Cast Sub Mul MatMul");
    ir_text_check("in x f32 2,512\n"
                  "const w i8 512,600" WEIGHTS "const ws f32 512,600 0.03125 0.5\n"
                  "wf = Cast w to=1\n"
                  "wd = Mul wf ws\n"
                  "y = MatMul x wd\n"
                  "out y\n",
                  "quantised", "Cast Mul MatMul");
}
END_TEST

/* float8, and scales for rows of the summed dim: neither is widened when the model runs. */
START_TEST(other_forms_of_large_weights_stay_small)
{
    ir_text_check("in x f32 2,512\n"
                  "const w i8 512,600" WEIGHTS "const ws f32 512 0.03125 0.5\n"
                  "wd = DequantizeLinear w ws axis=0\n"
                  "y = MatMul x wd\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x f32 2,512\n"
                  "const w e4m3 512,600 56 184 64 3 100 0 201\nconst ws f32 600 0.03125 0.5\n"
                  "wd = DequantizeLinear w ws axis=1\n"
                  "y = MatMul x wd\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
}
END_TEST

/* Scales that are powers of two, in 8 bits, as the microscaling formats have them. */
START_TEST(weights_with_scales_of_e8m0_stay_small)
{
    ir_text_check("in x f32 2,64\n"
                  "const w e2m1 70,64 3 1 7 12 0 5\nconst ws e8m0 70,2 127 126 128\n"
                  "wd = DequantizeLinear w ws axis=1 block_size=32 output_dtype=1\n"
                  "wt = Transpose wd perm=1,0\n"
                  "y = MatMul x wt\n"
                  "out y\n",
                  "quantised", "graphrt::WMatMul");
    ir_text_check("in x i64 3\n"
                  "const w e2m1 70,64 3 1 7 12 0 5\nconst ws e8m0 70,2 127 126 128\n"
                  "wd = DequantizeLinear w ws axis=1 block_size=32 output_dtype=1\n"
                  "y = Gather wd x\n"
                  "out y\n",
                  "quantised", "graphrt::WGather");
}
END_TEST

/* As many as there are scales would be 3 % of the weights. */
START_TEST(equal_zero_points_are_one)
{
    ir_module *module = ir_text("in x f32 2,512\n"
                                "const w u8 600,512" WEIGHTS "const ws f32 600,16 0.03125 0.5\n"
                                "const wz u8 600,16 128\n"
                                "wd = DequantizeLinear w ws wz axis=1 block_size=32\n"
                                "wt = Transpose wd perm=1,0\n"
                                "y = MatMul x wt\n"
                                "out y\n");
    ir_text_pass(module, "");
    ck_assert_str_eq(ir_text_ops(module), "graphrt::WMatMul");
    const ir_value *zero = ir_in(module->main->first, 3);
    ck_assert(zero && zero->type.data);
    ck_assert_int_eq(grt_tensor_elements(zero->type.data), 1);
    ck_assert_int_eq(*(const uint8_t *)zero->type.data->data, 128);
    ir_module_release(module);
}
END_TEST

/* What MatMulNBits permits to round (importing leaves it at MatMul). */
START_TEST(accuracy_levels_stay_with_the_product)
{
    ir_module *module = ir_text("in x f32 2,512\n"
                                "const w u8 600,512" WEIGHTS "const ws f32 600,16 0.03125 0.5\n"
                                "wd = DequantizeLinear w ws axis=1 block_size=32\n"
                                "wt = Transpose wd perm=1,0\n"
                                "y = MatMul x wt accuracy_level=4\n"
                                "out y\n");
    ir_text_pass(module, "");
    ck_assert_str_eq(ir_text_ops(module), "graphrt::WMatMul");
    ck_assert_int_eq(grt_attr_int(&module->main->first->desc, "accuracy_level", 0), 4);
    ir_module_release(module);
}
END_TEST

/* ---- drawn forms of weights ---- */

typedef struct weight_form {
    const char *dtype, *scale_dims, *x_dtype;
    int axis, block, zeros; /* zeros: 0 none, 1 all equal, 2 not */
    enum { BY_MATMUL, BY_TRANSPOSED, BY_GEMM, BY_TURNED_GEMM, BY_GATHER, N_USES } use;
} weight_form;

static uint32_t draw_below(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 10) % n;
}

/* w has 64 rows of k and 70 columns, or the other way round; a table 70 rows of 64. Small models count, too.
 */
static weight_form draw_form(uint32_t *seed, char dims[32])
{
    static const char *const dtypes[] = {"u4",   "i4",   "u8",    "i8",    "u2",  "i2",
                                         "e4m3", "e5m2", "e4m3z", "e5m2z", "e2m1"};
    static const int blocks[] = {16, 32, 64, 8, 20};
    weight_form f = {.dtype = dtypes[draw_below(seed, sizeof dtypes / sizeof *dtypes)],
                     .x_dtype = draw_below(seed, 2) ? "f32" : "f16",
                     .scale_dims = dims,
                     .use = draw_below(seed, N_USES)};
    const bool turned = f.use == BY_TRANSPOSED || f.use == BY_TURNED_GEMM || f.use == BY_GATHER;
    const int along_k = turned ? 1 : 0, kind = (int)draw_below(seed, 4);
    f.axis = along_k;
    f.zeros = *f.dtype == 'e' ? 0 : (int)draw_below(seed, 3);
    if (kind == 0) {
        snprintf(dims, 32, "-");
    } else if (kind == 1) {
        f.axis = 1 - along_k;
        snprintf(dims, 32, "70");
    } else if (kind == 2) {
        snprintf(dims, 32, "64");
    } else {
        f.block = blocks[draw_below(seed, 5)];
        const int n = (64 - 1) / f.block + 1;
        snprintf(dims, 32, turned ? "70,%d" : "%d,70", n);
    }
    return f;
}

static void write_form(const weight_form *f, char *text, size_t size)
{
    static const char *const uses[] = {"y = MatMul x wd\n", "wt = Transpose wd perm=1,0\ny = MatMul x wt\n",
                                       "y = Gemm x wd\n", "y = Gemm x wd transB=1\n", "y = Gather wd x\n"};
    static const char *const zeros[] = {"", " 3", " 3 -2 1 3"};
    const bool gathers = f->use == BY_GATHER, by_k = f->use == BY_MATMUL || f->use == BY_GEMM;
    char zero[128] = "", block[32] = "";
    if (f->zeros)
        snprintf(zero, sizeof zero, "const wz %s %s%s\n", f->dtype, f->scale_dims, zeros[f->zeros]);
    if (f->block)
        snprintf(block, sizeof block, " block_size=%d", f->block);
    snprintf(text, size,
             "in x %s %s\nconst w %s %s 3 7 100 120 5 -60 33 18 2 77\nconst ws %s %s 0.03125 0.5 0.25\n%s"
             "wd = DequantizeLinear w ws%s axis=%d%s\n%sout y\n",
             gathers ? "i64" : f->x_dtype, gathers ? "5" : "2,64", f->dtype, by_k ? "64,70" : "70,64",
             f->x_dtype, f->scale_dims, zero, f->zeros ? " wz" : "", f->axis, block, uses[f->use]);
}

static size_t bytes_of_constants(const ir_module *module)
{
    size_t bytes = 0;
    IR_FOR_EACH_NODE (node, module->main)
        for (int32_t i = 0; i < node->n_in; i++)
            if (ir_in(node, i) && ir_in(node, i)->type.data)
                bytes += grt_tensor_bytes(ir_in(node, i)->type.data);
    return bytes;
}

/* One step reads the weights as they are; of rows with one scale, they may be taken before. */
static bool reads_packed(const weight_form *f, const char *ops)
{
    if (f->use != BY_GATHER)
        return !strcmp(ops, "graphrt::WMatMul");
    return !strcmp(ops, "graphrt::WGather") ||
           (*f->scale_dims == '-' && !strcmp(ops, "Gather DequantizeLinear"));
}

/* Nothing is widened when the model runs, and nothing was before. */
START_TEST(drawn_weights_are_never_widened)
{
    enum { FORMS = 60 };
    uint32_t seed = 7;
    for (int i = 0; i < FORMS; i++) {
        char dims[32], text[1024];
        const weight_form f = draw_form(&seed, dims);
        write_form(&f, text, sizeof text);
        ir_module *module = ir_text(text);
        const size_t before = bytes_of_constants(module);
        ir_text_pass(module, "");
        ck_assert_msg(reads_packed(&f, ir_text_ops(module)), "form %d became %s:\n%s", i, ir_text_ops(module),
                      text);
        ck_assert_msg(bytes_of_constants(module) <= before, "form %d has larger constants:\n%s", i, text);
        const bool moved = f.use == BY_GATHER && strcmp(ir_text_ops(module), "graphrt::WGather") != 0;
        ir_module_release(module);
        if (i % 4 == 0 && !moved)
            ir_text_check(text, "quantised", f.use == BY_GATHER ? "graphrt::WGather" : "graphrt::WMatMul");
    }
}
END_TEST

/* Weights that no step reads as they are would be widened in every run, however large they are. */
START_TEST(weights_of_float_steps_are_folded)
{
    ir_module *module = ir_text("in x f32 1500,600\n"
                                "const w i8 1500,600" WEIGHTS "const ws f32 - 0.03125\n"
                                "wd = DequantizeLinear w ws\n"
                                "y = Mul x wd\n"
                                "out y\n");
    ir_text_pass(module, "");
    ck_assert_str_eq(ir_text_ops(module), "Mul");
    ir_module_release(module);
}
END_TEST

UNIT_SUITE(test_pass_quantised_weights, NULL, NULL, large_weights_of_float_products_stay_small,
           other_forms_of_large_weights_stay_small, weights_with_scales_of_e8m0_stay_small,
           equal_zero_points_are_one, accuracy_levels_stay_with_the_product, drawn_weights_are_never_widened,
           weights_of_float_steps_are_folded, large_weights_that_casts_widen_stay_small,
           casts_that_are_no_dequantisation_stay)
