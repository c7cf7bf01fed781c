/* SPDX-License-Identifier: Apache-2.0 */
/* What passes share: replacing values, asking the target, looking around a node. */
#include "graph/passes/rewrite.h"
#include "graph/ir/constant.h"

#include "graph/ir/view.h"
#include "src/base/checked.h"

#include <string.h>

bool rewrite_is_reshape(const ir_node *node)
{
    return rewrite_has(node, OP_VIEW) && !rewrite_is(node, "Identity");
}

bool rewrite_is_output(const ir_value *value)
{
    for (const ir_use *use = value->uses; use; use = use->next)
        if (!use->node && !use->graph->parent)
            return true;
    return false;
}

/* Outputs of the main graph are known by their value's name. The names are exchanged, so each stays unique.
 */
bool rewrite_take_name(ir_value *from, ir_value *to)
{
    if (!to->producer || to->graph->parent || rewrite_is_output(to))
        return false;
    const char *name = to->name;
    to->name = from->name;
    from->name = name;
    return true;
}

bool rewrite_replace(ir_value *from, ir_value *to)
{
    if (from == to || (rewrite_is_output(from) && !rewrite_take_name(from, to)))
        return false;
    ir_value_replace(from, to);
    return true;
}

bool rewrite_take_over(ir_value *from, ir_value *to)
{
    if (from == to || (!rewrite_take_name(from, to) && rewrite_is_output(from)))
        return false;
    ir_value_replace(from, to);
    return true;
}

static void remove_if_unused(ir_node *node)
{
    for (int32_t i = 1; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            return;
    ir_node_remove(node);
}

bool rewrite_replace_node(ir_node *node, ir_value *to)
{
    if (!rewrite_replace(node->out[0], to))
        return false;
    remove_if_unused(node);
    return true;
}

bool rewrite_take_over_node(ir_node *node, ir_value *to)
{
    if (!rewrite_take_over(node->out[0], to))
        return false;
    remove_if_unused(node);
    return true;
}

void rewrite_forget_names(ir_value *value, const ir_value *last)
{
    while (value != last) {
        const ir_node *user = rewrite_only_user(value);
        ir_value_forget_name(value);
        if (!user)
            return;
        value = user->out[0];
    }
}

grt_tensor rewrite_tensor(const grt_dims *dims, const ir_type *type)
{
    grt_tensor t = {.dtype = type->dtype, .rank = type->rank};
    for (int32_t i = 0; i < type->rank; i++)
        if (!grt_dim_is_const(dims, type->dims[i], &t.dims[i]))
            t.dims[i] = -1;
    if (type->data)
        t.data = type->data->data;
    return t;
}

bool rewrite_needs_no_kernel(const ir_node *node)
{
    return ir_is_view(node) || (node->row && node->row->control);
}

typedef bool (*question)(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                         int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why);

static bool rewrite_ask(const pass_context *context, const ir_node *node, question answer, grt_text *why)
{
    enum { FEW = 32 };
    if (rewrite_needs_no_kernel(node))
        return true;
    const ir_module *module = node->graph->module;
    grt_tensor few_in[FEW], few_out[FEW], *in = few_in, *out = few_out;
    if (node->n_in > FEW)
        in = GRT_ARENA_ARRAY(module->arena, grt_tensor, node->n_in);
    if (node->n_out > FEW)
        out = GRT_ARENA_ARRAY(module->arena, grt_tensor, node->n_out);
    if (!in || !out)
        return false; /* the arena's failure is found at the end of the pass */
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = node->in[i].value ? rewrite_tensor(module->dims, &node->in[i].value->type)
                                  : (grt_tensor){.rank = -1};
    for (int32_t i = 0; i < node->n_out; i++)
        out[i] = node->out[i] ? rewrite_tensor(module->dims, &node->out[i]->type) : (grt_tensor){.rank = -1};
    return answer(context->target, &node->desc, in, node->n_in, out, node->n_out, why);
}

bool rewrite_supported(const pass_context *context, const ir_node *node, grt_text *why)
{
    return rewrite_ask(context, node, context->target->supports, why);
}

bool rewrite_runs(const pass_context *context, const ir_node *node, grt_text *why)
{
    return rewrite_ask(context, node,
                       context->target->runs ? context->target->runs : context->target->supports, why);
}

ir_value *rewrite_offered(const pass_context *context, ir_node *made)
{
    if (!made)
        return NULL;
    if (op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL))
        return made->out[0];
    ir_node_remove(made);
    return NULL;
}

