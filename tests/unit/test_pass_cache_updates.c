/* SPDX-License-Identifier: Apache-2.0 */
/* A cache that is padded and then written into becomes one step. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

START_TEST(padded_behind)
{
    ir_text_check("in past f32 2,3,4,5\n"
                  "in fresh f32 2,3,2,5\n"
                  "const at i64 2 4 1\n"
                  "const pads i64 8 0 0 0 0 0 0 2 0\n"
                  "room = Pad past pads\n"
                  "y = TensorScatter room fresh at axis=2\n"
                  "out y\n",
                  "cache_updates", "graphrt::CacheUpdate");
}
END_TEST

START_TEST(circular_and_from_the_start)
{
    ir_text_check("in past f16 2,4,5\n"
                  "in fresh f16 2,3,5\n"
                  "const at i64 2 4 9\n"
                  "const pads i64 6 0 0 0 0 1 0\n"
                  "room = Pad past pads\n"
                  "y = TensorScatter room fresh at mode=circular\n"
                  "more = Pad y pads\n"
                  "z = TensorScatter more fresh\n"
                  "out z\n",
                  "cache_updates", "graphrt::CacheUpdate graphrt::CacheUpdate");
}
END_TEST

/* As decoders have it: how many entries are new follows from an input's dims. */
START_TEST(as_many_as_a_run_has)
{
    ir_module *m = ir_text("in past f32 1,2,p,4\n"
                           "in fresh f32 1,2,s,4\n"
                           "in at i64 1\n"
                           "const front i64 6 0 0 0 0 0 0\n"
                           "const back i64 1 0\n"
                           "more = Shape fresh start=2 end=3\n"
                           "pads = Concat front more back axis=0\n"
                           "room = Pad past pads\n"
                           "y = TensorScatter room fresh at\n"
                           "out y\n");
    ck_assert_int_eq(ir_text_pass(m, "cache_updates"), 1);
    const ir_node *made = ir_text_node(m, "CacheUpdate", 0);
    const ir_type *y = &made->out[0]->type;
    ck_assert_str_eq(made->out[0]->name, "y");
    ck_assert_int_eq(grt_attr_int(&made->desc, "axis", 0), -2);
    ck_assert_int_eq(y->dims[2],
                     grt_dim_add(m->dims, grt_dim_symbol(m->dims, "p"), grt_dim_symbol(m->dims, "s")));
    ir_module_release(m);
}
END_TEST

START_TEST(other_borders_stay)
{
    ir_text_check("in past f32 2,4,5\n"
                  "in fresh f32 2,1,5\n"
                  "const at i64 2 0\n"
                  "const front i64 6 0 1 0 0 0 0\n"
                  "const behind i64 6 0 0 0 0 1 0\n"
                  "const one f32 - 1\n"
                  "a = Pad past front\n"
                  "b = Pad past behind one\n"
                  "c = Pad past behind mode=edge\n"
                  "d = Pad past behind\n"
                  "e = TensorScatter a fresh at\n"
                  "f = TensorScatter b fresh at\n"
                  "g = TensorScatter c fresh at\n"
                  "h = TensorScatter d fresh at\n"
                  "out d\n"
                  "out e\n"
                  "out f\n"
                  "out g\n"
                  "out h\n",
                  "cache_updates", "Pad Pad Pad Pad TensorScatter TensorScatter TensorScatter TensorScatter");
}
END_TEST

UNIT_SUITE(test_pass_cache_updates, NULL, NULL, padded_behind, circular_and_from_the_start,
           as_many_as_a_run_has, other_borders_stay)
