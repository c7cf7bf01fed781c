/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `whole_columns`: a large product by constant weights whose columns are no whole vectors of 16 bytes,
 * as of a vocabulary of 50,257 words, gets columns of zeros until they are, and a Slice cuts them off. A
 * library has no fast kernel for rows that begin anywhere: without the zeros it takes 2 to 7 times as long,
 * which is more than the copy. */
#include "graph/passes/zeros.h"

enum { W = 1, BIAS = 2, MOST_INPUTS = 3, ROWS = 256, LEAST_SUM = 512, LEAST_ROWS_TF32 = 4096 };
static const double LEAST_PRODUCTS = 1 << 28; /* below which a launch more costs as much */

typedef struct columns {
    int32_t axis; /* of the weights' */
    int64_t n, k, more;
} columns;

/* ROWS where they are not known. */
static double count_rows(const ir_value *y)
{
    double rows = 1;
    int64_t n;
    for (int32_t i = 0; i < y->type.rank - 1; i++) {
        if (!grt_dim_is_const(y->graph->module->dims, y->type.dims[i], &n))
            return ROWS;
        rows *= (double)n;
    }
    return rows;
}

/* A bias, if there is one, is a constant with a number a column. */
static bool whole_columns_bias_is_known(const ir_node *node, int64_t n)
{
    const ir_value *bias = node->n_in > BIAS ? ir_in(node, BIAS) : NULL;
    return !bias || (bias->type.data && bias->type.rank == 1 && bias->type.data->dims[0] == n);
}

static bool whole_columns_read(const ir_node *node, columns *c)
{
    const bool fused = grt_op_is(&node->desc, "graphrt", "MatMul");
    const grt_tensor *w = (fused || rewrite_is(node, "MatMul")) && ir_in(node, W) && node->n_out == 1
                              ? ir_in(node, W)->type.data
                              : NULL;
    if (!w || w->rank != 2 || node->n_in > MOST_INPUTS || node->out[0]->type.rank < 2 ||
        rewrite_is_output(ir_in(node, W)))
        return false;
    c->axis = fused && grt_attr_int(&node->desc, "transB", 0) ? 0 : 1;
    c->n = w->dims[c->axis];
    c->k = w->dims[1 - c->axis];
    const int64_t vector = zeros_vector(node, w);
    if (!vector || c->n % vector == 0 || !whole_columns_bias_is_known(node, c->n))
        return false;
    c->more = vector - c->n % vector;
    const double rows = count_rows(node->out[0]);
    return c->k >= LEAST_SUM && (w->dtype != GRT_DTYPE_FLOAT || rows >= LEAST_ROWS_TF32) &&
           rows * (double)c->n * (double)c->k >= LEAST_PRODUCTS;
}

static ir_node *with_zeros(ir_node *node, const columns *c)
{
    ir_value *in[MOST_INPUTS] = {ir_in(node, 0), zeros_behind(ir_in(node, W), c->axis, c->more)};
    if (node->n_in > BIAS && ir_in(node, BIAS) && !(in[BIAS] = zeros_behind(ir_in(node, BIAS), 0, c->more)))
        return NULL;
    ir_node *made = in[W] ? ir_node_create(node->graph, node, node->desc.domain, node->desc.op,
                                           node->desc.name, node->n_in, in, 1)
                          : NULL;
    if (made)
        ir_attrs_copy(made, node);
    return made;
}

static void whole_columns_visit(pass_context *context, ir_node *node)
{
    columns c;
    ir_node *made = whole_columns_read(node, &c) ? with_zeros(node, &c) : NULL;
    if (!rewrite_offered(context, made))
        return;
    ir_node *cut = zeros_cut_off(made, c.n);
    if (cut && rewrite_supported(context, cut, NULL) && rewrite_take_over_node(node, cut->out[0])) {
        context->changed++;
        return;
    }
    if (cut)
        ir_node_remove(cut);
    ir_node_remove(made);
}

/* Fast float16 stands for tensor cores. */
grt_status pass_whole_columns(pass_context *context)
{
    return context->target->traits->half_floats ? rewrite_each_node(context, whole_columns_visit) : GRT_OK;
}
