/* SPDX-License-Identifier: Apache-2.0 */
// See cnn.h.
#include "cnn.h"

gen_value cnn_conv(struct gen *g, gen_value x, const char *name, struct cnn_conv c)
{
    int64_t group_in = c.in / c.groups, pad = c.kernel / 2;
    gen_value w = gen_weight_scaled(g, gen_format(g, "%s.weight", name), 4,
                                    (int64_t[]){c.out, group_in, c.kernel, c.kernel}, c.gain,
                                    group_in * c.kernel * c.kernel);
    x = GEN_NODE(g, "Conv", x, w);
    gen_attr_ints(g, "dilations", 2, (int64_t[]){1, 1});
    gen_attr_int(g, "group", c.groups);
    gen_attr_ints(g, "kernel_shape", 2, (int64_t[]){c.kernel, c.kernel});
    gen_attr_ints(g, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    gen_attr_ints(g, "strides", 2, (int64_t[]){c.stride, c.stride});
    return x;
}

gen_value cnn_batch_norm(struct gen *g, gen_value x, const char *name, int64_t channels, float scale)
{
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    const float low[] = {0.8f * scale, -0.1f, -0.1f, 0.7f}, high[] = {1.2f * scale, 0.1f, 0.1f, 1.3f};
    gen_value inputs[5] = {x};
    for (int i = 0; i < 4; i++)
        inputs[i + 1] = gen_weight(g, gen_format(g, "%s.%s", name, parts[i]), 1, &channels, low[i], high[i]);
    x = gen_node(g, "BatchNormalization", 5, inputs);
    gen_attr_float(g, "epsilon", 1e-5f);
    gen_attr_float(g, "momentum", 0.9f);
    return x;
}

static void pool_attributes(struct gen *g, int64_t kernel, int64_t stride, int64_t pad)
{
    gen_attr_int(g, "ceil_mode", 0);
    gen_attr_ints(g, "kernel_shape", 2, (int64_t[]){kernel, kernel});
    gen_attr_ints(g, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    gen_attr_ints(g, "strides", 2, (int64_t[]){stride, stride});
}

gen_value cnn_max_pool(struct gen *g, gen_value x, int64_t kernel, int64_t stride, int64_t pad)
{
    x = GEN_NODE(g, "MaxPool", x);
    pool_attributes(g, kernel, stride, pad);
    return x;
}

gen_value cnn_average_pool(struct gen *g, gen_value x, int64_t kernel, int64_t stride)
{
    x = GEN_NODE(g, "AveragePool", x);
    pool_attributes(g, kernel, stride, 0);
    return x;
}

gen_value cnn_gemm(struct gen *g, gen_value x, const char *name, int64_t in, int64_t out, float gain)
{
    gen_value w = gen_weight_scaled(g, gen_format(g, "%s.weight", name), 2, (int64_t[]){out, in}, gain, in);
    gen_value b = gen_weight(g, gen_format(g, "%s.bias", name), 1, &out, -0.1f, 0.1f);
    x = GEN_NODE(g, "Gemm", x, w, b);
    gen_attr_float(g, "alpha", 1.0f);
    gen_attr_float(g, "beta", 1.0f);
    gen_attr_int(g, "transA", 0);
    gen_attr_int(g, "transB", 1);
    return x;
}
