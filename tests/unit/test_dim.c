/* SPDX-License-Identifier: Apache-2.0 */
/* Dimension expressions: normal form, arithmetic, printing. */
#include "src/base/dim.h"

#include <check.h>

START_TEST(equal_expressions_have_equal_handles)
{
    grt_dims *t = grt_dims_create();
    grt_dim s = grt_dim_symbol(t, "seq"), b = grt_dim_symbol(t, "batch");
    ck_assert_int_eq(grt_dim_add(t, s, b), grt_dim_add(t, b, s));
    ck_assert_int_eq(grt_dim_mul(t, s, b), grt_dim_mul(t, b, s));
    ck_assert_int_eq(grt_dim_sub(t, grt_dim_addc(t, s, 3), s), grt_dim_const(t, 3));
    ck_assert_int_eq(grt_dim_divide_exact(t, grt_dim_mul(t, grt_dim_mulc(t, s, 6), b), grt_dim_mulc(t, b, 2)),
                     grt_dim_mulc(t, s, 3));
    ck_assert_int_eq(grt_dim_floordiv(t, grt_dim_mulc(t, s, 4), grt_dim_const(t, 2)), grt_dim_mulc(t, s, 2));
    grt_dims_release(t);
}
END_TEST

START_TEST(constants_fold_and_overflow_is_unknown)
{
    grt_dims *t = grt_dims_create();
    grt_dim big = grt_dim_const(t, INT64_MAX);
    ck_assert(!grt_dim_is_const(t, grt_dim_addc(t, big, 1), NULL));
    ck_assert(grt_dim_equals(t, grt_dim_floordiv(t, grt_dim_const(t, -7), grt_dim_const(t, 2)), -4));
    ck_assert(grt_dim_equals(t, grt_dim_ceildiv(t, grt_dim_const(t, 7), grt_dim_const(t, 2)), 4));
    grt_dims_release(t);
}
END_TEST

/* Factors cancel where they are written in both; a factor that is not must not round a part of the product.
 */
START_TEST(exact_quotients)
{
    grt_dims *t = grt_dims_create();
    grt_dim s = grt_dim_symbol(t, "s"), b = grt_dim_symbol(t, "b"), h = grt_dim_symbol(t, "h");
    grt_dim blocks = grt_dim_addc(t, grt_dim_floordiv(t, s, grt_dim_const(t, 8)), -2);
    grt_dim product = grt_dim_mul(t, grt_dim_mul(t, b, grt_dim_mulc(t, blocks, 512)), h);
    grt_dim quotient = grt_dim_divide_exact(t, product, grt_dim_mul(t, grt_dim_mulc(t, blocks, 16), b));
    ck_assert_int_eq(quotient, grt_dim_mulc(t, h, 32));
    /* b = 3, s = 5, h = 4: 3 * 5 * 4 / 5, not (3 * 4 / 5) * 5 nor 5 * (4 / 5) */
    grt_dim opaque = grt_dim_make(t, GRT_DIM_MAX, s, grt_dim_const(t, 1));
    quotient = grt_dim_divide_exact(t, grt_dim_mul(t, grt_dim_mul(t, b, s), h), opaque);
    ck_assert_int_eq(quotient, grt_dim_floordiv(t, grt_dim_mul(t, grt_dim_mul(t, b, s), h), opaque));
    grt_dim sum = grt_dim_add(t, grt_dim_mul(t, b, s), grt_dim_mulc(t, b, 3));
    ck_assert_int_eq(grt_dim_divide_exact(t, sum, b), grt_dim_addc(t, s, 3));
    grt_dims_release(t);
}
END_TEST

