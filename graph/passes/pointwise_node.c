/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/pointwise_node.h"

#include "graph/ops/pointwise.h"

static int32_t present_inputs(const ir_node *node)
{
    int32_t n = node->n_in;
    while (n && !node->in[n - 1].value)
        n--;
    return n;
}

static bool has_group_types(const ir_node *node, bool truth)
{
    const ir_type *out = &node->out[0]->type;
    grt_dtype dtype = out->dtype == GRT_DTYPE_BOOL ? GRT_DTYPE_NONE : out->dtype;
    if (out->kind != GRT_KIND_TENSOR || out->rank < 0 || (out->dtype == GRT_DTYPE_BOOL) != truth)
        return false;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        if (!value || value->type.dtype == GRT_DTYPE_BOOL)
            continue;
        if (dtype && value->type.dtype != dtype)
            return false;
        dtype = value->type.dtype;
    }
    return !dtype || grt_dtype_in(dtype, POINTWISE_FLOATS);
}

int32_t pointwise_node_opcode(const ir_node *node)
{
    if (!node->row || !(node->row->flags & OP_POINTWISE) || node->n_out != 1 || !node->out[0] ||
        !ir_in(node, 0))
        return -1;
    const int32_t opcode = grt_pointwise_opcode_of(&node->desc, present_inputs(node));
    return opcode >= 0 && grt_pointwise_info(opcode)->fusible &&
                   has_group_types(node, grt_pointwise_info(opcode)->truth)
               ? opcode
               : -1;
}

bool pointwise_node_is_cast(const ir_node *node)
{
    const ir_value *x = rewrite_is(node, "Cast") ? ir_in(node, 0) : NULL;
    return x && node->out[0]->type.rank >= 0 &&
           grt_dtype_in(x->type.dtype, POINTWISE_FLOATS | GRT_BIT(BOOL)) &&
           grt_dtype_in(node->out[0]->type.dtype, POINTWISE_FLOATS);
}

static bool is_exact_cast(const ir_node *node)
{
    const grt_dtype to = node->out[0]->type.dtype, from = ir_in(node, 0)->type.dtype;
    return to == GRT_DTYPE_FLOAT || to == from || from == GRT_DTYPE_BOOL;
}

bool pointwise_node_may_stay_inside(const ir_node *node)
{
    const ir_value *y = node->out[0];
    if (pointwise_node_is_cast(node) && !is_exact_cast(node))
        return false;
    for (const ir_use *use = y->uses; use && grt_dtype_in(y->type.dtype, POINTWISE_NARROW_FLOATS);
         use = use->next)
        if (pointwise_node_is_cast(use->node))
            return false;
    return true;
}

bool pointwise_node_is_immediate(const ir_value *value, double *out_value)
{
    const grt_tensor *t = value->type.data;
    return t && grt_dtype_in(t->dtype, GRT_SET_FLOATS) && ir_const_float(value, out_value);
}

int64_t pointwise_node_group_of_uses(const ir_value *value)
{
    int64_t found = -1;
    for (const ir_use *use = value->uses; use; use = use->next) {
        if (!use->node || use->graph != value->graph || use->node->mark < 0 ||
            (found >= 0 && use->node->mark != found))
            return -1;
        found = use->node->mark;
    }
    return found;
}

bool pointwise_node_add_input(const ir_value **inputs, int32_t *n, int32_t most, const ir_value *value)
{
    for (int32_t i = 0; i < *n; i++)
        if (inputs[i] == value)
            return true;
    if (*n == most)
        return false;
    inputs[(*n)++] = value;
    return true;
}

ir_node *pointwise_node_create(const char *op, const pointwise_group *g)
{
    ir_node *root = g->members[0];
    ir_node *node = ir_node_create(root->graph, root, "graphrt", op, g->members[g->n_members - 1]->desc.name,
                                   g->n_inputs, (ir_value *const *)g->inputs, 1);
    if (!node)
        return NULL;
    for (int32_t i = g->n_members - 1; i-- > 0;)
        ir_node_absorb_name(node, g->members[i]);
    ir_attr_set_ints(node, "program", g->code, (size_t)g->n_code * 4);
    grt_attr constants = {.name = "constants", .kind = GRT_ATTR_FLOATS};
    constants.floats.v =
        grt_arena_memdup(root->graph->module->arena, g->constants, (size_t)g->n_constants * sizeof(float));
    constants.floats.n = (size_t)g->n_constants;
    if (g->n_constants)
        ir_attr_set(node, constants);
    return node;
}

void pointwise_node_name_type(ir_node *node, bool truth, grt_dtype wanted)
{
    grt_dtype floats = GRT_DTYPE_NONE;
    bool differ = false;
    for (int32_t i = 0; i < node->n_in; i++) {
        const grt_dtype found = node->in[i].value->type.dtype;
        differ |= floats && found != GRT_DTYPE_BOOL && found != floats;
        floats = found != GRT_DTYPE_BOOL ? found : floats;
    }
    const grt_dtype by_itself = truth ? GRT_DTYPE_BOOL : floats ? floats : GRT_DTYPE_FLOAT;
    if (differ || wanted != by_itself)
        ir_attr_set_int(node, "to", wanted);
}
