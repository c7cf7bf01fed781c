/* SPDX-License-Identifier: Apache-2.0 */
/* Constant weights of float32 products are stored with the sum's numbers side by side, [n, k]: tensor cores
 * read TF32 operands in this order only, of which strict products are made, too, and a library that is given
 * the other one uses slower instructions. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { WEIGHTS = 1, TILE = 32 };

static bool weight_rows_gains(const ir_use *use)
{
    const ir_node *node = use->node;
    return node && use->index == WEIGHTS &&
           (rewrite_is(node, "MatMul") || grt_op_is(&node->desc, "graphrt", "MatMul")) &&
           !grt_attr_int(&node->desc, "transB", 0) && ir_in(node, 0) && ir_in(node, 0)->type.rank >= 2;
}

/* A matrix that nothing else reads: it would be kept twice. */
static bool weight_rows_may_turn(const ir_value *value)
{
    const grt_tensor *t = value->type.data;
    if (!t || value->producer || value->is_input || t->rank != 2 || t->dtype != GRT_DTYPE_FLOAT ||
        rewrite_is_output(value))
        return false;
    for (const ir_use *use = value->uses; use; use = use->next)
        if (!weight_rows_gains(use))
            return false;
    return value->uses != NULL;
}

/* Tile by tile, as rows of one are columns of the other. */
static ir_value *weight_rows_turned(const ir_value *value)
{
    const grt_tensor *t = value->type.data;
    const int64_t rows = t->dims[0], columns = t->dims[1];
    grt_tensor *turned = ir_constant_create(value->graph->module, t->dtype, 2, (int64_t[]){columns, rows});
    if (!turned)
        return NULL;
    const float *from = t->data;
    float *to = turned->data;
    for (int64_t r = 0; r < rows; r += TILE)
        for (int64_t c = 0; c < columns; c += TILE)
            for (int64_t i = r; i < rows && i < r + TILE; i++)
                for (int64_t k = c; k < columns && k < c + TILE; k++)
                    to[k * rows + i] = from[i * columns + k];
    return ir_constant(value->graph, NULL, turned);
}

static void weight_rows_turn(pass_context *context, ir_value *value)
{
    ir_value *turned = weight_rows_turned(value);
    if (!turned)
        return;
    for (ir_use *use = value->uses, *next; use; use = next) {
        next = use->next;
        ir_node *node = use->node;
        ir_node_become(node, "graphrt", "MatMul");
        ir_attr_set_int(node, "transB", 1);
        ir_node_set_input(node, WEIGHTS, turned);
        context->changed++;
    }
}

/* From the first of its readers, so that many look at them once. */
static void weight_rows_visit(pass_context *context, ir_node *node)
{
    ir_value *value = ir_in(node, WEIGHTS);
    if (value && value->uses == &node->in[WEIGHTS] && weight_rows_may_turn(value))
        weight_rows_turn(context, value);
}

grt_status pass_weight_rows(pass_context *context)
{
    return context->target->traits->weight_rows ? rewrite_each_node(context, weight_rows_visit) : GRT_OK;
}
