/* SPDX-License-Identifier: Apache-2.0 */
#include "src/plan/plan.h"

void grt_plan_release(grt_plan *plan)
{
    if (!plan)
        return;
    if (plan->release_weights)
        plan->release_weights(plan->weights_owner);
    grt_arena_release(plan->arena); /* the plan itself lies in it */
}

grt_packing grt_plan_packing(const grt_plan *plan, int32_t weight)
{
    if (plan->packings && grt_is_packed(&plan->packings[weight]))
        return plan->packings[weight];
    return (grt_packing){.bytes = grt_tensor_bytes(&plan->weights[weight])};
}
