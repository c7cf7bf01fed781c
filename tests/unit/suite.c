/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/suite.h"

Suite *unit_suite(const char *name, SFun setup, SFun teardown, const TTest *const *tests, size_t n)
{
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create(name);
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    return suite;
}
