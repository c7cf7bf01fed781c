/* SPDX-License-Identifier: Apache-2.0 */
/* A product by a constant matrix whose columns are read in several parts, or in another order than they have,
 * gets them in the order in which they are read: its weights are sorted when compiling. Then each part is a
 * range of columns, which a Split cuts out, and what is left of its moves exchanges rows and heads at most.
 * So queries, keys and values of each group of heads that lie side by side (Falcon, GPT-NeoX), and halves of
 * heads that lie in turns in front of a rotation (DeepSeek), need neither a Slice nor a Transpose of columns.
 *
 *   x W = y, y[..., C0] and y[..., C1] are read   ->   Split(x [W[:, C0] W[:, C1]])
 *
 * The parts share no column and leave none out. Composed as index maps, they are known by the columns that
 * they are and not by the nodes that cut them out.
 */
#include "graph/ir/constant.h"
#include "graph/passes/attention_layout.h"
#include "graph/passes/permutation.h"
#include "graph/passes/rewrite.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 16 };

/* A value that is cut out of the product's columns, rows as they are or moved. */
typedef struct column_part {
    ir_value *value;
    index_map map;    /* onto the product */
    int64_t first, n; /* the first of its columns, and how many they are */
    bool is_range;    /* they follow each other */
} column_part;

typedef struct column_list {
    ir_value *source; /* the product */
    int64_t width, n_taken;
    column_part parts[MOST_PARTS];
    int32_t n;
} column_list;

/* ---- finding parts ---- */

/* True if a part of a map goes along a row: within its columns, not from row to row. */
static bool goes_along_row(const grt_dims *dims, const index_part *part, int64_t width, int64_t *size,
                           int64_t *stride)
{
    return grt_dim_is_const(dims, part->stride, stride) && grt_dim_is_const(dims, part->size, size) &&
           *stride > 0 && width > *stride && *size > 0 && width >= *size;
}

/* Sets where the columns are. False if the map is none of rows and columns, or repeats elements. */
static bool column_part_read(grt_dims *dims, int64_t width, column_part *p)
{
    int64_t last = 0, size, stride;
    grt_dim rows;
    index_part along[INDEX_MAP_PARTS];
    int32_t n = 0;
    if (!grt_dim_is_const(dims, p->map.offset, &p->first) || p->first < 0)
        return false;
    p->n = 1;
    for (int32_t i = 0; i < p->map.n; i++) {
        const index_part *part = &p->map.parts[i];
        if (goes_along_row(dims, part, width, &size, &stride)) {
            along[n++] = *part;
            p->n *= size;
            last += (size - 1) * stride;
            if (last >= width || p->n > width)
                return false;
        } else if (grt_dim_equals(dims, part->stride, 0) ||
                   !index_map_divide(dims, part->stride, grt_dim_const(dims, width), &rows)) {
            return false;
        }
    }
    n = index_parts_join(dims, along, n);
    p->is_range = n == 0 || (n == 1 && grt_dim_equals(dims, along[0].stride, 1));
    return p->first + last < width;
}

/* The value as a part of the columns. */
static bool column_part_of(const column_list *c, ir_value *value, column_part *out)
{
    *out = (column_part){.value = value};
    return index_map_of(value, &out->map, NULL) && out->map.source == c->source &&
           column_part_read(value->graph->module->dims, c->width, out);
}

static bool add_part(column_list *c, const column_part *p)
{
    if (c->n == MOST_PARTS || p->n > c->width - c->n_taken)
        return false;
    int32_t at = c->n++;
    for (; at > 0 && c->parts[at - 1].first > p->first; at--)
        c->parts[at] = c->parts[at - 1];
    c->parts[at] = *p;
    c->n_taken += p->n;
    return true;
}

/* True if the use is of a node that moves the elements, so that each of its results is a part. */
static bool moves_parts(const column_list *c, const ir_use *use)
{
    column_part p;
    if (!use->node || use->index != 0 || use->graph != c->source->graph)
        return false;
    for (int32_t i = 0; i < use->node->n_out; i++)
        if (use->node->out[i] && !column_part_of(c, use->node->out[i], &p))
            return false;
    return true;
}

static bool reads_elements(const ir_use *use)
{
    return !use->node || !rewrite_has(use->node, OP_READS_DIMS);
}

/* True if nothing but moves reads the value. Sets how many results they have. */
static bool is_only_moved(const column_list *c, const ir_value *value, int32_t *out_results)
{
    *out_results = 0;
    for (const ir_use *use = value->uses; use; use = use->next) {
        if (!reads_elements(use))
            continue;
        if (!moves_parts(c, use))
            return false;
        *out_results += use->node->n_out;
    }
    return true;
}

static bool find_in(column_list *c, const column_part *p);

/* The same in the results of a move of p. */
static bool find_behind(column_list *c, const column_part *p, const ir_node *move)
{
    column_part next;
    for (int32_t i = 0; i < move->n_out; i++) {
        if (!move->out[i] || !column_part_of(c, move->out[i], &next))
            continue;
        const bool cuts_again = p->n < c->width && next.n < p->n;
        if (cuts_again)
            return add_part(c, p);
        if (!find_in(c, &next))
            return false;
    }
    return true;
}

