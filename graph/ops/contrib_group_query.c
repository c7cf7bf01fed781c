/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: GroupQueryAttention and RotaryEmbedding, which decoders are made of.
 *
 * Rows of a batch may have pasts of different lengths: with S new positions, row b has seqlens_k[b] + 1 in
 * all, of which past = seqlens_k[b] + 1 - S came before (0 at the first call, where shorter rows are padded
 * behind). New keys are written into the cache at `past`; query i of row b sees keys up to past + i. That is
 * said with TensorScatter, and with a mask for Attention. */
#include "graph/ops/contrib_attend.h"
#include "graph/ops/contrib_window.h"

#include <string.h>

static const op_attr group_query_attrs[] = {
    {"causal", GRT_ATTR_INT, false},          {"do_rotary", GRT_ATTR_INT, false},
    {"k_quant_type", GRT_ATTR_STRING, false}, {"kv_cache_bit_width", GRT_ATTR_INT, false},
    {"kv_num_heads", GRT_ATTR_INT, true},     {"local_window_size", GRT_ATTR_INT, false},
    {"num_heads", GRT_ATTR_INT, true},        {"qk_norm_epsilon", GRT_ATTR_FLOAT, false},
    {"qk_output", GRT_ATTR_INT, false},       {"rotary_interleaved", GRT_ATTR_INT, false},
    {"scale", GRT_ATTR_FLOAT, false},         {"sliding_window_cache", GRT_ATTR_INT, false},
    {"smooth_softmax", GRT_ATTR_INT, false},  {"softcap", GRT_ATTR_FLOAT, false},
    {"v_quant_type", GRT_ATTR_STRING, false}, {0},
};
static const op_attr rotary_attrs[] = {
    {"interleaved", GRT_ATTR_INT, false}, {"is_packed_batching", GRT_ATTR_INT, false},
    {"num_heads", GRT_ATTR_INT, false},   {"rotary_embedding_dim", GRT_ATTR_INT, false},
    {"scale", GRT_ATTR_FLOAT, false},     {0}};

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    SEQLENS,
    TOTAL,
    COS,
    SIN,
    POSITIONS,
    BIAS,
    SINK,
    K_SCALE,
    V_SCALE,
    Q_NORM,
    K_NORM
};

typedef struct grouped {
    attend a;
    ir_value *length;    /* of the new positions, int64[1] */
    ir_value *past;      /* per row, int64[batch] */
    ir_value *positions; /* int64 [batch, sequence] */
    ir_value *total;     /* of keys, int64[1] */
    ir_value *rows;      /* the keys that belong to the new positions, int64 [batch, sequence] */
    bool windowed;       /* `window` is how the caches are held */
    kv_window window;
} grouped;

static bool contrib_group_query_is_quantised(const ir_node *node, const char *type)
{
    return strcmp(grt_attr_string(&node->desc, type, "NONE"), "NONE") != 0;
}

static grt_status contrib_group_query_check_window(const ir_node *node)
{
    if (grt_attr_int(&node->desc, "local_window_size", -1) < 1)
        return foreign_invalid(node, "attribute sliding_window_cache needs local_window_size, which is %lld",
                               (long long)grt_attr_int(&node->desc, "local_window_size", -1));
    if (ir_in(node, BIAS))
        return foreign_unsupported(node,
                                   "attention_bias together with sliding_window_cache is not supported");
    if (contrib_group_query_is_quantised(node, "k_quant_type") || grt_attr_int(&node->desc, "qk_output", 0))
        return foreign_unsupported(
            node, "quantised caches and qk_output are not supported together with sliding_window_cache");
    return foreign_need(node, PAST_KEY, "past_key, which sliding_window_cache needs");
}

