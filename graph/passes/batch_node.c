/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of one form as one node on batches: one rule per kind of node, op_batch. A batch's first dim is never
 * touched: axes are counted from the end, and where members of different rank meet, dims of 1 go between the
 * first dim and the others. */
#include "graph/ir/constant.h"
#include "graph/passes/batch.h"

#include <string.h>

/* The members' dims with the batch in front. */
static grt_dim *batched_dims(const batch *b, const ir_type *member)
{
    grt_dim *dims = batch_new_dims(b, member->rank + 1);
    if (!dims)
        return NULL;
    dims[0] = grt_dim_const(b->context->module->dims, b->n);
    for (int32_t i = 0; i < member->rank; i++)
        dims[i + 1] = member->dims[i];
    return dims;
}

/* A constant under `more` dims of 1 behind its first one. */
static ir_value *widened_constant(ir_value *value, int32_t more)
{
    grt_tensor *t = grt_arena_memdup(value->graph->module->arena, value->type.data, sizeof *t);
    if (!t)
        return NULL;
    memmove(t->dims + 1 + more, t->dims + 1, (size_t)(t->rank - 1) * sizeof t->dims[0]);
    for (int32_t i = 1; i <= more; i++)
        t->dims[i] = 1;
    t->rank += more;
    return ir_constant(value->graph, NULL, t);
}

/* The operand as one whose members have rank `rank`. */
static ir_value *of_rank(batch *b, const batch_operand *x, int32_t rank)
{
    int64_t axes[GRT_MAX_RANK];
    const int32_t more = rank - x->rank;
    if (!x->value || !x->is_batch || more <= 0)
        return x->value;
    if (rank >= GRT_MAX_RANK)
        return NULL;
    if (x->value->type.data && !x->value->producer)
        return widened_constant(x->value, more);
    for (int32_t i = 0; i < more; i++)
        axes[i] = 1 + i;
    return batch_binary(b, "Unsqueeze", x->value, ir_constant_ints(b->before->graph, b->name, axes, more));
}

static int32_t rank_of_input(const ir_node *node, int32_t i)
{
    const ir_value *value = ir_in(node, i);
    return value && value->type.kind == GRT_KIND_TENSOR ? value->type.rank : -1;
}

static bool may_unary(const ir_node *node)
{
    return node->n_in == 1 && rank_of_input(node, 0) >= 0;
}

static bool may_pointwise(const ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (ir_in(node, i) && rank_of_input(node, i) < 0)
            return false;
    return node->n_in > 0;
}

static ir_value *make_pointwise(batch *b, const ir_node *first, const batch_operand *in)
{
    ir_value **operands = GRT_ARENA_ARRAY(b->scratch, ir_value *, first->n_in);
    for (int32_t i = 0; operands && i < first->n_in; i++) {
        const bool fixed = batch_input_of(first, i) == BATCH_SAME;
        operands[i] = fixed ? in[i].value : of_rank(b, &in[i], first->out[0]->type.rank);
        if (in[i].value && !operands[i])
            return NULL;
    }
    ir_node *node = operands ? batch_make(b, first->desc.op, first->n_in, operands) : NULL;
    if (node)
        ir_attrs_copy(node, first);
    return batch_finish(b, node);
}

static bool may_view(const ir_node *node)
{
    return rank_of_input(node, 0) >= 0;
}

static ir_value *make_view(batch *b, const ir_node *first, const batch_operand *in)
{
    const ir_type *type = &first->out[0]->type;
    const grt_dim *dims = batched_dims(b, type);
    return dims && in[0].is_batch ? batch_reshaped(b, in[0].value, type->rank + 1, dims) : NULL;
}

static bool may_transpose(const ir_node *node)
{
    return may_unary(node) && rank_of_input(node, 0) == node->out[0]->type.rank;
}

static ir_value *make_transpose(batch *b, const ir_node *first, const batch_operand *in)
{
    int64_t perm[GRT_MAX_RANK + 1] = {0};
    size_t n;
    const int64_t *given = grt_attr_ints(&first->desc, "perm", &n);
    for (int32_t i = 0; i < in[0].rank; i++) {
        const int64_t from = given ? grt_axis(given[i], in[0].rank) : in[0].rank - 1 - i;
        perm[i + 1] = from + 1;
    }
    return in[0].is_batch ? batch_transposed(b, in[0].value, perm) : NULL;
}

static ir_value *swapped_last_two(batch *b, ir_value *x)
{
    return x ? batch_moved_axis(b, x, x->type.rank - 1, x->type.rank - 2) : NULL;
}

static ir_value *multiplied_by(batch *b, ir_value *x, float factor)
{
    if (!x || factor == 1)
        return x;
    return batch_binary(b, "Mul", x,
                        ir_constant_scalar(b->before->graph, b->name, x->type.dtype, (double)factor));
}