bool rewrite_same_shape(const ir_type *a, const ir_type *b)
{
    if (a->rank < 0 || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

ir_node *rewrite_producer(const ir_value *value, const char *op)
{
    return value && rewrite_is(value->producer, op) ? value->producer : NULL;
}

bool rewrite_is_read_once(const ir_value *value)
{
    int32_t n = 0;
    for (const ir_use *use = value->uses; use && n < 2; use = use->next)
        n += !use->node || !rewrite_has(use->node, OP_READS_DIMS);
    return n == 1;
}

ir_node *rewrite_only_user(const ir_value *value)
{
    const ir_use *use = value ? value->uses : NULL;
    return value && value->n_uses == 1 && use->node && use->graph == value->graph ? use->node : NULL;
}

bool rewrite_become_reshape(ir_node *node, ir_value *x)
{
    const ir_type *type = &node->out[0]->type;
    int64_t shape[GRT_MAX_RANK];
    int32_t found = 0, taken = 0; /* dims by -1, from the others; by 0, from the input */
    bool zero = false;
    if (type->rank < 0 || type->kind != GRT_KIND_TENSOR)
        return false;
    for (int32_t i = 0; i < type->rank; i++) {
        if (grt_dim_is_const(node->graph->module->dims, type->dims[i], &shape[i])) {
            zero |= shape[i] == 0;
        } else if (i < x->type.rank && x->type.dims[i] == type->dims[i]) {
            shape[i] = 0;
            taken++;
        } else {
            shape[i] = -1;
            found++;
        }
    }
    if (found > 1 || (zero && (found || taken)))
        return false;
    ir_value *constant = ir_constant_ints(node->graph, node->desc.name, shape, type->rank);
    if (!constant)
        return false;
    ir_node_become(node, "", "Reshape");
    node->desc.attrs = NULL;
    node->desc.n_attrs = 0;
    if (zero)
        ir_attr_set_int(node, "allowzero", 1);
    ir_node_set_input(node, 0, x);
    if (node->n_in > 1)
        ir_node_set_input(node, 1, constant);
    else
        ir_node_add_input(node, constant);
    ir_node_drop_inputs(node, 2);
    return true;
}

/* A Reshape of `x` to the type; NULL if its dims cannot be written. */
static ir_value *rewrite_reshaped_at_once(ir_node *before, ir_value *x, const ir_type *type)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Reshape", before->desc.name, 1, &x, 1);
    if (!node)
        return NULL;
    node->out[0]->type = *type;
    if (rewrite_become_reshape(node, x) && op_infer_node(node) == GRT_OK &&
        rewrite_same_shape(&node->out[0]->type, type))
        return node->out[0];
    ir_node_remove(node);
    return NULL;
}

/* The same behind a Flatten whose first dim the Reshape copies: [b, h, s, d] to [b * h, s, d], where b and s
 * are symbols. */
static ir_value *rewrite_reshaped_flat(ir_node *before, ir_value *x, const ir_type *type)
{
    grt_dims *dims = before->graph->module->dims;
    grt_dim joined = x->type.rank > 0 ? x->type.dims[0] : GRT_DIM_NONE;
    for (int32_t axis = 2; axis < x->type.rank && type->rank > 0; axis++) {
        joined = grt_dim_mul(dims, joined, x->type.dims[axis - 1]);
        if (joined != type->dims[0] || grt_dim_is_const(dims, joined, NULL))
            continue;
        ir_node *flat = ir_node_create(before->graph, before, "", "Flatten", before->desc.name, 1, &x, 1);
        if (!flat)
            return NULL;
        ir_attr_set_int(flat, "axis", axis);
        ir_value *made =
            op_infer_node(flat) == GRT_OK ? rewrite_reshaped_at_once(before, flat->out[0], type) : NULL;
        if (made)
            return made;
        ir_node_remove(flat);
    }
    return NULL;
}

/* Where one type is the other with dims of 1 between: Unsqueeze, or Squeeze. */
static ir_value *rewrite_reshaped_by_ones(ir_node *before, ir_value *x, const ir_type *type)
{
    const bool more = type->rank > x->type.rank;
    const ir_type *wide = more ? type : &x->type, *narrow = more ? &x->type : type;
    int64_t axes[GRT_MAX_RANK];
    int32_t n = 0, at = 0;
    for (int32_t i = 0; i < wide->rank; i++) {
        if (at < narrow->rank && wide->dims[i] == narrow->dims[at])
            at++;
        else if (grt_dim_equals(before->graph->module->dims, wide->dims[i], 1))
            axes[n++] = i;
        else
            return NULL;
    }
    ir_value *list = n && at == narrow->rank ? ir_constant_ints(before->graph, "", axes, n) : NULL;
    ir_node *node = list ? ir_node_create(before->graph, before, "", more ? "Unsqueeze" : "Squeeze",
                                          before->desc.name, 2, (ir_value *[]){x, list}, 1)
                         : NULL;
    if (!node)
        return NULL;
    if (op_infer_node(node) == GRT_OK && rewrite_same_shape(&node->out[0]->type, type))
        return node->out[0];
    ir_node_remove(node);
    return NULL;
}

ir_value *rewrite_reshaped(ir_node *before, ir_value *x, int32_t rank, const grt_dim *dims)
{
    const ir_type type = {.kind = GRT_KIND_TENSOR, .dtype = x->type.dtype, .rank = rank, .dims = dims};
    if (rewrite_same_shape(&x->type, &type))
        return x;
    ir_value *made = rewrite_reshaped_at_once(before, x, &type);
    made = made ? made : rewrite_reshaped_flat(before, x, &type);
    return made ? made : rewrite_reshaped_by_ones(before, x, &type);
}

ir_value *rewrite_join(ir_graph *graph, const grt_tensor *const *parts, int32_t n, int32_t axis)
{
    const int64_t rows = grt_dims_product(parts[0]->dims, 0, axis);
    int64_t width = 0;
    for (int32_t i = 0; i < n; i++)
        if (!grt_add_i64(width, parts[i]->dims[axis], &width))
            return NULL;
    grt_tensor wanted = *parts[0];
    wanted.dims[axis] = width;
    grt_tensor *all = ir_constant_create(graph->module, wanted.dtype, wanted.rank, wanted.dims);
    if (!all)
        return NULL;
    char *to = all->data;
    for (int64_t row = 0; row < rows; row++)
        for (int32_t i = 0; i < n; i++) {
            const size_t size = grt_tensor_bytes(parts[i]) / (size_t)rows;
            memcpy(to, (const char *)parts[i]->data + (size_t)row * size, size);
            to += size;
        }
    return ir_constant(graph, NULL, all);
}

static grt_status each_graph(pass_context *context, ir_graph *graph,
                             grt_status (*visit)(pass_context *context, ir_graph *graph),
                             void (*look)(pass_context *context, ir_node *node))
{
    if (visit)
        GRT_TRY(visit(context, graph));
    if (look)
        IR_FOR_EACH_NODE (node, graph)
            look(context, node);
    if (!graph->module->has_bodies)
        return GRT_OK;
    IR_FOR_EACH_NODE (node, graph)
        for (size_t i = 0; i < node->desc.n_attrs; i++)
            if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
                GRT_TRY(each_graph(context, node->desc.attrs[i].graph, visit, look));
    return GRT_OK;
}

void rewrite_clear_scratch(pass_context *context, grt_arena *scratch)
{
    if (grt_arena_failed(scratch))
        grt_arena_fail(context->module->arena);
    grt_arena_reset(scratch);
}

void rewrite_number_nodes(ir_graph *graph)
{
    int64_t place = 0;
    IR_FOR_EACH_NODE (node, graph)
        node->mark = place++;
}

grt_status rewrite_each_graph(pass_context *context,
                              grt_status (*visit)(pass_context *context, ir_graph *graph))
{
    return each_graph(context, context->module->main, visit, NULL);
}

grt_status rewrite_each_node(pass_context *context, void (*look)(pass_context *context, ir_node *node))
{
    return each_graph(context, context->module->main, NULL, look);
}

grt_tensor *rewrite_adopt(ir_module *module, grt_value *value)
{
    grt_tensor *tensor = grt_arena_memdup(module->arena, &value->t, sizeof value->t);
    grt_buffer *buffer = value->buffer;
    if (tensor && !buffer && !tensor->data) {
        static const char empty[16];
        tensor->data = (void *)empty;
    }
    if (!tensor || !buffer) /* without a buffer the data is borrowed from a constant */
        return tensor;
    value->buffer = NULL;
    return ir_constant_adopt(module, buffer) ? tensor : NULL;
}

bool rewrite_are_neighbours(const ir_node *node, const int64_t *indices, int64_t n, int64_t start,
                            int64_t dim)
{
    compile_budget *budget = &node->graph->module->budget;
    int64_t i = 0;
    if (!budget_allows(budget, 0, (double)n))
        return false;
    while (i < n && (indices[i] < 0 ? indices[i] + dim : indices[i]) == start + i)
        i++;
    budget_work(budget, (double)i);
    return i == n;
}

bool rewrite_is_listed(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *p = list; p && *p;) {
        size_t n = strcspn(p, ",");
        if (n == size && !memcmp(p, name, n))
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}
