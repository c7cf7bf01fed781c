/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/attention_layout.h"

#include "graph/passes/rewrite.h"

#include <string.h>

enum { Q = ATTENTION_SIDE_Q, K = ATTENTION_SIDE_K, V = ATTENTION_SIDE_V, SIDES = ATTENTION_SIDES };

void lead_list_of(const index_map *map, lead_list *out)
{
    out->n = 0;
    for (int32_t i = 0; i < map->n; i++)
        if (map->parts[i].axis < map->rank - 2)
            out->parts[out->n++] = map->parts[i];
}

void lead_list_split_rows(const index_map *map, lead_list *list)
{
    grt_dims *dims = map->source->graph->module->dims;
    const ir_type *type = &map->source->type;
    int64_t width, stride, size;
    if (type->rank < 3 || !grt_dim_is_const(dims, type->dims[type->rank - 1], &width))
        return;
    for (int32_t i = 0; i < list->n && list->n < INDEX_MAP_PARTS; i++) {
        index_part *part = &list->parts[i];
        grt_dim rows;
        if (!grt_dim_is_const(dims, part->stride, &stride) || stride < 1 || stride >= width ||
            width % stride || (grt_dim_is_const(dims, part->size, &size) && size <= width / stride) ||
            !index_map_divide(dims, part->size, grt_dim_const(dims, width / stride), &rows))
            continue;
        memmove(part + 1, part, (size_t)(list->n - i) * sizeof *part);
        part[0] = (index_part){rows, grt_dim_const(dims, width), part->axis};
        part[1].size = grt_dim_const(dims, width / stride);
        list->n++;
        i++;
    }
}

/* The size among the last parts of the lists that divides all others; NONE if there is none. */
static grt_dim innermost(grt_dims *dims, const lead_list *lists, int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        const grt_dim size = lists[k].parts[lists[k].n - 1].size;
        grt_dim rest;
        int32_t i = 0;
        while (i < n && index_map_divide(dims, lists[i].parts[lists[i].n - 1].size, size, &rest))
            i++;
        if (i == n)
            return size;
    }
    return GRT_DIM_NONE;
}

bool lead_lists_align(grt_dims *dims, lead_list *lists, int32_t n)
{
    index_part made[LEAD_LISTS][INDEX_MAP_PARTS];
    int32_t first = INDEX_MAP_PARTS;
    while (lists[0].n) {
        for (int32_t i = 0; i < n; i++)
            if (!lists[i].n)
                return false;
        const grt_dim size = innermost(dims, lists, n);
        if (size == GRT_DIM_NONE || first == 0)
            return false;
        first--;
        for (int32_t i = 0; i < n; i++) {
            index_part *last = &lists[i].parts[lists[i].n - 1];
            made[i][first] = (index_part){size, last->stride, last->axis};
            if (last->size == size) {
                lists[i].n--;
            } else {
                index_map_divide(dims, last->size, size, &last->size);
                last->stride = grt_dim_mul(dims, last->stride, size);
            }
        }
    }
    for (int32_t i = 0; i < n; i++) {
        if (lists[i].n)
            return false;
        lists[i].n = INDEX_MAP_PARTS - first;
        memcpy(lists[i].parts, made[i] + first, (size_t)lists[i].n * sizeof made[i][0]);
    }
    return true;
}

/* Parts [from, to) of a list as one; false if they are more. */
static bool attention_layout_joined(grt_dims *dims, const lead_list *list, int32_t from, int32_t to,
                                    index_part *out)
{
    index_part parts[INDEX_MAP_PARTS];
    memcpy(parts, list->parts + from, (size_t)(to - from) * sizeof *parts);
    const int32_t n = index_parts_join(dims, parts, to - from);
    *out = n ? parts[0] : (index_part){grt_dim_const(dims, 1), grt_dim_const(dims, 0), 0};
    return n <= 1;
}

/* Heads of keys or values: those that are repeated for a group of queries' heads count once. */
static bool attention_layout_heads_of(grt_dims *dims, const lead_list *list, int32_t from, index_part *out)
{
    int32_t to = list->n;
    while (to > from && grt_dim_equals(dims, list->parts[to - 1].stride, 0))
        to--;
    return attention_layout_joined(dims, list, from, to, out);
}

static grt_dim attention_layout_elements(grt_dims *dims, const ir_type *type)
{
    grt_dim n = grt_dim_const(dims, 1);
    for (int32_t i = 0; i < type->rank; i++)
        n = grt_dim_mul(dims, n, type->dims[i]);
    return n;
}

static bool attention_layout_is_one(const grt_dims *dims, grt_dim dim)
{
    return grt_dim_equals(dims, dim, 1);
}

