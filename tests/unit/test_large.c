/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of many megabytes: where it begins, and that no more becomes resident than was asked for. */
#define _DEFAULT_SOURCE /* mincore */
#include "src/base/large.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, PAGE = 4096 };

START_TEST(blocks_are_aligned_and_writable)
{
    static const size_t sizes[] = {0, 1, 300, HUGE_PAGE, 2 * HUGE_PAGE - 1, 2 * HUGE_PAGE, 9 * 1000 * 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t large = sizes[i] >= 2 * (size_t)HUGE_PAGE ? HUGE_PAGE : 256;
        char *data = grt_alloc_large(256, sizes[i]);
        ck_assert_ptr_nonnull(data);
        ck_assert_uint_eq((uintptr_t)data % large, 0);
        memset(data, 1, sizes[i]);
        free(data);
    }
    ck_assert_ptr_null(grt_alloc_large(256, SIZE_MAX / 2));
}
END_TEST

/* Pages behind the last whole huge page stay small. */
START_TEST(what_makes_no_whole_huge_page_stays_small)
{
    enum { PAGES = (HUGE_PAGE - PAGE) / PAGE, ROOM = 3 * HUGE_PAGE - PAGE };
    unsigned char resident[PAGES];
    char *data = grt_alloc_large(64, ROOM);
    ck_assert_ptr_nonnull(data);
    memset(data, 1, 2 * (size_t)HUGE_PAGE + 1);
    ck_assert_int_eq(mincore(data + 2 * (size_t)HUGE_PAGE, (size_t)PAGES * PAGE, resident), 0);
    int pages = 0;
    for (int i = 0; i < PAGES; i++)
        pages += resident[i] & 1;
    ck_assert_int_lt(pages, PAGES / 2);
    free(data);
}
END_TEST

Suite *suite_test_large(void)
{
    Suite *suite = suite_create("large");
    TCase *tc = tcase_create("large");
    tcase_add_test(tc, blocks_are_aligned_and_writable);
    tcase_add_test(tc, what_makes_no_whole_huge_page_stays_small);
    suite_add_tcase(suite, tc);
    return suite;
}
