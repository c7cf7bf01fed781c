/* SPDX-License-Identifier: Apache-2.0 */
/* Models in half that a float32 mask has made float32: which are taken as float16, and which are not. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <string.h>

/* An attention in half with a mask in float32, as PyTorch's TorchScript exporter writes it, and a layer
 * behind it. */
#define ATTENTION                    \
    "in x f16 2,2,3,4\n"             \
    "in m bool 2,1,1,3\n"            \
    "const h f16 4,4\n"              \
    "const w f32 4,4 0.5\n"          \
    "const z f32 1 0\n"              \
    "const i f32 1 -3e38\n"          \
    "q = MatMul x h\n"               \
    "k = Transpose q perm=0,1,3,2\n" \
    "s = MatMul q k\n"               \
    "a = Cast s to=1\n"              \
    "b = Where m z i\n"

static grt_precision precision_of(const char *text, bool asked, bool fast, bool strict)
{
    ir_module *module = ir_text(text);
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.half_floats = fast;
    target.traits = &traits;
    module->warnings.strict = strict;
    pass_context context = {.module = module, .target = &target, .level = 2, .precision_asked = asked};
    ck_assert_int_eq(pass_half_models(&context), GRT_OK);
    ck_assert_int_eq(ir_verify(module), GRT_OK);
    ck_assert_int_eq(module->warnings.n, context.precision != GRT_PRECISION_MODEL);
    ir_module_release(module);
    return context.precision;
}

#define PROMOTED        \
    ATTENTION           \
    "c = Add a b\n"     \
    "p = Softmax c\n"   \
    "v = Cast q to=1\n" \
    "o = MatMul p v\n"  \
    "y = MatMul o w\n"  \
    "out y\n"

START_TEST(a_mask_promotes_what_follows)
{
    ck_assert_int_eq(precision_of(PROMOTED, false, true, false), GRT_PRECISION_FLOAT16);
}
END_TEST

/* The rows of a table are made of constants and integers alone, as masks are. */
START_TEST(embeddings_are_no_masks)
{
    const char *embedded = "in ids i64 2,3\n"
                           "in m bool 2,1,3\n"
                           "const t f16 5,4\n"
                           "const h f16 4,4\n"
                           "const w f32 4,4 0.5\n"
                           "const z f32 1 0\n"
                           "const i f32 1 -3e38\n"
                           "x = Gather t ids axis=0\n"
                           "q = MatMul x h\n"
                           "k = Transpose q perm=0,2,1\n"
                           "s = MatMul q k\n"
                           "a = Cast s to=1\n"
                           "b = Where m z i\n"
                           "c = Add a b\n"
                           "p = Softmax c\n"
                           "v = Cast q to=1\n"
                           "o = MatMul p v\n"
                           "y = MatMul o w\n"
                           "out y\n";
    ck_assert_int_eq(precision_of(embedded, false, true, false), GRT_PRECISION_FLOAT16);
}
END_TEST

/* float32 that was asked for stays, and what a device computes no faster, and where nothing may be assumed.
 */
START_TEST(it_is_left_where_it_gains_nothing)
{
    ck_assert_int_eq(precision_of(PROMOTED, true, true, false), GRT_PRECISION_MODEL);
    ck_assert_int_eq(precision_of(PROMOTED, false, false, false), GRT_PRECISION_MODEL);
    ck_assert_int_eq(precision_of(PROMOTED, false, true, true), GRT_PRECISION_MODEL);
}
END_TEST

START_TEST(float32_that_is_meant_stays)
{
    /* cast back behind the softmax */
    const char *back = ATTENTION "c = Add a b\n"
                                 "p = Softmax c\n"
                                 "r = Cast p to=10\n"
                                 "o = MatMul r q\n"
                                 "f = Cast o to=1\n"
                                 "y = MatMul f w\n"
                                 "out y\n";
    /* a weight that float16 cannot hold */
    const char *finer = ATTENTION "const g f32 4,4 0.1\n"
                                  "c = Add a b\n"
                                  "v = Cast q to=1\n"
                                  "o = MatMul c v\n"
                                  "y = MatMul o g\n"
                                  "out y\n";
    /* a single number does not promote in PyTorch: the cast is the author's */
    const char *number = ATTENTION "const t f32 - 0.5\n"
                                   "c = Mul a t\n"
                                   "v = Cast q to=1\n"
                                   "o = MatMul c v\n"
                                   "y = MatMul o w\n"
                                   "out y\n";
    /* the mask is data in float32 */
    const char *data = ATTENTION "in n f32 2,1,1,3\n"
                                 "c = Add a n\n"
                                 "v = Cast q to=1\n"
                                 "o = MatMul c v\n"
                                 "y = MatMul o w\n"
                                 "out y\n";
    /* no weight is in float16 */
    const char *none = "in x f16 2,3\n"
                       "in m bool 2,3\n"
                       "const w f32 3,3 0.5\n"
                       "const z f32 1 0\n"
                       "const i f32 1 -3e38\n"
                       "a = Cast x to=1\n"
                       "b = Where m z i\n"
                       "c = Add a b\n"
                       "y = MatMul c w\n"
                       "out y\n";
    const char *texts[] = {back, finer, number, data, none};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(precision_of(texts[i], false, true, false) == GRT_PRECISION_MODEL, "%zu", i);
}
END_TEST

/* From end to end: the attention of the first layer is one node in float16, and the interface stays. */
START_TEST(the_whole_model_is_narrowed)
{
    ir_module *module = ir_text(PROMOTED);
    ir_text_pass(module, "");
    const ir_node *attention = ir_text_node(module, "Attention", 0);
    ck_assert_int_eq(ir_in(attention, 0)->type.dtype, GRT_DTYPE_FLOAT16);
    ck_assert_int_eq(ir_in(attention, 2)->type.dtype, GRT_DTYPE_FLOAT16);
    ck_assert_int_eq(module->main->outputs[0].value->type.dtype, GRT_DTYPE_FLOAT);
    IR_FOR_EACH_NODE (node, module->main)
        if (strstr(node->desc.op, "MatMul"))
            ck_assert_int_eq(ir_in(node, 1)->type.dtype, GRT_DTYPE_FLOAT16);
    ir_module_release(module);
}
END_TEST

Suite *suite_test_pass_half_models(void);
UNIT_SUITE(test_pass_half_models, NULL, NULL, a_mask_promotes_what_follows, embeddings_are_no_masks,
           it_is_left_where_it_gains_nothing, float32_that_is_meant_stays, the_whole_model_is_narrowed)
