/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ir/uses.h"

void ir_use_unlink(ir_use *use)
{
    if (!use->value)
        return;
    *use->link = use->next;
    if (use->next)
        use->next->link = use->link;
    use->value->n_uses--;
    use->value = NULL;
}

void ir_use_link(ir_use *use, ir_value *value)
{
    use->value = value;
    if (!value)
        return;
    use->next = value->uses;
    use->link = &value->uses;
    if (use->next)
        use->next->link = &use->next;
    value->uses = use;
    value->n_uses++;
}

ir_use *ir_uses_grow(grt_arena *arena, ir_use *old, int32_t n)
{
    /* Capacity is the next power of two, so that adding one by one stays linear. */
    if (n && (n & (n - 1)))
        return old;
    ir_use *uses = GRT_ARENA_ARRAY(arena, ir_use, n ? 2 * n : 1);
    if (!uses)
        return NULL;
    for (int32_t i = 0; i < n; i++) {
        uses[i] = old[i];
        if (!uses[i].value)
            continue;
        *uses[i].link = &uses[i];
        if (uses[i].next)
            uses[i].next->link = &uses[i].next;
    }
    return uses;
}

void ir_value_replace(ir_value *from, ir_value *to)
{
    while (from->uses) {
        ir_use *use = from->uses;
        ir_use_unlink(use);
        ir_use_link(use, to);
    }
}
