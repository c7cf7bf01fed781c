/* SPDX-License-Identifier: Apache-2.0 */
/* Attention masks whose rows are all equal become masks of one row, which kernels read once for all queries.
 * Exporters write padding masks in full: what tells which keys are there is joined with what is true for
 * every query, and expanded. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { MASK = 3, DEEPEST = 12 };

static bool mask_rows_is_one(const ir_value *value, int32_t axis)
{
    int64_t size;
    return grt_dim_is_const(value->graph->module->dims, value->type.dims[axis], &size) && size == 1;
}

/* It is one row, or broadcasts as one. */
static bool has_one_row(const ir_value *value)
{
    return value->type.rank >= 0 && (value->type.rank < 2 || mask_rows_is_one(value, value->type.rank - 2));
}

/* The first row of each matrix of a constant; NULL if others differ from it. */
static ir_value *constant_row(const ir_value *value)
{
    const grt_tensor *t = value->type.data;
    const int64_t rows = t->dims[t->rank - 2], matrices = grt_dims_product(t->dims, 0, t->rank - 2);
    const size_t bytes = (size_t)t->dims[t->rank - 1] * grt_dtype_size(t->dtype);
    int64_t dims[GRT_MAX_RANK];
    const char *from = t->data;
    if (t->dtype == GRT_DTYPE_STRING || grt_dtype_size(t->dtype) == 0 || rows < 1)
        return NULL;
    for (int64_t i = 0; i < matrices * rows; i++)
        if (memcmp(from + (size_t)i * bytes, from + (size_t)(i / rows * rows) * bytes, bytes) != 0)
            return NULL;
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[t->rank - 2] = 1;
    grt_tensor *row = ir_constant_create(value->graph->module, t->dtype, t->rank, dims);
    if (!row)
        return NULL;
    for (int64_t i = 0; i < matrices; i++)
        memcpy((char *)row->data + (size_t)i * bytes, from + (size_t)(i * rows) * bytes, bytes);
    return ir_constant(value->graph, NULL, row);
}

static ir_value *row_of(ir_value *value, int32_t depth);

/* The element-wise node once more, on one row of each input. */
static ir_value *pointwise_row(ir_node *node, int32_t depth)
{
    ir_value **in = GRT_ARENA_ARRAY(node->graph->module->arena, ir_value *, node->n_in);
    for (int32_t i = 0; in && i < node->n_in; i++) {
        in[i] = ir_in(node, i) ? row_of(ir_in(node, i), depth) : NULL;
        if (!in[i])
            return NULL;
    }
    ir_node *made = in ? ir_node_create(node->graph, node, node->desc.domain, node->desc.op, node->desc.name,
                                        node->n_in, in, 1)
                       : NULL;
    if (!made)
        return NULL;
    ir_attrs_copy(made, node);
    if (op_infer_node(made) == GRT_OK && has_one_row(made->out[0]))
        return made->out[0];
    ir_node_remove(made);
    return NULL;
}

/* What broadcasts to the value, with one row; NULL if it is not known to have equal rows. Nodes that are made
 * in vain have no users: pass dce takes them. */
static ir_value *row_of(ir_value *value, int32_t depth)
{
    ir_node *node = value->producer;
    if (has_one_row(value))
        return value;
    if (value->type.rank < 2 || depth == 0)
        return NULL;
    if (value->type.data && !node && !value->is_input)
        return constant_row(value);
    if (!node || node->graph != value->graph || node->n_out != 1 || ir_node_has_body(node))
        return NULL;
    if (rewrite_is(node, "Expand"))
        return row_of(ir_in(node, 0), depth - 1);
    return node->row && node->row->flags & OP_POINTWISE ? pointwise_row(node, depth - 1) : NULL;
}

static bool is_mask_of(const ir_use *use)
{
    return use->node && use->index == MASK &&
           (rewrite_is(use->node, "Attention") || grt_op_is(&use->node->desc, "graphrt", "Attention"));
}

/* A mask may have fewer columns than there are keys, but then it hides the others: those must stay as many.
 */
static bool mask_rows_same_columns(const ir_value *a, const ir_value *b)
{
    return a->type.rank >= 1 && a->type.dims[a->type.rank - 1] == b->type.dims[b->type.rank - 1];
}

static void mask_rows_look(pass_context *context, ir_value *mask)
{
    if (mask->type.rank < 2 || has_one_row(mask))
        return;
    ir_value *row = row_of(mask, DEEPEST);
    if (!row || !mask_rows_same_columns(row, mask))
        return;
    for (ir_use *use = mask->uses, *next; use; use = next) {
        next = use->next;
        if (is_mask_of(use) && use->graph == row->graph) {
            ir_node_set_input(use->node, MASK, row);
            context->changed++;
        }
    }
}

static void mask_rows_visit(pass_context *context, ir_node *node)
{
    if (ir_in(node, MASK) && is_mask_of(&node->in[MASK]))
        mask_rows_look(context, ir_in(node, MASK));
}

grt_status pass_mask_rows(pass_context *context)
{
    return rewrite_each_node(context, mask_rows_visit);
}