/* Finds the parts that p is read in. All columns are followed through all of their moves. A part of them is
 * one, behind what moves it as a whole. False if there are too many. */
static bool find_in(column_list *c, const column_part *p)
{
    int32_t results;
    if (!is_only_moved(c, p->value, &results) || (p->n < c->width && results != 1))
        return add_part(c, p);
    for (const ir_use *use = p->value->uses; use; use = use->next)
        if (reads_elements(use) && !find_behind(c, p, use->node))
            return false;
    return true;
}

/* ---- sorting ---- */

/* Writes the columns of a part in the order in which it has them. */
static void list_columns(const grt_dims *dims, const column_part *p, int64_t width, int64_t *out)
{
    int64_t n = 1, size, stride;
    out[0] = p->first;
    for (int32_t i = p->map.n - 1; i >= 0; i--) {
        if (!goes_along_row(dims, &p->map.parts[i], width, &size, &stride))
            continue;
        for (int64_t k = n; k < n * size; k++)
            out[k] = out[k - n] + stride;
        n *= size;
    }
}

/* All columns in the order of the parts. False if one is missing, as another one is there twice. */
static bool list_order(const grt_dims *dims, const column_list *c, int64_t *order, bool *seen)
{
    int64_t n = 0;
    for (int32_t i = 0; i < c->n; i++) {
        list_columns(dims, &c->parts[i], c->width, order + n);
        n += c->parts[i].n;
    }
    for (int64_t k = 0; k < n; k++) {
        if (seen[order[k]])
            return false;
        seen[order[k]] = true;
    }
    return n == c->width;
}

/* A constant of rows, or of one row, with its columns in that order. Ranges of columns are copied at once. */
static ir_value *sorted_columns(ir_graph *graph, const ir_value *constant, const int64_t *order)
{
    const grt_tensor *from = constant->type.data;
    const int64_t width = from->dims[from->rank - 1];
    const size_t element = grt_dtype_size(from->dtype), row = (size_t)width * element;
    grt_tensor *to = ir_constant_create(graph->module, from->dtype, from->rank, from->dims);
    if (!to)
        return NULL;
    const int64_t rows = from->rank == 2 ? from->dims[0] : 1;
    for (int64_t k = 0, n; k < width; k += n) {
        for (n = 1; k + n < width && order[k + n] == order[k] + n; n++)
            continue;
        for (int64_t i = 0; i < rows; i++)
            memcpy((char *)to->data + (size_t)i * row + (size_t)k * element,
                   (const char *)from->data + (size_t)i * row + (size_t)order[k] * element,
                   (size_t)n * element);
    }
    return ir_constant(graph, NULL, to);
}

static ir_node *column_order_put(ir_node *before, const char *op, const char *name, ir_value *a, ir_value *b,
                                 int32_t n_out)
{
    return a && b ? ir_node_create(before->graph, before, "", op, name, 2, (ir_value *[]){a, b}, n_out)
                  : NULL;
}

/* x [W[:, C0] W[:, C1] ...] + [b[C0] b[C1] ...] */
static ir_value *sorted_product(ir_node *before, const attention_projection *p, const int64_t *order)
{
    const char *name = p->product->desc.name;
    ir_node *made = column_order_put(before, "MatMul", name, ir_in(p->product, 0),
                                     sorted_columns(before->graph, ir_in(p->product, 1), order), 1);
    if (!made || op_infer_node(made) != GRT_OK)
        return NULL;
    if (p->bias) {
        made = column_order_put(before, "Add", name, made->out[0],
                                sorted_columns(before->graph, p->bias, order), 1);
        if (!made || op_infer_node(made) != GRT_OK)
            return NULL;
    }
    return made->out[0];
}

/* Ranges of the sorted columns, one for each part. */
static bool cut_ranges(ir_node *before, const column_list *c, ir_value *sorted, ir_value **out)
{
    int64_t sizes[MOST_PARTS];
    out[0] = sorted;
    if (c->n == 1)
        return true;
    for (int32_t i = 0; i < c->n; i++)
        sizes[i] = c->parts[i].n;
    const char *name = sorted->producer->desc.name;
    ir_node *split = column_order_put(before, "Split", name, sorted,
                                      ir_constant_ints(before->graph, name, sizes, c->n), c->n);
    if (!split)
        return false;
    ir_attr_set_int(split, "axis", sorted->type.rank - 1);
    for (int32_t i = 0; i < c->n; i++)
        out[i] = split->out[i];
    return op_infer_node(split) == GRT_OK;
}

