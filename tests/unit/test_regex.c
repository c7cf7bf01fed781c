/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions: matches, refused patterns, bounded time. */
#include "backends/cpu/regex.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *pattern, *text;
    bool matches;
} cases[] = {
    {"", "", true},
    {"", "a", false},
    {"a{2}*", "aaaa", true},
    {"a{2}*", "aaa", false},
    {"a{,3}", "a{,3}", true},
    {"a|b|", "", true},
    {"a|b|", "c", false},
    {"(a|b)+?c", "abac", true},
    {"www\\.[\\w.-]+\\.\\bcom\\b", "www.example.com", true},
    {"www\\.[\\w.-]+\\.\\bcom\\b", "www..com", false},
    {"[^\\W\\d]+", "ab_", true},
    {"[^\\W\\d]+", "a1", false},
    {"[]a-]+", "]-a", true},
    {"(?i)hello|w[^o]rld", "HeLLo", true},
    {"(?i)hello|w[^o]rld", "WORLD", false},
    {"a(?i)b", "aB", true},
    {"a(?i)b", "AB", false},
    {"(?i:a)b", "AB", false},
    {"\\Qa.b\\E+", "a.bbb", true},
    {"\\Qa.b\\E+", "axb", false},
    {"(?P<x>\xc3\xa9+)\\x{e9}[[:digit:]-]\\d{2,}", "\xc3\xa9\xc3\xa9-12", true},
    {".", "\n", false},
    {"(?s).", "\n", true},
    {".", "\xe2\x82\xac", true},
    {".", "\xff", true}, /* no UTF-8: one character */
    {"a$.b", "a\nb", false},
    {"(?ms)a$.^b", "a\nb", true},
    {"\\Aa\\z", "a", true},
    {"a\\Bb\\b", "ab", true},
    {"\\x41\\101\\t", "AA\t", true},
    {"(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false},
    {"(a|a)*(a|a)*(a|a)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false},
    {"(){1000}{1000}{1000}{1000}x", "x", true},
};

START_TEST(test_matches)
{
    cpu_regex *regex = NULL;
    ck_assert_msg(cpu_regex_compile(cases[_i].pattern, strlen(cases[_i].pattern), &regex) == GRT_OK, "%s: %s",
                  cases[_i].pattern, grt_last_error());
    void *scratch = malloc(cpu_regex_scratch_bytes(regex));
    ck_assert_msg(cpu_regex_full_match(regex, cases[_i].text, strlen(cases[_i].text), scratch) ==
                      cases[_i].matches,
                  "'%s' on '%s'", cases[_i].pattern, cases[_i].text);
    free(scratch);
    cpu_regex_release(regex);
}
END_TEST

static const struct {
    const char *pattern, *text;
    size_t from;
    bool found;
    size_t begin, end;
} searches[] = {
    {"a|ab|abb", "xabbx", 0, true, 1, 4},
    {"b", "abcb", 2, true, 3, 4},
    {"x*", "abc", 1, true, 1, 1},
    {"x*", "abc", 3, true, 3, 3},
    {"^a", "aa", 1, false, 0, 0},
    {"\\ba", "ba a", 1, true, 3, 4},
    {"[^ ]+", "\xc3\xb1 b", 0, true, 0, 2},
    {"ab*c|b", "abbbd", 0, true, 1, 2},
    {"a.*b|a", "axx", 0, true, 0, 1},
    {"c$", "ccx", 0, false, 0, 0},
    {"", "", 0, true, 0, 0},
    {"\\b", "\xc3\xb1x", 2, true, 2, 2},
};

START_TEST(test_searches)
{
    cpu_regex *regex = NULL;
    size_t begin = 0, end = 0;
    ck_assert_int_eq(cpu_regex_compile(searches[_i].pattern, strlen(searches[_i].pattern), &regex), GRT_OK);
    void *scratch = malloc(cpu_regex_scratch_bytes(regex));
    ck_assert_msg(cpu_regex_find(regex, searches[_i].text, strlen(searches[_i].text), searches[_i].from,
                                 scratch, &begin, &end) == searches[_i].found,
                  "'%s' in '%s'", searches[_i].pattern, searches[_i].text);
    ck_assert_uint_eq(begin, searches[_i].begin);
    ck_assert_uint_eq(end, searches[_i].end);
    free(scratch);
    cpu_regex_release(regex);
}
END_TEST

static const char *const bad[] = {"(a",     "a)",      "[a",          "[z-a]",         "[a-\\d]",
                                  "*a",     "\\1",     "\\y",         "(?x)",          "(?P<n",
                                  "a{2,1}", "a{1001}", "\\x{110000}", "\\x4",          "\\",
                                  "\\pL",   "\\C",     "[[:nope:]]",  "a{1000}{1000}", "(?i)\xc3\xa9"};

START_TEST(test_refusals)
{
    cpu_regex *regex = NULL;
    ck_assert_msg(cpu_regex_compile(bad[_i], strlen(bad[_i]), &regex) != GRT_OK, "%s was taken", bad[_i]);
    ck_assert_ptr_null(regex);
    ck_assert_uint_gt(strlen(grt_last_error()), 0);
}
END_TEST

/* Deep nesting and long patterns end in an answer, not in an exhausted stack: the longest that are taken, of
 * one character behind an 'a', and such of one byte more. */
START_TEST(test_large_patterns)
{
    enum { SIZE = 20000 };
    static const struct {
        char part;
        grt_status want;
        const char *message;
    } large[] = {
        {'(', GRT_STATUS_UNSUPPORTED, "nested more than 500"},
        {'a', GRT_OK, NULL},
        {'|', GRT_STATUS_UNSUPPORTED, "too large"}, /* two instructions an alternative */
        {'*', GRT_STATUS_UNSUPPORTED, "too large"}, /* a repetition of a repetition */
        {'\\', GRT_STATUS_INVALID_MODEL, "a backslash at its end"},
        {'[', GRT_STATUS_INVALID_MODEL, "a [ without its ]"},
    };
    char *pattern = malloc(SIZE + 1);
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        cpu_regex *regex = NULL;
        memset(pattern, large[i].part, SIZE + 1);
        pattern[0] = 'a';
        const grt_status status = cpu_regex_compile(pattern, SIZE, &regex);
        ck_assert_msg(status == large[i].want, "%c: %s", large[i].part, grt_status_text(status));
        ck_assert(status == GRT_OK || strstr(grt_last_error(), large[i].message));
        cpu_regex_release(regex);
        ck_assert_int_eq(cpu_regex_compile(pattern, SIZE + 1, &regex), GRT_STATUS_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(grt_last_error(), "20001 bytes"));
    }
    free(pattern);
}
END_TEST

Suite *suite_test_regex(void)
{
    Suite *suite = suite_create("regex");
    TCase *tests = tcase_create("regex");
    tcase_add_loop_test(tests, test_matches, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tests, test_searches, 0, (int)(sizeof searches / sizeof *searches));
    tcase_add_loop_test(tests, test_refusals, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tests, test_large_patterns);
    suite_add_tcase(suite, tests);
    return suite;
}
