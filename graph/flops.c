/* Arithmetic of a node. */
#include "graph/flops.h"

#include <string.h>

/* Expressions share parts, and a hostile model may share many: looking at them is bounded. */
enum { MAX_VISITS = 1000 };

/* Value of a dim with every symbol 1; 1 where it cannot be said. */
static double dim_value(const grt_dims *dims, grt_dim dim, int *visits)
{
    grt_dim_expr e = grt_dim_get(dims, dim);
    int64_t v;
    if (e.op == GRT_DIM_CONST)
        return (double)e.value;
    if (e.op == GRT_DIM_SYMBOL || ++*visits > MAX_VISITS)
        return 1;
    int64_t a = (int64_t)dim_value(dims, e.a, visits), b = (int64_t)dim_value(dims, e.b, visits);
    return grt_dim_apply(e.op, a, b, &v) ? (double)v : 1;
}

static double product(const ir_value *value, int32_t from, int32_t to)
{
    double n = 1;
    for (int32_t i = from; i < to; i++) {
        int visits = 0;
        const double dim = dim_value(value->graph->module->dims, value->type.dims[i], &visits);
        n *=
            dim > 0 ? dim : 0; /* symbols of 1 may be too few: what a window cannot be put on has no length */
    }
    return n;
}

static bool known(const ir_value *value, int32_t min_rank)
{
    return value && value->type.kind == GRT_KIND_TENSOR && value->type.rank >= min_rank;
}

double op_flops(const ir_node *node)
{
    const char *op = node->desc.op;
    const ir_value *x = ir_in(node, 0), *w = ir_in(node, 1), *y = node->n_out ? node->out[0] : NULL;
    if (!known(y, 0) || !known(x, 1) || !known(w, 1))
        return 0;
    int32_t rank = w->type.rank;
    if (!strcmp(op, "Conv") && rank >= 3) /* w: [M, C/group, k...] */
        return 2 * product(y, 0, y->type.rank) * product(w, 1, rank);
    if (!strcmp(op, "ConvTranspose") && rank >= 3) /* w: [C, M/group, k...] */
        return 2 * product(x, 0, x->type.rank) * product(w, 1, rank);
    if (!strcmp(op, "MatMul") || !strcmp(op, "Gemm")) {
        bool transposed = grt_attr_int(&node->desc, "transA", 0) != 0;
        int32_t k = x->type.rank - (transposed && x->type.rank >= 2 ? 2 : 1);
        return 2 * product(y, 0, y->type.rank) * product(x, k, k + 1);
    }
    if (!strcmp(op, "LSTM") || !strcmp(op, "GRU") ||
        !strcmp(op, "RNN")) { /* w: [D, G*H, I], r: [D, G*H, H] */
        const ir_value *r = ir_in(node, 2);
        if (known(r, 3) && known(x, 3))
            return 2 * product(x, 0, 2) * (product(w, 0, 3) + product(r, 0, 3));
    }
    if (!strcmp(op, "Attention") && known(x, 4) && known(w, 4)) /* q: [B, H, L, D], k: [B, H, S, D] */
        return 4 * product(x, 0, 4) * product(w, 2, 3);
    return 0;
}
