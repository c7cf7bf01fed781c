/* SPDX-License-Identifier: Apache-2.0 */
/* A window over sizes that somebody claims of a tensor without elements: what is worked out saturates. */
#include "backends/shared/col2im.h"
#include "backends/shared/window.h"
#include "src/base/tensor.h"

#include <check.h>
#include <string.h>

START_TEST(arithmetic_saturates)
{
    static const int64_t most = INT64_MAX, least = INT64_MIN;
    ck_assert_int_eq(grt_mul_saturated(most, 2), most);
    ck_assert_int_eq(grt_mul_saturated(most, -2), least);
    ck_assert_int_eq(grt_mul_saturated(least, -1), most);
    ck_assert_int_eq(grt_mul_saturated(-3, 5), -15);
    ck_assert_int_eq(grt_add_saturated(most, 1), most);
    ck_assert_int_eq(grt_add_saturated(least, -1), least);
    ck_assert_int_eq(grt_add_saturated(least, most), -1);
    ck_assert_int_eq(grt_sub_saturated(least, 1), least);
    ck_assert_int_eq(grt_sub_saturated(most, -1), most);
    ck_assert_int_eq(grt_sub_saturated(0, least), most);
    ck_assert_int_eq(grt_sub_saturated(2, 5), -3);
    ck_assert_int_eq(cpu_window_extent(3, 2), 5);
    ck_assert_int_eq(cpu_window_extent(most, INT32_MAX), most);
    ck_assert_int_eq(cpu_window_extent(3, -most), least + 1);
}
END_TEST

static grt_op_desc padded(const grt_attr *attrs, size_t n)
{
    return (grt_op_desc){.domain = "", .op = "Conv", .name = "c", .attrs = attrs, .n_attrs = n};
}

START_TEST(automatic_padding_of_any_sizes)
{
    static const int64_t sizes[] = {-1, 0, 1, 7, INT32_MAX, INT64_MAX - 1, INT64_MAX},
                         numbers[] = {1, 2, INT32_MAX};
    enum { SIZES = sizeof sizes / sizeof *sizes, NUMBERS = sizeof numbers / sizeof *numbers };
    for (int i = 0; i < SIZES * SIZES * SIZES * NUMBERS * NUMBERS * 2; i++) {
        const int64_t in = sizes[i % SIZES], out = sizes[i / SIZES % SIZES],
                      kernel = sizes[i / SIZES / SIZES % SIZES];
        const int rest = i / SIZES / SIZES / SIZES;
        const grt_attr attrs[] = {
            {.name = "auto_pad", .kind = GRT_ATTR_STRING, .s = {"SAME_UPPER", 10}},
            {.name = "strides", .kind = GRT_ATTR_INTS, .ints = {&numbers[rest % NUMBERS], 1}},
            {.name = "dilations", .kind = GRT_ATTR_INTS, .ints = {&numbers[rest / NUMBERS % NUMBERS], 1}},
            {.name = "output_padding", .kind = GRT_ATTR_INTS, .ints = {&numbers[2], 1}}};
        const grt_op_desc desc = padded(attrs, 4);
        cpu_window w;
        cpu_window_read(&desc, 1, &in, &out, &kernel, rest / NUMBERS / NUMBERS, &w);
        ck_assert_int_ge(w.begin[0], 0);
        ck_assert_int_ge(w.end[0], 0);
        ck_assert(!cpu_window_is_small(&w) || w.begin[0] + w.end[0] <= 2 * (int64_t)GRT_WINDOW_SMALL);
    }
}
END_TEST

START_TEST(small_windows)
{
    static const struct {
        int64_t in, kernel, dilation, pad;
        bool is_small;
    } cases[] = {{10, 3, 1, 1, true},          {1 << 29, 3, 1, -1, true},  {(1 << 29) + 1, 3, 1, 1, false},
                 {10, 3, 1, 1 << 30, false},   {10, 3, 1 << 29, 0, false}, {10, 1 << 30, 1, 0, false},
                 {10, 3, 1, -(1 << 30), false}};
    const int64_t pads[] = {cases[_i].pad, cases[_i].pad}, out = 1;
    const grt_attr attrs[] = {{.name = "pads", .kind = GRT_ATTR_INTS, .ints = {pads, 2}},
                              {.name = "dilations", .kind = GRT_ATTR_INTS, .ints = {&cases[_i].dilation, 1}}};
    const grt_op_desc desc = padded(attrs, 2);
    cpu_window w;
    cpu_window_read(&desc, 1, &cases[_i].in, &out, &cases[_i].kernel, false, &w);
    ck_assert_int_eq(cpu_window_is_small(&w), cases[_i].is_small);
}
END_TEST

/* An image of no lines and as many columns as there are numbers. */
START_TEST(columns_of_an_empty_image)
{
    static const int64_t pads[] = {0, INT32_MAX, 0, INT32_MAX}, dilations[] = {1, INT32_MAX};
    int64_t kernel[] = {1, INT32_MAX};
    const grt_attr attrs[] = {{.name = "pads", .kind = GRT_ATTR_INTS, .ints = {pads, 4}},
                              {.name = "dilations", .kind = GRT_ATTR_INTS, .ints = {dilations, 2}}};
    const grt_op_desc desc = padded(attrs, 2);
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = {1, INT32_MAX, 0}},
                     block = {.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {2}, .data = kernel},
                     out = {.dtype = GRT_DTYPE_FLOAT, .rank = 4, .dims = {1, 1, 0, INT64_MAX}};
    grt_col2im c = {0};
    grt_col2im_read_attributes(&desc, &c);
    ck_assert_int_eq(grt_col2im_fit(&desc, &in, &block, &out, &c), GRT_OK);
    ck_assert_int_eq(c.places, 0);
}
END_TEST

Suite *suite_test_window(void);
Suite *suite_test_window(void)
{
    Suite *suite = suite_create("window");
    TCase *all = tcase_create("all");
    tcase_add_test(all, arithmetic_saturates);
    tcase_add_test(all, automatic_padding_of_any_sizes);
    tcase_add_loop_test(all, small_windows, 0, 7);
    tcase_add_test(all, columns_of_an_empty_image);
    suite_add_tcase(suite, all);
    return suite;
}