static grt_status check_grouped(const ir_node *node)
{
    const int64_t bits = grt_attr_int(&node->desc, "kv_cache_bit_width", 0),
                  qk = grt_attr_int(&node->desc, "qk_output", 0);
    if (contrib_group_query_is_quantised(node, "k_quant_type") !=
        contrib_group_query_is_quantised(node, "v_quant_type"))
        return foreign_unsupported(node, "only one of the caches is quantised");
    if (contrib_group_query_is_quantised(node, "k_quant_type")) {
        GRT_TRY(foreign_need(node, K_SCALE, "k_scale"));
        GRT_TRY(foreign_need(node, V_SCALE, "v_scale"));
        if (bits != 8)
            return foreign_unsupported(node, "caches of %lld bits are not supported; use int8",
                                       (long long)bits);
    }
    if (qk < 0 || qk > 2)
        return foreign_invalid(node, "attribute qk_output is %lld; it must be 0, 1 or 2", (long long)qk);
    if (grt_attr_int(&node->desc, "sliding_window_cache", 0))
        GRT_TRY(contrib_group_query_check_window(node));
    GRT_TRY(foreign_need(node, SEQLENS, "seqlens_k"));
    GRT_TRY(foreign_need(node, TOTAL, "total_sequence_length"));
    if (!ir_in(node, PAST_KEY) != !ir_in(node, PAST_VALUE) || !ir_in(node, KEY) != !ir_in(node, VALUE) ||
        !ir_in(node, Q_NORM) != !ir_in(node, K_NORM))
        return foreign_invalid(node, "keys and values, past keys and past values, and the weights of both "
                                     "normalisations must be given together");
    return qk ? GRT_OK : foreign_refuse_output(node, 3, "the products of queries and keys, with qk_output 0");
}

/* q, k and v as [batch, heads, sequence, size]. */
static grt_status take_heads(grouped *g)
{
    attend *a = &g->a;
    ir_node *node = a->node;
    a->split = true;
    g->length = put_dim(node, ir_in(node, QUERY), 1);
    if (ir_in(node, KEY)) {
        a->q = attend_heads(node, ir_in(node, QUERY), a->q_heads);
        a->k = attend_heads(node, ir_in(node, KEY), a->kv_heads);
        a->v = attend_heads(node, ir_in(node, VALUE), a->kv_heads);
        return GRT_OK;
    }
    const int64_t counts[] = {a->q_heads, a->kv_heads, a->kv_heads};
    ir_value *all = attend_heads(node, ir_in(node, QUERY), a->q_heads + 2 * a->kv_heads);
    ir_value *in[] = {all, put_ints(node, counts, 3)};
    ir_node *split = ir_node_create(node->graph, node, "", "Split", node->desc.name, 2, in, 3);
    if (!split)
        return grt_fail_memory(0);
    ir_attr_set_int(split, "axis", 1);
    a->q = split->out[0];
    a->k = split->out[1];
    a->v = split->out[2];
    return GRT_OK;
}

/* Where each row's new positions begin, and which they are. */
static void find_positions(grouped *g)
{
    static const int64_t none[] = {0}, one[] = {1}, column[] = {-1, 1};
    ir_node *node = g->a.node;
    ir_value *lens =
        put_reshape(node, put_cast(node, ir_in(node, SEQLENS), GRT_DTYPE_INT64), (int64_t[]){-1}, 1);
    ir_value *limit = put_reshape(node, put_cast(node, ir_in(node, TOTAL), GRT_DTYPE_INT64), one, 1);
    g->total = limit;
    /* The first call is told by its having no more keys than positions. */
    ir_value *first = put2(node, "Equal", limit, g->length);
    ir_value *before = put2(node, "Sub", put2(node, "Add", lens, put_ints(node, one, 1)), g->length);
    g->past = put3(node, "Where", first, put_ints(node, none, 1), before);
    ir_value *steps = put_range(node, put_squeeze(node, g->length, none, 1));
    g->rows = g->positions = put2(node, "Add", put_reshape(node, g->past, column, 2), steps);
    if (!g->windowed)
        return;
    g->window = (kv_window){.node = node, .width = grt_attr_int(&node->desc, "local_window_size", 0)};
    kv_window_init(&g->window, ir_in(node, PAST_KEY), g->past, g->length,
                   put2(node, "Add", lens, put_ints(node, one, 1)));
    g->rows = put2(node, "Add", put_reshape(node, g->window.begin, column, 2), steps);
    g->total = g->window.keys;
}

static void normalise_heads(grouped *g)
{
    ir_node *node = g->a.node;
    ir_value **both[] = {&g->a.q, &g->a.k};
    for (int32_t i = 0; i < 2 && ir_in(node, Q_NORM); i++) {
        ir_value *y = with_int(put2(node, "RMSNormalization", *both[i], ir_in(node, Q_NORM + i)), "axis", -1);
        *both[i] = with_float(y, "epsilon", (double)grt_attr_float(&node->desc, "qk_norm_epsilon", 1e-6f));
    }
}

