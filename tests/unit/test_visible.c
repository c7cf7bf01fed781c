/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs the tools leave visible to CUDA. */
#include "tests/unit/suite.h"
#include "tools/visible.h"

#include <stdlib.h>

/* NULL: the variable is not set. */
static const struct {
    const char *device, *before, *after;
} cases[] = {
    {"cuda:0", NULL, "0"},
    {"cuda", NULL, "0"},
    {"cuda:2", NULL, "0,1,2"},
    {"cuda:1,0", NULL, "0,1"},
    {"cuda:0,2-3", NULL, "0,1,2,3"},
    {"cuda:0", "3,5", "3"},
    {"cuda:1", "GPU-1a,GPU-2b,GPU-3c", "GPU-1a,GPU-2b"},
    {"cuda:5", "3,5", "3,5"},
    {"cuda:0", "", ""},
    {"cuda:all", NULL, NULL},
    {"cuda:all", "1,2", "1,2"},
    {"cuda:", NULL, NULL},
    {"cuda:x", NULL, NULL},
    {"cuda:0-", NULL, NULL},
    {"cuda:99999999999", NULL, NULL},
    {"cudax:0", NULL, NULL},
    {"mirror:0", NULL, NULL},
    {"cpu", "1", "1"},
    {NULL, NULL, NULL},
};

START_TEST(limits)
{
    const char *before = cases[_i].before, *after = cases[_i].after;
    if (before)
        setenv("CUDA_VISIBLE_DEVICES", before, 1);
    else
        unsetenv("CUDA_VISIBLE_DEVICES");
    visible_limit(cases[_i].device);
    const char *found = getenv("CUDA_VISIBLE_DEVICES");
    ck_assert_msg(!found == !after, "%s", cases[_i].device);
    if (after)
        ck_assert_str_eq(found, after);
}
END_TEST

Suite *suite_test_visible(void)
{
    Suite *suite = suite_create("visible");
    TCase *tc = tcase_create("visible");
    tcase_add_loop_test(tc, limits, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tc);
    return suite;
}