/* Broadcast dims are assumed to fit, which implies what one operand must be. */
START_TEST(broadcasts_say_what_is_not_known_yet)
{
    grt_dims *t = grt_dims_create();
    grt_dim s = grt_dim_symbol(t, "s"), b = grt_dim_symbol(t, "b");
    grt_dim limited = grt_dim_make(t, GRT_DIM_MIN, s, grt_dim_const(t, 512));
    ck_assert_int_eq(grt_dim_make(t, GRT_DIM_BROADCAST, s, limited), s);
    ck_assert_int_eq(grt_dim_make(t, GRT_DIM_BROADCAST, limited, s), s);
    grt_dim none = grt_dim_make(t, GRT_DIM_MIN, s, grt_dim_const(t, 0)); /* s may be 1 */
    ck_assert_int_ne(grt_dim_make(t, GRT_DIM_BROADCAST, s, none), s);
    grt_dim both = grt_dim_make(t, GRT_DIM_BROADCAST, s, b);
    ck_assert_int_eq(grt_dim_make(t, GRT_DIM_BROADCAST, both, b), both);
    ck_assert_int_eq(grt_dim_make(t, GRT_DIM_BROADCAST, s, both), both);
    grt_dims_release(t);
}
END_TEST

START_TEST(prints_what_people_write)
{
    grt_dims *t = grt_dims_create();
    grt_text text = {0};
    grt_dim_print(t, grt_dim_addc(t, grt_dim_mulc(t, grt_dim_symbol(t, "seq"), 2), 1), &text);
    ck_assert_str_eq(grt_text_get(&text), "seq*2+1");
    grt_text_release(&text);
    grt_dims_release(t);
}
END_TEST

START_TEST(depth_is_bounded)
{
    grt_dims *t = grt_dims_create();
    grt_dim d = grt_dim_symbol(t, "n"), e = grt_dim_symbol(t, "m");
    for (int i = 0; i < 100000; i++) {
        grt_dim next = grt_dim_make(t, i % 2 ? GRT_DIM_MAX : GRT_DIM_FLOORDIV, d, grt_dim_addc(t, e, i));
        e = d;
        d = next;
        ck_assert_int_ge(d, 0);
    }
    grt_text text = {0};
    grt_dim_print(t, d, &text);
    ck_assert_uint_lt(text.size, 1 << 20);
    grt_text_release(&text);
    grt_dims_release(t);
}
END_TEST

/* Shared subexpressions are visited once. */
START_TEST(sizes_are_known)
{
    grt_dims *t = grt_dims_create();
    grt_dim n = grt_dim_symbol(t, "n"), less = grt_dim_addc(t, n, -1), d = n;
    ck_assert(grt_dim_is_size(t, n) && grt_dim_is_size(t, grt_dim_const(t, 0)));
    ck_assert(!grt_dim_is_size(t, less) && !grt_dim_is_size(t, grt_dim_const(t, -1)));
    ck_assert(grt_dim_is_size(t, grt_dim_make(t, GRT_DIM_MAX, less, n)));
    ck_assert(!grt_dim_is_size(t, grt_dim_make(t, GRT_DIM_MIN, less, n)));
    ck_assert(!grt_dim_is_size(t, GRT_DIM_NONE));
    for (int i = 0; i < 60; i++)
        d = grt_dim_add(t, grt_dim_ceildiv(t, d, grt_dim_const(t, 2)),
                        grt_dim_ceildiv(t, d, grt_dim_const(t, 3)));
    ck_assert(grt_dim_is_size(t, d));
    grt_dims_release(t);
}
END_TEST

START_TEST(newest_symbols)
{
    grt_dims *t = grt_dims_create();
    grt_dim n = grt_dim_symbol(t, "n"), m = grt_dim_symbol(t, "m");
    ck_assert_int_eq(grt_dim_newest_symbol(t, grt_dim_const(t, 3)), -1);
    ck_assert_int_eq(grt_dim_newest_symbol(t, grt_dim_addc(t, n, 3)), 0);
    ck_assert_int_eq(grt_dim_newest_symbol(t, grt_dim_mul(t, m, n)), 1);
    grt_dims_release(t);
}
END_TEST

Suite *suite_test_dim(void)
{
    Suite *suite = suite_create("dim");
    TCase *tc = tcase_create("dim");
    tcase_add_test(tc, equal_expressions_have_equal_handles);
    tcase_add_test(tc, constants_fold_and_overflow_is_unknown);
    tcase_add_test(tc, exact_quotients);
    tcase_add_test(tc, broadcasts_say_what_is_not_known_yet);
    tcase_add_test(tc, prints_what_people_write);
    tcase_add_test(tc, depth_is_bounded);
    tcase_add_test(tc, sizes_are_known);
    tcase_add_test(tc, newest_symbols);
    suite_add_tcase(suite, tc);
    return suite;
}
