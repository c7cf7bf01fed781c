/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* madvise */
#include "src/base/large.h"

#include "src/base/checked.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

void *grt_alloc_large(size_t alignment, size_t bytes)
{
    const bool large = bytes >= 2 * (size_t)HUGE_PAGE;
    const size_t at = large ? HUGE_PAGE : alignment;
    void *data = aligned_alloc(at, grt_align_up(bytes ? bytes : 1, at));
    if (data && large)
        madvise(data, bytes & ~((size_t)HUGE_PAGE - 1), MADV_HUGEPAGE); /* a wish */
    return data;
}