/* Width of the rows, and which of batch and sequence comes first. */
static bool find_width(grt_dims *dims, const index_part *batch, const index_part *row, head_rows *out)
{
    const grt_dim all = attention_layout_elements(dims, &out->source->type);
    grt_dim width = all;
    if (attention_layout_is_one(dims, batch->size) && attention_layout_is_one(dims, row->size)) {
        /* the whole source is one row */
    } else if (attention_layout_is_one(dims, batch->size)) {
        width = row->stride;
    } else if (attention_layout_is_one(dims, row->size)) {
        width = batch->stride;
    } else if (batch->stride == grt_dim_mul(dims, row->size, row->stride)) {
        width = row->stride;
    } else if (row->stride == grt_dim_mul(dims, batch->size, batch->stride)) {
        width = batch->stride;
        out->sequence_first = true;
    } else {
        return false;
    }
    return grt_dim_is_const(dims, width, &out->width) && out->width > 0 &&
           grt_dim_mul(dims, grt_dim_mul(dims, batch->size, row->size), width) == all;
}

static bool attention_layout_find_rows(grt_dims *dims, const attention_side *side, const lead_list *list,
                                       int32_t n_batch, bool grouped, head_rows *out)
{
    const index_map *map = &side->map;
    index_part batch, head, row, column;
    *out = (head_rows){.source = map->source};
    if (!attention_layout_joined(dims, list, 0, n_batch, &batch) ||
        !(grouped ? attention_layout_heads_of(dims, list, n_batch, &head)
                  : attention_layout_joined(dims, list, n_batch, list->n, &head)) ||
        !index_map_single(dims, map, map->rank - 2, &row) ||
        !index_map_single(dims, map, map->rank - 1, &column) || !find_width(dims, &batch, &row, out) ||
        !grt_dim_is_const(dims, head.size, &out->heads) || !grt_dim_is_const(dims, head.stride, &out->step) ||
        !grt_dim_is_const(dims, column.size, &out->size) ||
        !grt_dim_is_const(dims, map->offset, &out->offset) ||
        (out->size != 1 && !attention_layout_is_one(dims, column.stride)))
        return false;
    out->batch = batch.size;
    out->sequence = row.size;
    if (out->heads == 1)
        out->step = out->size;
    return out->step >= out->size && out->offset + (out->heads - 1) * out->step + out->size <= out->width;
}

bool attention_layout_find_heads(const attention_side *side, const lead_list *list, int32_t n_batch,
                                 head_rows *out)
{
    return attention_layout_find_rows(side->value->graph->module->dims, side, list, n_batch, true, out);
}

static bool try_split(const attention_side *sides, const lead_list *lists, int32_t n_batch,
                      attention_layout *out)
{
    grt_dims *dims = sides[Q].value->graph->module->dims;
    grt_dim batch = grt_dim_const(dims, 1), heads = batch;
    for (int32_t i = 0; i < lists[Q].n; i++) {
        grt_dim *product = i < n_batch ? &batch : &heads;
        *product = grt_dim_mul(dims, *product, lists[Q].parts[i].size);
    }
    *out = (attention_layout){.n_batch = n_batch, .batch = batch, .heads = heads, .in_rows = true};
    for (int32_t i = 0; i < SIDES && out->in_rows; i++)
        out->in_rows = attention_layout_find_rows(dims, &sides[i], &lists[i], n_batch, i != Q, &out->rows[i]);
    const head_rows *q = &out->rows[Q], *k = &out->rows[K], *v = &out->rows[V];
    out->in_rows = out->in_rows && k->heads == v->heads && k->heads > 0 && q->heads % k->heads == 0 &&
                   q->size == k->size && q->batch == k->batch && k->batch == v->batch &&
                   k->sequence == v->sequence;
    return out->in_rows;
}

bool attention_layout_is_joined(const attention_layout *layout)
{
    const head_rows *r = layout->rows;
    const int64_t size = r[Q].size;
    return layout->in_rows && r[Q].source == r[K].source && r[K].source == r[V].source && r[V].size == size &&
           r[Q].sequence == r[K].sequence && r[Q].sequence_first == r[K].sequence_first &&
           r[K].sequence_first == r[V].sequence_first && r[Q].step == size && r[K].step == size &&
           r[V].step == size && r[Q].offset == 0 && r[K].offset == r[Q].heads * size &&
           r[V].offset == (r[Q].heads + r[K].heads) * size &&
           r[Q].width == (r[Q].heads + 2 * r[K].heads) * size;
}

/* A constant with elements: where a dim is 0, the others are only claimed. */
static bool attention_layout_is_plain(const ir_value *value, int32_t rank)
{
    return value && value->type.data && !value->producer && !value->is_input && value->type.rank == rank &&
           grt_tensor_elements(value->type.data) > 0;
}

bool attention_projection_of(const ir_value *source, attention_projection *out)
{
    *out = (attention_projection){0};
    const ir_node *add = rewrite_producer(source, "Add");
    for (int32_t i = 0; add && i < 2; i++)
        if (attention_layout_is_plain(ir_in(add, i), 1)) {
            out->bias = ir_in(add, i);
            source = ir_in(add, 1 - i);
        }
    out->product = rewrite_producer(source, "MatMul");
    return (!add || out->bias) && out->product && attention_layout_is_plain(ir_in(out->product, 1), 2);
}

