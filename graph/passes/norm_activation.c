/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `norm_activation`: a normalisation of groups of channels or of images applies the activation behind
 * it, as residual blocks of diffusion models have it. Runs behind `layout`, when both have their final form,
 * and before `pointwise`, which takes activations that are left. */
#include "graph/passes/epilogue.h"
#include "graph/passes/rewrite.h"

#include <string.h>

static bool norm_activation_is_norm(const ir_node *node)
{
    const char *op = node->desc.op, *domain = node->desc.domain;
    return (!strcmp(op, "GroupNormalization") || !strcmp(op, "InstanceNormalization")) &&
           (!*domain || !strcmp(domain, "graphrt")) && !*grt_attr_string(&node->desc, "activation", "");
}

static void norm_activation_take_back(ir_node *node, const char *domain)
{
    ir_attr_remove(node, "activation");
    ir_attr_remove(node, "alpha");
    ir_attr_remove(node, "beta");
    ir_node_become(node, domain, node->desc.op);
}

static void norm_activation_join(pass_context *context, ir_node *norm)
{
    ir_node *user = rewrite_only_user(norm->out[0]);
    float alpha = 0, beta = 0;
    const char *name = user ? epilogue_activation_of(user, &alpha, &beta) : NULL, *domain = norm->desc.domain;
    if (!name || ir_in(user, 0) != norm->out[0])
        return;
    ir_node_become(norm, "graphrt", norm->desc.op);
    epilogue_set_activation(norm, name, alpha, beta);
    if (!rewrite_supported(context, norm, NULL)) {
        norm_activation_take_back(norm, domain);
        return;
    }
    ir_node_absorb_name(norm, user);
    if (rewrite_take_over_node(user, norm->out[0]))
        context->changed++;
}

static grt_status norm_activation_visit(pass_context *context, ir_graph *graph)
{
    for (ir_node *node = graph->first; node; node = node->next)
        if (norm_activation_is_norm(node))
            norm_activation_join(context, node);
    return GRT_OK;
}

grt_status pass_norm_activation(pass_context *context)
{
    return context->target->traits->merges_small_steps ? rewrite_each_graph(context, norm_activation_visit)
                                                       : GRT_OK;
}
