/* SPDX-License-Identifier: Apache-2.0 */
/* The table of passes and its driver. */
#include "graph/passes/passes.h"
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"

#include <string.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#define X(name, level, rounding, summary) PASS_##name,
enum { PASSES(X) N_PASSES };
#undef X
#define X(name, level, rounding, summary) {#name, summary, level, PASS_##rounding##_ROUNDINGS, pass_##name},
static const pass_row rows[] = {PASSES(X)};
#undef X
#define X(name, level, rounding, summary) #name,
static const char *const names[] = {PASSES(X)};
#undef X

/* Passes that make work for each other run more than once. Equal ConstantOfShape nodes are merged before they
 * are folded, so that their weights are kept once. */
static const unsigned char schedule[] = {
    /* as imported */
    PASS_half_models, PASS_cse, PASS_fold, PASS_fold_if, PASS_slice_updates, PASS_simplify,
    PASS_joined_slices, PASS_single_parts, PASS_symbolic_sizes, PASS_dce, PASS_stacks, PASS_dce,
    /* read, while weights are still 8-bit numbers */
    PASS_quantised, PASS_dce,
    /* what expansions left */
    PASS_legalise, PASS_fold, PASS_simplify, PASS_cse, PASS_dce,
    /* found; each pattern wants the nodes that the one before covered to be gone */
    PASS_joined_products, PASS_dce, PASS_softmax, PASS_dce, PASS_recognise, PASS_dce, PASS_recognise,
    PASS_pixel_filters, PASS_spectra, PASS_interleaved_rotary, PASS_dce, PASS_rotary, PASS_dce,
    PASS_partial_rotary, PASS_dce, PASS_rotary_tokens, PASS_dce, PASS_whole_groups, PASS_tokens,
    PASS_simplify, PASS_dce, PASS_column_order, PASS_dce, PASS_rotary, PASS_simplify, PASS_dce,
    PASS_attention, PASS_dce, PASS_mixed_heads, PASS_dce, PASS_turned_products, PASS_dce, PASS_left_products,
    PASS_dce, PASS_step_rows, PASS_dce, PASS_moves, PASS_dce, PASS_row_moves, PASS_dce, PASS_row_order,
    PASS_dce, PASS_moves, PASS_dce, PASS_row_places, PASS_dce, PASS_fold, PASS_causal_mask, PASS_mask_rows,
    PASS_dce, PASS_simplify,
    /* fused */
    PASS_planes, PASS_affine, PASS_joined_convs, PASS_dce, PASS_affine, PASS_joined_convs, PASS_simplify,
    PASS_column_order, PASS_dce, PASS_phases, PASS_batch_branches, PASS_quantised_epilogues, PASS_dce,
    PASS_epilogue, PASS_dce, PASS_merge_projections, PASS_networks, PASS_dce,
    /* narrowed, once all that gains has its final form */
    PASS_bfloat16_products, PASS_precision, PASS_dce, PASS_quantised_norms, PASS_dce, PASS_unsigned_windows,
    /* joined, with the constants that they have by now */
    PASS_merge_products, PASS_dce, PASS_weight_rows, PASS_whole_columns, PASS_dce,
    /* laid out, and transposes cancelled */
    PASS_layout, PASS_fold, PASS_simplify, PASS_cse, PASS_dce, PASS_whole_vectors, PASS_dce,
    /* chains of moves that begin or end at channels last, and parts of what has them */
    PASS_moves, PASS_dce, PASS_equal_parts, PASS_simplify, PASS_dce,
    /* residuals that lay behind a transpose until now */
    PASS_epilogue, PASS_norm_activation, PASS_dce,
    /* last, as nothing matches these any more; nodes that differed in how they found the same dims are equal
       now */
    PASS_weight_gates, PASS_dce, PASS_weight_steps, PASS_dce, PASS_attention_parts, PASS_dce,
    PASS_quantised_attention, PASS_dce, PASS_rounded_attention, PASS_dce, PASS_rotary_pairs,
    PASS_cache_updates, PASS_dce, PASS_rows, PASS_pointwise, PASS_moved_parts, PASS_dce, PASS_woven_convs,
    PASS_dce, PASS_drop_shape_inputs, PASS_cse, PASS_dce,
    /* of what is left */
    PASS_merge_gathers};
enum { N_RUNS = sizeof schedule / sizeof *schedule };

const pass_row *pass_at(size_t index)
{
    return index < N_PASSES ? &rows[index] : NULL;
}

size_t grt_pass_names(const char *const **out_names)
{
    if (out_names)
        *out_names = names;
    return N_PASSES;
}

static grt_status check_names(const char *list, const char *what)
{
    for (const char *p = list; p && *p;) {
        size_t n = strcspn(p, ",");
        bool known = n == 0;
        for (size_t i = 0; i < N_PASSES; i++)
            known |= strlen(rows[i].name) == n && !memcmp(p, rows[i].name, n);
        if (!known) {
            grt_text text = {0};
            for (size_t i = 0; i < N_PASSES; i++)
                grt_text_add(&text, "%s%s", i ? ", " : "", rows[i].name);
            grt_status status =
                grt_fail(GRT_STATUS_INVALID_ARGUMENT, "there is no pass '%.*s' to %s; passes are: %s", (int)n,
                         p, what, grt_text_get(&text));
            grt_text_release(&text);
            return status;
        }
        p += n + (p[n] == ',');
    }
    return GRT_OK;
}

static grt_status run_pass(pass_context *context, const pass_row *row)
{
    GRT_TRY(grt_cancel_check(&context->module->budget.cancel));
    GRT_TRY(row->run(context));
    if (grt_arena_failed(context->module->arena) || grt_dims_failed(context->module->dims))
        return grt_fail_memory(0);
    GRT_TRY(ir_constants_collect(context->module));
#ifdef GRT_DEBUG
    grt_status status = ir_verify(context->module);
    if (status != GRT_OK)
        return grt_fail_context(status, "after pass '%s'", row->name);
#endif
    return GRT_OK;
}

static bool passes_is_half(const ir_value *value)
{
    return value && value->type.kind == GRT_KIND_TENSOR &&
           grt_dtype_in(value->type.dtype, GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16));
}

static grt_status find_half(ir_graph *graph, void *user)
{
    bool found = false;
    for (int32_t i = 0; i < graph->n_inputs; i++)
        found |= passes_is_half(graph->inputs[i]);
    IR_FOR_EACH_NODE (node, graph)
        for (int32_t i = 0; i < node->n_out; i++)
            found |= passes_is_half(node->out[i]);
    *(bool *)user |= found;
    return GRT_OK;
}

static bool runs_pass(const pass_context *context, const pass_row *row)
{
    return row->level <= context->level && !rewrite_is_listed(context->disabled, row->name) &&
           !(context->exact && row->rounding == PASS_DROPS_ROUNDINGS);
}

grt_status pass_run_enabled(pass_context *context)
{
    bool halves = false;
    GRT_TRY(check_names(context->disabled, "disable"));
    GRT_TRY(check_names(context->enabled, "enable"));
    GRT_TRY(ir_graph_walk(context->module->main, find_half, &halves));
    context->exact = context->exact && halves; /* without them there is nothing to lose */
    context->keeps_quantised = runs_pass(context, &rows[PASS_quantised]);
    for (size_t i = 0; i < N_RUNS; i++) {
        const pass_row *row = &rows[schedule[i]];
        if (context->progress)
            context->progress(context->user, "optimize", (double)i / N_RUNS);
        if (runs_pass(context, row))
            GRT_TRY(run_pass(context, row));
    }
    return GRT_OK;
}
