/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/causal_choice.h"

#include <math.h>

enum { DEEPEST = 8 };

/* A condition says which keys are kept, or which are hidden. */
typedef struct condition {
    ir_value *value;
    bool hides;
} condition;

/* True for exactly the keys up to the query's own; hides: for exactly those behind it. Reading takes of the
 * compile's budget, as many masks may share one large condition. */
static bool is_causal(const ir_value *value, bool hides, int64_t n)
{
    compile_budget *budget = &value->graph->module->budget;
    const grt_tensor *t = value->type.data;
    if (!t || value->producer || value->is_input || t->dtype != GRT_DTYPE_BOOL || t->rank < 2 ||
        t->dims[t->rank - 2] != n || t->dims[t->rank - 1] != n || n > INT32_MAX ||
        grt_tensor_elements(t) != n * n || !budget_allows(budget, 0, (double)n * (double)n))
        return false;
    const uint8_t *data = t->data;
    bool causal = true;
    int64_t at = 0;
    for (int64_t i = 0; causal && i < n; i++)
        for (int64_t j = 0; causal && j < n; j++, at++)
            causal = (data[at] != 0) == ((j > i) == hides);
    budget_work(budget, (double)at);
    return causal;
}

static ir_value *choice_node(ir_node *before, const char *op, int32_t n_in, ir_value *const *in)
{
    ir_node *node = ir_node_create(before->graph, before, "", op, before->desc.name, n_in, in, 1);
    return node && op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* The condition without its causal part, which is joined to others by And, or by Or if it hides. */
static ir_value *without_causal(const condition *c, int64_t n, int32_t depth)
{
    ir_node *node = rewrite_producer(c->value, c->hides ? "Or" : "And");
    if (!node || depth == 0)
        return NULL;
    for (int32_t i = 0; i < 2; i++)
        if (is_causal(ir_in(node, i), c->hides, n))
            return ir_in(node, 1 - i);
    for (int32_t i = 0; i < 2; i++) {
        const condition part = {ir_in(node, i), c->hides};
        ir_value *rest = without_causal(&part, n, depth - 1);
        if (rest)
            return choice_node(node, node->desc.op, 2, (ir_value *[]){rest, ir_in(node, 1 - i)});
    }
    return NULL;
}

static bool hides_all(const ir_value *value)
{
    double x;
    return value && value->type.data && ir_const_float(value, &x) && x == -INFINITY;
}

/* The choice with the other conditions in the place of its first input. */
static ir_value *rest_of_choice(ir_node *where, int64_t n)
{
    const bool hides = hides_all(ir_in(where, 1));
    const condition c = {ir_in(where, 0), hides};
    if (hides == hides_all(ir_in(where, 2)))
        return NULL;
    ir_value *rest = without_causal(&c, n, DEEPEST);
    return rest ? choice_node(where, "Where", 3, (ir_value *[]){rest, ir_in(where, 1), ir_in(where, 2)})
                : NULL;
}

ir_value *causal_choice_rest(const ir_value *mask, int64_t n)
{
    const int32_t last = mask->type.rank - 1;
    ir_node *where = rewrite_producer(mask, "Where");
    const condition c = {(ir_value *)mask, false};
    ir_value *rest = where                                ? rest_of_choice(where, n)
                     : mask->type.dtype == GRT_DTYPE_BOOL ? without_causal(&c, n, DEEPEST)
                                                          : NULL;
    /* A mask of fewer keys hides the others. */
    return rest && last >= 0 && rest->type.rank >= 1 && rest->graph == mask->graph &&
                   rest->type.dims[rest->type.rank - 1] == mask->type.dims[last]
               ? rest
               : NULL;
}
