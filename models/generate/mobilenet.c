/* SPDX-License-Identifier: Apache-2.0 */
// MobileNetV2: inverted residuals with depthwise convolutions, ReLU6 as Clip, and a mean in place of a pool.
#include "cnn.h"
#include "family.h"

enum { BATCH, SIZE, CLASSES, WIDTH };

struct net {
    struct gen *g;
    gen_value zero, six;
};

static gen_value conv_bn(struct net *n, gen_value x, const char *name, struct cnn_conv c, float scale)
{
    x = cnn_conv(n->g, x, gen_format(n->g, "%s.0", name), c);
    return cnn_batch_norm(n->g, x, gen_format(n->g, "%s.1", name), c.out, scale);
}

static gen_value conv_bn_relu6(struct net *n, gen_value x, const char *name, struct cnn_conv c)
{
    return GEN_NODE(n->g, "Clip", conv_bn(n, x, name, c, 1.0f), n->zero, n->six);
}

static gen_value inverted_residual(struct net *n, gen_value x, const char *name, int64_t in, int64_t out,
                                   int64_t stride, int64_t expand)
{
    struct gen *g = n->g;
    int64_t inner = in * expand;
    gen_value y = x;
    if (expand > 1)
        y = conv_bn_relu6(n, y, gen_format(g, "%s.expand", name),
                          (struct cnn_conv){in, inner, 1, 1, 1, 2.0f});
    y = conv_bn_relu6(n, y, gen_format(g, "%s.depthwise", name),
                      (struct cnn_conv){inner, inner, 3, stride, inner, 2.0f});
    int residual = stride == 1 && in == out;
    y = conv_bn(n, y, gen_format(g, "%s.project", name), (struct cnn_conv){inner, out, 1, 1, 1, 2.0f},
                residual ? 0.5f : 1.0f);
    return residual ? GEN_NODE(g, "Add", x, y) : y;
}

// Channels scaled by a percentage, to a multiple of 8, never below 90% of what was asked for.
static int64_t scaled(int64_t channels, int64_t percent)
{
    int64_t exact = channels * percent / 100, rounded = (exact + 4) / 8 * 8;
    if (rounded < 8)
        rounded = 8;
    return 10 * rounded < 9 * exact ? rounded + 8 : rounded;
}

static void build(struct gen *g, const int64_t *v)
{
    static const struct {
        int64_t expand, channels, repeat, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    struct net n = {.g = g, .zero = gen_scalar(g, 0.0f), .six = gen_scalar(g, 6.0f)};
    int64_t channels = scaled(32, v[WIDTH]), last = scaled(1280, v[WIDTH] > 100 ? v[WIDTH] : 100), block = 1;
    gen_value x = gen_input(g, "x", g->dtype, 4, (int64_t[]){v[BATCH], 3, v[SIZE], v[SIZE]});
    x = conv_bn_relu6(&n, x, "features.0", (struct cnn_conv){3, channels, 3, 2, 1, 2.0f});
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++)
        for (int64_t i = 0; i < stages[s].repeat; i++, block++) {
            int64_t out = scaled(stages[s].channels, v[WIDTH]);
            x = inverted_residual(&n, x, gen_format(g, "features.%d", (int)block), channels, out,
                                  i == 0 ? stages[s].stride : 1, stages[s].expand);
            channels = out;
        }
    x = conv_bn_relu6(&n, x, "features.18", (struct cnn_conv){channels, last, 1, 1, 1, 2.0f});
    x = GEN_NODE(g, "ReduceMean", x, GEN_INTS(g, 2, 3));
    gen_attr_int(g, "keepdims", 0);
    cnn_gemm(g, x, "classifier.1", last, v[CLASSES], 1.0f);
    gen_output(g, "logits", 2, (int64_t[]){v[BATCH], v[CLASSES]});
}

const struct gen_family gen_mobilenet_v2 = {
    .name = "mobilenet_v2",
    .summary = "MobileNetV2, image classification (14 MB)",
    .dtype = GEN_FLOAT32,
    .build = build,
    .options = {GEN_BATCH_OPTION,
                {"size", "image height and width", 224, 32, 4096, 0},
                {"classes", "outputs", 1000, 1, 1000000, 0},
                {"width", "channels, in percent", 100, 10, 400, 0}},
};
