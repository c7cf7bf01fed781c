/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/attention_columns.h"

#include "graph/ir/constant.h"
#include "graph/passes/attention_inputs.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { K = ATTENTION_SIDE_K, V = ATTENTION_SIDE_V };

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

/* True if the projection has no readers but keys and values, so that it is not needed any more. */
static bool has_no_other_reader(const attention_side *sides)
{
    const ir_value *keys[MOST_MOVES], *values[MOST_MOVES], *source = sides[K].map.source;
    const int32_t n = attention_columns_path(sides[K].value, source, keys),
                  m = attention_columns_path(sides[V].value, source, values);
    int32_t shared = 0; /* from the source on */
    while (shared < n && shared < m && keys[n - 1 - shared] == values[m - 1 - shared])
        shared++;
    bool ok = n && m && source->n_uses <= 2;
    for (int32_t i = 0; i < n; i++)
        ok &= keys[i]->n_uses <= (i >= n - shared ? 2 : 1);
    for (int32_t i = 0; i < m; i++)
        ok &= values[i]->n_uses <= (i >= m - shared ? 2 : 1);
    return ok;
}

void attention_columns_split(ir_node *before, attention_side *sides)
{
    grt_dims *dims = before->graph->module->dims;
    const ir_value *source = sides[K].map.source;
    attention_projection p;
    columns c[2];
    if (source != sides[V].map.source || source == sides[ATTENTION_SIDE_Q].map.source ||
        source->graph != before->graph || !has_no_other_reader(sides) ||
        !attention_columns_of(dims, &sides[K].map, &c[0]) ||
        !attention_columns_of(dims, &sides[V].map, &c[1]) || c[0].n + c[1].n != c[0].width ||
        !attention_projection_of(source, &p) || p.product->out[0]->n_uses != 1 ||
        ir_in(p.product, 1)->type.data->dims[1] != c[0].width ||
        (p.bias && p.bias->type.data->dims[0] != c[0].width))
        return;
    ir_value *keys = projected(before, &p, &c[0]), *values = keys ? projected(before, &p, &c[1]) : NULL;
    if (values) {
        columns_map(dims, &sides[K].map, &c[0], keys);
        columns_map(dims, &sides[V].map, &c[1], values);
    }
}
