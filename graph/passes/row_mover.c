/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/row_mover.h"

#include "graph/ir/constant.h"
#include "graph/passes/permutation.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/row_wise.h"

#include <string.h>

enum { LEAST_ROW_BYTES = 64 }; /* of a Gather: shorter rows cost more than their bytes */

/* The table's rows as a constant, one for all that are gathered by it. NULL: the budget does not allow it. */
static ir_value *indices_of(row_mover *m, ir_graph *graph, int32_t table)
{
    const row_table *t = &m->tables->all[table];
    if (m->indices[table])
        return m->indices[table];
    grt_tensor *rows = ir_constant_create(m->context->module, GRT_DTYPE_INT32, 1, &t->size);
    if (!rows)
        return NULL;
    memcpy(rows->data, t->rows, (size_t)t->size * sizeof *t->rows);
    return m->indices[table] = ir_constant(graph, NULL, rows);
}

/* The rows of x under another order, by their indices, `outer` times the table. NULL: there is no way. */
static ir_value *gathered_rows(row_mover *m, ir_node *before, ir_value *x, int32_t table, grt_dim outer)
{
    grt_dims *dims = before->graph->module->dims;
    const ir_type *type = &x->type;
    const bool whole = grt_dim_equals(dims, outer, 1);
    const grt_dim cut[] = {outer, grt_dim_const(dims, m->tables->all[table].size),
                           type->dims[type->rank - 1]};
    if (row_wise_bytes(x) < LEAST_ROW_BYTES)
        return NULL;
    ir_value *in[] = {rewrite_reshaped(before, x, whole ? 2 : 3, whole ? cut + 1 : cut),
                      indices_of(m, before->graph, table)};
    ir_node *node = in[0] && in[1]
                        ? ir_node_create(before->graph, before, "", "Gather", before->desc.name, 2, in, 1)
                        : NULL;
    if (node)
        ir_attr_set_int(node, "axis", whole ? 0 : 1);
    ir_value *y = rewrite_offered(m->context, node);
    return y ? rewrite_reshaped(before, y, type->rank, type->dims) : NULL;
}

/* The same by a Transpose, if the table is loops. */
static ir_value *transposed_rows(ir_node *before, ir_value *x, const row_table *table, grt_dim outer)
{
    grt_dims *dims = before->graph->module->dims;
    const ir_type *type = &x->type;
    const grt_dim last = type->dims[type->rank - 1], one = grt_dim_const(dims, 1);
    const row_loops *loops = table->loops;
    index_map map = {.source = x, .offset = grt_dim_const(dims, 0), .rank = 1};
    permutation p;
    if (!loops || loops->n + 2 > INDEX_MAP_PARTS)
        return NULL;
    if (!grt_dim_equals(dims, outer, 1))
        map.parts[map.n++] = (index_part){outer, grt_dim_mulc(dims, last, table->size), 0};
    for (int64_t i = 0; i < loops->n; i++)
        map.parts[map.n++] = (index_part){grt_dim_const(dims, loops->sizes[i]),
                                          grt_dim_mulc(dims, last, loops->strides[i]), 0};
    if (!grt_dim_equals(dims, last, 1))
        map.parts[map.n++] = (index_part){last, one, 0};
    return permutation_of(dims, &map, &p) ? permutation_apply(before, x, &p, type->rank, type->dims) : NULL;
}

ir_value *row_mover_move(row_mover *m, ir_node *before, ir_value *x, int32_t table)
{
    grt_dims *dims = m->context->module->dims;
    grt_dim rows = grt_dim_const(dims, 1), outer;
    if (table == ROWS_AS_THEY_ARE || table == ROWS_UNKNOWN)
        return table == ROWS_UNKNOWN ? NULL : x;
    const row_table *t = &m->tables->all[table];
    for (int32_t i = 0; i < x->type.rank - 1; i++)
        rows = grt_dim_mul(dims, rows, x->type.dims[i]);
    if (!index_map_divide(dims, rows, grt_dim_const(dims, t->size), &outer))
        return NULL;
    ir_value *y = transposed_rows(before, x, t, outer);
    return y ? y : gathered_rows(m, before, x, table, outer);
}
