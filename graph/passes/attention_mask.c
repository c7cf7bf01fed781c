/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/attention_mask.h"

#include "graph/passes/rewrite.h"

#include <math.h>

#define NOTHING_LEFT (-1e30)

bool attention_term_map(const attention_term *term, index_map *map)
{
    grt_dims *dims = term->value->graph->module->dims;
    return term->scores->rank >= term->value->type.rank && index_map_of(term->value, map, NULL) &&
           index_map_expand(dims, map, term->scores->rank, term->scores->dims);
}

static ir_node *attention_mask_add_node(ir_node *before, const char *op, int32_t n_in, ir_value *const *in)
{
    ir_node *node = ir_node_create(before->graph, before, "", op, before->desc.name, n_in, in, 1);
    return node;
}

static ir_value *inferred(ir_node *node)
{
    return node && op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

typedef struct broadcast {
    grt_dim dims[4]; /* [batch, heads, queries, keys], 1 where the term is the same for all */
    bool mixed;      /* one of the first two holds parts of both kinds */
} broadcast;

static void add_parts(grt_dims *dims, const index_part *parts, int32_t n, grt_dim *out, bool *mixed)
{
    int32_t repeated = 0;
    grt_dim all = grt_dim_const(dims, 1);
    for (int32_t i = 0; i < n; i++) {
        repeated += grt_dim_equals(dims, parts[i].stride, 0);
        all = grt_dim_mul(dims, all, parts[i].size);
    }
    *mixed |= repeated != 0 && repeated != n;
    *out = repeated == n ? grt_dim_const(dims, 1) : all;
}

static void find_broadcast(grt_dims *dims, const index_map *map, const lead_list *list, int32_t n_batch,
                           broadcast *out)
{
    index_part row;
    *out = (broadcast){0};
    add_parts(dims, list->parts, n_batch, &out->dims[0], &out->mixed);
    add_parts(dims, list->parts + n_batch, list->n - n_batch, &out->dims[1], &out->mixed);
    const bool same = index_map_single(dims, map, map->rank - 2, &row) && grt_dim_equals(dims, row.stride, 0);
    out->dims[2] = same ? grt_dim_const(dims, 1) : GRT_DIM_NONE;
}

/* The source of the map, if the value is that, in order, repeated or not. */
static ir_value *whole_source(grt_dims *dims, const index_map *map)
{
    index_map kept = *map;
    kept.n = 0;
    for (int32_t i = 0; i < map->n; i++)
        if (!grt_dim_equals(dims, map->parts[i].stride, 0))
            kept.parts[kept.n++] = map->parts[i];
    return index_map_is_whole(dims, &kept) ? map->source : NULL;
}

/* One dim of the value as int64[1]. */
static ir_value *attention_mask_size_of(ir_node *before, ir_value *x, int32_t axis)
{
    ir_node *shape = attention_mask_add_node(before, "Shape", 1, &x);
    if (!shape)
        return NULL;
    ir_attr_set_int(shape, "start", axis);
    ir_attr_set_int(shape, "end", axis + 1);
    return inferred(shape);
}

/* The size as int64[1]: a constant, or a dim of a model input. NULL if it is neither. */
static ir_value *attention_mask_size(ir_node *before, grt_dim dim)
{
    const ir_graph *graph = before->graph;
    int64_t value;
    if (grt_dim_is_const(graph->module->dims, dim, &value))
        return ir_constant_ints(before->graph, before->desc.name, &value, 1);
    for (int32_t i = 0; graph == graph->module->main && i < graph->n_inputs; i++) {
        ir_value *input = graph->inputs[i];
        for (int32_t k = 0; input->type.kind == GRT_KIND_TENSOR && k < input->type.rank; k++)
            if (input->type.dims[k] == dim)
                return attention_mask_size_of(before, input, k);
    }
    return NULL;
}

/* `op` of x and a list of sizes, which are int64[1] each. */
static ir_value *attention_mask_of_shape(ir_node *before, const char *op, ir_value *x, ir_value *const *sizes,
                                         int32_t n)
{
    ir_node *list = attention_mask_add_node(before, "Concat", n, sizes);
    if (!list)
        return NULL;
    ir_attr_set_int(list, "axis", 0);
    ir_value *shape = inferred(list);
    return shape ? inferred(attention_mask_add_node(before, op, 2, (ir_value *[]){x, shape})) : NULL;
}

/* The size of a dim of the scores as int64[1]: that of the keys is the rows of values. */
static ir_value *size_of_scores(ir_node *before, const attention_match *m, const ir_type *scores,
                                int32_t axis)
{
    ir_value *size = attention_mask_size(before, scores->dims[axis]);
    ir_value *values = ir_in(m->last, m->weights.flipped ? 0 : 1);
    if (size || axis != scores->rank - 1)
        return size;
    return attention_mask_size_of(before, values, values->type.rank - (m->weights.flipped ? 1 : 2));
}

/* The value with the scores' size where it has a size of its own: broadcast to it, which changes nothing
 * where it is equal, and given it, which holds in every run that is valid in the model. */
static ir_value *settled(ir_node *before, const attention_match *m, const attention_term *term)
{
    const int32_t rank = term->value->type.rank, more = term->scores->rank - rank;
    const grt_dims *dims = before->graph->module->dims;
    ir_value *wide[GRT_MAX_RANK], *shape[GRT_MAX_RANK], *one = NULL, *x = term->value;
    bool own = false;
    for (int32_t i = 0; i < rank; i++) {
        const grt_dim dim = term->value->type.dims[i];
        wide[i] = NULL;
        if (dim == term->scores->dims[more + i] || grt_dim_equals(dims, dim, 1))
            continue;
        own = true;
        wide[i] = size_of_scores(before, m, term->scores, more + i);
        if (!wide[i])
            return NULL;
    }
    if (!own)
        return term->value;
    one = ir_constant_ints(before->graph, before->desc.name, (int64_t[]){1}, 1);
    for (int32_t i = 0; i < rank; i++)
        if (!(shape[i] = wide[i] ? wide[i] : one))
            return NULL;
    x = attention_mask_of_shape(before, "Expand", x, shape, rank);
    for (int32_t i = 0; i < rank && x; i++)
        if (!(shape[i] = wide[i] ? wide[i] : attention_mask_size_of(before, x, i)))
            return NULL;
    return x ? attention_mask_of_shape(before, "Reshape", x, shape, rank) : NULL;
}

void attention_mask_settle(ir_node *before, attention_match *m)
{
    for (int32_t i = 0; i < m->n_terms; i++) {
        attention_term *term = &m->term[i];
        const bool fits = term->value->type.rank >= 0 && term->value->type.rank <= term->scores->rank;
        ir_value *value = fits ? settled(before, m, term) : NULL;
        term->value = value ? value : term->value;
    }
}

/* The dims as a list; NULL if that cannot be written. */
static ir_value *attention_mask_shape(ir_node *before, const ir_type *type)
{
    int64_t shape[GRT_MAX_RANK];
    int32_t known = 0;
    ir_value *parts[GRT_MAX_RANK];
    while (known < type->rank &&
           grt_dim_is_const(before->graph->module->dims, type->dims[known], &shape[known]))
        known++;
    if (known == type->rank)
        return ir_constant_ints(before->graph, before->desc.name, shape, type->rank);
    for (int32_t i = 0; i < type->rank; i++)
        if (!(parts[i] = attention_mask_size(before, type->dims[i])))
            return NULL;
    ir_node *list = attention_mask_add_node(before, "Concat", type->rank, parts);
    if (!list)
        return NULL;
    ir_attr_set_int(list, "axis", 0);
    return inferred(list);
}

/* The value broadcast to all of the scores that it is added to. */
static ir_value *expanded(ir_node *before, ir_value *value, const ir_type *scores)
{
    ir_value *shape = attention_mask_shape(before, scores);
    return shape ? inferred(attention_mask_add_node(before, "Expand", 2, (ir_value *[]){value, shape}))
                 : NULL;
}

/* True if the value's last dims, up to four, are those already, or 1. */
static bool attention_mask_fits(const grt_dims *dims, const ir_type *type, const grt_dim wanted[4])
{
    if (type->rank < 2 || type->rank > 4 || type->dims[type->rank - 1] != wanted[3])
        return false;
    for (int32_t i = 0; i < type->rank; i++)
        if (type->dims[i] != wanted[4 - type->rank + i] && !grt_dim_equals(dims, type->dims[i], 1))
            return false;
    return true;
}

static bool is_repeated(const grt_dims *dims, const index_part *part)
{
    return grt_dim_equals(dims, part->stride, 0);
}

/* `source`, of which some parts of the batch or of the heads are repeated: for these parts only. wanted: what
 * it is then, [batch, heads, queries, keys]. */
static ir_value *repeated_parts(ir_node *before, ir_value *source, const lead_list *list, int32_t n_batch,
                                const grt_dim wanted[4])
{
    const grt_dims *dims = before->graph->module->dims;
    const grt_dim one = grt_dim_const(before->graph->module->dims, 1);
    grt_dim apart[GRT_MAX_RANK], wide[GRT_MAX_RANK];
    const int32_t rank = list->n + 2;
    if (rank > GRT_MAX_RANK)
        return NULL;
    for (int32_t i = 0; i < list->n; i++) {
        apart[i] = is_repeated(dims, &list->parts[i]) ? one : list->parts[i].size;
        wide[i] = wanted[i >= n_batch] == one ? one : list->parts[i].size;
    }
    for (int32_t i = 0; i < 2; i++)
        apart[list->n + i] = wide[list->n + i] = wanted[2 + i];
    ir_value *x = rewrite_reshaped(before, source, rank, apart);
    x = x ? expanded(before, x, &(ir_type){.rank = rank, .dims = wide}) : NULL;
    return x ? rewrite_reshaped(before, x, 4, wanted) : NULL;
}

/* The term's value as [batch, heads, queries, keys]. */
static ir_value *shaped(ir_node *before, const attention_term *term, const attention_layout *layout,
                        const lead_list *list, const char **why)
{
    grt_dims *dims = before->graph->module->dims;
    const ir_type *scores = term->scores;
    const grt_dim full[4] = {layout->batch, layout->heads, scores->dims[scores->rank - 2],
                             scores->dims[scores->rank - 1]};
    index_map map;
    broadcast b;
    index_part column;
    *why = "a mask's shape cannot be written";
    if (!attention_term_map(term, &map))
        return NULL;
    find_broadcast(dims, &map, list, layout->n_batch, &b);
    b.dims[2] = b.dims[2] == GRT_DIM_NONE ? full[2] : b.dims[2];
    b.dims[3] = full[3];
    const bool narrow = index_map_single(dims, &map, map.rank - 1, &column) &&
                        grt_dim_equals(dims, column.stride, 0) && !grt_dim_equals(dims, column.size, 1);
    ir_value *source = whole_source(dims, &map);
    if (!b.mixed && !narrow) {
        if (scores->rank == 4 && attention_mask_fits(dims, &term->value->type, full) &&
            !(source && attention_mask_fits(dims, &source->type, full)))
            return term->value;
        if (source && attention_mask_fits(dims, &source->type, b.dims))
            return source;
        if (source)
            return rewrite_reshaped(before, source, 4, b.dims);
    }
    ir_value *wide = source && !narrow ? repeated_parts(before, source, list, layout->n_batch, b.dims) : NULL;
    if (wide)
        return wide;
    wide = expanded(before, term->value, scores);
    return wide ? rewrite_reshaped(before, wide, 4, full) : NULL;
}

static ir_value *attention_mask_scalar(ir_node *before, grt_dtype dtype, double value)
{
    return ir_constant_scalar(before->graph, before->desc.name, dtype, value);
}

ir_value *attention_cast(ir_node *before, ir_value *x, grt_dtype dtype)
{
    if (x->type.dtype == dtype)
        return x;
    ir_node *cast = attention_mask_add_node(before, "Cast", 1, &x);
    if (!cast)
        return NULL;
    ir_attr_set_int(cast, "to", dtype);
    return inferred(cast);
}

/* What is added, in the dtype of the queries. */
static ir_value *as_term(ir_node *before, const attention_term *term, ir_value *mask, grt_dtype dtype)
{
    mask = attention_cast(before, mask, dtype);
    if (mask && term->factor != 1)
        mask = inferred(attention_mask_add_node(
            before, "Mul", 2, (ir_value *[]){mask, attention_mask_scalar(before, dtype, term->factor)}));
    return mask;
}

/* `sum` where the bool mask keeps scores. A row that is hidden altogether has equal weights in the model, as
 * scores are replaced there. Added to scores, a number must be so low that nothing is left of them: lower
 * than models write it at times, and beyond float16. */
static ir_value *selected(ir_node *before, const attention_term *term, ir_value *mask, ir_value *sum,
                          grt_dtype dtype)
{
    const double low = term->hidden * term->factor;
    const bool widen = dtype == GRT_DTYPE_FLOAT16 && isfinite(low);
    const grt_dtype wide = sum && sum->type.dtype != dtype ? sum->type.dtype
                           : widen                         ? GRT_DTYPE_FLOAT
                                                           : dtype;
    ir_value *hidden =
        attention_mask_scalar(before, wide, isfinite(low) && low > NOTHING_LEFT ? NOTHING_LEFT : low);
    ir_value *kept = sum ? attention_cast(before, sum, wide) : attention_mask_scalar(before, wide, 0);
    if (!hidden || !kept)
        return NULL;
    return inferred(attention_mask_add_node(
        before, "Where", 3,
        (ir_value *[]){mask, term->inverted ? hidden : kept, term->inverted ? kept : hidden}));
}

ir_value *attention_mask_make(ir_node *before, const attention_match *m, const attention_layout *layout,
                              const lead_list *lists, grt_dtype dtype, const char **why)
{
    /* The least sum is a number of float32, with which a row that is hidden altogether has weights. */
    const grt_dtype of_terms = isfinite(m->least) && dtype == GRT_DTYPE_FLOAT16 ? GRT_DTYPE_FLOAT : dtype;
    ir_value *sum = NULL;
    for (int32_t keep = 0; keep < 2; keep++)
        for (int32_t i = m->n_terms - 1; i >= 0; i--) {
            const attention_term *t = &m->term[i];
            if (t->keep != (keep != 0))
                continue;
            ir_value *mask = shaped(before, t, layout, &lists[i], why);
            ir_value *term = mask && !keep ? as_term(before, t, mask, of_terms) : mask;
            if (!term)
                return NULL;
            if (keep)
                sum = selected(before, t, mask, sum, dtype);
            else
                sum = sum ? inferred(attention_mask_add_node(before, "Add", 2, (ir_value *[]){sum, term}))
                          : term;
            if (!sum)
                return NULL;
        }
    if (sum && isfinite(m->least))
        sum = inferred(attention_mask_add_node(
            before, "Max", 2, (ir_value *[]){sum, attention_mask_scalar(before, sum->type.dtype, m->least)}));
    return sum;
}