/* The caches have half of what is rotated in a row; all of the head, unless it is less. */
static ir_value *contrib_group_query_rotated(ir_node *node, ir_value *x, ir_value *cos, ir_value *sin,
                                             ir_value *positions, int64_t interleaved)
{
    int64_t half;
    ir_value *y = put(node, "RotaryEmbedding", 4, (ir_value *[]){x, cos, sin, positions});
    if (foreign_dim(cos, -1, &half))
        with_int(y, "rotary_embedding_dim", 2 * half);
    return with_int(y, "interleaved", interleaved);
}

static grt_status rotate_heads(grouped *g)
{
    ir_node *node = g->a.node;
    const int64_t interleaved = grt_attr_int(&node->desc, "rotary_interleaved", 0);
    if (!grt_attr_int(&node->desc, "do_rotary", 0))
        return GRT_OK;
    GRT_TRY(foreign_need(node, COS, "cos_cache"));
    GRT_TRY(foreign_need(node, SIN, "sin_cache"));
    ir_value *positions = ir_in(node, POSITIONS) ? ir_in(node, POSITIONS) : g->positions;
    g->a.q =
        contrib_group_query_rotated(node, g->a.q, ir_in(node, COS), ir_in(node, SIN), positions, interleaved);
    g->a.k =
        contrib_group_query_rotated(node, g->a.k, ir_in(node, COS), ir_in(node, SIN), positions, interleaved);
    return GRT_OK;
}

/* ---- caches of int8 ---- */

/* The scale of one number for all, or of each channel of each head. */
static ir_value *cache_scale(const grouped *g, int32_t input, const char *type)
{
    ir_node *node = g->a.node;
    const int64_t channels[] = {1, g->a.kv_heads, 1, -1};
    const bool per_channel = !strcmp(grt_attr_string(&node->desc, type, "NONE"), "PER_CHANNEL");
    return put_cast(node, put_reshape(node, ir_in(node, input), channels, per_channel ? 4 : 0), g->a.dtype);
}

static ir_value *contrib_group_query_quantise(ir_node *node, ir_value *x, ir_value *scale)
{
    ir_value *steps = put1(node, "Round", put2(node, "Div", x, scale));
    steps = put3(node, "Clip", steps, put_scalar(node, ir_in(node, QUERY)->type.dtype, -128),
                 put_scalar(node, ir_in(node, QUERY)->type.dtype, 127));
    return with_int(put1(node, "Cast", steps), "to", GRT_DTYPE_INT8);
}

static ir_value *contrib_group_query_dequantise(const grouped *g, ir_value *q, ir_value *scale)
{
    ir_node *node = g->a.node;
    return put2(node, "Mul", with_int(put1(node, "Cast", q), "to", g->a.dtype), scale);
}

/* The cache with the new keys or values. It has room for the longest row, or more, which then stays. */
static ir_value *cached(grouped *g, ir_value *past, ir_value *fresh)
{
    static const int64_t none[] = {0}, front[] = {0, 0, 0, 0, 0, 0}, back[] = {0};
    ir_node *node = g->a.node;
    if (!past)
        return fresh;
    if (g->windowed)
        return kv_window_extend(&g->window, past, fresh);
    ir_value *missing = put2(node, "Sub", g->total, put_dim(node, past, 2));
    missing = put2(node, "Max", missing, put_ints(node, none, 1));
    ir_value *pads =
        put_concat(node, 0, 3, (ir_value *[]){put_ints(node, front, 6), missing, put_ints(node, back, 1)});
    ir_value *room = put2(node, "Pad", past, pads);
    return with_int(put3(node, "TensorScatter", room, fresh, g->past), "axis", 2);
}

/* bool [batch, 1, sequence, total]: the keys that each query sees. */
static ir_value *causal_mask(const grouped *g)
{
    static const int64_t none[] = {0}, rows[] = {1, 3};
    ir_node *node = g->a.node;
    const int64_t window = grt_attr_int(&node->desc, "local_window_size", -1);
    ir_value *keys = put_range(node, put_squeeze(node, g->total, none, 1));
    ir_value *last = put_unsqueeze(node, g->rows, rows, 2);
    if (grt_attr_int(&node->desc, "causal", 1) == 0) { /* all that the row has */
        static const int64_t apart[] = {-1, 1, 1, 1};
        last = put2(node, "Sub", put2(node, "Add", put_reshape(node, g->past, apart, 4), g->length),
                    put_int(node, 1));
        return put2(node, "LessOrEqual", keys, last);
    }
    ir_value *shown = put2(node, "LessOrEqual", keys, last);
    if (window < 1)
        return shown;
    ir_value *first = put2(node, "Sub", last, put_int(node, window - 1));
    return put2(node, "And", shown, put2(node, "GreaterOrEqual", keys, first));
}

