/* SPDX-License-Identifier: Apache-2.0 */
// A deep feed-forward network: Linear and ReLU over a list of widths that is repeated `blocks` times. One
// block holds 1.4 GB, five hold 6.9 GB.
#include "cnn.h"
#include "family.h"

enum { BATCH, BLOCKS, DIVIDE };

static void build(struct gen *g, const int64_t *v)
{
    static const int64_t widths[] = {1024, 4096, 8192, 16384, 8192, 4096, 1024, 512, 256, 512};
    enum { N = sizeof widths / sizeof *widths };
    int64_t in = widths[0] / v[DIVIDE];
    gen_value x = gen_input(g, "x", g->dtype, 2, (int64_t[]){v[BATCH], in});
    for (int64_t i = 1; i < v[BLOCKS] * N; i++) {
        int64_t out = widths[i % N] / v[DIVIDE];
        x = cnn_gemm(g, x, gen_format(g, "layers.%d", (int)(2 * (i - 1))), in, out, 2.0f);
        x = GEN_NODE(g, "Relu", x);
        in = out;
    }
    gen_output(g, "y", 2, (int64_t[]){v[BATCH], in});
}

const struct gen_family gen_deep_ffn = {
    .name = "deep_ffn",
    .summary = "a deep network of large fully connected layers (5 blocks: 6.9 GB)",
    .dtype = GEN_FLOAT32,
    .build = build,
    .options = {GEN_BATCH_OPTION,
                {"blocks", "repetitions of the list of widths", 5, 1, 64, 0},
                {"divide", "divides every width", 1, 1, 64, 0}},
};
