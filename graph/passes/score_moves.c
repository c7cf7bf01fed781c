/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/score_moves.h"

#include "graph/passes/rewrite.h"

#include <string.h>

static bool has_same_last(const ir_type *a, const ir_type *b, int32_t n)
{
    if (a->rank < n || b->rank < n)
        return false;
    for (int32_t i = 1; i <= n; i++)
        if (a->dims[a->rank - i] != b->dims[b->rank - i])
            return false;
    return true;
}

static const int64_t *perm_of(const ir_node *node)
{
    size_t n;
    const int64_t *perm = rewrite_is(node, "Transpose") ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    return perm && (int32_t)n == node->out[0]->type.rank ? perm : NULL;
}

ir_value *score_moves_before(const ir_value *value, score_moves *moves)
{
    ir_node *node = value->producer;
    ir_value *x = ir_in(node, 0);
    if (!x || node->n_out != 1 || x->graph != value->graph || !has_same_last(&x->type, &value->type, 1))
        return NULL;
    const int32_t rank = value->type.rank;
    const int64_t *perm = perm_of(node);
    const bool view = rewrite_is_reshape(node), mixed = !view || !has_same_last(&x->type, &value->type, 2);
    if (rank < 2 || x->type.rank < 2 || !(view || (perm && perm[rank - 1] == rank - 1)))
        return NULL;
    if (moves) {
        if (moves->n == SCORE_MOVES)
            return NULL;
        moves->nodes[moves->n++] = node;
        moves->mixed |= mixed;
    }
    return x;
}

/* ---- nodes ---- */

static ir_value *score_moves_applied(ir_node *before, const ir_node *move, ir_value *x)
{
    const ir_type *out = &move->out[0]->type;
    const int64_t *perm = perm_of(move);
    if (perm) {
        ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &x, 1);
        if (!node || x->type.rank != out->rank)
            return NULL;
        ir_attr_set_ints(node, "perm", perm, (size_t)out->rank);
        return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
    }
    grt_dim dims[GRT_MAX_RANK];
    memcpy(dims, out->dims, (size_t)out->rank * sizeof *dims);
    dims[out->rank - 1] = x->type.dims[x->type.rank - 1];
    return rewrite_reshaped(before, x, out->rank, dims);
}

ir_value *score_moves_apply(ir_node *before, const score_moves *moves, ir_value *x)
{
    for (int32_t i = moves->n - 1; i >= 0 && x; i--)
        x = score_moves_applied(before, moves->nodes[i], x);
    return x;
}

/* ---- maps ---- */

static grt_dim size_of_axis(grt_dims *dims, const index_map *map, int32_t axis)
{
    grt_dim size = grt_dim_const(dims, 1);
    for (int32_t i = 0; i < map->n; i++)
        if (map->parts[i].axis == axis)
            size = grt_dim_mul(dims, size, map->parts[i].size);
    return size;
}

/* [leading..., sequence, size] -> [leading..., rows, sequence, size], the same for all rows. */
static bool score_moves_add_rows(grt_dims *dims, index_map *map, grt_dim rows)
{
    index_map made = {.source = map->source, .offset = map->offset, .rank = map->rank + 1};
    const int32_t axis = map->rank - 2;
    const bool one = grt_dim_equals(dims, rows, 1);
    if (axis < 0 || map->n + 1 > INDEX_MAP_PARTS || made.rank > GRT_MAX_RANK)
        return false;
    for (int32_t i = 0; i < map->n; i++) {
        index_part part = map->parts[i];
        if (!one && part.axis >= axis && (i == 0 || map->parts[i - 1].axis < axis))
            made.parts[made.n++] = (index_part){rows, grt_dim_const(dims, 0), axis};
        part.axis += part.axis >= axis;
        made.parts[made.n++] = part;
    }
    if (!one && (map->n == 0 || map->parts[map->n - 1].axis < axis))
        made.parts[made.n++] = (index_part){rows, grt_dim_const(dims, 0), axis};
    *map = made;
    return true;
}

/* [leading..., rows, sequence, size] -> [leading..., sequence, size]; false if the rows differ. */
static bool drop_rows(grt_dims *dims, index_map *map)
{
    const int32_t axis = map->rank - 3;
    int32_t n = 0;
    if (axis < 0)
        return false;
    for (int32_t i = 0; i < map->n; i++) {
        index_part part = map->parts[i];
        if (part.axis == axis) {
            if (!grt_dim_equals(dims, part.stride, 0))
                return false;
            continue;
        }
        part.axis -= part.axis > axis;
        map->parts[n++] = part;
    }
    map->n = n;
    map->rank--;
    return true;
}

/* The rows' dims of `to`, and the last two of the map. */
static bool score_moves_reshape(grt_dims *dims, index_map *map, const ir_type *to)
{
    grt_dim wanted[GRT_MAX_RANK];
    if (to->rank + 1 > GRT_MAX_RANK)
        return false;
    memcpy(wanted, to->dims, (size_t)(to->rank - 1) * sizeof *wanted);
    wanted[to->rank - 1] = size_of_axis(dims, map, map->rank - 2);
    wanted[to->rank] = size_of_axis(dims, map, map->rank - 1);
    return index_map_reshape(dims, map, to->rank + 1, wanted);
}

/* The map of rows and matrices behind a node that moves the rows, or in front of it. */
static bool score_moves_map(grt_dims *dims, const ir_node *move, bool back, index_map *map)
{
    const int64_t *perm = perm_of(move);
    int64_t wide[GRT_MAX_RANK];
    const int32_t rank = move->out[0]->type.rank;
    if (!perm)
        return score_moves_reshape(dims, map, back ? &ir_in(move, 0)->type : &move->out[0]->type);
    if (map->rank != rank + 1 || rank + 1 > GRT_MAX_RANK)
        return false;
    for (int32_t i = 0; i < rank; i++)
        wide[back ? perm[i] : i] = back ? i : perm[i];
    wide[rank] = rank;
    return index_map_transpose(map, wide);
}

bool score_moves_follow(grt_dims *dims, const score_moves *moves, grt_dim rows, index_map *map)
{
    bool ok = score_moves_add_rows(dims, map, rows);
    for (int32_t i = moves->n - 1; i >= 0 && ok; i--)
        ok = score_moves_map(dims, moves->nodes[i], false, map);
    return ok && drop_rows(dims, map);
}

bool score_moves_return(grt_dims *dims, const score_moves *moves, grt_dim rows, index_map *map)
{
    bool ok = score_moves_add_rows(dims, map, rows);
    for (int32_t i = 0; i < moves->n && ok; i++)
        ok = score_moves_map(dims, moves->nodes[i], true, map);
    return ok && drop_rows(dims, map);
}
