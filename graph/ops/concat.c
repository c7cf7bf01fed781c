/* SPDX-License-Identifier: Apache-2.0 */
/* Joining and cutting along one axis: Concat, Split.
 *
 * graphrt::Concat(part...) joins parts whose axes are exchanged first: perms has a perm of Transpose for each
 * of them, one behind the other. */
#include "graph/ops/moves.h"

#include "src/base/checked.h"

enum { MOST_MOVED = 64 }; /* parts of graphrt::Concat */

/* Content of the output if all inputs' contents are known. */
static void concat_elems(infer *inf)
{
    int64_t total = 0, n;
    const grt_dim *elems;
    for (int32_t i = 0; i < inf->n_in; i++) {
        if (!moves_elems(inf, i, &elems, &n) || total + n > MOVES_MAX_ELEMS)
            return;
        total += n;
    }
    grt_dim *all = infer_dims(inf, (int32_t)total);
    int64_t at = 0;
    for (int32_t i = 0; all && i < inf->n_in; i++)
        if (moves_elems(inf, i, &elems, &n))
            for (int64_t k = 0; k < n; k++)
                all[at++] = elems[k];
    moves_set_elems(inf, 0, all, total);
}

/* Dim `k`, which is not the axis, is the same in all inputs: take what says most. */
static grt_status concat_merge(infer *inf, int32_t i, int32_t k, grt_dim *dim)
{
    int64_t x, y;
    grt_dim other = inf->in[i]->dims[k];
    bool known = infer_const(inf, *dim, &x);
    if (!infer_const(inf, other, &y))
        return GRT_OK;
    if (known && x != y)
        return infer_fail(inf, "input %d has size %lld in dim %d, the inputs before it have %lld", i,
                          (long long)y, k, (long long)x);
    *dim = other;
    return GRT_OK;
}

static grt_status infer_concat(infer *inf)
{
    const ir_type *known = NULL;
    bool all = true;
    for (int32_t i = 0; i < inf->n_in; i++) {
        if (!inf->in[i])
            return infer_fail(inf, "input %d is missing", i);
        GRT_TRY(infer_same_dtype(inf, 0, i));
        if (inf->in[i]->rank >= 0 && known && inf->in[i]->rank != known->rank)
            return infer_fail(inf, "input %d has rank %d, the inputs before it have rank %d", i,
                              inf->in[i]->rank, known->rank);
        all = all && inf->in[i]->rank >= 0;
        known = known || inf->in[i]->rank < 0 ? known : inf->in[i];
    }
    if (!known) {
        infer_set_unknown(inf, 0, inf->in[0]->dtype);
        return GRT_OK;
    }
    int32_t axis;
    GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", 0), known->rank, &axis));
    grt_dim *dims = infer_dims(inf, known->rank);
    if (!dims)
        return GRT_OK;
    for (int32_t k = 0; k < known->rank; k++)
        dims[k] = known->dims[k];
    dims[axis] = all ? grt_dim_const(inf->dims, 0) : grt_dim_fresh(inf->dims);
    for (int32_t i = 0; i < inf->n_in; i++)
        for (int32_t k = 0; k < inf->in[i]->rank; k++) {
            if (k != axis)
                GRT_TRY(concat_merge(inf, i, k, &dims[k]));
            else if (all)
                dims[axis] = grt_dim_add(inf->dims, dims[axis], inf->in[i]->dims[axis]);
        }
    infer_set(inf, 0, inf->in[0]->dtype, known->rank, dims);
    if (all && known->rank == 1)
        concat_elems(inf);
    return GRT_OK;
}

/* The inputs with their axes in the order that perms says. */
static grt_status concat_permute(const infer *inf, ir_type *types)
{
    size_t n = 0;
    const int64_t *perms = grt_attr_ints(inf->desc, "perms", &n);
    const size_t rank = n / (size_t)inf->n_in;
    if (!perms || rank * (size_t)inf->n_in != n)
        return infer_fail(inf, "attribute perms has %zu entries for %d inputs; expected as many for each", n,
                          inf->n_in);
    for (int32_t i = 0; i < inf->n_in; i++) {
        if (!inf->in[i])
            return infer_fail(inf, "input %d is missing", i);
        GRT_TRY(moves_check_perm(inf, "perms", i, perms + (size_t)i * rank, rank));
        types[i] = *inf->in[i];
        if (types[i].rank < 0)
            continue;
        if ((size_t)types[i].rank != rank)
            return infer_fail(inf, "input %d has rank %d; attribute perms has %zu entries for it", i,
                              types[i].rank, rank);
        types[i].dims = moves_permuted(inf, inf->in[i], perms + (size_t)i * rank);
        if (!types[i].dims)
            return grt_fail_memory(0);
    }
    return GRT_OK;
}

static grt_status infer_moved_concat(infer *inf)
{
    ir_type types[MOST_MOVED];
    const ir_type *in[MOST_MOVED];
    if (inf->n_in > MOST_MOVED)
        return infer_fail(inf, "there are %d inputs; at most %d are supported", inf->n_in, MOST_MOVED);
    GRT_TRY(concat_permute(inf, types));
    for (int32_t i = 0; i < inf->n_in; i++)
        in[i] = &types[i];
    infer joined = *inf;
    joined.in = in;
    return infer_concat(&joined);
}

static grt_status upgrade_concat(ir_node *node, int32_t opset)
{
    if (opset < 4 && !grt_attr_find(&node->desc, "axis"))
        ir_attr_set_int(node, "axis", 1);
    return GRT_OK;
}

