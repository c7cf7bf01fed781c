/* SPDX-License-Identifier: Apache-2.0 */
/* Ten times the moves take about ten times as long: one value that is cut into many parts, and a long chain.
 */
#include "graph/ir/constant.h"
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static ir_value *move(ir_value *x, const char *op, ir_value *shape)
{
    ir_value *in[] = {x, shape};
    return ir_node_out(ir_node_create(x->graph, NULL, "", op, "", shape ? 2 : 1, in, 1));
}

static ir_value *turned(ir_value *x)
{
    ir_value *out = move(x, "Transpose", NULL);
    ir_attr_set_ints(out->producer, "perm", (int64_t[]){0, 2, 1}, 3);
    return out;
}

static ir_value *row(ir_value *x, int64_t k)
{
    ir_graph *g = x->graph;
    ir_value *in[] = {x, ir_constant_ints(g, NULL, &k, 1), ir_constant_ints(g, NULL, (int64_t[]){k + 1}, 1),
                      ir_constant_ints(g, NULL, (int64_t[]){0}, 1)};
    return ir_node_out(ir_node_create(g, NULL, "", "Slice", "", 4, in, 1));
}

/* Every row of what was transposed. */
static void rows_of_transpose(ir_value *x, ir_value **parts, int32_t n)
{
    ir_value *y = turned(x);
    for (int32_t k = 0; k < n; k++)
        parts[k] = row(y, k);
}

/* The same beside another reader, which keeps the Transpose where it is. */
static void rows_beside_another(ir_value *x, ir_value **parts, int32_t n)
{
    ir_value *y = turned(x);
    for (int32_t k = 0; k < n; k++)
        parts[k] = row(y, k);
    ir_graph_add_output(x->graph, move(y, "Relu", NULL));
}

static void parts_of_split(ir_value *x, ir_value **parts, int32_t n)
{
    ir_node *split = ir_node_create(x->graph, NULL, "", "Split", "", 1, &x, n);
    ir_attr_set_int(split, "num_outputs", n);
    for (int32_t k = 0; k < n; k++)
        parts[k] = turned(split->out[k]);
}

static void chain(ir_value *x, ir_value **parts, int32_t n)
{
    ir_value *shape = ir_constant_ints(x->graph, NULL, (int64_t[]){n, 4, 6}, 3);
    for (int32_t k = 0; k < n; k++) {
        x = turned(move(x, "Reshape", shape));
        parts[k] = row(x, 0);
    }
}

/* Layers of rows whose first two dims are exchanged and back again between. */
static void rows_turned(ir_value *x, ir_value **parts, int32_t n)
{
    for (int32_t k = 0; k < n; k++) {
        ir_value *y = move(x, "Relu", NULL);
        for (int32_t i = 0; i < 2; i++) {
            y = move(y, i ? "Softmax" : "Neg", NULL);
            y = move(y, "Transpose", NULL);
            ir_attr_set_ints(y->producer, "perm", (int64_t[]){1, 0, 2}, 3);
        }
        x = move(x, "Add", y);
        parts[k] = k % 100 ? x : move(x, "Neg", NULL);
    }
}

static ir_value *projected(ir_value *x)
{
    enum { WIDTH = 8 };
    grt_tensor *w = ir_constant_create(x->graph->module, GRT_DTYPE_FLOAT, 2, (int64_t[]){6, WIDTH});
    memset(w->data, 0, 6 * WIDTH * sizeof(float));
    return move(x, "MatMul", ir_constant(x->graph, NULL, w));
}

/* Products whose columns are read by twos. */
static void projections(ir_value *x, ir_value **parts, int32_t n)
{
    ir_graph *g = x->graph;
    ir_value *halves[2], *end = ir_constant_ints(g, NULL, (int64_t[]){99}, 1),
                         *two = ir_constant_ints(g, NULL, (int64_t[]){2}, 1);
    for (int32_t k = 0; k < n; k++) {
        ir_value *y = projected(x);
        for (int64_t i = 0; i < 2; i++) {
            ir_value *in[] = {y, ir_constant_ints(g, NULL, &i, 1), end, two, two};
            halves[i] = move(ir_node_out(ir_node_create(g, NULL, "", "Slice", "", 5, in, 1)), "Neg", NULL);
        }
        parts[k] = move(halves[0], "Add", halves[1]);
    }
}

static void rows_of_product(ir_value *x, ir_value **parts, int32_t n)
{
    ir_value *y = projected(x);
    for (int32_t k = 0; k < n; k++)
        parts[k] = row(y, k);
}

typedef void (*maker)(ir_value *x, ir_value **parts, int32_t n);

/* Processor seconds that the pass takes. */
static double growth_seconds(maker make, const char *pass, int32_t n)
{
    ir_module *module;
    ck_assert_int_eq(ir_module_create(&module), GRT_OK);
    ir_graph *g = module->main = ir_graph_create(module, NULL, "main");
    grt_dim *dims = GRT_ARENA_ARRAY(module->arena, grt_dim, 3);
    for (int32_t k = 0; k < 3; k++)
        dims[k] = grt_dim_const(module->dims, (int64_t[]){n, 4, 6}[k]);
    ir_value *x = ir_value_create(g, "x"), **parts = GRT_ARENA_ARRAY(module->arena, ir_value *, n);
    x->type = (ir_type){.dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = dims};
    ir_graph_add_input(g, x, NULL);
    make(x, parts, n);
    ir_node *joined = ir_node_create(g, NULL, "", "Concat", "", n, parts, 1);
    ir_attr_set_int(joined, "axis", 0);
    ir_graph_add_output(g, joined->out[0]);
    ck_assert_msg(ir_infer(module) == GRT_OK, "%s", grt_last_error());
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    (void)ir_text_pass(module, pass);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    ir_module_release(module);
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

/* Memory that is out of the caches costs a factor of two to four; a quadratic search has ten times as much.
 */
static void check_growth(const char *what, maker make)
{
    static const char *const passes[] = {"simplify",  "slice_updates", "moves",     "equal_parts",
                                         "row_order", "column_order",  "row_places"};
    enum { FEW = 2000, FACTOR = 10, SLACK = 4, TRIES = 4 };
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        const double few = fmin(growth_seconds(make, passes[i], FEW), growth_seconds(make, passes[i], FEW)),
                     most = SLACK * FACTOR * few + 0.05;
        double many = growth_seconds(make, passes[i], FEW * FACTOR);
        for (int tries = 1; many >= most && tries < TRIES; tries++) /* others may have slowed it down */
            many = growth_seconds(make, passes[i], FEW * FACTOR);
        if (getenv("GRAPHRT_TEST_SHOW"))
            fprintf(stderr, "%s, %s: %.4f s for %d, %.4f s for %d times as many\n", what, passes[i], few, FEW,
                    many, FACTOR);
        ck_assert_msg(many < most, "%s, %s: %.4f s for %d, %.4f s for %d times as many", what, passes[i], few,
                      FEW, many, FACTOR);
    }
}

START_TEST(parts)
{
    check_growth("rows of a Transpose", rows_of_transpose);
    check_growth("rows of a Transpose with another reader", rows_beside_another);
    check_growth("parts of a Split", parts_of_split);
}
END_TEST

START_TEST(long_chains)
{
    check_growth("a chain", chain);
    check_growth("rows that are turned", rows_turned);
}
END_TEST

START_TEST(products)
{
    check_growth("products that are cut apart", projections);
    check_growth("a product that is cut into rows", rows_of_product);
}
END_TEST

UNIT_SUITE(test_pass_growth, NULL, NULL, parts, long_chains, products)
