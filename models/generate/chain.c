/* SPDX-License-Identifier: Apache-2.0 */
// A graph of any number of nodes, to see how compile time grows with it: parallel branches, each a chain of
// cheap steps that gives every family of passes something to look at (pointwise groups, matrix products with
// epilogues, residuals, transposes that cancel, identities), joined by one Sum.
#include "family.h"

enum { NODES, BRANCHES, WIDTH };
enum { ROWS = 4, CYCLE = 11 }; // activations are [ROWS, width]: a transpose changes their shape

struct branch {
    gen_value x;
    gen_value skip; // x of the last residual
};

struct constants {
    gen_value weight, bias, half;
};

// Appends one node to a branch: the next of a cycle of eleven. The hyperbolic tangent keeps values bounded.
static void step(struct gen *g, struct branch *b, const struct constants *c, int64_t index)
{
    switch (index % CYCLE) {
    case 0:
        b->skip = b->x;
        b->x = GEN_NODE(g, "MatMul", b->x, c->weight);
        return;
    case 1:
        b->x = GEN_NODE(g, "Add", b->x, c->bias);
        return;
    case 2:
        b->x = GEN_NODE(g, "Relu", b->x);
        return;
    case 3:
    case 4:
        b->x = GEN_NODE(g, "Transpose", b->x);
        gen_attr_ints(g, "perm", 2, (int64_t[]){1, 0});
        return;
    case 5:
        b->x = GEN_NODE(g, "Mul", b->x, c->half);
        return;
    case 6:
        b->x = GEN_NODE(g, "Add", b->x, b->skip);
        return;
    case 7:
        b->x = GEN_NODE(g, "Tanh", b->x);
        return;
    case 8:
        b->skip = b->x;
        b->x = GEN_NODE(g, "Sigmoid", b->x);
        return;
    case 9:
        b->x = GEN_NODE(g, "Mul", b->x, b->skip);
        return;
    default:
        b->x = GEN_NODE(g, "Identity", b->x);
    }
}

static void build(struct gen *g, const int64_t *v)
{
    int64_t count = v[BRANCHES] < v[NODES] ? v[BRANCHES] : v[NODES], steps = v[NODES] - 1;
    int64_t shape[] = {ROWS, v[WIDTH]};
    gen_value x = gen_input(g, "x", g->dtype, 2, shape);
    gen_value *ends = gen_alloc(g, (size_t)count * sizeof *ends);
    for (int64_t i = 0; i < count; i++) {
        struct branch b = {.x = x, .skip = x};
        struct constants c = {
            .weight = gen_weight_scaled(g, gen_format(g, "branch%d.weight", (int)i), 2,
                                        (int64_t[]){v[WIDTH], v[WIDTH]}, 2.0f, v[WIDTH]),
            .bias = gen_weight(g, gen_format(g, "branch%d.bias", (int)i), 1, &v[WIDTH], -0.5f, 0.5f),
            .half = gen_scalar(g, 0.5f),
        };
        // Never ends between the two transposes.
        int64_t length = steps / count + (i < steps % count);
        for (int64_t s = 0; s < length; s++)
            step(g, &b, &c, s == length - 1 && s % CYCLE == 3 ? 2 : s);
        ends[i] = b.x;
    }
    gen_node(g, "Sum", (size_t)count, ends);
    gen_output(g, "y", 2, shape);
}

const struct gen_family gen_chain = {
    .name = "chain",
    .summary = "branches of cheap nodes, to measure how compile time grows",
    .dtype = GEN_FLOAT32,
    .build = build,
    .options = {{"nodes", "nodes in all", 1000, 2, 1000000, 0},
                {"branches", "parallel branches", 8, 1, 100000, 0},
                {"width", "columns of the activations", 16, 1, 4096, 0}},
};
