/* SPDX-License-Identifier: Apache-2.0 */
// BERT: token, position and type embeddings, then layers that normalise after each residual, and a pooler.
#include <float.h>
#include "family.h"
#include "transformer.h"
#include "cnn.h"

enum { BATCH, SEQUENCE, LAYERS, HIDDEN, HEADS, VOCABULARY, MASK };
enum { POSITIONS = 512, TYPES = 2 };

static gen_value table(struct gen *g, const char *name, int64_t rows, int64_t columns)
{
    return gen_weight(g, name, 2, (int64_t[]){rows, columns}, -0.05f, 0.05f);
}

// [1, sequence, hidden]. A symbolic sequence is read off the input's shape.
static gen_value position_embeddings(struct gen *g, gen_value ids, int64_t sequence, int64_t hidden)
{
    int64_t rows = sequence > POSITIONS ? sequence : POSITIONS;
    gen_value positions = table(g, "embeddings.position_embeddings.weight", rows, hidden);
    if (sequence < 0) {
        gen_value length = GEN_NODE(g, "Shape", ids);
        gen_attr_int(g, "start", 1);
        gen_attr_int(g, "end", 2);
        gen_value zero = GEN_INTS(g, 0);
        gen_value rows_used = GEN_NODE(g, "Slice", positions, zero, length, zero);
        return GEN_NODE(g, "Unsqueeze", rows_used, zero);
    }
    int64_t *index = gen_alloc(g, (size_t)sequence * sizeof *index);
    for (int64_t i = 0; i < sequence; i++)
        index[i] = i;
    gen_value i = gen_literal(g, GEN_INT64, 2, (int64_t[]){1, sequence}, index);
    return GEN_NODE(g, "Gather", positions, i);
}

// An int64 [batch, sequence] of zeros and ones becomes 0 where it is one and the lowest number elsewhere.
static gen_value additive_mask(struct gen *g, gen_value mask)
{
    gen_value keep = GEN_NODE(g, "Unsqueeze", mask, GEN_INTS(g, 1, 2));
    keep = GEN_NODE(g, "Cast", keep);
    gen_attr_int(g, "to", GEN_BOOL);
    float lowest = g->dtype == GEN_FLOAT16 ? -65504.0f : -FLT_MAX;
    return GEN_NODE(g, "Where", keep, gen_scalar(g, 0.0f), gen_scalar(g, lowest));
}

static gen_value embeddings(struct gen *g, gen_value ids, const int64_t *v)
{
    static const int64_t type[] = {0};
    gen_value words = table(g, "embeddings.word_embeddings.weight", v[VOCABULARY], v[HIDDEN]);
    gen_value types = table(g, "embeddings.token_type_embeddings.weight", TYPES, v[HIDDEN]);
    gen_value x = GEN_NODE(g, "Gather", words, ids);
    gen_value t = GEN_NODE(g, "Gather", types, gen_literal(g, GEN_INT64, 2, (int64_t[]){1, 1}, type));
    x = GEN_NODE(g, "Add", x, t);
    x = GEN_NODE(g, "Add", x, position_embeddings(g, ids, v[SEQUENCE], v[HIDDEN]));
    return tf_layer_norm(g, x, "embeddings.LayerNorm", v[HIDDEN], 1e-12f);
}

static const char *check(const int64_t *v)
{
    return v[HIDDEN] % v[HEADS] ? "--hidden has to be a multiple of --heads" : NULL;
}

static void build(struct gen *g, const int64_t *v)
{
    int64_t hidden = v[HIDDEN];
    struct tf_shape s = {v[BATCH], v[SEQUENCE], v[HEADS], hidden / v[HEADS]};
    gen_value ids = gen_input(g, "input_ids", GEN_INT64, 2, (int64_t[]){s.batch, s.sequence});
    gen_value mask = NULL;
    if (v[MASK])
        mask = gen_input(g, "attention_mask", GEN_INT64, 2, (int64_t[]){s.batch, s.sequence});
    gen_value x = embeddings(g, ids, v);
    if (mask)
        mask = additive_mask(g, mask);
    for (int64_t i = 0; i < v[LAYERS]; i++) {
        const char *layer = gen_format(g, "encoder.layer.%d", (int)i);
        gen_value y = tf_self_attention(g, x, gen_format(g, "%s.attention", layer), mask, s);
        x = GEN_NODE(g, "Add", y, x);
        x = tf_layer_norm(g, x, gen_format(g, "%s.attention.output.LayerNorm", layer), hidden, 1e-12f);
        y = tf_mlp(g, x, layer, hidden, 4 * hidden);
        x = GEN_NODE(g, "Add", y, x);
        x = tf_layer_norm(g, x, gen_format(g, "%s.output.LayerNorm", layer), hidden, 1e-12f);
    }
    x = gen_output(g, "last_hidden_state", 3, (int64_t[]){s.batch, s.sequence, hidden});
    static const int64_t first = 0;
    x = GEN_NODE(g, "Gather", x, gen_literal(g, GEN_INT64, 0, NULL, &first));
    gen_attr_int(g, "axis", 1);
    x = cnn_gemm(g, x, "pooler.dense", hidden, hidden, 1.0f);
    GEN_NODE(g, "Tanh", x);
    gen_output(g, "pooler_output", 2, (int64_t[]){s.batch, hidden});
}

const struct gen_family gen_bert = {
    .name = "bert",
    .summary = "BERT encoder, base size (438 MB)",
    .dtype = GEN_FLOAT32,
    .check = check,
    .build = build,
    .options = {GEN_BATCH_OPTION,
                {"seq", "tokens", 128, 1, 65536, GEN_SEQUENCE},
                {"layers", "encoder layers", 12, 1, 1000, 0},
                {"hidden", "width, a multiple of heads", 768, 1, 65536, 0},
                {"heads", "attention heads", 12, 1, 1024, 0},
                {"vocab", "vocabulary", 30522, 1, 1000000, 0},
                {"mask", "1: with an attention_mask input", 0, 0, 1, 0}},
};
