/* SPDX-License-Identifier: Apache-2.0 */
// Decoders: RMS normalisation in primitive ops (in fp32 where the model is fp16), rotary position embeddings,
// causal attention, a gated MLP.
//
// phi3_mini has the shapes of Phi-3-mini, from tokens to logits. It reads a whole prompt; there is no cache.
// llama_stack has layers with the shapes of Llama 3 8B between hidden states, with a cache: what lies in the
// past comes in, [batch, heads, past, size] for each layer, and goes out with the new keys and values behind
// it.
#include <float.h>
#include <math.h>
#include "family.h"
#include "transformer.h"

// The families' options, in one order.
enum { BATCH, SEQUENCE, LAYERS, HIDDEN, HEADS, KV_HEADS, INNER, VOCABULARY, PAST = VOCABULARY };

struct decoder {
    struct gen *g;
    const int64_t *v;
    int64_t head_size, past;
    bool joined; // one product for query, key and value, and one for gate and up
    bool cache;
    gen_value cosine, sine, mask; // [1, 1, sequence, head_size] twice, [1, 1, sequence, past + sequence]
    gen_value half_0, half_1, half_2, last_axis, one;
};

static gen_value cast(struct gen *g, gen_value x, enum gen_dtype to)
{
    x = GEN_NODE(g, "Cast", x);
    gen_attr_int(g, "to", to);
    return x;
}

static gen_value float32(struct gen *g, float value)
{
    return gen_literal(g, GEN_FLOAT32, 0, NULL, &value);
}

static gen_value rms_norm(struct gen *g, gen_value x, const char *name, int64_t size)
{
    gen_value scale = gen_weight(g, gen_format(g, "%s.weight", name), 1, &size, 0.8f, 1.2f);
    gen_value wide = g->dtype == GEN_FLOAT16 ? cast(g, x, GEN_FLOAT32) : x;
    gen_value mean = GEN_NODE(g, "ReduceMean", GEN_NODE(g, "Pow", wide, float32(g, 2.0f)), GEN_INTS(g, -1));
    gen_attr_int(g, "keepdims", 1);
    gen_value deviation = GEN_NODE(g, "Sqrt", GEN_NODE(g, "Add", mean, float32(g, 1e-5f)));
    x = GEN_NODE(g, "Mul", wide, GEN_NODE(g, "Reciprocal", deviation));
    if (g->dtype == GEN_FLOAT16)
        x = cast(g, x, GEN_FLOAT16);
    return GEN_NODE(g, "Mul", scale, x);
}

// x * cos + rotate_half(x) * sin
static gen_value rotary(struct decoder *d, gen_value x)
{
    struct gen *g = d->g;
    gen_value low = GEN_NODE(g, "Slice", x, d->half_0, d->half_1, d->last_axis, d->one);
    gen_value high = GEN_NODE(g, "Slice", x, d->half_1, d->half_2, d->last_axis, d->one);
    gen_value rotated = GEN_NODE(g, "Concat", GEN_NODE(g, "Neg", high), low);
    gen_attr_int(g, "axis", -1);
    x = GEN_NODE(g, "Mul", x, d->cosine);
    return GEN_NODE(g, "Add", x, GEN_NODE(g, "Mul", rotated, d->sine));
}

// Repeats each key or value head for the group of query heads that share it.
static gen_value repeat_heads(struct decoder *d, gen_value x)
{
    struct gen *g = d->g;
    const int64_t *v = d->v;
    int64_t repeat = v[HEADS] / v[KV_HEADS];
    if (repeat == 1)
        return x;
    x = GEN_NODE(g, "Unsqueeze", x, GEN_INTS(g, 2));
    int64_t length = d->past + v[SEQUENCE];
    x = GEN_NODE(g, "Expand", x, GEN_INTS(g, 1, v[KV_HEADS], repeat, length, d->head_size));
    return GEN_NODE(g, "Reshape", x, GEN_INTS(g, 0, v[HEADS], length, d->head_size));
}

static gen_value slice_last(struct decoder *d, gen_value x, int64_t start, int64_t end)
{
    return GEN_NODE(d->g, "Slice", x, GEN_INTS(d->g, start), GEN_INTS(d->g, end), d->last_axis, d->one);
}

// Behind the past's rows; the last node made x. Both are what the next run gets.
static gen_value with_past(struct decoder *d, gen_value x, int layer, const char *what)
{
    struct gen *g = d->g;
    const int64_t *v = d->v;
    int64_t dims[] = {v[BATCH], v[KV_HEADS], d->past, d->head_size};
    if (!d->cache)
        return x;
    if (d->past) {
        gen_value past = gen_input(g, gen_format(g, "past_key_values.%d.%s", layer, what), g->dtype, 4, dims);
        x = GEN_NODE(g, "Concat", past, x);
        gen_attr_int(g, "axis", 2);
    }
    dims[2] += v[SEQUENCE];
    return gen_output(g, gen_format(g, "present.%d.%s", layer, what), 4, dims);
}

