/* SPDX-License-Identifier: Apache-2.0 */
/* No-ops: nodes whose output is one of their inputs. */
#include "graph/passes/simplify.h"

static bool constant_is(const ir_node *node, int32_t i, double value)
{
    double v;
    return ir_const_float(ir_in(node, i), &v) && v == value;
}

/* One number for each row, all of them `value`: scales by position are 1 for short sequences. Other constants
 * of ones stay, as patterns of norms want their scale. */
static bool rows_are(const ir_node *node, int32_t i, double value)
{
    const ir_value *constant = ir_in(node, i);
    const grt_tensor *t = constant ? constant->type.data : NULL;
    if (!t || t->rank < 2 || t->dims[t->rank - 1] != 1 || t->dims[t->rank - 2] == 1 ||
        !grt_dtype_in(t->dtype, GRT_SET_NUMBERS))
        return false;
    const int64_t n = grt_tensor_elements(t);
    int64_t k = 0;
    while (k < n && grt_tensor_double(t, k) == value)
        k++;
    return n > 0 && k == n;
}

bool simplify_identity(simplify_work *w, ir_node *node)
{
    return simplify_becomes(w, node, ir_in(node, 0));
}

bool simplify_only_output(simplify_work *w, ir_node *node)
{
    return node->n_out == 1 && simplify_keeps_shape(node, 0) && simplify_becomes(w, node, ir_in(node, 0));
}

bool simplify_same_shape(simplify_work *w, ir_node *node)
{
    return simplify_keeps_shape(node, 0) && simplify_becomes(w, node, ir_in(node, 0));
}

static bool is_false(const ir_value *flag)
{
    const grt_tensor *t = flag->type.data;
    return t && t->dtype == GRT_DTYPE_BOOL && grt_tensor_elements(t) == 1 && !*(const uint8_t *)t->data;
}

bool simplify_dropout(simplify_work *w, ir_node *node)
{
    return (!ir_in(node, 2) || is_false(ir_in(node, 2))) && simplify_becomes(w, node, ir_in(node, 0));
}

/* True if every value of `from` survives a conversion to `through` and back. */
static bool is_lossless(grt_dtype from, grt_dtype through)
{
    static const struct {
        grt_dtype from;
        grt_dtype_set through;
    } pairs[] = {
        {GRT_DTYPE_FLOAT16, GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
        {GRT_DTYPE_BFLOAT16, GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
        {GRT_DTYPE_FLOAT, GRT_BIT(DOUBLE)},
        {GRT_DTYPE_BOOL, GRT_SET_INTS | GRT_SET_FLOATS},
        {GRT_DTYPE_INT8, GRT_BIT(INT16) | GRT_BIT(INT32) | GRT_BIT(INT64) | GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
        {GRT_DTYPE_UINT8, GRT_BIT(UINT16) | GRT_BIT(UINT32) | GRT_BIT(UINT64) | GRT_BIT(INT16) |
                              GRT_BIT(INT32) | GRT_BIT(INT64) | GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
        {GRT_DTYPE_INT16, GRT_BIT(INT32) | GRT_BIT(INT64) | GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
        {GRT_DTYPE_INT32, GRT_BIT(INT64) | GRT_BIT(DOUBLE)},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].from == from)
            return grt_dtype_in(through, pairs[i].through);
    return false;
}

bool simplify_cast(simplify_work *w, ir_node *node)
{
    ir_value *in = ir_in(node, 0);
    grt_dtype to = node->out[0]->type.dtype;
    if (!in || !to)
        return false;
    if (in->type.dtype == to)
        return simplify_becomes(w, node, in);
    ir_node *inner = rewrite_producer(in, "Cast");
    if (inner && ir_in(inner, 0) && ir_in(inner, 0)->type.dtype == to && is_lossless(to, in->type.dtype))
        return simplify_becomes(w, node, ir_in(inner, 0));
    return simplify_reduced_truths(w, node) || (rewrite_is(node, "Cast") && simplify_choice(w, node));
}

/* A test of floats that were widened is one of the floats as they were: T5 in half counts infinities so. */
bool simplify_test(simplify_work *w, ir_node *node)
{
    ir_value *in = ir_in(node, 0);
    ir_node *cast = rewrite_producer(in, "Cast");
    ir_value *from = cast ? ir_in(cast, 0) : NULL;
    if (!from || !grt_dtype_in(from->type.dtype, GRT_SET_FLOATS) ||
        !is_lossless(from->type.dtype, in->type.dtype))
        return false;
    ir_node_set_input(node, 0, from);
    if (op_infer_node(node) == GRT_OK && rewrite_supported(w->context, node, NULL)) {
        w->context->changed++;
        simplify_queue(w, node);
        return true;
    }
    ir_node_set_input(node, 0, in);
    return false;
}

bool simplify_pad(simplify_work *w, ir_node *node)
{
    return simplify_all_ints_are(node, 1, 0) && simplify_keeps_shape(node, 0) &&
           simplify_becomes(w, node, ir_in(node, 0));
}

bool simplify_tile(simplify_work *w, ir_node *node)
{
    return simplify_all_ints_are(node, 1, 1) && simplify_becomes(w, node, ir_in(node, 0));
}

/* Parts without elements, as of a head whose rotated part is all of it, are left out. */
bool simplify_concat(simplify_work *w, ir_node *node)
{
    const int32_t rank = node->out[0]->type.rank, n_before = node->n_in;
    const int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 0), rank);
    int32_t n = 0;
    if (rank < 1 || axis < 0)
        return false;
    for (int32_t i = 0; i < n_before; i++) {
        const ir_value *part = ir_in(node, i);
        if (!part || part->type.rank != rank)
            return false;
        n += !grt_dim_equals(node->graph->module->dims, part->type.dims[axis], 0);
    }
    if (n == n_before)
        return simplify_joined_transposes(w, node);
    if (n == 0)
        return false;
    for (int32_t i = 0, to = 0; i < n_before; i++) {
        ir_value *part = ir_in(node, i);
        if (!grt_dim_equals(node->graph->module->dims, part->type.dims[axis], 0))
            ir_node_set_input(node, to++, part);
    }
    ir_node_drop_inputs(node, n);
    return simplify_changed(w, node);
}

bool simplify_clip(simplify_work *w, ir_node *node)
{
    return !ir_in(node, 1) && !ir_in(node, 2) && simplify_becomes(w, node, ir_in(node, 0));
}

/* x + 0, x * 1 and the like, where the constant does not change the shape. */
bool simplify_neutral(simplify_work *w, ir_node *node, int32_t constant, double value)
{
    return (constant_is(node, constant, value) || rows_are(node, constant, value)) &&
           simplify_keeps_shape(node, 1 - constant) && simplify_becomes(w, node, ir_in(node, 1 - constant));
}

/* f(f(x)) */
bool simplify_involution(simplify_work *w, ir_node *node)
{
    ir_node *inner = rewrite_producer(ir_in(node, 0), node->desc.op);
    return inner && simplify_becomes(w, node, ir_in(inner, 0));
}
