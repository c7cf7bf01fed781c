/* SPDX-License-Identifier: Apache-2.0 */
/* Text ops. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <string.h>

#define STR(text)             \
    {                         \
        text, sizeof text - 1 \
    }

static void check_string(const grt_value *value, int64_t i, const char *expected)
{
    const grt_string *s = (const grt_string *)value->t.data + i;
    ck_assert_uint_eq(s->size, strlen(expected));
    ck_assert_mem_eq(s->data, expected, s->size);
}

START_TEST(test_concat_broadcasts)
{
    static const grt_string a[] = {STR("a"), STR("")}, b[] = {STR("x"), STR("yy"), STR("")};
    op_runner r;
    op_begin(&r, "", "StringConcat");
    op_add(&r, GRT_DTYPE_STRING, 2, (const int64_t[]){2, 1}, a);
    op_add(&r, GRT_DTYPE_STRING, 1, (const int64_t[]){3}, b);
    op_run_ok(&r, 1);
    static const char *const expected[] = {"ax", "ayy", "a", "x", "yy", ""};
    for (int64_t i = 0; i < 6; i++)
        check_string(&r.out[0], i, expected[i]);
    op_end(&r);
}
END_TEST

static void check_split(const char *text, const char *delimiter, int64_t limit, int64_t n,
                        const char *const *parts)
{
    grt_string x[] = {{text, strlen(text)}};
    op_runner r;
    op_begin(&r, "", "StringSplit");
    if (delimiter)
        op_string(&r, "delimiter", delimiter);
    if (limit >= 0)
        op_int(&r, "maxsplit", limit);
    op_add(&r, GRT_DTYPE_STRING, 1, (const int64_t[]){1}, x);
    op_run_ok(&r, 2);
    ck_assert_int_eq(*(int64_t *)r.out[1].t.data, n);
    ck_assert_int_eq(r.out[0].t.dims[1], n);
    for (int64_t i = 0; i < n; i++)
        check_string(&r.out[0], i, parts[i]);
    op_end(&r);
}

START_TEST(test_split)
{
    check_split("a,b,,c", ",", -1, 4, (const char *[]){"a", "b", "", "c"});
    check_split("a,b,,c", ",", 1, 2, (const char *[]){"a", "b,,c"});
    check_split("a<>b<", "<>", -1, 2, (const char *[]){"a", "b<"});
    check_split(",", ",", -1, 2, (const char *[]){"", ""});
    check_split("", ",", -1, 1, (const char *[]){""});
    check_split("  a \t b  ", NULL, -1, 2, (const char *[]){"a", "b"});
    check_split("  a b c ", "", 1, 2, (const char *[]){"a", "b c "});
    check_split("   ", NULL, -1, 0, NULL);
    check_split("a b", NULL, 0, 1, (const char *[]){"a b"});
}
END_TEST

static void check_normalised(bool case_sensitive, const char *action, int64_t n, const char *const *expected)
{
    static const grt_string x[] = {STR("Monday"), STR("\xc3\x84pfel"), STR("TUESDAY")},
                            stop[] = {STR("monday"), STR("TUESDAY")};
    op_runner r;
    op_begin(&r, "", "StringNormalizer");
    op_int(&r, "is_case_sensitive", case_sensitive);
    op_string(&r, "case_change_action", action);
    op_strings(&r, "stopwords", stop, 2);
    op_add(&r, GRT_DTYPE_STRING, 2, (const int64_t[]){1, 3}, x);
    op_run_ok(&r, 1);
    ck_assert_int_eq(r.out[0].t.dims[1], n);
    for (int64_t i = 0; i < n; i++)
        check_string(&r.out[0], i, expected[i]);
    op_end(&r);
}

START_TEST(test_normalizer)
{
    check_normalised(true, "NONE", 2, (const char *[]){"Monday", "\xc3\x84pfel"});
    check_normalised(true, "UPPER", 2, (const char *[]){"MONDAY", "\xc3\x84PFEL"});
    check_normalised(false, "LOWER", 1, (const char *[]){"\xc3\xa4pfel"});
}
END_TEST

START_TEST(test_normalizer_leaves_one_empty_string)
{
    static const grt_string x[] = {STR("a")};
    op_runner r;
    op_begin(&r, "", "StringNormalizer");
    op_strings(&r, "stopwords", x, 1);
    op_add(&r, GRT_DTYPE_STRING, 1, (const int64_t[]){1}, x);
    op_run_ok(&r, 1);
    ck_assert_int_eq(r.out[0].t.dims[0], 1);
    check_string(&r.out[0], 0, "");
    op_end(&r);
}
END_TEST

UNIT_SUITE(test_string, NULL, NULL, test_concat_broadcasts, test_split, test_normalizer,
           test_normalizer_leaves_one_empty_string)