/* A key and a value of zeros behind the others: their score is 0, or the sink's. That is what a smooth
 * softmax has more in its denominator. The mask, [..., total] of floats, gets a column for it. */
static void add_sink(grouped *g)
{
    static const int64_t per_head[] = {1, -1, 1, 1}, last[] = {0, 0, 0, 0, 0, 0, 1, 0},
                         corner[] = {0, 0, 0, 0, 0, 0, 0, 1};
    ir_node *node = g->a.node;
    attend *a = &g->a;
    const grt_dtype dtype = a->dtype;
    ir_value *sink = ir_in(node, SINK), *mask = a->mask;
    a->k = put2(node, "Pad", a->k, put_ints(node, last, 8));
    a->v = put2(node, "Pad", a->v, put_ints(node, last, 8));
    if (!sink) {
        a->mask = put2(node, "Pad", mask, put_ints(node, corner, 8));
        return;
    }
    ir_value *column = put_reshape(node, put_cast(node, sink, dtype), per_head, 4);
    ir_value *rows =
        put_concat(node, 0, 4,
                   (ir_value *[]){put_dim(node, mask, 0), put_ints(node, (int64_t[]){a->q_heads}, 1),
                                  put_dim(node, mask, 2), put_ints(node, (int64_t[]){1}, 1)});
    ir_value *heads =
        put_concat(node, 0, 4,
                   (ir_value *[]){put_dim(node, mask, 0), put_ints(node, (int64_t[]){a->q_heads}, 1),
                                  put_dim(node, mask, 2), put_dim(node, mask, 3)});
    a->mask = put_concat(
        node, 3, 2, (ir_value *[]){put2(node, "Expand", mask, heads), put2(node, "Expand", column, rows)});
}

/* Keys and values up to the total: caches may have room for more. */
static grt_status mask_keys(grouped *g)
{
    static const int64_t none[] = {0};
    ir_node *node = g->a.node;
    attend *a = &g->a;
    const bool smooth = grt_attr_int(&node->desc, "smooth_softmax", 0) > 0 || ir_in(node, SINK);
    a->mask = causal_mask(g);
    if (ir_in(node, PAST_KEY) && !g->windowed) {
        a->k = put_slice(node, a->k, 2, put_ints(node, none, 1), g->total);
        a->v = put_slice(node, a->v, 2, put_ints(node, none, 1), g->total);
    }
    if (!ir_in(node, BIAS) && !smooth)
        return GRT_OK;
    /* -inf would hide a row's all keys from it: padding rows may have none. */
    ir_value *hidden = put_scalar(node, a->dtype, a->dtype == GRT_DTYPE_FLOAT16 ? -65504.0 : -3.38e38);
    ir_value *open = ir_in(node, BIAS) ? ir_in(node, BIAS) : put_scalar(node, a->dtype, 0);
    a->mask = put3(node, "Where", a->mask, open, hidden);
    if (smooth)
        add_sink(g);
    return GRT_OK;
}

/* The caches with what is new, which attention reads: of int8, what is new is rounded for it, too. */
static void fill_caches(grouped *g, ir_value **out_key, ir_value **out_value)
{
    attend *a = &g->a;
    ir_node *node = a->node;
    if (!contrib_group_query_is_quantised(node, "k_quant_type")) {
        *out_key = a->k = cached(g, ir_in(node, PAST_KEY), a->k);
        *out_value = a->v = cached(g, ir_in(node, PAST_VALUE), a->v);
        return;
    }
    ir_value *k_scale = cache_scale(g, K_SCALE, "k_quant_type"),
             *v_scale = cache_scale(g, V_SCALE, "v_quant_type");
    *out_key = cached(g, ir_in(node, PAST_KEY), contrib_group_query_quantise(node, a->k, k_scale));
    *out_value = cached(g, ir_in(node, PAST_VALUE), contrib_group_query_quantise(node, a->v, v_scale));
    a->k = contrib_group_query_dequantise(g, *out_key, k_scale);
    a->v = contrib_group_query_dequantise(g, *out_value, v_scale);
}

/* What softmax reads (qk_output 1) or gives (2), of the keys alone; 0 where a key is hidden. */
static ir_value *products(grouped *g)
{
    static const int64_t none[] = {0};
    ir_node *node = g->a.node;
    const bool after = grt_attr_int(&node->desc, "qk_output", 0) == 2;
    ir_value *qk = g->a.qk;
    with_int(qk, "qk_matmul_output_mode", after ? 3 : 1);
    qk = put_slice(node, qk, 3, put_ints(node, none, 1), g->total);
    return after ? qk : put3(node, "Where", causal_mask(g), qk, put_scalar(node, g->a.dtype, 0));
}

