/* SPDX-License-Identifier: Apache-2.0 */
// Many independent small networks in one graph, written as a loop in Python would export them: slice the
// input, two fully connected layers, concatenate.
#include "cnn.h"
#include "family.h"

enum { BATCH, COUNT, INPUTS, HIDDEN };

static void build(struct gen *g, const int64_t *v)
{
    size_t count = (size_t)v[COUNT];
    gen_value x = gen_input(g, "x", g->dtype, 2, (int64_t[]){v[BATCH], v[COUNT] * v[INPUTS]});
    gen_value *outputs = gen_alloc(g, count * sizeof *outputs);
    gen_value one = GEN_INTS(g, 1), start = GEN_INTS(g, 0);
    for (size_t i = 0; i < count; i++) {
        // The end of one slice is the start of the next, and both are one constant, as exporters emit it.
        gen_value end = GEN_INTS(g, (int64_t)(i + 1) * v[INPUTS]);
        gen_value y = GEN_NODE(g, "Slice", x, start, end, one, one);
        y = cnn_gemm(g, y, gen_format(g, "models.%zu.fc1", i), v[INPUTS], v[HIDDEN], 1.0f);
        outputs[i] = cnn_gemm(g, y, gen_format(g, "models.%zu.fc2", i), v[HIDDEN], 1, 1.0f);
        start = end;
    }
    gen_node(g, "Concat", count, outputs);
    gen_attr_int(g, "axis", 1);
    gen_output(g, "y", 2, (int64_t[]){v[BATCH], v[COUNT]});
}

const struct gen_family gen_parallel_fcn = {
    .name = "parallel_fcn",
    .summary = "independent two-layer networks on slices of one input",
    .dtype = GEN_FLOAT32,
    .build = build,
    .options = {GEN_BATCH_OPTION,
                {"n", "networks", 1000, 1, 1000000, 0},
                {"inputs", "features of each network's slice", 20, 1, 65536, 0},
                {"hidden", "width of each network's inner layer", 10, 1, 65536, 0}},
};
