/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a model in messages: no control sequences or forged lines; readable text is unchanged.
 */
#include "src/base/text.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void expect(const char *text, size_t size, const char *shown)
{
    char out[256];
    ck_assert_uint_eq(grt_printable(text, size, out, sizeof out), strlen(shown));
    ck_assert_str_eq(out, shown);
    char again[256]; /* printable text stays as it is */
    ck_assert_uint_eq(grt_printable(out, strlen(out), again, sizeof again), strlen(shown));
    ck_assert_str_eq(again, shown);
}
#define EXPECT(text, shown) expect(text, sizeof text - 1, shown)

START_TEST(printable)
{
    EXPECT("", "");
    EXPECT("conv1/weights:0 \\ \"x\"", "conv1/weights:0 \\ \"x\"");
    EXPECT("K\xc3\xb6rper \xe5\x9b\xbe\xe5\x83\x8f \xd7\xa9\xd7\x9c \xf0\x9f\x90\x88",
           "K\xc3\xb6rper \xe5\x9b\xbe\xe5\x83\x8f \xd7\xa9\xd7\x9c \xf0\x9f\x90\x88");
    EXPECT("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac");
    EXPECT("\x1b[2J\a\0z", "\\x1b[2J\\x07\\x00z");
    EXPECT("a\nb\tc\rd\x7f", "a\\nb\\tc\\rd\\x7f");
    EXPECT("\xc2\x9b"
           "31m \xc2\xa0",
           "\\u009b31m \xc2\xa0");
    EXPECT("\xe2\x80\xae"
           "fdp.exe\xe2\x81\xa6 \xe2\x80\xa8",
           "\\u202efdp.exe\\u2066 \\u2028");
    EXPECT("\xf3\xa0\x80\x81", "\\U000e0001");
    /* no UTF-8: alone, cut, longer than need be, half of a pair, beyond the last */
    EXPECT("\x9b|\xc3", "\\x9b|\\xc3");
    EXPECT("\xe2\x82|\xc0\x9b|\xed\xa0\x80|\xf4\x90\x80\x80",
           "\\xe2\\x82|\\xc0\\x9b|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80");
}
END_TEST

START_TEST(what_does_not_fit)
{
    char out[16], one[1] = "x";
    ck_assert_uint_eq(grt_printable("0123456789abcde", 15, out, sizeof out), 15);
    ck_assert_str_eq(out, "0123456789abcde");
    grt_printable("0123456789abcdef", 16, out, sizeof out);
    ck_assert_str_eq(out, "0123456789ab...");
    grt_printable("0123456789\x1b and more", 20, out, sizeof out); /* never in the middle of one */
    ck_assert_str_eq(out, "0123456789...");
    grt_printable("0123456789a\xe5\x9b\xbe\xe5\x9b\xbe", 17, out, sizeof out);
    ck_assert_str_eq(out, "0123456789a...");
    for (size_t room = 2; room < sizeof out; room++)
        ck_assert_uint_lt(grt_printable("\x1b\x1b\x1b\x1b\x1b\x1b", 6, out, room), room);
    ck_assert_uint_eq(grt_printable("abc", 3, one, 1), 0);
    ck_assert_int_eq(one[0], 0);
    ck_assert_uint_eq(grt_printable("abc", 3, NULL, 0), 0);
    ck_assert_uint_eq(grt_printable(NULL, 0, out, sizeof out), 0);
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(messages)
{
    ck_assert_int_eq(
        grt_fail(GRT_STATUS_IO, "node '%s': mode is '%s'", "n\xe2\x80\xae", "\x1b[2J\nall is well"),
        GRT_STATUS_IO);
    ck_assert_str_eq(grt_last_error(), "node 'n\\u202e': mode is '\\x1b[2J\\nall is well'");
    ck_assert_int_eq(grt_fail_context(GRT_STATUS_IO, "m\x9b.onnx"), GRT_STATUS_IO);
    ck_assert_str_eq(grt_last_error(), "m\\x9b.onnx: node 'n\\u202e': mode is '\\x1b[2J\\nall is well'");
    grt_fail_lines(GRT_STATUS_UNSUPPORTED, "\n  one\n  two", "%d nodes of '%s':", 2, "\a");
    ck_assert_str_eq(grt_last_error(), "2 nodes of '\\x07':\n  one\n  two");
    grt_fail_context(GRT_STATUS_UNSUPPORTED, "%s",
                     grt_last_error()); /* what a message holds may be the message */
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "two"));
}
END_TEST

/* Names of megabytes do not hide what is said of them. */
START_TEST(long_names)
{
    static char name[1 << 20];
    memset(name, 'n', sizeof name - 1);
    grt_fail(GRT_STATUS_INVALID_MODEL, "node '%s': expected 2 inputs, found 3", name);
    ck_assert_uint_lt(strlen(grt_last_error()), 2000);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "nnn... expected 2 inputs, found 3"));
    for (size_t i = 0; i < sizeof name - 1; i += 2)
        name[i] = ' ';
    grt_fail(GRT_STATUS_INVALID_MODEL, "%s", name);
    const size_t length = strlen(grt_last_error());
    ck_assert_uint_lt(length, 20000);
    ck_assert_str_eq(grt_last_error() + length - 3, "...");
}
END_TEST

Suite *suite_test_printable(void)
{
    Suite *suite = suite_create("printable");
    TCase *tc = tcase_create("printable");
    tcase_add_test(tc, printable);
    tcase_add_test(tc, what_does_not_fit);
    tcase_add_test(tc, messages);
    tcase_add_test(tc, long_names);
    suite_add_tcase(suite, tc);
    return suite;
}
