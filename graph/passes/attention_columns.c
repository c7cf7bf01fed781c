/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/attention_columns.h"

#include "graph/ir/constant.h"
#include "graph/passes/attention_inputs.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { K = ATTENTION_SIDE_K };

/* Columns [from, from + n) of rows of `width`. */
typedef struct columns {
    int64_t from, n, width;
} columns;

static bool is_multiple(grt_dims *dims, grt_dim dim, int64_t of, grt_dim *out)
{
    int64_t known;
    if (grt_dim_is_const(dims, dim, &known))
        return known % of == 0 && ((*out = grt_dim_const(dims, known / of)), true);
    return index_map_divide(dims, dim, grt_dim_const(dims, of), out);
}

/* The columns that the map reads, all of them in each of its rows. */
static bool attention_columns_of(grt_dims *dims, const index_map *map, columns *out)
{
    const ir_type *type = &map->source->type;
    int64_t most = 0, all = 1, offset, size, stride;
    grt_dim rows;
    if (type->rank < 2 || !grt_dim_is_const(dims, type->dims[type->rank - 1], &out->width) ||
        out->width < 2 || !grt_dim_is_const(dims, map->offset, &offset) || offset < 0)
        return false;
    for (int32_t i = 0; i < map->n; i++) {
        const index_part *part = &map->parts[i];
        if (is_multiple(dims, part->stride, out->width, &rows))
            continue;
        if (!grt_dim_is_const(dims, part->stride, &stride) || !grt_dim_is_const(dims, part->size, &size) ||
            stride < 1 || stride >= out->width || size < 1 || size > out->width)
            return false;
        most += (size - 1) * stride;
        all *= size;
        if (most >= out->width)
            return false;
    }
    out->from = offset;
    out->n = most + 1;
    return all == out->n && out->from + out->n <= out->width;
}

/* The columns of a constant of one row, or of rows. */
static ir_value *columns_taken(ir_graph *graph, const ir_value *constant, const columns *c)
{
    const grt_tensor *from = constant->type.data;
    int64_t dims[2] = {from->dims[0], c->n};
    const int64_t rows = from->rank == 2 ? from->dims[0] : 1;
    if (from->rank == 1)
        dims[0] = c->n;
    grt_tensor *to = ir_constant_create(graph->module, from->dtype, from->rank, dims);
    if (!to)
        return NULL;
    const size_t element = grt_dtype_size(from->dtype);
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)to->data + (size_t)(i * c->n) * element,
               (const char *)from->data + (size_t)(i * c->width + c->from) * element, (size_t)c->n * element);
    return ir_constant(graph, NULL, to);
}

static ir_value *projected(ir_node *before, const attention_projection *p, const columns *c)
{
    ir_value *w = columns_taken(before->graph, ir_in(p->product, 1), c);
    ir_value *b = w && p->bias ? columns_taken(before->graph, p->bias, c) : NULL;
    ir_node *made =
        w ? attention_add_node(before, "MatMul", 2, (ir_value *[]){ir_in(p->product, 0), w}) : NULL;
    if (made && p->bias)
        made = b ? attention_add_node(before, "Add", 2, (ir_value *[]){made->out[0], b}) : NULL;
    return made ? made->out[0] : NULL;
}

/* The map of the same elements in rows that have these columns alone. */
static bool columns_map(grt_dims *dims, index_map *map, const columns *c, ir_value *source)
{
    grt_dim rows;
    for (int32_t i = 0; i < map->n; i++)
        if (is_multiple(dims, map->parts[i].stride, c->width, &rows))
            map->parts[i].stride = grt_dim_mulc(dims, rows, c->n);
    map->source = source;
    map->offset = grt_dim_const(dims, 0);
    return true;
}

enum { MOST_MOVES = 24 };

/* The values from `value` back to the source of its map; 0 if they are more than are looked for. */
static int32_t attention_columns_path(const ir_value *value, const ir_value *source, const ir_value **out)
{
    int32_t n = 0;
    for (; value != source && n < MOST_MOVES && value->producer; value = ir_in(value->producer, 0))
        out[n++] = value;
    return value == source ? n : 0;
}

/* From each side's value back to the projection. */
typedef struct side_paths {
    const ir_value *at[ATTENTION_SIDES][MOST_MOVES];
    int32_t n, length[ATTENTION_SIDES];
} side_paths;

static bool lies_on_paths(const side_paths *p, const ir_node *node)
{
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t k = 0; k < p->length[i]; k++)
            if (p->at[i][k]->producer == node)
                return true;
    return false;
}

/* True if only the paths read the value's elements, and the attention once for each side that it is. */
static bool is_read_by_sides(const side_paths *p, const ir_value *value)
{
    int32_t others = 0;
    for (int32_t i = 0; i < p->n; i++)
        others -= p->at[i][0] == value;
    for (const ir_use *use = value->uses; use && others <= 0; use = use->next)
        others += !use->node || !(rewrite_has(use->node, OP_READS_DIMS) || lies_on_paths(p, use->node));
    return others <= 0;
}

/* True if the projection has no readers but these n sides, so that it is not needed any more. */
static bool has_no_other_reader(const attention_side *sides, int32_t n)
{
    const ir_value *source = sides[0].map.source;
    side_paths p = {.n = n};
    for (int32_t i = 0; i < n; i++)
        if (!(p.length[i] = attention_columns_path(sides[i].value, source, p.at[i])))
            return false;
    bool ok = is_read_by_sides(&p, source);
    for (int32_t i = 0; i < n && ok; i++)
        for (int32_t k = 0; k < p.length[i] && ok; k++)
            ok = is_read_by_sides(&p, p.at[i][k]);
    return ok;
}

/* n sides of one projection, of which each column is one's, get projections of their own. */
static bool columns_split(ir_node *before, attention_side *sides, int32_t n)
{
    grt_dims *dims = before->graph->module->dims;
    const ir_value *source = sides[0].map.source;
    attention_projection p;
    columns c[ATTENTION_SIDES];
    ir_value *made[ATTENTION_SIDES];
    int64_t all = 0;
    for (int32_t i = 0; i < n; i++) {
        if (sides[i].map.source != source || !attention_columns_of(dims, &sides[i].map, &c[i]))
            return false;
        all += c[i].n;
    }
    if (source->graph != before->graph || !has_no_other_reader(sides, n) || all != c[0].width ||
        !attention_projection_of(source, &p) || p.product->out[0]->n_uses != 1 ||
        ir_in(p.product, 1)->type.data->dims[1] != c[0].width ||
        (p.bias && p.bias->type.data->dims[0] != c[0].width))
        return false;
    for (int32_t i = 0; i < n; i++)
        if (!(made[i] = projected(before, &p, &c[i])))
            return false;
    for (int32_t i = 0; i < n; i++)
        columns_map(dims, &sides[i].map, &c[i], made[i]);
    return true;
}

void attention_columns_split(ir_node *before, attention_side *sides)
{
    if (sides[K].map.source != sides[ATTENTION_SIDE_Q].map.source)
        columns_split(before, sides + K, ATTENTION_SIDES - K);
}

bool attention_columns_split_all(ir_node *before, attention_side *sides)
{
    return columns_split(before, sides, ATTENTION_SIDES);
}
