/* SPDX-License-Identifier: Apache-2.0 */
/* Causal masks become the attribute is_causal, and masks of zeros are removed, so that kernels skip hidden
 * keys. */
#include "graph/passes/rewrite.h"

#include "src/base/float.h"

enum { Q, K, V, MASK };

/* Less than this, added to a score, leaves nothing of a weight. Rows keep their own key, so some weight is
 * left. */
#define HIDDEN_BELOW (-1e4f)

typedef enum mask_kind { MASK_OTHER, MASK_NOTHING, MASK_CAUSAL } mask_kind;

/* Zero up to the query's own key; behind it zero or what hides, all the one or all the other. */
static mask_kind causal_mask_kind_of(const grt_tensor *mask)
{
    int32_t rank = mask->rank;
    if ((mask->dtype != GRT_DTYPE_FLOAT && mask->dtype != GRT_DTYPE_FLOAT16) || rank < 2)
        return MASK_OTHER;
    int64_t rows = mask->dims[rank - 2], columns = mask->dims[rank - 1], hidden = 0, open = 0;
    if (rows < 1 || columns < 1 || grt_tensor_elements(mask) != rows * columns)
        return MASK_OTHER;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const float x = mask->dtype == GRT_DTYPE_FLOAT
                                ? ((const float *)mask->data)[i * columns + j]
                                : grt_half_to_float(((const uint16_t *)mask->data)[i * columns + j]);
            if (x == 0.0f)
                open += j > i;
            else if (x < HIDDEN_BELOW && j > i)
                hidden++;
            else
                return MASK_OTHER;
        }
    return !hidden ? MASK_NOTHING : open || rows != columns ? MASK_OTHER : MASK_CAUSAL;
}

static void causal_mask_look(pass_context *context, ir_node *node)
{
    const bool joined = grt_op_is(&node->desc, "graphrt", "Attention");
    const ir_value *mask = ir_in(node, MASK), *q = ir_in(node, Q), *k = joined ? q : ir_in(node, K);
    const grt_dims *dims = node->graph->module->dims;
    int64_t rows, columns;
    if ((!joined && !rewrite_is(node, "Attention")) || !mask || !mask->type.data || mask->producer ||
        mask->is_input || q->type.rank < 3 || k->type.rank < 3)
        return;
    for (int32_t i = MASK + 1; i < node->n_in; i++)
        if (ir_in(node, i))
            return; /* a past shifts the queries */
    const grt_tensor *t = mask->type.data;
    const mask_kind kind = causal_mask_kind_of(t);
    if (kind == MASK_OTHER || !grt_dim_is_const(dims, q->type.dims[q->type.rank - 2], &rows) ||
        !grt_dim_is_const(dims, k->type.dims[k->type.rank - 2], &columns) ||
        t->dims[t->rank - 1] != columns || (kind == MASK_CAUSAL && t->dims[t->rank - 2] != rows))
        return;
    if (kind == MASK_CAUSAL)
        ir_attr_set_int(node, "is_causal", 1);
    ir_node_drop_inputs(node, MASK);
    context->changed++;
}

grt_status pass_causal_mask(pass_context *context)
{
    return rewrite_each_node(context, causal_mask_look);
}