/* Sizes of the outputs along the axis. */
static grt_status split_sizes(infer *inf, grt_dim whole, grt_dim *out_sizes)
{
    const grt_dim *listed;
    int64_t n = inf->n_out, total, sum = 0;
    if (infer_has(inf, 1)) {
        if (!infer_elems(inf, 1, &listed, &n)) {
            for (int32_t i = 0; i < inf->n_out; i++)
                out_sizes[i] = grt_dim_fresh(inf->dims);
            return GRT_OK;
        }
        if (n != inf->n_out)
            return infer_fail(inf, "split has %lld entries for %d outputs", (long long)n, inf->n_out);
        bool all = infer_const(inf, whole, &total);
        for (int32_t i = 0; i < inf->n_out; i++) {
            int64_t size;
            out_sizes[i] = listed[i];
            if (!infer_const(inf, listed[i], &size))
                all = false;
            else if (size < 0 || !grt_add_i64(sum, size, &sum))
                return infer_fail(inf, "split[%d] is %lld; expected a size", i, (long long)size);
        }
        if (all && sum != total)
            return infer_fail(inf, "the entries of split add up to %lld; the axis has size %lld",
                              (long long)sum, (long long)total);
        return GRT_OK;
    }
    int64_t parts = grt_attr_int(inf->desc, "num_outputs", inf->n_out);
    if (parts != inf->n_out)
        return infer_fail(inf, "attribute num_outputs is %lld; the node has %d outputs", (long long)parts,
                          inf->n_out);
    /* Equal parts, the last one smaller if need be. */
    grt_dim part = grt_dim_ceildiv(inf->dims, whole, grt_dim_const(inf->dims, parts));
    for (int32_t i = 0; i + 1 < inf->n_out; i++)
        out_sizes[i] = part;
    out_sizes[inf->n_out - 1] =
        grt_dim_mulc(inf->dims, part, parts) == whole
            ? part
            : moves_clamp(inf->dims, grt_dim_sub(inf->dims, whole, grt_dim_mulc(inf->dims, part, parts - 1)));
    return GRT_OK;
}

static void split_elems(infer *inf, const grt_dim *sizes)
{
    const grt_dim *elems;
    int64_t n, from = 0, size;
    if (!moves_elems(inf, 0, &elems, &n))
        return;
    for (int32_t i = 0; i < inf->n_out; i++, from += size) {
        if (!infer_const(inf, sizes[i], &size) || size > n - from)
            return;
        moves_set_elems(inf, i, elems + from, size);
    }
}

static grt_status concat_infer_split(infer *inf)
{
    const ir_type *data = inf->in[0];
    if (data->rank < 0) {
        for (int32_t i = 0; i < inf->n_out; i++)
            infer_set_unknown(inf, i, data->dtype);
        return GRT_OK;
    }
    int32_t axis;
    GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", 0), data->rank, &axis));
    grt_dim *sizes = infer_dims(inf, inf->n_out);
    if (!sizes)
        return GRT_OK;
    GRT_TRY(split_sizes(inf, data->dims[axis], sizes));
    for (int32_t i = 0; i < inf->n_out; i++) {
        grt_dim *dims = infer_dims(inf, data->rank);
        for (int32_t k = 0; dims && k < data->rank; k++)
            dims[k] = k == axis ? sizes[i] : data->dims[k];
        infer_set(inf, i, data->dtype, data->rank, dims);
    }
    split_elems(inf, sizes);
    return GRT_OK;
}

static grt_status upgrade_split(ir_node *node, int32_t opset)
{
    if (opset < 13)
        moves_attr_to_input(node, "split", 1);
    if (!ir_in(node, 1))
        ir_attr_set_int(node, "num_outputs", node->n_out);
    return GRT_OK;
}

static const op_attr concat_attrs[] = {{"axis", GRT_ATTR_INT, true}, {0}};
static const op_attr moved_attrs[] = {{"axis", GRT_ATTR_INT, true}, {"perms", GRT_ATTR_INTS, true}, {0}};
static const op_attr split_attrs[] = {
    {"axis", GRT_ATTR_INT, false}, {"num_outputs", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Concat",
     .since = 13,
     .min_in = 1,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = 1,
     .attrs = concat_attrs,
     .flags = OP_SMALL_INTS | OP_SINGLE,
     .precision = OP_FOLLOWS,
     .cost = OP_COST_MOVE,
     .layout = OP_LAYOUT_CONCAT,
     .batch = OP_BATCH_CONCAT,
     .infer = infer_concat,
     .upgrade = upgrade_concat},
    {.domain = "graphrt",
     .name = "Concat",
     .since = 1,
     .min_in = 1,
     .max_in = MOST_MOVED,
     .min_out = 1,
     .max_out = 1,
     .attrs = moved_attrs,
     .precision = OP_FOLLOWS,
     .cost = OP_COST_MOVE,
     .infer = infer_moved_concat},
    {.domain = "",
     .name = "Split",
     .since = 18,
     .min_in = 1,
     .max_in = 2,
     .min_out = 1,
     .max_out = OP_VARIADIC,
     .attrs = split_attrs,
     .flags = OP_SMALL_INTS | OP_PARTS,
     .precision = OP_FOLLOWS_FIRST,
     .cost = OP_COST_MOVE,
     .layout = OP_LAYOUT_SPLIT,
     .infer = concat_infer_split,
     .upgrade = upgrade_split},
};
OP_TABLE(concat, rows);