bool attention_layout_is_sortable(const attention_layout *layout, attention_projection *out)
{
    const head_rows *q = &layout->rows[Q], *k = &layout->rows[K], *v = &layout->rows[V];
    const ir_value *source = q->source;
    if (!layout->in_rows || k->source != source || v->source != source || q->heads < 2 ||
        q->size != k->size || v->size != q->size || q->heads != k->heads || q->step != 3 * q->size ||
        k->step != q->step || v->step != q->step || q->offset != 0 || k->offset != q->size ||
        v->offset != 2 * q->size || q->width != q->heads * q->step)
        return false;
    return attention_projection_of(source, out);
}

bool attention_layout_is_bare(const head_rows *rows)
{
    return rows->offset == 0 && rows->step == rows->size && rows->width == rows->heads * rows->size;
}

/* True if the value is made of one whose rows the model has put sequence first, by products and biases that
 * take each row alike: a Transpose of it cancels (pass `row_moves`). */
static bool was_batch_first(const ir_value *value)
{
    enum { MOST_STEPS = 6 };
    for (int32_t i = 0; i < MOST_STEPS && value->producer; i++) {
        const ir_node *node = value->producer;
        size_t n;
        const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
        if (rewrite_is(node, "Transpose"))
            return perm && n == 3 && perm[0] == 1 && perm[1] == 0;
        int32_t rows = -1;
        if (rewrite_is(node, "MatMul") && attention_layout_is_plain(ir_in(node, 1), 2))
            rows = 0;
        for (int32_t k = 0; k < 2 && rewrite_is(node, "Add"); k++)
            if (attention_layout_is_plain(ir_in(node, 1 - k), 1))
                rows = k;
        if (rows < 0)
            return false;
        value = ir_in(node, rows);
    }
    return false;
}

bool attention_layout_is_turned(const grt_dims *dims, const attention_layout *layout)
{
    const head_rows *q = &layout->rows[Q];
    return attention_layout_is_joined(layout) && q->sequence_first &&
           grt_dim_is_const(dims, q->batch, NULL) && !was_batch_first(q->source);
}

/* Moves of elements that inputs in rows need. */
static int32_t moves_in_rows(const attention_layout *layout, int32_t usual)
{
    const head_rows *r = layout->rows;
    attention_projection projection;
    int32_t n = layout->n_batch > usual && r[Q].heads == 1; /* the model moves the result */
    if (attention_layout_is_joined(layout) || attention_layout_is_sortable(layout, &projection))
        return n + r[Q].sequence_first;
    for (int32_t i = 0; i < SIDES; i++)
        n += !attention_layout_is_bare(&r[i]) + (!r[i].sequence_first           ? 0
                                                 : was_batch_first(r[i].source) ? -1
                                                                                : 1);
    return n;
}

/* Moves that the model's own values need as [batch, heads, sequence, size], the result's included. */
static int32_t moves_apart(grt_dims *dims, const attention_side *sides)
{
    int32_t n = 1;
    for (int32_t i = 0; i < SIDES; i++)
        n += !index_map_is_whole(dims, &sides[i].map);
    return n;
}

/* How many parts are the batch where dims are split as the model has them: heads are the last of them. */
static int32_t usual_split(const attention_side *sides, const lead_list *lists)
{
    int32_t n = 0;
    while (n < lists[Q].n && lists[Q].parts[n].axis < sides[Q].map.rank - 3)
        n++;
    return n;
}

bool attention_layout_keep(const attention_side *sides, const lead_list *lists, attention_layout *out)
{
    const int32_t usual = usual_split(sides, lists);
    return try_split(sides, lists, usual, out) &&
           moves_in_rows(out, usual) < moves_apart(sides[Q].value->graph->module->dims, sides);
}

void attention_layout_choose(const attention_side *sides, const lead_list *lists, attention_layout *out)
{
    attention_layout tried;
    grt_dims *dims = sides[Q].value->graph->module->dims;
    const int32_t usual = usual_split(sides, lists);
    int32_t fewest = moves_apart(dims, sides);
    try_split(sides, lists, usual, out);
    out->in_rows = false;
    for (int32_t n = lists[Q].n; n >= 0; n--) {
        const int32_t n_batch = n == lists[Q].n ? usual : n < usual ? n : n + 1;
        if (!try_split(sides, lists, n_batch, &tried))
            continue;
        const int32_t moves = moves_in_rows(&tried, usual);
        if (moves < fewest) {
            fewest = moves;
            *out = tried;
        }
    }
}

/* True if some of the first n_batch parts are repeated and others not. */
static bool repeats_batch(const grt_dims *dims, const lead_list *list, int32_t n_batch)
{
    int32_t repeated = 0;
    for (int32_t i = 0; i < n_batch; i++)
        repeated += grt_dim_equals(dims, list->parts[i].stride, 0);
    return repeated != 0 && repeated != n_batch;
}

void attention_layout_spread(const attention_side *sides, const lead_list *lists, const lead_list *terms,
                             int32_t n, attention_layout *layout)
{
    int32_t n_batch = layout->n_batch;
    for (int32_t i = 0; i < n; i++)
        while (repeats_batch(sides[Q].value->graph->module->dims, &terms[i], n_batch))
            n_batch--;
    if (layout->in_rows || n_batch == layout->n_batch)
        return;
    try_split(sides, lists, n_batch, layout);
    layout->in_rows = false;
}