static grt_status rewrite_group_query(ir_node *node)
{
    grouped g = {0};
    attend *a = &g.a;
    GRT_TRY(attend_begin(node, a));
    GRT_TRY(check_grouped(node));
    a->kv_heads = grt_attr_int(&node->desc, "kv_num_heads", 0);
    a->softcap = (double)grt_attr_float(&node->desc, "softcap", 0);
    if (a->kv_heads < 1 || a->q_heads % a->kv_heads)
        return foreign_invalid(
            node, "attribute kv_num_heads is %lld; it must be positive and divide num_heads, %lld",
            (long long)a->kv_heads, (long long)a->q_heads);
    GRT_TRY(take_heads(&g));
    g.windowed = grt_attr_int(&node->desc, "sliding_window_cache", 0) != 0;
    find_positions(&g);
    normalise_heads(&g);
    GRT_TRY(rotate_heads(&g));
    ir_value *key, *value, *qk = NULL;
    fill_caches(&g, &key, &value);
    if (g.windowed) {
        key = kv_window_keep(&g.window, key);
        value = kv_window_keep(&g.window, value);
    }
    GRT_TRY(mask_keys(&g));
    GRT_TRY(attend_put(a, foreign_wants(node, 3) ? 4 : 1));
    if (foreign_wants(node, 3))
        qk = products(&g);
    return foreign_done(node, 4, (ir_value *[]){a->y, key, value, qk});
}

/* ---- RotaryEmbedding ---- */

/* Heads of [batch, sequence, hidden]: as said, or as many as the caches' rows fit in. */
static grt_status count_heads(const ir_node *node, int64_t *out)
{
    int64_t hidden, half;
    *out = grt_attr_int(&node->desc, "num_heads", 0);
    if (*out > 0)
        return GRT_OK;
    if (!foreign_dim(ir_in(node, 0), -1, &hidden) || !foreign_dim(ir_in(node, 2), -1, &half) || half < 1 ||
        hidden % (2 * half))
        return foreign_unsupported(node,
                                   "num_heads is not given, and the hidden size and the caches' width do not "
                                   "tell it");
    *out = hidden / (2 * half);
    return GRT_OK;
}

/* (input, position_ids, cos_cache, sin_cache). One position is the first of all rows. */
static grt_status rewrite_rotary(ir_node *node)
{
    static const int64_t none[] = {0};
    GRT_TRY(foreign_need_rank(node, 0, "input"));
    GRT_TRY(foreign_need_rank(node, 1, "position_ids"));
    GRT_TRY(foreign_need(node, 2, "cos_cache"));
    if (grt_attr_int(&node->desc, "is_packed_batching", 0) || grt_attr_float(&node->desc, "scale", 1) != 1)
        return foreign_unsupported(node, "is_packed_batching, and a scale other than 1, are not supported");
    ir_value *x = ir_in(node, 0), *positions = ir_in(node, 1);
    const int32_t rank = x->type.rank;
    if (rank != 3 && rank != 4)
        return foreign_invalid(node, "input has rank %d; it must be 3 or 4", rank);
    if (positions->type.rank < 2) {
        ir_value *length = put_dim(node, x, rank - 2);
        ir_value *steps = put2(node, "Add", positions, put_range(node, put_squeeze(node, length, none, 1)));
        positions =
            put2(node, "Expand", steps, put_concat(node, 0, 2, (ir_value *[]){put_dim(node, x, 0), length}));
    }
    ir_value *y = contrib_group_query_rotated(node, x, ir_in(node, 2), ir_in(node, 3), positions,
                                              grt_attr_int(&node->desc, "interleaved", 0));
    if (rank == 3) {
        int64_t heads;
        GRT_TRY(count_heads(node, &heads));
        with_int(y, "num_heads", heads);
    }
    return foreign_done1(node, y);
}

static const op_row rows[] = {
    FOREIGN(MS, "GroupQueryAttention", 7, 16, 1, 4, group_query_attrs, rewrite_group_query),
    FOREIGN(MS, "RotaryEmbedding", 4, 4, 1, 1, rotary_attrs, rewrite_rotary),
};
OP_TABLE(contrib_group_query, rows);