static bool may_matmul(const ir_node *node)
{
    return node->n_in == 2 && rank_of_input(node, 0) >= 2 && rank_of_input(node, 1) >= 2;
}

static ir_value *make_matmul(batch *b, const ir_node *first, const batch_operand *in)
{
    const int32_t rank = first->out[0]->type.rank;
    return batch_binary(b, "MatMul", of_rank(b, &in[0], rank), of_rank(b, &in[1], rank));
}

static bool may_gemm(const ir_node *node)
{
    return rank_of_input(node, 0) == 2 && rank_of_input(node, 1) == 2 &&
           (!ir_in(node, 2) || rank_of_input(node, 2) >= 0) &&
           grt_dtype_in(node->out[0]->type.dtype, GRT_SET_FLOATS);
}

/* alpha A B + beta C. The transposes of constants are folded, or `epilogue` takes them. */
static ir_value *make_gemm(batch *b, const ir_node *first, const batch_operand *in)
{
    const grt_op_desc *desc = &first->desc;
    const float beta = grt_attr_float(desc, "beta", 1);
    const bool trans_a = grt_attr_int(desc, "transA", 0), trans_b = grt_attr_int(desc, "transB", 0);
    ir_value *x = trans_a ? swapped_last_two(b, in[0].value) : in[0].value,
             *w = trans_b ? swapped_last_two(b, in[1].value) : in[1].value;
    ir_value *y = multiplied_by(b, batch_binary(b, "MatMul", x, w), grt_attr_float(desc, "alpha", 1));
    if (!ir_in(first, 2) || beta == 0)
        return y;
    return batch_binary(b, "Add", y, multiplied_by(b, of_rank(b, &in[2], 2), beta));
}

/* ops with an attribute axis: the same, counted from the end. */
static ir_node *make_along_axis(batch *b, const ir_node *first, int32_t n_in, ir_value *const *in)
{
    const int32_t rank = first->out[0]->type.rank;
    const int64_t axis = grt_attr_int(&first->desc, "axis", -1);
    ir_node *node = rank > 0 ? batch_make(b, first->desc.op, n_in, in) : NULL;
    if (!node)
        return NULL;
    ir_attrs_copy(node, first);
    ir_attr_set_int(node, "axis", axis < 0 ? axis : axis - rank);
    return node;
}

static ir_value *make_axis(batch *b, const ir_node *first, const batch_operand *in)
{
    return batch_finish(b, make_along_axis(b, first, 1, &in[0].value));
}

static bool may_norm(const ir_node *node)
{
    const ir_value *x = ir_in(node, 0), *scale = ir_in(node, 1);
    return x && scale && may_pointwise(node) && scale->type.dtype == x->type.dtype;
}

/* A one for each of the constants' elements. */
static ir_value *ones(const batch *b, const ir_value *like)
{
    ir_graph *graph = b->before->graph;
    const ir_value *one = ir_constant_scalar(graph, b->name, like->type.dtype, 1);
    grt_tensor t = rewrite_tensor(graph->module->dims, &like->type);
    const size_t size = grt_dtype_size(t.dtype);
    grt_tensor *made = one && size ? ir_constant_create(graph->module, t.dtype, t.rank, t.dims) : NULL;
    if (!made)
        return NULL;
    for (int64_t i = 0; i < grt_tensor_elements(made); i++)
        memcpy((char *)made->data + (size_t)i * size, one->type.data->data, size);
    return ir_constant(graph, NULL, made);
}

/* A norm has one scale and one bias: those of a batch are a Mul and an Add behind it. */
static ir_value *make_norm(batch *b, const ir_node *first, const batch_operand *in)
{
    const bool has_bias = first->n_in > 2 && in[2].value,
               own = in[1].is_batch || (has_bias && in[2].is_batch);
    const int32_t rank = first->out[0]->type.rank;
    ir_value *operands[] = {in[0].value, own ? ones(b, ir_in(first, 1)) : in[1].value,
                            has_bias ? in[2].value : NULL};
    if (!operands[0] || !operands[1])
        return NULL;
    ir_value *y = batch_finish(b, make_along_axis(b, first, has_bias && !own ? 3 : 2, operands));
    if (own)
        y = batch_binary(b, "Mul", y, of_rank(b, &in[1], rank));
    return own && has_bias ? batch_binary(b, "Add", y, of_rank(b, &in[2], rank)) : y;
}

static bool may_concat(const ir_node *node)
{
    return may_pointwise(node) && rank_of_input(node, 0) == node->out[0]->type.rank;
}

