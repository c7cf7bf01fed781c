/* SPDX-License-Identifier: Apache-2.0 */
/* Index maps: what chains of moves do, whatever nodes they are made of. */
#include "graph/passes/index_map.h"
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* "source+offset axis:size*stride ..." of the value that node `op`, the nth, makes. */
static const char *map_text(const ir_module *module, const char *op, int nth, double *scale)
{
    static char text[512];
    index_map map;
    ir_value *value = ir_text_node(module, op, nth)->out[0];
    grt_text t = {0};
    ck_assert(index_map_of(value, &map, scale));
    grt_text_add(&t, "%s+", map.source->name);
    grt_dim_print(module->dims, map.offset, &t);
    for (int32_t axis = 0; axis < map.rank; axis++) {
        index_part parts[INDEX_MAP_PARTS];
        const int32_t n = index_map_axis(module->dims, &map, axis, parts);
        for (int32_t i = 0; i < n; i++) {
            grt_text_add(&t, " %d:", axis);
            grt_dim_print(module->dims, parts[i].size, &t);
            grt_text_add(&t, "*");
            grt_dim_print(module->dims, parts[i].stride, &t);
        }
    }
    strncpy(text, grt_text_get(&t), sizeof text - 1);
    grt_text_release(&t);
    return text;
}

/* Packed queries, keys and values, cut as torchvision and timm do. */
START_TEST(packed_heads)
{
    ir_module *module = ir_text("in x f32 2,5,24\n"
                                "const h i64 5 2 5 3 2 4\n"
                                "const one i64 - 1\n"
                                "r = Reshape x h\n"
                                "t = Transpose r perm=2,0,3,1,4\n"
                                "k = Gather t one axis=0\n"
                                "out k\n");
    ck_assert_str_eq(map_text(module, "Gather", 0, NULL), "x+8 0:2*120 1:2*4 2:5*24 3:4*1");
    ir_module_release(module);
}
END_TEST

START_TEST(symbolic_dims)
{
    ir_module *module = ir_text("in x f32 b,s,24\n"
                                "const h i64 5 0 0 3 2 4\n"
                                "const two i64 1 2\n"
                                "r = Reshape x h\n"
                                "t = Transpose r perm=2,0,3,1,4\n"
                                "v = Gather t two axis=0\n"
                                "out v\n");
    ck_assert_str_eq(map_text(module, "Gather", 0, NULL), "x+16 1:b*s*24 2:2*4 3:s*24 4:4*1");
    ir_module_release(module);
}
END_TEST

START_TEST(sequence_first_and_joined_batch)
{
    ir_module *module = ir_text("in x f32 5,3,8\n"
                                "const h i64 3 5 6 4\n"
                                "const f i64 4 3 2 5 4\n"
                                "r = Reshape x h\n"
                                "t = Transpose r perm=1,0,2\n"
                                "y = Reshape t f\n"
                                "out y\n");
    ck_assert_str_eq(map_text(module, "Reshape", 1, NULL), "x+0 0:3*8 1:2*4 2:5*24 3:4*1");
    ir_module_release(module);
}
END_TEST

START_TEST(parts_and_steps)
{
    ir_module *module = ir_text("in x f32 2,12\n"
                                "const n i64 3 2 4 6\n"
                                "const from i64 1 1\n"
                                "const to i64 1 6\n"
                                "const axis i64 1 1\n"
                                "const step i64 1 2\n"
                                "a,b,c = Split x n axis=1\n"
                                "y = Slice c from to axis step\n"
                                "out a\n"
                                "out b\n"
                                "out y\n");
    ck_assert_str_eq(map_text(module, "Slice", 0, NULL), "x+7 0:2*12 1:3*2");
    ir_module_release(module);
}
END_TEST

