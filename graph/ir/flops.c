/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of a node. */
#include "graph/ir/flops.h"

#include "graph/ir/ir.h"
#include "src/base/einsum.h"

#include <string.h>

/* Expressions share parts, and a hostile model may share many: looking at them is bounded. */
enum { MAX_VISITS = 1000 };

/* Value of a dim with every symbol 1; 1 where it cannot be said. */
static int64_t dim_value(const grt_dims *dims, grt_dim dim, int *visits)
{
    grt_dim_expr e = grt_dim_get(dims, dim);
    int64_t v;
    if (e.op == GRT_DIM_CONST)
        return e.value;
    if (e.op == GRT_DIM_SYMBOL || ++*visits > MAX_VISITS)
        return 1;
    const int64_t a = dim_value(dims, e.a, visits), b = dim_value(dims, e.b, visits);
    return grt_dim_apply(e.op, a, b, &v) ? v : 1;
}

/* A size that symbols of 1 make negative, as of a window that is longer than its input, cannot be said
 * either.
 */
static double product(const ir_value *value, int32_t from, int32_t to)
{
    double n = 1;
    for (int32_t i = from; i < to; i++) {
        int visits = 0;
        const int64_t size = dim_value(value->graph->module->dims, value->type.dims[i], &visits);
        n *= size < 0 ? 1 : (double)size;
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

/* ---- work ---- */

/* What an element of ops costs that do a constant amount of work for each. */
enum { MOVE = 1, COMPUTE = 4, SORT = 32 };

static const struct {
    const char *op;
    int cost;
} linear[] = {
    {"Cast", MOVE},
    {"CastLike", MOVE},
    {"Compress", MOVE},
    {"Concat", MOVE},
    {"ConstantOfShape", MOVE},
    {"DepthToSpace", MOVE},
    {"Expand", MOVE},
    {"EyeLike", MOVE},
    {"Gather", MOVE},
    {"GatherElements", MOVE},
    {"GatherND", MOVE},
    {"NonZero", MOVE},
    {"OneHot", MOVE},
    {"Pad", MOVE},
    {"Range", MOVE},
    {"ReverseSequence", MOVE},
    {"ScatterElements", MOVE},
    {"ScatterND", MOVE},
    {"Shape", MOVE},
    {"Slice", MOVE},
    {"SpaceToDepth", MOVE},
    {"Split", MOVE},
    {"Tile", MOVE},
    {"Transpose", MOVE},
    {"Trilu", MOVE},
    {"Where", MOVE},
    {"ArgMax", COMPUTE},
    {"ArgMin", COMPUTE},
    {"BatchNormalization", COMPUTE},
    {"CumProd", COMPUTE},
    {"CumSum", COMPUTE},
    {"DequantizeLinear", COMPUTE},
    {"DynamicQuantizeLinear", COMPUTE},
    {"Hardmax", COMPUTE},
    {"LayerNormalization", COMPUTE},
    {"LogSoftmax", COMPUTE},
    {"Max", COMPUTE},
    {"Mean", COMPUTE},
    {"Min", COMPUTE},
    {"QuantizeLinear", COMPUTE},
    {"RMSNormalization", COMPUTE},
    {"RotaryEmbedding", COMPUTE},
    {"Softmax", COMPUTE},
    {"Sum", COMPUTE},
    {"TopK", SORT},
    {"Unique", SORT},
};

/* 0: the op is not among them. */
static int cost_of_element(const ir_node *node)
{
    const char *op = node->desc.op;
    if (node->row && node->row->flags & OP_VIEW)
        return MOVE;
    if ((node->row && node->row->flags & OP_POINTWISE) || !strncmp(op, "Reduce", 6))
        return COMPUTE;
    for (size_t i = 0; i < sizeof linear / sizeof *linear; i++)
        if (!strcmp(linear[i].op, op))
            return linear[i].cost;
    return 0;
}

static double elements_of(const ir_value *value)
{
    return known(value, 0) ? product(value, 0, value->type.rank) : 0;
}

static double attribute_elements(const grt_op_desc *desc)
{
    size_t n = desc->n_attrs;
    for (size_t i = 0; i < desc->n_attrs; i++) {
        const grt_attr *a = &desc->attrs[i];
        n += a->kind == GRT_ATTR_INTS      ? a->ints.n
             : a->kind == GRT_ATTR_FLOATS  ? a->floats.n
             : a->kind == GRT_ATTR_STRINGS ? a->strings.n
             : a->kind == GRT_ATTR_STRING  ? a->s.size
                                           : 0;
    }
    return (double)n;
}

/* Each combination of the labels' values is one step. */
static double einsum_work(const ir_node *node)
{
    double size[GRT_EINSUM_LABELS], work = 1;
    for (int i = 0; i < GRT_EINSUM_LABELS; i++)
        size[i] = 1;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *x = ir_in(node, i);
        int8_t labels[GRT_MAX_RANK];
        int32_t ellipsis;
        if (!known(x, 0) || grt_einsum_input(&node->desc, i, node->n_in, x->type.rank, labels, &ellipsis))
            return 0; /* the shape rule says what is wrong */
        for (int32_t k = 0; k < x->type.rank; k++) {
            const double n = product(x, k, k + 1);
            size[labels[k]] = n > size[labels[k]] ? n : size[labels[k]];
        }
    }
    for (int i = 0; i < GRT_EINSUM_LABELS; i++)
        work *= size[i];
    return work * node->n_in;
}

double op_work(const ir_node *node)
{
    const double flops = op_flops(node), samples = (double)grt_attr_int(&node->desc, "sampling_ratio", 1);
    const int cost = cost_of_element(node);
    double elements = attribute_elements(&node->desc);
    for (int32_t i = 0; i < node->n_in; i++)
        elements += elements_of(node->in[i].value);
    for (int32_t i = 0; i < node->n_out; i++)
        elements += elements_of(node->out[i]);
    if (!strcmp(node->desc.op, "Einsum"))
        return einsum_work(node) + elements;
    if (flops > 0) /* products of float32 have fast kernels */
        return (ir_in(node, 0)->type.dtype == GRT_DTYPE_FLOAT ? flops / 4 : flops) + elements;
    return cost ? cost * elements : elements * elements * (samples > 1 ? samples * samples : 1);
}