static gen_value attention(struct decoder *d, gen_value x, int layer)
{
    struct gen *g = d->g;
    const int64_t *v = d->v;
    const char *prefix = gen_format(g, "model.layers.%d.self_attn", layer);
    struct tf_shape s = {v[BATCH], v[SEQUENCE], v[HEADS], d->head_size}, kv = s, all = s;
    int64_t q_size = v[HEADS] * d->head_size, kv_size = v[KV_HEADS] * d->head_size;
    gen_value q, k, w;
    kv.heads = v[KV_HEADS];
    all.sequence += d->past;
    if (d->joined) {
        int64_t width = q_size + 2 * kv_size;
        x = tf_linear(g, x, gen_format(g, "%s.qkv_proj", prefix), v[HIDDEN], width, false);
        q = slice_last(d, x, 0, q_size);
        k = slice_last(d, x, q_size, q_size + kv_size);
        w = slice_last(d, x, q_size + kv_size, width);
    } else {
        q = tf_linear(g, x, gen_format(g, "%s.q_proj", prefix), v[HIDDEN], q_size, false);
        k = tf_linear(g, x, gen_format(g, "%s.k_proj", prefix), v[HIDDEN], kv_size, false);
        w = tf_linear(g, x, gen_format(g, "%s.v_proj", prefix), v[HIDDEN], kv_size, false);
    }
    q = rotary(d, tf_split_heads(g, q, s));
    k = with_past(d, rotary(d, tf_split_heads(g, k, kv)), layer, "key");
    w = with_past(d, tf_split_heads(g, w, kv), layer, "value");
    k = repeat_heads(d, k);
    x = tf_attention(g, q, k, repeat_heads(d, w), d->mask, all);
    return tf_linear(g, tf_merge_heads(g, x, s), gen_format(g, "%s.o_proj", prefix), q_size, v[HIDDEN],
                     false);
}

static gen_value gated_mlp(struct decoder *d, gen_value x, int layer)
{
    struct gen *g = d->g;
    const int64_t *v = d->v;
    const char *prefix = gen_format(g, "model.layers.%d.mlp", layer);
    gen_value gate, up;
    if (d->joined) {
        x = tf_linear(g, x, gen_format(g, "%s.gate_up_proj", prefix), v[HIDDEN], 2 * v[INNER], false);
        gate = GEN_NODE(g, "Split", x, GEN_INTS(g, v[INNER], v[INNER]));
        up = gen_extra_output(g);
        gen_attr_int(g, "axis", -1);
    } else {
        gate = tf_linear(g, x, gen_format(g, "%s.gate_proj", prefix), v[HIDDEN], v[INNER], false);
        up = tf_linear(g, x, gen_format(g, "%s.up_proj", prefix), v[HIDDEN], v[INNER], false);
    }
    gate = GEN_NODE(g, "Mul", gate, GEN_NODE(g, "Sigmoid", gate));
    x = GEN_NODE(g, "Mul", up, gate);
    return tf_linear(g, x, gen_format(g, "%s.down_proj", prefix), v[INNER], v[HIDDEN], false);
}

static void add_rotary_tables(struct decoder *d)
{
    size_t length = (size_t)d->v[SEQUENCE], size = (size_t)d->head_size;
    float *cosine = gen_alloc(d->g, length * size * sizeof *cosine);
    float *sine = gen_alloc(d->g, length * size * sizeof *sine);
    for (size_t position = 0; position < length; position++)
        for (size_t i = 0; i < size; i++) {
            double frequency = pow(10000.0, -2.0 * (double)(i % (size / 2)) / (double)size);
            double angle = (double)((size_t)d->past + position) * frequency;
            cosine[position * size + i] = (float)cos(angle);
            sine[position * size + i] = (float)sin(angle);
        }
    int64_t dims[] = {1, 1, d->v[SEQUENCE], d->head_size};
    d->cosine = gen_floats(d->g, 4, dims, cosine);
    d->sine = gen_floats(d->g, 4, dims, sine);
}

static void add_causal_mask(struct decoder *d)
{
    size_t rows = (size_t)d->v[SEQUENCE], columns = (size_t)d->past + rows;
    float lowest = d->g->dtype == GEN_FLOAT16 ? -65504.0f : -FLT_MAX;
    if (rows == 1 && d->cache)
        return; // there is nothing to hide
    float *mask = gen_alloc(d->g, rows * columns * sizeof *mask);
    for (size_t row = 0; row < rows; row++)
        for (size_t column = (size_t)d->past + row + 1; column < columns; column++)
            mask[row * columns + column] = lowest;
    d->mask = gen_floats(d->g, 4, (int64_t[]){1, 1, (int64_t)rows, (int64_t)columns}, mask);
}

