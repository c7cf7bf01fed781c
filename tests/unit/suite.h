/* SPDX-License-Identifier: Apache-2.0 */
/* The suite of a file of tests, as its last thing: UNIT_SUITE(test_file, setup, teardown, test, test, ...).
 * setup and teardown, which may be NULL, run in each test's process. */
#ifndef GRT_TESTS_UNIT_SUITE_H
#define GRT_TESTS_UNIT_SUITE_H

#include <check.h>

Suite *unit_suite(const char *name, SFun setup, SFun teardown, const TTest *const *tests, size_t n);

#define UNIT_SUITE(name, setup, teardown, ...)                                          \
    Suite *suite_##name(void);                                                          \
    Suite *suite_##name(void)                                                           \
    {                                                                                   \
        const TTest *const tests[] = {__VA_ARGS__};                                     \
        return unit_suite(#name, setup, teardown, tests, sizeof tests / sizeof *tests); \
    }

#endif
