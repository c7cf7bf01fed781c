/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: steps that are functions of one 8-bit tensor become one table. GELU, whose quantisers
 * round between all of its nodes, is a table behind an erf, a sum with a constant and two products; all of it
 * depends on one byte. */
#include "graph/passes/quantised.h"

#include <string.h>

enum { BYTES = 256, QADD_B = 3, QADD_INPUTS = 8 /* all but a and b are scales and zero points */ };

static bool is_op(const ir_node *node, const char *op)
{
    return node && grt_op_is(&node->desc, "graphrt", op);
}

/* The tensor that `value` is a table of, and the table; or the value itself and NULL. */
static ir_value *root_of(ir_value *value, const grt_tensor **out_table)
{
    ir_node *node = value->producer;
    *out_table = NULL;
    if (!is_op(node, "QTable") || node->graph != value->graph || !ir_in(node, 1)->type.data)
        return value;
    *out_table = ir_in(node, 1)->type.data;
    return ir_in(node, 0);
}

static bool is_single_byte(const ir_value *value)
{
    return value->type.data && grt_tensor_elements(value->type.data) == 1;
}

/* What a step is a function of: its tensors are the tables of one root, or constants of one element. */
typedef struct unary {
    ir_value *root;
    const grt_tensor *tables[2]; /* of the step's tensors; NULL: the root itself */
    bool constant[2];
} unary;

static bool quantised_tables_add_operand(unary *u, int32_t i, ir_value *value)
{
    u->constant[i] = is_single_byte(value);
    if (u->constant[i])
        return true;
    ir_value *root = root_of(value, &u->tables[i]);
    const bool same = !u->root || u->root == root;
    u->root = root;
    return same;
}

/* QTable of a table, or QAdd and QMul of one root whose other inputs are constant. */
static bool read_unary(const ir_node *node, unary *out)
{
    *out = (unary){.root = NULL};
    if (is_op(node, "QTable"))
        return ir_in(node, 1)->type.data && quantised_tables_add_operand(out, 0, ir_in(node, 0)) &&
               out->tables[0];
    if ((!is_op(node, "QAdd") && !is_op(node, "QMul")) || node->n_in != QADD_INPUTS)
        return false;
    for (int32_t i = 0; i < QADD_INPUTS; i++)
        if (i != 0 && i != QADD_B && (!ir_in(node, i) || !ir_in(node, i)->type.data))
            return false;
    return quantised_tables_add_operand(out, 0, ir_in(node, 0)) &&
           quantised_tables_add_operand(out, 1, ir_in(node, QADD_B)) && out->root &&
           rewrite_same_shape(&out->root->type, &node->out[0]->type);
}

/* Runs the step on all values of its root. */
static grt_status evaluate_unary(pass_context *context, const ir_node *node, const unary *u, grt_value *out)
{
    enum { WORKSPACE = 1 << 20 };
    uint8_t bytes[BYTES];
    grt_tensor all, ones[2];
    const grt_tensor *in[QADD_INPUTS];
    quantised_all_bytes(u->root->type.dtype, bytes, &all);
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = ir_in(node, i)->type.data;
    for (int32_t i = 0; i < 2 && i * QADD_B < node->n_in; i++) {
        if (u->constant[i]) {
            ones[i] = *in[i * QADD_B];
            ones[i].rank = 0;
            in[i * QADD_B] = &ones[i];
        } else {
            in[i * QADD_B] = u->tables[i] ? u->tables[i] : &all;
        }
    }
    return context->target->evaluate(context->target, &node->desc, in, node->n_in, out, 1, WORKSPACE);
}

static grt_status quantised_tables_join(pass_context *context, ir_node *node, const unary *u)
{
    grt_value table;
    memset(&table, 0, sizeof table);
    const grt_status status = evaluate_unary(context, node, u, &table);
    if (status != GRT_OK) /* it may fail when it runs */
        return status == GRT_STATUS_OUT_OF_MEMORY ? status : GRT_OK;
    if (quantised_changes_nothing(&table.t, u->root->type.dtype)) {
        grt_value_clear(&table);
        context->changed += rewrite_take_over(node->out[0], u->root);
        return GRT_OK;
    }
    const grt_tensor *kept =
        grt_tensor_elements(&table.t) == BYTES ? rewrite_adopt(context->module, &table) : NULL;
    grt_value_clear(&table);
    if (!kept)
        return GRT_OK;
    ir_value *in[] = {u->root, ir_constant(node->graph, NULL, kept)};
    ir_node *made =
        in[1] ? ir_node_create(node->graph, node, "graphrt", "QTable", node->desc.name, 2, in, 1) : NULL;
    if (quantised_offer(context, made, node->out[0]) && rewrite_take_over(node->out[0], made->out[0]))
        context->changed++;
    return GRT_OK;
}

grt_status quantised_tables(pass_context *context, ir_graph *graph)
{
    if (!context->target->evaluate)
        return GRT_OK;
    IR_FOR_EACH_NODE (node, graph) {
        unary u;
        if (node->n_out == 1 && node->out[0] && node->out[0]->n_uses && read_unary(node, &u))
            GRT_TRY(quantised_tables_join(context, node, &u));
    }
    return GRT_OK;
}
