/* SPDX-License-Identifier: Apache-2.0 */
/* x * m + c * (1 - m), where m is zeros and ones, is Where(m, x, c): OpenAI's first GPT masks its scores so.
 * An infinity that the mask hides made NaN there, and is hidden now. */
#include "graph/ir/constant.h"
#include "graph/passes/recognise.h"

#include <math.h>

/* The constant whose elements those of the value are, moved. NULL if it has none. */
static const grt_tensor *moved_constant(const ir_value *value)
{
    enum { MOST_MOVES = 8 };
    for (int32_t i = 0; i < MOST_MOVES && value && value->producer; i++) {
        if (!rewrite_has(value->producer, OP_VIEW | OP_PICKS))
            return NULL;
        value = ir_in(value->producer, 0);
    }
    return value && !value->producer && !value->is_input ? value->type.data : NULL;
}

static bool is_zero_or_one(double v)
{
    return v == 0 || v == 1;
}

/* Reading takes of the compile's budget: many nodes may share one large mask. */
static bool is_all_zeros_and_ones(compile_budget *budget, const grt_tensor *t)
{
    const int64_t n = t ? grt_tensor_elements(t) : 0;
    bool ok = n > 0 && budget_allows(budget, 0, (double)n);
    int64_t i = 0;
    for (; ok && i < n; i++)
        ok = is_zero_or_one(grt_tensor_double(t, i));
    budget_work(budget, (double)i);
    return ok;
}

/* The bools that the value was cast from. */
static ir_value *bools_of(const ir_value *value)
{
    const ir_node *cast = rewrite_producer(value, "Cast");
    ir_value *x = cast ? ir_in(cast, 0) : NULL;
    return x && x->type.dtype == GRT_DTYPE_BOOL ? x : NULL;
}

/* True if the constant is zero where m is one, and one number where it is zero. */
static bool is_folded_rest(compile_budget *budget, const grt_tensor *t, const grt_tensor *m, double *out_c)
{
    bool found = false;
    const int64_t n = grt_tensor_elements(m);
    bool ok = grt_dtype_in(t->dtype, GRT_SET_FLOATS) && grt_dims_equal(t->dims, t->rank, m->dims, m->rank) &&
              budget_allows(budget, 0, (double)n);
    int64_t i = 0;
    for (; ok && i < n; i++) {
        const double one = grt_tensor_double(m, i), v = grt_tensor_double(t, i);
        ok = is_zero_or_one(one) && (one == 1 ? v == 0 : !found || v == *out_c);
        if (ok && one == 0) {
            *out_c = v;
            found = true;
        }
    }
    budget_work(budget, (double)i);
    return ok && found;
}

/* c of c * (1 - m). */
static bool is_rest(const ir_value *value, const ir_value *m, double *out_c)
{
    double one;
    compile_budget *budget = &value->graph->module->budget;
    if (value->type.data && !value->producer)
        return m->type.data && !m->producer && is_folded_rest(budget, value->type.data, m->type.data, out_c);
    const ir_node *mul = rewrite_producer(value, "Mul");
    for (int32_t i = 0; mul && i < 2; i++) {
        const ir_node *sub =
            ir_const_float(ir_in(mul, i), out_c) ? rewrite_producer(ir_in(mul, 1 - i), "Sub") : NULL;
        if (sub && ir_in(sub, 1) == m && ir_const_float(ir_in(sub, 0), &one) && one == 1)
            return bools_of(m) || is_all_zeros_and_ones(budget, moved_constant(m));
    }
    return false;
}

/* The zeros and ones as bools, made in front of the node. */
static ir_value *made_condition(ir_node *before, ir_value *m)
{
    const grt_tensor *t = m->producer ? NULL : m->type.data;
    if (t) {
        grt_tensor *made = ir_constant_create(before->graph->module, GRT_DTYPE_BOOL, t->rank, t->dims);
        for (int64_t i = 0; made && i < grt_tensor_elements(t); i++)
            ((unsigned char *)made->data)[i] = grt_tensor_double(t, i) != 0;
        return made ? ir_constant(before->graph, NULL, made) : NULL;
    }
    ir_node *cast = recognise_unary(before, "Cast", m);
    if (!cast)
        return NULL;
    ir_attr_set_int(cast, "to", GRT_DTYPE_BOOL);
    return op_infer_node(cast) == GRT_OK ? cast->out[0] : NULL;
}

/* The same; a mask that several nodes share becomes bools once. */
static ir_value *condition_of(selection_mask *last, ir_node *before, ir_value *m)
{
    ir_value *bools = bools_of(m);
    if (bools)
        return bools;
    if (last->mask != m || !last->condition)
        *last = (selection_mask){m, made_condition(before, m)};
    return last->condition;
}

static bool select_instead(pass_context *context, selection_mask *last, ir_node *node, ir_value *x,
                           ir_value *m, double c)
{
    ir_value *in[] = {condition_of(last, node, m), x,
                      ir_constant_scalar(node->graph, node->desc.name, x->type.dtype, c)};
    return in[0] && in[2] &&
           recognise_put(context, node,
                         ir_node_create(node->graph, node, "", "Where", node->desc.name, 3, in, 1));
}

bool recognise_selection(pass_context *context, selection_mask *last, ir_node *node)
{
    const bool sub = rewrite_is(node, "Sub");
    double c;
    for (int32_t i = 0; i < (sub ? 1 : rewrite_is(node, "Add") ? 2 : 0); i++) {
        const ir_node *mul = ir_is_inner(ir_in(node, i)) ? rewrite_producer(ir_in(node, i), "Mul") : NULL;
        for (int32_t k = 0; mul && k < 2; k++)
            if (is_rest(ir_in(node, 1 - i), ir_in(mul, k), &c) && isfinite(c))
                return select_instead(context, last, node, ir_in(mul, 1 - k), ir_in(mul, k), sub ? -c : c);
    }
    return false;
}