START_TEST(repeated_heads)
{
    ir_module *module = ir_text("in x f32 2,3,5,4\n"
                                "const u i64 1 2\n"
                                "const e i64 5 2 3 2 5 4\n"
                                "const f i64 4 2 6 5 4\n"
                                "a = Unsqueeze x u\n"
                                "b = Expand a e\n"
                                "y = Reshape b f\n"
                                "out y\n");
    ck_assert_str_eq(map_text(module, "Reshape", 0, NULL), "x+0 0:2*60 1:3*20 1:2*0 2:5*4 3:4*1");
    ir_module_release(module);
}
END_TEST

/* A Reshape that cannot be composed with the Transpose in front of it begins a new source. */
START_TEST(what_does_not_compose)
{
    ir_module *module = ir_text("in x f32 4,6\n"
                                "const f i64 2 3 8\n"
                                "t = Transpose x perm=1,0\n"
                                "r = Reshape t f\n"
                                "y = Transpose r perm=1,0\n"
                                "out y\n");
    ck_assert_str_eq(map_text(module, "Reshape", 0, NULL), "x+0 0:3*2 1:2*1 1:4*6");
    ck_assert_str_eq(map_text(module, "Transpose", 1, NULL), "x+0 0:2*1 0:4*6 1:3*2");
    ir_module_release(module);
    module = ir_text("in x f32 4,6\n"
                     "const f i64 2 8 3\n"
                     "t = Transpose x perm=1,0\n"
                     "r = Reshape t f\n"
                     "y = Transpose r perm=1,0\n"
                     "out y\n");
    const char *text = map_text(module, "Transpose", 1, NULL);
    ck_assert_msg(strncmp(text, "x+", 2) != 0 && strstr(text, "+0 0:3*1 1:8*3"), "%s", text);
    ir_module_release(module);
    /* Indices that no axis has, and whose end no number has. */
    module = ir_text("in x f32 4,6\n"
                     "const i i64 3 9223372036854775805 9223372036854775806 9223372036854775807\n"
                     "y = Gather x i\n"
                     "out y\n");
    text = map_text(module, "Gather", 0, NULL);
    ck_assert_msg(strncmp(text, "x+", 2) != 0, "%s", text);
    ir_module_release(module);
}
END_TEST

START_TEST(scales_on_the_way)
{
    double scale = 1;
    ir_module *module = ir_text("in x f32 2,6\n"
                                "const c f32 - 0.5\n"
                                "const d f32 - 4\n"
                                "a = Mul c x\n"
                                "t = Transpose a perm=1,0\n"
                                "y = Div t d\n"
                                "out y\n");
    ck_assert_str_eq(map_text(module, "Div", 0, &scale), "x+0 0:6*1 1:2*6");
    ck_assert_double_eq(scale, 0.125);
    ir_module_release(module);
}
END_TEST

/* An empty tensor has no map; a scalar has one without parts. */
START_TEST(degenerate_shapes)
{
    index_map map;
    ir_module *module = ir_text("in x f32 0,6\nin s f32 -\ny = Relu x\nz = Relu s\nout y\nout z\n");
    ck_assert(!index_map_of(ir_text_node(module, "Relu", 0)->out[0], &map, NULL));
    ck_assert(index_map_of(ir_text_node(module, "Relu", 1)->out[0], &map, NULL));
    ck_assert_int_eq(map.n, 0);
    ck_assert(index_map_is_whole(module->dims, &map));
    ir_module_release(module);
}
END_TEST

Suite *suite_test_index_map(void)
{
    Suite *suite = suite_create("index_map");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, packed_heads);
    tcase_add_test(tc, symbolic_dims);
    tcase_add_test(tc, sequence_first_and_joined_batch);
    tcase_add_test(tc, parts_and_steps);
    tcase_add_test(tc, repeated_heads);
    tcase_add_test(tc, what_does_not_compose);
    tcase_add_test(tc, scales_on_the_way);
    tcase_add_test(tc, degenerate_shapes);
    suite_add_tcase(suite, tc);
    return suite;
}
