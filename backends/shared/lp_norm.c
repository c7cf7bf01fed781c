/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/lp_norm.h"

#include <stdlib.h>

bool grt_lp_norm_supports(const grt_kernel_node *node, grt_text *why)
{
    const int64_t p = grt_attr_int(node->desc, "p", 2);
    if (p == 1 || p == 2)
        return true;
    grt_text_add(why, "attribute p is %lld; norms 1 and 2 are supported", (long long)p);
    return false;
}

grt_status grt_lp_norm_create(const grt_kernel_node *node, void **out_state)
{
    grt_lp_norm *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->axis = grt_attr_int(node->desc, "axis", -1);
    state->p = grt_attr_int(node->desc, "p", 2);
    *out_state = state;
    return GRT_OK;
}
