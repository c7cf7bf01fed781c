/* SPDX-License-Identifier: Apache-2.0 */
/* Masks of zeros and ones that blend two values are selections. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdio.h>

START_TEST(a_constant_mask)
{
    ir_text_check(
        "in x f32 2,3,3\nconst m f32 1,3,3 1 0 0 1 1 0 1 1 1\nconst c f32 1,3,3 0 -1e4 -1e4 0 0 -1e4 0 0 0\n"
        "p = Mul x m\ny = Add p c\nout y\n",
        "recognise", "Mul Where");
    ir_text_check("in x f32 2,3,3\nconst m f32 3,3 1 0 0 1 1 0 1 1 1\nconst c f32 3,3 0 7 7 0 0 7 0 0 0\n"
                  "p = Mul m x\ny = Sub p c\nout y\n",
                  "recognise", "Mul Where");
}
END_TEST

/* The mask is moved in each run, or was bools. */
START_TEST(a_moved_mask)
{
    ir_text_check(
        "in x f32 2,3,3\nconst m f32 1,3,3 1 0 0 1 1 0 1 1 1\nconst one f32 - 1\nconst c f32 - -1e4\n"
        "s = Transpose m perm=0,2,1\np = Mul x s\nr = Sub one s\nh = Mul r c\ny = Add h p\nout y\n",
        "recognise", "Transpose Mul Sub Mul Cast Where");
    ir_text_check("in x f32 n,k\nin b bool n,k\nconst one f32 - 1\nconst c f32 - -1e4\n"
                  "s = Cast b to=1\np = Mul x s\nr = Sub one s\nh = Mul c r\ny = Sub p h\nout y\n",
                  "recognise", "Cast Mul Sub Mul Where");
}
END_TEST

static void selection_stays(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "recognise"), 0);
    ir_module_release(module);
}

/* A half, another number beside the first, a number where the mask is one, a mask that hides nothing; a mask
 * that the run gives, of which nothing is known. */
START_TEST(other_blends_stay)
{
    static const char *const constants[] = {
        "const m f32 3 1 0 0.5\nconst c f32 3 0 4 2\n", "const m f32 3 1 0 0\nconst c f32 3 0 4 5\n",
        "const m f32 3 1 0 0\nconst c f32 3 1 4 4\n", "const m f32 3 1 1 1\nconst c f32 3 0 0 0\n"};
    char text[256];
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        snprintf(text, sizeof text, "in x f32 2,3\n%sp = Mul x m\ny = Add p c\nout y\n", constants[i]);
        selection_stays(text);
    }
    selection_stays("in x f32 2,3\nin m f32 2,3\nconst one f32 - 1\nconst c f32 - 4\n"
                    "p = Mul x m\nr = Sub one m\nh = Mul r c\ny = Add h p\nout y\n");
}
END_TEST

/* The product has another reader. */
START_TEST(a_product_that_is_read_stays)
{
    selection_stays(
        "in x f32 2,3\nconst m f32 3 1 0 0\nconst c f32 3 0 4 4\np = Mul x m\ny = Add p c\nout y\nout p\n");
}
END_TEST

static const ir_value *condition_at(const ir_module *module, int nth)
{
    return ir_in(ir_text_node(module, "Where", nth), 0);
}

/* Layers share their mask, and its bools. */
START_TEST(a_shared_mask_is_made_bools_once)
{
    static const char text[] = "in x f32 2,3\nconst m f32 3 1 0 0\nconst n f32 3 1 1 0\nconst c f32 3 0 4 4\n"
                               "const d f32 3 0 0 4\np = Mul x m\na = Add p c\nq = Mul a m\nb = Add q c\n"
                               "r = Mul b n\ny = Add r d\nout y\n";
    ir_text_check(text, "recognise", "Mul Where Mul Where Mul Where");
    ir_module *module = ir_text(text);
    ir_text_pass(module, "recognise");
    ck_assert_ptr_eq(condition_at(module, 0), condition_at(module, 1));
    ck_assert_ptr_ne(condition_at(module, 1), condition_at(module, 2));
    ir_module_release(module);
}
END_TEST

/* Masks are read as far as the compile's budget goes. */
START_TEST(reading_takes_of_the_budget)
{
    for (int32_t enough = 0; enough < 2; enough++) {
        ir_module *module = ir_text(
            "in x f32 2,3,3\nconst m f32 1,3,3 1 0 0 1 1 0 1 1 1\nconst one f32 - 1\nconst c f32 - 4\n"
            "s = Transpose m perm=0,2,1\np = Mul x s\nr = Sub one s\nh = Mul r c\ny = Add h p\nout y\n");
        module->budget.operations = enough ? 100 : 8;
        ck_assert_int_eq(ir_text_pass(module, "recognise"), enough);
        ir_module_release(module);
    }
}
END_TEST

/* Scores of OpenAI's first GPT: attention whose mask hides by -1e4. */
START_TEST(attention_behind_it)
{
    ir_text_check("in q f32 2,2,3,4\nin k f32 2,2,4,3\nin v f32 2,2,3,4\n"
                  "const m f32 1,1,3,3 1 0 0 1 1 0 1 1 1\nconst c f32 1,1,3,3 0 -1e4 -1e4 0 0 -1e4 0 0 0\n"
                  "s = MatMul q k\np = Mul s m\nz = Add p c\nw = Softmax z axis=3\ny = MatMul w v\nout y\n",
                  "", NULL);
    ir_module *module =
        ir_text("in q f32 2,2,3,4\nin k f32 2,2,4,3\nin v f32 2,2,3,4\n"
                "const m f32 1,1,3,3 1 0 0 1 1 0 1 1 1\nconst c f32 1,1,3,3 0 -1e4 -1e4 0 0 -1e4 0 0 0\n"
                "s = MatMul q k\np = Mul s m\nz = Add p c\nw = Softmax z axis=3\ny = MatMul w v\nout y\n");
    ir_text_pass(module, "");
    ir_text_node(module, "Attention", 0);
    ir_module_release(module);
}
END_TEST

UNIT_SUITE(test_pass_recognise_selection, NULL, NULL, a_constant_mask, a_moved_mask, other_blends_stay,
           a_product_that_is_read_stays, a_shared_mask_is_made_bools_once, reading_takes_of_the_budget,
           attention_behind_it)