/* What all members have is repeated. */
static ir_value *as_batch(batch *b, const batch_operand *x)
{
    int64_t shape[GRT_MAX_RANK];
    if (x->is_batch || !x->value)
        return x->value;
    for (int32_t i = 0; i <= x->rank; i++)
        shape[i] = i ? 1 : b->n;
    return batch_binary(b, "Expand", x->value,
                        ir_constant_ints(b->before->graph, b->name, shape, x->rank + 1));
}

static ir_value *make_concat(batch *b, const ir_node *first, const batch_operand *in)
{
    ir_value **operands = GRT_ARENA_ARRAY(b->scratch, ir_value *, first->n_in);
    for (int32_t i = 0; operands && i < first->n_in; i++)
        if (!(operands[i] = as_batch(b, &in[i])))
            return NULL;
    return operands ? batch_finish(b, make_along_axis(b, first, first->n_in, operands)) : NULL;
}

/* Axes are counted from the end; where there are none, all are meant. */
static ir_value *make_reduction(batch *b, const ir_node *first, const batch_operand *in)
{
    const int64_t *axes = NULL;
    int64_t n = 0, counted[GRT_MAX_RANK];
    const bool given = first->n_in > 1 && in[1].value;
    if (!in[0].is_batch || (given && (!ir_const_ints(in[1].value, &axes, &n) || n > in[0].rank)))
        return NULL;
    if (!n && grt_attr_int(&first->desc, "noop_with_empty_axes", 0))
        return NULL;
    const bool all = n == 0;
    n = all ? in[0].rank : n;
    for (int64_t i = 0; i < n; i++)
        counted[i] = all || axes[i] >= 0 ? (all ? i : axes[i]) - in[0].rank : axes[i];
    ir_value *operands[] = {in[0].value, ir_constant_ints(b->before->graph, b->name, counted, n)};
    ir_node *node = operands[1] ? batch_make(b, first->desc.op, 2, operands) : NULL;
    if (node)
        ir_attrs_copy(node, first);
    return batch_finish(b, node);
}

static bool may_reduce(const ir_node *node)
{
    return rank_of_input(node, 0) >= 1;
}

typedef struct rule {
    bool (*may)(const ir_node *node);
    ir_value *(*make)(batch *b, const ir_node *first, const batch_operand *in);
} rule;

static const rule rules[N_OP_BATCHES] = {
    [OP_BATCH_POINTWISE] = {may_pointwise, make_pointwise},
    [OP_BATCH_PARAMETERS] = {may_pointwise, make_pointwise},
    [OP_BATCH_UNARY] = {may_unary, make_pointwise},
    [OP_BATCH_VIEW] = {may_view, make_view},
    [OP_BATCH_MATMUL] = {may_matmul, make_matmul},
    [OP_BATCH_GEMM] = {may_gemm, make_gemm},
    [OP_BATCH_TRANSPOSE] = {may_transpose, make_transpose},
    [OP_BATCH_AXIS] = {may_unary, make_axis},
    [OP_BATCH_NORM] = {may_norm, make_norm},
    [OP_BATCH_CONCAT] = {may_concat, make_concat},
    [OP_BATCH_REDUCE] = {may_reduce, make_reduction},
};

static op_batch batch_kind_of(const ir_node *node)
{
    const op_row *row = node->row;
    if (!row || *row->domain)
        return OP_BATCH_NEVER;
    if (row->batch)
        return row->batch;
    return row->flags & OP_POINTWISE ? OP_BATCH_POINTWISE
           : row->flags & OP_VIEW    ? OP_BATCH_VIEW
                                     : OP_BATCH_NEVER;
}

bool batch_knows(const ir_node *node)
{
    const op_batch kind = batch_kind_of(node);
    if (!kind || node->n_out != 1 || !node->out[0])
        return false;
    const ir_type *type = &node->out[0]->type;
    return type->kind == GRT_KIND_TENSOR && grt_dtype_in(type->dtype, GRT_SET_PLAIN) && type->rank >= 0 &&
           type->rank < GRT_MAX_RANK && rules[kind].may(node);
}

batch_input batch_input_of(const ir_node *node, int32_t index)
{
    if (index == 0)
        return BATCH_ANY;
    const op_batch kind = batch_kind_of(node);
    if (kind == OP_BATCH_VIEW)
        return BATCH_IGNORED;
    return kind == OP_BATCH_PARAMETERS || kind == OP_BATCH_REDUCE ? BATCH_SAME : BATCH_ANY;
}

ir_value *batch_node(batch *b, const ir_node *first, const batch_operand *in)
{
    const ir_type *type = &first->out[0]->type;
    ir_value *made = rules[batch_kind_of(first)].make(b, first, in);
    const ir_type wanted = {.dtype = type->dtype, .rank = type->rank + 1, .dims = batched_dims(b, type)};
    const bool good =
        made && wanted.dims && made->type.dtype == wanted.dtype && rewrite_same_shape(&made->type, &wanted);
    return good ? made : NULL;
}
