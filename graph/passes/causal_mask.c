/* SPDX-License-Identifier: Apache-2.0 */
/* Causal masks, also as one of several conditions, become the attribute is_causal, and masks of zeros are
 * removed, so that kernels skip hidden keys. */
#include "graph/passes/causal_choice.h"

#include "src/base/float.h"

enum { Q, K, V, MASK };

/* Less than this, added to a score, leaves nothing of a weight. Rows keep their own key, so some weight is
 * left. */
#define HIDDEN_BELOW (-1e4f)

typedef enum mask_kind { MASK_OTHER, MASK_NOTHING, MASK_CAUSAL } mask_kind;

static float causal_mask_at(const grt_tensor *mask, int64_t i)
{
    return mask->dtype == GRT_DTYPE_FLOAT ? ((const float *)mask->data)[i]
                                          : grt_half_to_float(((const uint16_t *)mask->data)[i]);
}

/* Zero up to the query's own key; behind it zero or what hides, all the one or all the other. Reading takes
 * of the compile's budget: many nodes may share one large mask. */
static mask_kind causal_mask_kind_of(compile_budget *budget, const grt_tensor *mask)
{
    int32_t rank = mask->rank;
    if ((mask->dtype != GRT_DTYPE_FLOAT && mask->dtype != GRT_DTYPE_FLOAT16) || rank < 2)
        return MASK_OTHER;
    int64_t rows = mask->dims[rank - 2], columns = mask->dims[rank - 1], hidden = 0, open = 0, at = 0;
    if (rows < 1 || columns < 1 || grt_tensor_elements(mask) != rows * columns ||
        !budget_allows(budget, 0, (double)rows * (double)columns))
        return MASK_OTHER;
    bool other = false;
    for (int64_t i = 0; !other && i < rows; i++)
        for (int64_t j = 0; !other && j < columns; j++, at++) {
            const float x = causal_mask_at(mask, at);
            const bool hides = x < HIDDEN_BELOW && j > i;
            hidden += hides;
            open += x == 0.0f && j > i;
            other = x != 0.0f && !hides;
        }
    budget_work(budget, (double)at);
    return other ? MASK_OTHER : !hidden ? MASK_NOTHING : open || rows != columns ? MASK_OTHER : MASK_CAUSAL;
}

static bool is_attention(const ir_node *node)
{
    return rewrite_is(node, "Attention") || grt_op_is(&node->desc, "graphrt", "Attention");
}

/* How many queries and keys there are. False if that is not known, or a past shifts the queries. */
static bool attention_sizes(const ir_node *node, int64_t *rows, int64_t *columns)
{
    const bool joined = grt_op_is(&node->desc, "graphrt", "Attention");
    const ir_value *q = ir_in(node, Q), *k = joined ? q : ir_in(node, K);
    const grt_dims *dims = node->graph->module->dims;
    for (int32_t i = MASK + 1; i < node->n_in; i++)
        if (ir_in(node, i))
            return false;
    return q->type.rank >= 3 && k->type.rank >= 3 &&
           grt_dim_is_const(dims, q->type.dims[q->type.rank - 2], rows) &&
           grt_dim_is_const(dims, k->type.dims[k->type.rank - 2], columns);
}

static void causal_mask_take_constant(pass_context *context, ir_node *node, const grt_tensor *t)
{
    const mask_kind kind = causal_mask_kind_of(&node->graph->module->budget, t);
    int64_t rows, columns;
    if (kind == MASK_OTHER || !attention_sizes(node, &rows, &columns) || t->dims[t->rank - 1] != columns ||
        (kind == MASK_CAUSAL && t->dims[t->rank - 2] != rows))
        return;
    if (kind == MASK_CAUSAL)
        ir_attr_set_int(node, "is_causal", 1);
    ir_node_drop_inputs(node, MASK);
    context->changed++;
}

/* Attentions share a mask: all that can read what is left of it do. */
static void causal_mask_take_choice(pass_context *context, const ir_node *first, ir_value *mask)
{
    int64_t n, rows, columns;
    if (!attention_sizes(first, &n, &columns) || n != columns)
        return;
    ir_value *rest = causal_choice_rest(mask, n);
    for (ir_use *use = mask->uses, *next; rest && use; use = next) {
        ir_node *node = use->node;
        next = use->next;
        if (!node || use->index != MASK || use->graph != rest->graph || !is_attention(node) ||
            !attention_sizes(node, &rows, &columns) || rows != n || columns != n)
            continue;
        ir_attr_set_int(node, "is_causal", 1);
        ir_node_set_input(node, MASK, rest);
        context->changed++;
    }
}

static void causal_mask_look(pass_context *context, ir_node *node)
{
    ir_value *mask = is_attention(node) ? ir_in(node, MASK) : NULL;
    if (mask && mask->type.data && !mask->producer && !mask->is_input)
        causal_mask_take_constant(context, node, mask->type.data);
    else if (mask && mask->producer)
        causal_mask_take_choice(context, node, mask);
}

grt_status pass_causal_mask(pass_context *context)
{
    return rewrite_each_node(context, causal_mask_look);
}
