/* SPDX-License-Identifier: Apache-2.0 */
// Vision transformer: patches through a convolution, a class token, layers that normalise before each branch.
#include "cnn.h"
#include "family.h"
#include "transformer.h"

enum { BATCH, SIZE, CLASSES, LAYERS, HIDDEN, HEADS, PATCH };

static gen_value patch_embeddings(struct gen *g, gen_value x, const int64_t *v)
{
    int64_t hidden = v[HIDDEN], patch = v[PATCH];
    gen_value w = gen_weight_scaled(g, "patch_embed.proj.weight", 4, (int64_t[]){hidden, 3, patch, patch},
                                    1.0f, 3 * patch * patch);
    gen_value b = gen_weight(g, "patch_embed.proj.bias", 1, &hidden, -0.1f, 0.1f);
    x = GEN_NODE(g, "Conv", x, w, b);
    gen_attr_ints(g, "kernel_shape", 2, (int64_t[]){patch, patch});
    gen_attr_ints(g, "strides", 2, (int64_t[]){patch, patch});
    x = GEN_NODE(g, "Reshape", x, GEN_INTS(g, 0, hidden, -1));
    x = GEN_NODE(g, "Transpose", x);
    gen_attr_ints(g, "perm", 3, (int64_t[]){0, 2, 1});
    return x;
}

// One class token for each image: [batch, 1, hidden].
static gen_value class_tokens(struct gen *g, gen_value x, const int64_t *v)
{
    gen_value token = gen_weight(g, "cls_token", 3, (int64_t[]){1, 1, v[HIDDEN]}, -0.5f, 0.5f);
    if (v[BATCH] > 0)
        return GEN_NODE(g, "Expand", token, GEN_INTS(g, v[BATCH], 1, v[HIDDEN]));
    gen_value batch = GEN_NODE(g, "Shape", x);
    gen_attr_int(g, "start", 0);
    gen_attr_int(g, "end", 1);
    gen_value shape = GEN_NODE(g, "Concat", batch, GEN_INTS(g, 1, v[HIDDEN]));
    gen_attr_int(g, "axis", 0);
    return GEN_NODE(g, "Expand", token, shape);
}

static const char *check(const int64_t *v)
{
    if (v[SIZE] < v[PATCH])
        return "--size has to be at least --patch";
    return v[HIDDEN] % v[HEADS] ? "--hidden has to be a multiple of --heads" : NULL;
}

static void build(struct gen *g, const int64_t *v)
{
    int64_t side = v[SIZE] / v[PATCH], hidden = v[HIDDEN];
    struct tf_shape s = {v[BATCH], side * side + 1, v[HEADS], hidden / v[HEADS]};
    gen_value image = gen_input(g, "x", g->dtype, 4, (int64_t[]){s.batch, 3, v[SIZE], v[SIZE]});
    gen_value x = patch_embeddings(g, image, v);
    x = GEN_NODE(g, "Concat", class_tokens(g, image, v), x);
    gen_attr_int(g, "axis", 1);
    x = GEN_NODE(g, "Add", x, gen_weight(g, "pos_embed", 3, (int64_t[]){1, s.sequence, hidden}, -0.5f, 0.5f));
    for (int64_t i = 0; i < v[LAYERS]; i++) {
        const char *layer = gen_format(g, "blocks.%d", (int)i);
        gen_value y = tf_layer_norm(g, x, gen_format(g, "%s.norm1", layer), hidden, 1e-6f);
        y = tf_self_attention(g, y, gen_format(g, "%s.attn", layer), NULL, s);
        x = GEN_NODE(g, "Add", x, y);
        y = tf_layer_norm(g, x, gen_format(g, "%s.norm2", layer), hidden, 1e-6f);
        y = tf_mlp(g, y, gen_format(g, "%s.mlp", layer), hidden, 4 * hidden);
        x = GEN_NODE(g, "Add", x, y);
    }
    x = tf_layer_norm(g, x, "norm", hidden, 1e-6f);
    static const int64_t first = 0;
    x = GEN_NODE(g, "Gather", x, gen_literal(g, GEN_INT64, 0, NULL, &first));
    gen_attr_int(g, "axis", 1);
    cnn_gemm(g, x, "head", hidden, v[CLASSES], 1.0f);
    gen_output(g, "logits", 2, (int64_t[]){s.batch, v[CLASSES]});
}

const struct gen_family gen_vit_b16 = {
    .name = "vit_b16",
    .summary = "vision transformer ViT-B/16, image classification (346 MB)",
    .dtype = GEN_FLOAT32,
    .check = check,
    .build = build,
    .options = {GEN_BATCH_OPTION,
                {"size", "image height and width, at least one patch", 224, 16, 4096, 0},
                {"classes", "outputs", 1000, 1, 1000000, 0},
                {"layers", "encoder layers", 12, 1, 1000, 0},
                {"hidden", "width, a multiple of heads", 768, 1, 65536, 0},
                {"heads", "attention heads", 12, 1, 1024, 0},
                {"patch", "patch height and width", 16, 1, 1024, 0}},
};
