/* SPDX-License-Identifier: Apache-2.0 */
/* Local rewrites that make nodes vanish or cheaper: no-ops, chains of reshapes and transposes, small powers.
 * One table of rules, driven by a worklist, so that a rewrite only costs a look at the nodes around it. */
#include "graph/passes/simplify.h"

#include <stdlib.h>
#include <string.h>

/* What the op's row says of it. */
static bool apply_traits(simplify_work *w, ir_node *node)
{
    const uint32_t flags = node->row ? node->row->flags : 0;
    if (flags & OP_SINGLE && node->n_in == 1)
        return simplify_becomes(w, node, ir_in(node, 0));
    if (rewrite_is_reshape(node))
        return simplify_reshape(w, node);
    if (flags & OP_POINTWISE && simplify_choice(w, node))
        return true;
    if (flags & OP_INVOLUTION)
        return simplify_involution(w, node);
    if (!(flags & (OP_ZERO_IS_NEUTRAL | OP_ONE_IS_NEUTRAL)))
        return false;
    const double value = flags & OP_ONE_IS_NEUTRAL ? 1 : 0;
    return simplify_neutral(w, node, 1, value) ||
           (flags & OP_COMMUTATIVE && simplify_neutral(w, node, 0, value));
}

/* What is peculiar to single ops. */
static const struct {
    const char *op;
    bool (*apply)(simplify_work *w, ir_node *node);
} rules[] = {
    {"Identity", simplify_identity},
    {"Dropout", simplify_dropout},
    {"Cast", simplify_cast},
    {"CastLike", simplify_cast},
    {"Sum", simplify_sum},
    {"Split", simplify_only_output},
    {"Expand", simplify_expand},
    {"Slice", simplify_slice},
    {"Pad", simplify_pad},
    {"Tile", simplify_tile},
    {"Clip", simplify_clip},
    {"Div", simplify_div},
    {"Pow", simplify_pow},
    {"Transpose", simplify_transpose},
    {"Conv", simplify_conv},
    {"Concat", simplify_concat},
    {"Gather", simplify_gather},
    {"GatherND", simplify_gather_nd},
    {"IsInf", simplify_test},
    {"IsNaN", simplify_test},
    {"Greater", simplify_counted_truths},
};

static void apply_rules(simplify_work *w, ir_node *node)
{
    if (*node->desc.domain || !node->n_out || !node->out[0] || node->out[0]->type.kind != GRT_KIND_TENSOR)
        return;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].op, node->desc.op)) {
            if (rules[i].apply(w, node))
                return;
            break;
        }
    apply_traits(w, node);
}

grt_status pass_simplify(pass_context *context)
{
    simplify_work w = {.context = context};
    ir_node *node;
    simplify_queue_graph(&w, context->module->main);
    while ((node = simplify_next(&w)))
        apply_rules(&w, node);
    free(w.stack);
    return w.status;
}
