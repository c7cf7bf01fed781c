/* SPDX-License-Identifier: Apache-2.0 */
// ResNet-50: bottleneck blocks with the stride on the 3x3 convolution. Convolution and batch normalisation
// are separate nodes, as a training framework exports them.
#include "cnn.h"
#include "family.h"

enum { BATCH, SIZE, CLASSES, WIDTH };

static gen_value conv_bn(struct gen *g, gen_value x, const char *prefix, const char *conv, const char *bn,
                         struct cnn_conv c, float scale)
{
    x = cnn_conv(g, x, gen_format(g, "%s%s", prefix, conv), c);
    return cnn_batch_norm(g, x, gen_format(g, "%s%s", prefix, bn), c.out, scale);
}

static gen_value bottleneck(struct gen *g, gen_value x, const char *prefix, int64_t in, int64_t width,
                            int64_t stride)
{
    int64_t out = 4 * width;
    gen_value y = conv_bn(g, x, prefix, "conv1", "bn1", (struct cnn_conv){in, width, 1, 1, 1, 2.0f}, 1.0f);
    y = GEN_NODE(g, "Relu", y);
    y = conv_bn(g, y, prefix, "conv2", "bn2", (struct cnn_conv){width, width, 3, stride, 1, 2.0f}, 1.0f);
    y = GEN_NODE(g, "Relu", y);
    y = conv_bn(g, y, prefix, "conv3", "bn3", (struct cnn_conv){width, out, 1, 1, 1, 2.0f}, 0.3f);
    if (in != out || stride != 1)
        x = conv_bn(g, x, prefix, "downsample.0", "downsample.1",
                    (struct cnn_conv){in, out, 1, stride, 1, 1.0f}, 1.0f);
    return GEN_NODE(g, "Relu", GEN_NODE(g, "Add", y, x));
}

static void build(struct gen *g, const int64_t *v)
{
    static const int blocks[] = {3, 4, 6, 3};
    int64_t channels = v[WIDTH], width = v[WIDTH];
    gen_value x = gen_input(g, "x", g->dtype, 4, (int64_t[]){v[BATCH], 3, v[SIZE], v[SIZE]});
    x = conv_bn(g, x, "", "conv1", "bn1", (struct cnn_conv){3, channels, 7, 2, 1, 2.0f}, 1.0f);
    x = cnn_max_pool(g, GEN_NODE(g, "Relu", x), 3, 2, 1);
    for (int stage = 0; stage < 4; stage++, width *= 2)
        for (int block = 0; block < blocks[stage]; block++) {
            int64_t stride = stage > 0 && block == 0 ? 2 : 1;
            x = bottleneck(g, x, gen_format(g, "layer%d.%d.", stage + 1, block), channels, width, stride);
            channels = 4 * width;
        }
    x = GEN_NODE(g, "Flatten", GEN_NODE(g, "GlobalAveragePool", x));
    gen_attr_int(g, "axis", 1);
    cnn_gemm(g, x, "fc", channels, v[CLASSES], 1.0f);
    gen_output(g, "logits", 2, (int64_t[]){v[BATCH], v[CLASSES]});
}

const struct gen_family gen_resnet50 = {
    .name = "resnet50",
    .summary = "ResNet-50, image classification (102 MB)",
    .dtype = GEN_FLOAT32,
    .build = build,
    .options = {GEN_BATCH_OPTION,
                {"size", "image height and width", 224, 32, 4096, 0},
                {"classes", "outputs", 1000, 1, 1000000, 0},
                {"width", "channels of the first stage", 64, 1, 1024, 0}},
};