/* The part out of the range of columns that it is now. */
static ir_value *moved_part(ir_node *before, const column_part *p, int64_t width, ir_value *range)
{
    grt_dims *dims = before->graph->module->dims;
    index_map map = p->map;
    permutation moves;
    grt_dim rows;
    int64_t step = 1, size, stride;
    map.source = range;
    map.offset = grt_dim_const(dims, 0);
    for (int32_t i = map.n - 1; i >= 0; i--) {
        index_part *part = &map.parts[i];
        if (goes_along_row(dims, part, width, &size, &stride)) {
            part->stride = grt_dim_const(dims, step);
            step *= size;
        } else {
            index_map_divide(dims, part->stride, grt_dim_const(dims, width), &rows);
            part->stride = grt_dim_mulc(dims, rows, p->n);
        }
    }
    const ir_type *type = &p->value->type;
    ir_value *x = permutation_of(dims, &map, &moves)
                      ? permutation_apply(before, range, &moves, type->rank, type->dims)
                      : NULL;
    return x && rewrite_same_shape(&x->type, type) ? x : NULL;
}

static bool is_identity(const column_list *c, const int64_t *order)
{
    bool ordered = true;
    for (int64_t k = 0; ordered && k < c->width; k++)
        ordered = order[k] == k;
    return ordered;
}

/* Makes the sorted product and gives its ranges to those who read the parts. Unused nodes are dead. */
static void sort_columns(pass_context *context, const column_list *c, const attention_projection *p,
                         const int64_t *order)
{
    ir_node *before = c->source->producer->next;
    ir_value *ranges[MOST_PARTS], *made[MOST_PARTS];
    ir_value *sorted = is_identity(c, order) ? c->source : sorted_product(before, p, order);
    if (!sorted || !cut_ranges(before, c, sorted, ranges))
        return;
    for (int32_t i = 0; i < c->n; i++)
        if (!(made[i] = moved_part(before, &c->parts[i], c->width, ranges[i])))
            return;
    for (int32_t i = 0; i < c->n; i++)
        context->changed += rewrite_take_over(c->parts[i].value, made[i]);
}

/* ---- looking ---- */

/* x W (+ b) whose weights nothing else reads, so that they are not stored twice. */
static bool column_order_is_projection(ir_value *value, attention_projection *p)
{
    if (!value || value->type.rank < 2 || !grt_dtype_in(value->type.dtype, GRT_SET_FLOATS) ||
        !attention_projection_of(value, p) || ir_in(p->product, 1)->n_uses != 1 ||
        (p->bias && p->product->out[0]->n_uses != 1))
        return false;
    const int64_t width = ir_in(p->product, 1)->type.data->dims[1];
    return width > 1 &&
           grt_dim_equals(value->graph->module->dims, value->type.dims[value->type.rank - 1], width) &&
           (!p->bias || p->bias->type.data->dims[0] == width);
}

/* True if a Split of the columns makes all parts, as it would be made here. */
static bool is_split(const column_list *c)
{
    const ir_node *split = rewrite_only_user(c->source);
    const int32_t rank = c->source->type.rank;
    return rewrite_is(split, "Split") && grt_axis(grt_attr_int(&split->desc, "axis", 0), rank) == rank - 1;
}

/* True if the rows of a part are read in the order that they have, as in front of a rotation. Parts that are
 * all moved are left to one Transpose (pass equal_parts). */
static bool has_rows_in_order(grt_dims *dims, const column_list *c)
{
    bool found = false;
    for (int32_t i = 0; i < c->n && !found; i++) {
        index_map map = c->parts[i].map;
        found = index_parts_join(dims, map.parts, map.n) <= 2; /* rows, columns */
    }
    return found;
}

/* Finds the parts; false where they are none, or are cut out as ranges of columns already. */
static bool find_parts(column_list *c, const attention_projection *p)
{
    column_part all;
    c->width = ir_in(p->product, 1)->type.data->dims[1];
    if (!column_part_of(c, c->source, &all) || !find_in(c, &all) || c->n_taken != c->width)
        return false;
    bool ranges = true;
    for (int32_t i = 0; i < c->n; i++)
        ranges &= c->parts[i].is_range;
    return !ranges || (c->n > 1 && !is_split(c) && has_rows_in_order(c->source->graph->module->dims, c));
}

static grt_status column_order_look(pass_context *context, ir_node *node)
{
    column_list c = {.source = node->n_out == 1 ? node->out[0] : NULL};
    attention_projection p;
    if (!node->next || !column_order_is_projection(c.source, &p) || !find_parts(&c, &p))
        return GRT_OK;
    int64_t *order = calloc((size_t)c.width, sizeof *order);
    bool *seen = calloc((size_t)c.width, sizeof *seen);
    const bool ok = order && seen;
    if (ok && list_order(context->module->dims, &c, order, seen))
        sort_columns(context, &c, &p, order);
    free(order);
    free(seen);
    return ok ? GRT_OK : grt_fail_memory((size_t)c.width * sizeof *order);
}

static grt_status column_order_visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        GRT_TRY(column_order_look(context, node));
    return GRT_OK;
}

grt_status pass_column_order(pass_context *context)
{
    return rewrite_each_graph(context, column_order_visit);
}
