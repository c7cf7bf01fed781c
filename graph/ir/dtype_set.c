/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ir/dtype_set.h"

void dtype_set_add_to(grt_text *text, grt_dtype_set set)
{
    const char *before = "";
    for (int32_t d = 1; d < GRT_DTYPE_COUNT; d++)
        if (grt_dtype_in((grt_dtype)d, set)) {
            grt_text_add(text, "%s%s", before, grt_dtype_name((grt_dtype)d));
            before = ", ";
        }
}
