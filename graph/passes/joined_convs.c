/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of convolutions of one input, as networks are trained with (RepVGG, MobileOne, FastViT): a kernel that
 * lies within another's, and the input scaled by channel, become a part of the other's weights:
 *
 *   Add(Add(Conv(x, 3 x 3), Conv(x, 1 x 1)), Add(Mul(x, s), b))  ->  Conv(x, 3 x 3)
 *
 * Whatever else is added to them stays. */
#include "graph/ir/constant.h"
#include "graph/passes/conv_branch.h"
#include "graph/passes/rewrite.h"

enum { MOST_TERMS = 8, SIDES = 2 };

/* A value that is added, or subtracted where the sign is -1. */
typedef struct sum_term {
    ir_value *value;
    ir_node *sum; /* the node that reads it, as input `at` */
    int32_t at;
    double sign; /* in the result of all */
} sum_term;

typedef struct sum_terms {
    int32_t n;
    sum_term at[MOST_TERMS];
} sum_terms;

static bool is_sum(const ir_node *node)
{
    return (rewrite_is(node, "Add") || rewrite_is(node, "Sub")) && node->n_in == SIDES && ir_in(node, 0) &&
           ir_in(node, 1) && !ir_in(node, 0)->type.data && !ir_in(node, 1)->type.data;
}

static double sign_in(const ir_node *sum, int32_t at)
{
    return at == 1 && rewrite_is(sum, "Sub") ? -1 : 1;
}

static bool is_like(const ir_value *a, const ir_value *b)
{
    return a->type.dtype == b->type.dtype && rewrite_same_shape(&a->type, &b->type);
}

/* What input `at` of a sum is a sum of, as far as there is room. */
static void find_terms(ir_node *sum, int32_t at, double sign, sum_terms *terms)
{
    sum_term *term = &terms->at[terms->n++];
    *term = (sum_term){ir_in(sum, at), sum, at, sign * sign_in(sum, at)};
    for (int32_t i = 0; i < terms->n; i++)
        while (terms->n < MOST_TERMS) {
            term = &terms->at[i];
            ir_node *inner = rewrite_only_user(term->value) ? term->value->producer : NULL;
            if (!is_sum(inner) || !is_like(term->value, sum->out[0]))
                break;
            const double of_inner = term->sign;
            for (int32_t k = 0; k < SIDES; k++)
                terms->at[k ? terms->n++ : i] =
                    (sum_term){ir_in(inner, k), inner, k, of_inner * sign_in(inner, k)};
        }
}

/* A convolution that makes the term for its sum alone, in the shape of `all`. */
static bool read_host(const sum_term *term, const ir_value *all, conv_branch *out)
{
    return rewrite_only_user(term->value) && is_like(term->value, all) &&
           conv_branch_read(term->value, out) && conv_branch_owns_weights(out);
}

static bool read_guest(const sum_term *term, const conv_branch *host, grt_arena *scratch, conv_branch *out)
{
    if (!is_like(term->value, host->node->out[0]))
        return false;
    return (rewrite_only_user(term->value) && conv_branch_read(term->value, out)) ||
           conv_branch_read_scaled(term->value, host, scratch, out);
}

/* Takes the guest out of its sum, whose other input remains. */
static void drop_term(ir_node *all, const sum_term *host, const sum_term *guest)
{
    ir_value *rest = ir_in(guest->sum, 1 - guest->at);
    if (guest->sum == all) {
        rewrite_take_over_node(all, rest); /* cannot fail: a node makes it, which nothing else reads */
        rewrite_forget_names(host->value, rest);
        return;
    }
    const ir_node *user = rewrite_only_user(guest->sum->out[0]);
    if (user != all)
        rewrite_forget_names(user->out[0], all->out[0]);
    rewrite_forget_names(host->value, all->out[0]);
    rewrite_replace_node(guest->sum, rest);
}

/* The guest becomes a part of the host. */
static bool join_terms(pass_context *context, ir_node *all, const sum_term *host, const sum_term *guest,
                       grt_arena *scratch)
{
    conv_branch h, g;
    const ir_value *rest = ir_in(guest->sum, 1 - guest->at);
    const bool direct = rest == host->value;
    rewrite_clear_scratch(context, scratch);
    /* what remains of a sum is its other input, which must not change its sign or its shape */
    if (!read_host(host, all->out[0], &h) || !read_guest(guest, &h, scratch, &g) ||
        !conv_branch_fits(&h, &g) || !is_like(rest, guest->sum->out[0]) ||
        (!direct && sign_in(guest->sum, 1 - guest->at) < 0))
        return false;
    const double host_sign = direct ? host->sign : 1,
                 guest_sign = direct ? guest->sign : guest->sign * host->sign;
    if (!conv_branch_join(&h, &g, host_sign, guest_sign, scratch))
        return false;
    if (g.node)
        ir_node_absorb_name(h.node, g.node);
    drop_term(all, host, guest);
    context->changed++;
    return true;
}

/* Terms of both sides of a sum; those of one side have met in a sum before it. */
static bool join_sides(pass_context *context, ir_node *all, grt_arena *scratch)
{
    sum_terms side[SIDES] = {{0}};
    for (int32_t k = 0; k < SIDES; k++)
        find_terms(all, k, 1, &side[k]);
    for (int32_t i = 0; i < side[0].n; i++)
        for (int32_t k = 0; k < side[1].n; k++)
            if (join_terms(context, all, &side[0].at[i], &side[1].at[k], scratch) ||
                join_terms(context, all, &side[1].at[k], &side[0].at[i], scratch))
                return true;
    return false;
}

static grt_status joined_convs_visit_with(pass_context *context, ir_graph *graph, grt_arena *scratch)
{
    for (ir_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (!is_sum(node))
            continue;
        const ir_value *result = node->out[0];
        while (result->n_uses && join_sides(context, node, scratch))
            GRT_TRY(ir_constants_collect(context->module));
    }
    return GRT_OK;
}

static grt_status joined_convs_visit(pass_context *context, ir_graph *graph)
{
    grt_arena *scratch = grt_arena_create();
    ir_clear_marks(graph);
    grt_status status = scratch ? joined_convs_visit_with(context, graph, scratch) : grt_fail_memory(0);
    if (scratch)
        rewrite_clear_scratch(context, scratch);
    grt_arena_release(scratch);
    return status;
}

grt_status pass_joined_convs(pass_context *context)
{
    return rewrite_each_graph(context, joined_convs_visit);
}
