/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in attributes lie in what the op's row says. */
#include "graph/ir/op.h"

#include <stdio.h>

static grt_status ranges_fail(const grt_op_desc *desc, const op_range *range, const char *where,
                              int64_t found)
{
    return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL,
                       "attribute %s has the value %lld%s; it must lie in [%lld, %lld]", range->attr,
                       (long long)found, where, (long long)range->least, (long long)range->most);
}

static bool range_holds(const op_range *range, int64_t value)
{
    return value >= range->least && value <= range->most;
}

static grt_status check_range(const grt_op_desc *desc, const op_range *range)
{
    const grt_attr *a = grt_attr_find(desc, range->attr);
    if (a && a->kind == GRT_ATTR_INT && !range_holds(range, a->i))
        return ranges_fail(desc, range, "", a->i);
    for (size_t i = 0; a && a->kind == GRT_ATTR_INTS && i < a->ints.n; i++) {
        char where[48];
        if (range_holds(range, a->ints.v[i]))
            continue;
        snprintf(where, sizeof where, " at index %zu", i);
        return ranges_fail(desc, range, where, a->ints.v[i]);
    }
    return GRT_OK;
}

grt_status op_check_ranges(const op_row *row, const grt_op_desc *desc)
{
    for (const op_range *range = row->ranges; range && range->attr; range++)
        GRT_TRY(check_range(desc, range));
    return GRT_OK;
}
