/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ops/contrib_attend.h"

grt_status attend_begin(ir_node *node, attend *out)
{
    GRT_TRY(foreign_need(node, 0, "the query"));
    const int64_t heads = grt_attr_int(&node->desc, "num_heads", 0);
    if (heads < 1 || heads > INT32_MAX)
        return foreign_invalid(node, "attribute num_heads is %lld; it must be at least 1 and below 2^31",
                               (long long)heads);
    *out = (attend){.node = node,
                    .q_heads = heads,
                    .kv_heads = heads,
                    .scale = (double)grt_attr_float(&node->desc, "scale", 0),
                    .dtype = ir_in(node, 0)->type.dtype};
    if (!out->dtype)
        return foreign_unsupported(node, "the dtype of input 0 must be known to the compiler");
    return GRT_OK;
}

grt_status attend_split(attend *a, ir_value *qkv, const int64_t sizes[3])
{
    ir_node *node = a->node;
    ir_value *in[] = {qkv, sizes[0] ? put_ints(node, sizes, 3) : NULL};
    ir_node *split = ir_node_create(node->graph, node, "", "Split", node->desc.name, in[1] ? 2 : 1, in, 3);
    if (!split)
        return grt_fail_memory(0);
    ir_attr_set_int(split, "axis", -1);
    if (!in[1])
        ir_attr_set_int(split, "num_outputs", 3);
    a->q = split->out[0];
    a->k = split->out[1];
    a->v = split->out[2];
    return GRT_OK;
}

ir_value *attend_heads(ir_node *node, ir_value *x, int64_t heads)
{
    const int64_t apart[] = {0, 0, heads, -1};
    static const int64_t perm[] = {0, 2, 1, 3};
    return put_transpose(node, put_reshape(node, x, apart, 4), perm, 4);
}

void attend_share(attend *a, ir_value *length)
{
    static const int64_t one[] = {1}, none[] = {0};
    ir_node *node = a->node;
    a->held = put_reshape(node, put_cast(node, length, GRT_DTYPE_INT64), one, 1);
    a->room_k = a->past_k;
    a->room_v = a->past_v;
    a->past_k = put_slice(node, a->room_k, 2, put_ints(node, none, 1), a->held);
    a->past_v = put_slice(node, a->room_v, 2, put_ints(node, none, 1), a->held);
}

void attend_redirect(attend *a, ir_value *indirection)
{
    static const int64_t none[] = {0}, column[] = {-1, 1, 1};
    ir_node *node = a->node;
    ir_value *positions = put_dim(node, a->past_k, 2), *one = put_ints(node, (int64_t[]){1}, 1);
    ir_value *wide = put_cast(node, indirection, GRT_DTYPE_INT64);
    ir_value *beams = put_slice(node, wide, 2, put_ints(node, none, 1), positions);
    ir_value *batch = put_squeeze(node, put_dim(node, indirection, 0), none, 1);
    ir_value *first = put2(node, "Mul", put_range(node, batch), put_dim(node, indirection, 1));
    ir_value *rows = put2(node, "Add", beams, put_reshape(node, first, column, 3));
    ir_value *dims = put_concat(node, 0, 4, (ir_value *[]){put_dim(node, a->past_k, 0), one, positions, one});
    rows = put2(node, "Reshape", rows, dims);
    ir_value **both[] = {&a->past_k, &a->past_v};
    for (int i = 0; i < 2; i++) {
        ir_value *all = put2(node, "Expand", rows, put1(node, "Shape", *both[i]));
        *both[i] = with_int(put2(node, "GatherElements", *both[i], all), "axis", 0);
    }
}

/* The cache with the new keys, or values, behind the past. */
static ir_value *written(const attend *a, ir_value *room, ir_value *fresh)
{
    ir_node *node = a->node;
    ir_value *heads = a->split ? fresh : attend_heads(node, fresh, a->kv_heads);
    ir_value *at = put2(node, "Expand", a->held, put_dim(node, room, 0));
    return with_int(put3(node, "TensorScatter", room, heads, at), "axis", 2);
}

/* Past and present sequence together, int64[1]: of the keys that a query may see. */
static ir_value *attend_total(const attend *a)
{
    ir_value *fresh = put_dim(a->node, a->k, a->split ? 2 : 1);
    return a->past_k ? put2(a->node, "Add", put_dim(a->node, a->past_k, 2), fresh) : fresh;
}

static ir_value *contrib_attend_scalar_of(ir_node *node, ir_value *one)
{
    return put_squeeze(node, one, (int64_t[]){0}, 1);
}

/* True if a vector's length is certainly the batch size. */
static bool is_per_batch(const ir_node *node, const ir_value *vector)
{
    int64_t n, batch;
    const ir_value *query = ir_in(node, 0);
    return query->type.rank > 0 &&
           (vector->type.dims[0] == query->type.dims[0] ||
            (foreign_dim(vector, 0, &n) && foreign_dim(query, 0, &batch) && n == batch));
}

/* Lengths [batch], or ends [batch] and starts [batch] one behind the other: the keys between are seen. The
 * mask is [batch, 1, 1, total]. */
