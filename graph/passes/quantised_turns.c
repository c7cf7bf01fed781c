/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: a product whose second factor was turned for it, as the keys of an attention are, reads
 * rows instead of columns. What is left of the Transpose moves whole rows, or nothing. */
#include "graph/passes/quantised.h"

/* How the second factor of a product is made: a Transpose whose last dim is the second to last of its result,
 * and perhaps a table behind it, for this product alone. */
typedef struct turned {
    ir_node *product, *transpose, *table; /* table NULL: there is none */
    const int64_t *perm;
} turned;

static ir_node *made_for_one(const ir_value *value, const char *domain, const char *op)
{
    ir_node *node = value ? value->producer : NULL;
    return node && value->n_uses == 1 && grt_op_is(&node->desc, domain, op) ? node : NULL;
}

static bool read_turned(ir_node *product, turned *out)
{
    size_t n;
    *out = (turned){.product = product};
    if (!grt_op_is(&product->desc, "graphrt", "QMatMul") || grt_attr_int(&product->desc, "transB", 0))
        return false;
    out->table = made_for_one(ir_in(product, QP_W), "graphrt", "QTable");
    out->transpose = made_for_one(out->table ? ir_in(out->table, 0) : ir_in(product, QP_W), "", "Transpose");
    if (!out->transpose || out->transpose->graph != product->graph || rewrite_is_output(ir_in(product, QP_W)))
        return false;
    out->perm = grt_attr_ints(&out->transpose->desc, "perm", &n);
    return out->perm && n >= 2 && (int32_t)n == ir_in(out->transpose, 0)->type.rank &&
           out->perm[n - 2] == (int64_t)n - 1;
}

/* The factor as it is without its last turn; NULL when out of memory. */
static ir_value *unturned(const turned *t)
{
    int64_t perm[GRT_MAX_RANK];
    const int32_t rank = ir_in(t->transpose, 0)->type.rank;
    ir_value *x = ir_in(t->transpose, 0);
    for (int32_t i = 0; i < rank; i++)
        perm[i] = t->perm[i < rank - 2 ? i : 2 * rank - 3 - i];
    ir_node *moved =
        ir_node_create(t->product->graph, t->transpose, "", "Transpose", t->transpose->desc.name, 1, &x, 1);
    if (!moved)
        return NULL;
    ir_attr_set_ints(moved, "perm", perm, rank);
    if (op_infer_node(moved) != GRT_OK || !t->table)
        return moved->out[0];
    ir_value *in[] = {moved->out[0], ir_in(t->table, 1)};
    ir_node *made =
        ir_node_create(t->product->graph, t->table, "graphrt", "QTable", t->table->desc.name, 2, in, 1);
    return made && op_infer_node(made) == GRT_OK ? made->out[0] : NULL;
}

grt_status quantised_turns(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        turned t;
        if (!node->out[0] || !node->out[0]->n_uses || !read_turned(node, &t))
            continue;
        ir_value *was = ir_in(node, QP_W), *rows = unturned(&t);
        if (!rows)
            continue;
        ir_attr_set_int(node, "transB", 1);
        ir_node_set_input(node, QP_W, rows);
        if (op_infer_node(node) == GRT_OK && rewrite_supported(context, node, NULL)) {
            context->changed++;
            continue;
        }
        ir_attr_remove(node, "transB");
        ir_node_set_input(node, QP_W, was);
    }
    return GRT_OK;
}
