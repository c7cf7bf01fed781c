/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/failures.h"

enum { MAX_LISTED = 50 };

void grt_failures_add(grt_failures *all, grt_status status)
{
    if (status == GRT_OK)
        return;
#pragma omp critical(grt_failures)
    {
        const bool lists = status == all->lists && (all->n == 0 || all->status == status);
        if (lists && all->n < MAX_LISTED)
            grt_text_add(&all->text, "%s%s", all->n ? "\n  " : "", grt_last_error());
        else if (!lists && (all->n == 0 || all->status == all->lists)) {
            grt_text_release(&all->text);
            grt_text_add(&all->text, "%s", grt_last_error());
            all->status = status;
        }
        if (all->n++ == 0)
            all->status = status;
    }
}

grt_status grt_failures_end(grt_failures *all)
{
    if (all->status == all->lists && all->n > MAX_LISTED)
        grt_text_add(&all->text, "\n  ... and %d more", all->n - MAX_LISTED);
    if (all->n)
        grt_error_set(all->text.failed ? "out of memory" : grt_text_get(&all->text));
    grt_text_release(&all->text);
    return all->status;
}