static ir_value *mask_of_lengths(attend *a, ir_value *lengths)
{
    static const int64_t apart[] = {-1, 1, 1, 1};
    ir_node *node = a->node;
    ir_value *batch = put_dim(node, a->q, 0), *zero = put_ints(node, (int64_t[]){0}, 1);
    ir_value *wide = put_cast(node, lengths, GRT_DTYPE_INT64);
    ir_value *ends = put_reshape(node, put_slice(node, wide, 0, zero, batch), apart, 4);
    ir_value *keys = put_range(node, contrib_attend_scalar_of(node, attend_total(a)));
    ir_value *shown = put2(node, "Less", keys, ends);
    if (is_per_batch(node, lengths))
        return shown;
    /* Zeros behind, so that there are starts where the vector has none. */
    ir_value *padded = put_concat(node, 0, 2, (ir_value *[]){wide, put2(node, "Expand", zero, batch)});
    ir_value *starts =
        put_reshape(node, put_slice(node, padded, 0, batch, put2(node, "Add", batch, batch)), apart, 4);
    return put2(node, "And", shown, put2(node, "GreaterOrEqual", keys, starts));
}

/* [batch, 1, largest, largest]: the rows of the queries, the columns of the keys. */
static ir_value *mask_of_square(attend *a, ir_value *mask)
{
    ir_node *node = a->node;
    ir_value *total = attend_total(a), *zero = put_ints(node, (int64_t[]){0}, 1);
    ir_value *first = put2(node, "Sub", total, put_dim(node, a->q, a->split ? 2 : 1));
    return put_slice(node, put_slice(node, mask, 2, first, total), 3, zero, total);
}

/* What is seen, as bool, in a form that broadcasts to [batch, heads, sequence, total]; NULL: all. */
static grt_status seen(attend *a, int32_t index, ir_value **out)
{
    static const int64_t two[] = {1, 2}, one[] = {1};
    ir_node *node = a->node;
    ir_value *mask = ir_in(node, index);
    int64_t n;
    *out = NULL;
    if (!mask)
        return GRT_OK;
    GRT_TRY(foreign_need_rank(node, index, "the mask"));
    if (!mask->type.dtype)
        return foreign_unsupported(node, "the dtype of the mask must be known to the compiler");
    const int32_t rank = mask->type.rank;
    if (rank == 1) {
        *out = mask_of_lengths(a, mask);
        return GRT_OK;
    }
    if (rank < 2 || rank > 4)
        return foreign_invalid(node, "the mask has rank %d; it must be 1 to 4", rank);
    if (rank == 2 && foreign_dim(mask, 1, &n) && n == 1) /* what is written for "no mask" */
        return GRT_OK;
    ir_value *wide = rank == 2   ? put_unsqueeze(node, mask, two, 2)
                     : rank == 3 ? put_unsqueeze(node, mask, one, 1)
                                 : mask_of_square(a, mask);
    if (mask->type.dtype == GRT_DTYPE_BOOL)
        *out = wide;
    else
        *out = put2(node, "Greater", wide, put_scalar(node, mask->type.dtype, 0));
    return GRT_OK;
}

grt_status attend_mask(attend *a, int32_t index, int32_t bias)
{
    ir_node *node = a->node;
    ir_value *shown;
    GRT_TRY(seen(a, index, &shown));
    a->mask = bias < 0 ? NULL : ir_in(node, bias);
    if (!shown)
        return GRT_OK;
    /* Not minus infinity: where all keys are hidden, all are seen alike. */
    const double hidden = (double)grt_attr_float(&node->desc, "mask_filter_value", -10000.0f);
    ir_value *added =
        put3(node, "Where", shown, put_scalar(node, a->dtype, 0), put_scalar(node, a->dtype, hidden));
    a->mask = a->mask ? put2(node, "Add", added, a->mask) : added;
    return GRT_OK;
}

grt_status attend_put(attend *a, int32_t outputs)
{
    static const int64_t perm[] = {0, 2, 1, 3}, joined[] = {0, 0, -1};
    ir_node *node = a->node;
    ir_value *in[] = {a->q, a->k, a->v, a->mask, a->past_k, a->past_v};
    const int32_t n_in = a->past_k ? 6 : a->mask ? 4 : 3;
    ir_node *made = ir_node_create(node->graph, node, "", "Attention", node->desc.name, n_in, in, outputs);
    if (!made)
        return grt_fail_memory(0);
    if (!a->split) {
        ir_attr_set_int(made, "q_num_heads", a->q_heads);
        ir_attr_set_int(made, "kv_num_heads", a->kv_heads);
    }
    if (a->scale != 0)
        ir_attr_set_float(made, "scale", (float)a->scale);
    if (a->softcap != 0)
        ir_attr_set_float(made, "softcap", (float)a->softcap);
    if (a->causal)
        ir_attr_set_int(made, "is_causal", 1);
    a->y = made->out[0];
    if (a->split)
        a->y = put_reshape(node, put_transpose(node, a->y, perm, 4), joined, 3);
    a->present_k = outputs < 2 ? NULL : a->room_k ? written(a, a->room_k, a->k) : made->out[1];
    a->present_v = outputs < 3 ? NULL : a->room_v ? written(a, a->room_v, a->v) : made->out[2];
    a->qk = outputs > 3 ? made->out[3] : NULL;
    return GRT_OK;
}