static const char *check(const int64_t *v)
{
    if (v[HIDDEN] % (2 * v[HEADS]))
        return "--hidden has to be a multiple of twice --heads";
    return v[HEADS] % v[KV_HEADS] ? "--heads has to be a multiple of --kv-heads" : NULL;
}

static void add_tables(struct decoder *d)
{
    struct gen *g = d->g;
    d->half_0 = GEN_INTS(g, 0);
    d->half_1 = GEN_INTS(g, d->head_size / 2);
    d->half_2 = GEN_INTS(g, INT64_MAX);
    d->last_axis = GEN_INTS(g, -1);
    d->one = GEN_INTS(g, 1);
    add_rotary_tables(d);
    add_causal_mask(d);
}

static gen_value add_layers(struct decoder *d, gen_value x)
{
    struct gen *g = d->g;
    const int64_t *v = d->v;
    for (int i = 0; i < (int)v[LAYERS]; i++) {
        const char *layer = gen_format(g, "model.layers.%d", i);
        gen_value y = rms_norm(g, x, gen_format(g, "%s.input_layernorm", layer), v[HIDDEN]);
        x = GEN_NODE(g, "Add", x, attention(d, y, i));
        y = rms_norm(g, x, gen_format(g, "%s.post_attention_layernorm", layer), v[HIDDEN]);
        x = GEN_NODE(g, "Add", x, gated_mlp(d, y, i));
    }
    return rms_norm(g, x, "model.norm", v[HIDDEN]);
}

static void build_phi3(struct gen *g, const int64_t *v)
{
    struct decoder d = {.g = g, .v = v, .head_size = v[HIDDEN] / v[HEADS], .joined = true};
    add_tables(&d);
    gen_value ids = gen_input(g, "input_ids", GEN_INT64, 2, (int64_t[]){v[BATCH], v[SEQUENCE]});
    gen_value words =
        gen_weight(g, "model.embed_tokens.weight", 2, (int64_t[]){v[VOCABULARY], v[HIDDEN]}, -1.0f, 1.0f);
    gen_value x = add_layers(&d, GEN_NODE(g, "Gather", words, ids));
    tf_linear(g, x, "lm_head", v[HIDDEN], v[VOCABULARY], false);
    gen_output(g, "logits", 3, (int64_t[]){v[BATCH], v[SEQUENCE], v[VOCABULARY]});
}

static void build_llama(struct gen *g, const int64_t *v)
{
    struct decoder d = {.g = g, .v = v, .head_size = v[HIDDEN] / v[HEADS], .past = v[PAST], .cache = true};
    int64_t dims[] = {v[BATCH], v[SEQUENCE], v[HIDDEN]};
    add_tables(&d);
    add_layers(&d, gen_input(g, "hidden_states", g->dtype, 3, dims));
    gen_output(g, "last_hidden_state", 3, dims);
}

const struct gen_family gen_phi3_mini = {
    .name = "phi3_mini",
    .summary = "decoder with the shapes of Phi-3-mini, fp16 (7.6 GB, external data)",
    .dtype = GEN_FLOAT16,
    .check = check,
    .build = build_phi3,
    .options = {GEN_BATCH_OPTION,
                {"seq", "tokens of the prompt", 32, 1, 8192, 0},
                {"layers", "decoder layers", 32, 1, 1000, 0},
                {"hidden", "width, a multiple of twice the heads", 3072, 2, 65536, 0},
                {"heads", "attention heads", 32, 1, 1024, 0},
                {"kv-heads", "key and value heads, a divisor of heads", 32, 1, 1024, 0},
                {"inner", "width of the gated MLP", 8192, 1, 262144, 0},
                {"vocab", "vocabulary", 32064, 1, 1000000, 0}},
};

const struct gen_family gen_llama_stack = {
    .name = "llama_stack",
    .summary =
        "layers with the shapes of Llama 3 8B between hidden states, with a cache (3.5 GB, external data)",
    .dtype = GEN_FLOAT32,
    .check = check,
    .build = build_llama,
    .options = {GEN_BATCH_OPTION,
                {"seq", "new tokens", 2048, 1, 65536, 0},
                {"layers", "decoder layers", 4, 1, 1000, 0},
                {"hidden", "width, a multiple of twice the heads", 4096, 2, 65536, 0},
                {"heads", "attention heads", 32, 1, 1024, 0},
                {"kv-heads", "key and value heads, a divisor of heads", 8, 1, 1024, 0},
                {"inner", "width of the gated MLP", 14336, 1, 262144, 0},
                {"past", "tokens in the cache", 0, 0, 1000000, 0}},
};
