/* SPDX-License-Identifier: Apache-2.0 */
// DenseNet-121: each layer reads the concatenation of all that the block has made so far, after batch
// normalisation and ReLU. Normalisation before the convolution cannot simply be folded into it.
#include "cnn.h"
#include "family.h"

enum { BATCH, SIZE, CLASSES, GROWTH };
enum { MAX_LAYERS = 24 };

static gen_value bn_relu(struct gen *g, gen_value x, const char *name, int64_t channels)
{
    return GEN_NODE(g, "Relu", cnn_batch_norm(g, x, name, channels, 1.0f));
}

static gen_value dense_block(struct gen *g, gen_value x, int block, int layers, int64_t *channels,
                             int64_t growth)
{
    gen_value features[MAX_LAYERS + 1] = {x};
    for (int i = 0; i < layers; i++) {
        const char *name = gen_format(g, "features.denseblock%d.denselayer%d", block + 1, i + 1);
        gen_value y = features[0];
        if (i > 0) {
            y = gen_node(g, "Concat", (size_t)i + 1, features);
            gen_attr_int(g, "axis", 1);
        }
        y = bn_relu(g, y, gen_format(g, "%s.norm1", name), *channels);
        y = cnn_conv(g, y, gen_format(g, "%s.conv1", name),
                     (struct cnn_conv){*channels, 4 * growth, 1, 1, 1, 2.0f});
        y = bn_relu(g, y, gen_format(g, "%s.norm2", name), 4 * growth);
        features[i + 1] = cnn_conv(g, y, gen_format(g, "%s.conv2", name),
                                   (struct cnn_conv){4 * growth, growth, 3, 1, 1, 2.0f});
        *channels += growth;
    }
    x = gen_node(g, "Concat", (size_t)layers + 1, features);
    gen_attr_int(g, "axis", 1);
    return x;
}

static void build(struct gen *g, const int64_t *v)
{
    static const int blocks[] = {6, 12, MAX_LAYERS, 16};
    int64_t channels = 2 * v[GROWTH];
    gen_value x = gen_input(g, "x", g->dtype, 4, (int64_t[]){v[BATCH], 3, v[SIZE], v[SIZE]});
    x = cnn_conv(g, x, "features.conv0", (struct cnn_conv){3, channels, 7, 2, 1, 2.0f});
    x = cnn_max_pool(g, bn_relu(g, x, "features.norm0", channels), 3, 2, 1);
    for (int b = 0; b < 4; b++) {
        x = dense_block(g, x, b, blocks[b], &channels, v[GROWTH]);
        if (b == 3)
            break;
        x = bn_relu(g, x, gen_format(g, "features.transition%d.norm", b + 1), channels);
        x = cnn_conv(g, x, gen_format(g, "features.transition%d.conv", b + 1),
                     (struct cnn_conv){channels, channels / 2, 1, 1, 1, 2.0f});
        x = cnn_average_pool(g, x, 2, 2);
        channels /= 2;
    }
    x = bn_relu(g, x, "features.norm5", channels);
    x = GEN_NODE(g, "Flatten", GEN_NODE(g, "GlobalAveragePool", x));
    gen_attr_int(g, "axis", 1);
    cnn_gemm(g, x, "classifier", channels, v[CLASSES], 1.0f);
    gen_output(g, "logits", 2, (int64_t[]){v[BATCH], v[CLASSES]});
}

const struct gen_family gen_densenet121 = {
    .name = "densenet121",
    .summary = "DenseNet-121, image classification (32 MB)",
    .dtype = GEN_FLOAT32,
    .build = build,
    .options = {GEN_BATCH_OPTION,
                {"size", "image height and width", 224, 32, 4096, 0},
                {"classes", "outputs", 1000, 1, 1000000, 0},
                {"growth", "channels that each layer adds", 32, 1, 256, 0}},
};
