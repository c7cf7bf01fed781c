/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: the plan of an optimised module. Values get numbers, bodies their captures, dims and weights
 * their tables. */
#include "graph/lower.h"
#include "graph/ir/flops.h"
#include "graph/ir/ir.h"
#include "graph/ir/view.h"
#include "src/base/hash.h"
#include "src/base/grow.h"

#include <string.h>

/* ir_value * or grt_tensor * -> index */
typedef struct entry {
    const void *key;
    int32_t index;
    UT_hash_handle hh;
} entry;

/* One graph on its way to a body. */
typedef struct body_builder {
    ir_graph *graph;
    struct body_builder *outer;
    entry *ids;
    int32_t index, n_values, capacity, n_captures;
    grt_plan_value *values;
    int32_t *captures_outer, *captures_inner;
    int32_t captures_capacity;
} body_builder;

typedef struct lowering {
    grt_arena *arena;
    ir_module *module;
    grt_plan *plan;
    grt_plan_body *bodies;
    int32_t n_bodies, bodies_capacity;
    entry *weight_ids;
    grt_tensor *weights;
    int32_t weights_capacity;
    int32_t *dim_map;    /* module dim -> plan dim, -1 */
    int32_t *symbol_map; /* module symbol -> plan symbol, -1 */
    bool *symbol_static; /* bound by an input of the main graph */
    bool *dim_static;    /* per plan dim */
    grt_dim_expr *dims;
    const char **symbols;
    bool failed;
} lowering;

static entry *find_id(entry *table, const void *key)
{
    entry *found;
    HASH_FIND_PTR(table, &key, found);
    return found;
}

static void add_id(lowering *low, entry **table, const void *key, int32_t index)
{
    entry *e = GRT_ARENA_NEW(low->arena, entry);
    if (!e) {
        low->failed = true;
        return;
    }
    e->key = key;
    e->index = index;
    HASH_ADD_PTR(*table, key, e);
    low->failed = low->failed || !GRT_HASH_HAS(e);
}

#define GROW(low, list, n, capacity) \
    (GRT_ARENA_GROW((low)->arena, list, n, capacity) || !((low)->failed = true))

static int32_t lower_symbol(lowering *low, int32_t symbol)
{
    if (low->symbol_map[symbol] < 0) {
        low->symbols[low->plan->n_symbols] = grt_dims_symbol_name(low->module->dims, symbol);
        low->symbol_map[symbol] = low->plan->n_symbols++;
    }
    return low->symbol_map[symbol];
}

static int32_t lower_dim(lowering *low, grt_dim dim)
{
    if (low->dim_map[dim] >= 0)
        return low->dim_map[dim];
    grt_dim_expr e = grt_dim_get(low->module->dims, dim);
    bool is_static = true;
    if (e.op == GRT_DIM_SYMBOL) {
        is_static = low->symbol_static[e.value];
        e.value = lower_symbol(low, (int32_t)e.value);
    } else if (e.op != GRT_DIM_CONST) {
        e.a = lower_dim(low, e.a);
        e.b = lower_dim(low, e.b);
        is_static = low->dim_static[e.a] && low->dim_static[e.b];
    }
    int32_t index = low->plan->n_dims++;
    low->dims[index] = e;
    low->dim_static[index] = is_static;
    low->dim_map[dim] = index;
    return index;
}

static int32_t add_weight(lowering *low, const grt_tensor *tensor)
{
    entry *found = find_id(low->weight_ids, tensor);
    if (found)
        return found->index;
    int32_t index = low->plan->n_weights;
    if (!GROW(low, low->weights, index, low->weights_capacity))
        return 0;
    low->weights[index] = *tensor;
    low->plan->n_weights++;
    add_id(low, &low->weight_ids, tensor, index);
    return index;
}

static int32_t lower_add_value(lowering *low, body_builder *body, const ir_value *value,
                               grt_plan_value_role role)
{
    if (!GROW(low, body->values, body->n_values, body->capacity))
        return 0;
    const ir_type *type = &value->type;
    grt_plan_value v = {.name = value->name,
                        .role = role,
                        .kind = type->kind,
                        .element_kind = type->element_kind,
                        .dtype = type->dtype,
                        .keys = type->keys,
                        .rank = type->rank,
                        .weight = -1};
    v.is_static = type->rank >= 0 && type->kind == GRT_KIND_TENSOR && type->dtype != GRT_DTYPE_NONE;
    if (type->rank > 0) {
        int32_t *dims = GRT_ARENA_ARRAY(low->arena, int32_t, type->rank);
        if (!dims) {
            low->failed = true;
            return 0;
        }
        for (int32_t i = 0; i < type->rank; i++) {
            dims[i] = lower_dim(low, type->dims[i]);
            v.is_static = v.is_static && low->dim_static[dims[i]];
        }
        v.dims = dims;
    }
    if (role == GRT_VALUE_CONST)
        v.weight = add_weight(low, type->data);
    if (role != GRT_VALUE_CONST && (body->outer || v.dtype == GRT_DTYPE_STRING))
        v.is_static = false; /* bodies run with dims of the moment; string bytes are allocated as they come */
    int32_t id = body->n_values++;
    body->values[id] = v;
    add_id(low, &body->ids, value, id);
    return id;
}

static void add_capture(lowering *low, body_builder *body, int32_t outer, int32_t inner)
{
    int32_t capacity = body->captures_capacity;
    if (!GROW(low, body->captures_outer, body->n_captures, body->captures_capacity) ||
        !GROW(low, body->captures_inner, body->n_captures, capacity))
        return;
    body->captures_outer[body->n_captures] = outer;
    body->captures_inner[body->n_captures++] = inner;
}

/* The number of a value as seen from `body`: its own, a constant's, or a capture through the bodies around
 * it. */
static int32_t value_id(lowering *low, body_builder *body, const ir_value *value)
{
    if (!value || low->failed)
        return -1;
    entry *found = find_id(body->ids, value);
    if (found)
        return found->index;
    if (value->type.data && !value->producer)
        return lower_add_value(low, body, value, GRT_VALUE_CONST);
    if (value->graph == body->graph || !body->outer)
        return lower_add_value(low, body, value, GRT_VALUE_STEP);
    int32_t outer = value_id(low, body->outer, value);
    int32_t inner = lower_add_value(low, body, value, GRT_VALUE_CAPTURE);
    add_capture(low, body, outer, inner);
    return inner;
}

static int32_t lower_graph(lowering *low, ir_graph *graph, body_builder *outer);

static grt_step_kind step_kind(const ir_node *node)
{
    static const grt_step_kind kinds[N_OP_CONTROLS] = {[OP_IF] = GRT_STEP_IF,
                                                       [OP_LOOP] = GRT_STEP_LOOP,
                                                       [OP_SCAN] = GRT_STEP_SCAN,
                                                       [OP_SEQUENCE_MAP] = GRT_STEP_SEQUENCE_MAP};
    if (node->row && node->row->control)
        return kinds[node->row->control];
    return ir_is_view(node) ? GRT_STEP_VIEW : GRT_STEP_KERNEL;
}

/* Attributes with graphs become attributes with body indices. */
static void lower_bodies(lowering *low, body_builder *body, ir_node *node, grt_plan_step *step)
{
    grt_attr *attrs = grt_arena_memdup(low->arena, node->desc.attrs, node->desc.n_attrs * sizeof *attrs);
    int32_t *bodies = GRT_ARENA_ARRAY(low->arena, int32_t, node->desc.n_attrs);
    if (!attrs || !bodies) {
        low->failed = true;
        return;
    }
    /* Kernels and the executor expect then_branch before else_branch, whatever the file's order. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < node->desc.n_attrs; i++) {
            bool last = !strcmp(attrs[i].name, "else_branch");
            if (node->desc.attrs[i].kind != GRT_ATTR_GRAPH || last != (pass == 1))
                continue;
            int32_t index = lower_graph(low, node->desc.attrs[i].graph, body);
            attrs[i].body = index;
            bodies[step->n_bodies++] = index;
        }
    step->desc.attrs = attrs;
    step->bodies = bodies;
}

static grt_plan_step lower_node(lowering *low, body_builder *body, ir_node *node)
{
    grt_plan_step step = {
        .kind = step_kind(node), .desc = node->desc, .n_in = node->n_in, .n_out = node->n_out};
    int32_t *in = GRT_ARENA_ARRAY(low->arena, int32_t, node->n_in + 1);
    int32_t *out = GRT_ARENA_ARRAY(low->arena, int32_t, node->n_out + 1);
    if (!in || !out) {
        low->failed = true;
        return step;
    }
    step.is_static = step.kind <= GRT_STEP_VIEW;
    for (int32_t i = 0; i < node->n_in; i++) {
        in[i] = value_id(low, body, node->in[i].value);
        step.is_static = step.is_static && (in[i] < 0 || body->values[in[i]].is_static);
    }
    for (int32_t i = 0; i < node->n_out; i++) {
        out[i] = value_id(low, body, node->out[i]);
        step.is_static = step.is_static && (out[i] < 0 || body->values[out[i]].is_static);
    }
    if (step.kind == GRT_STEP_VIEW && step.is_static)
        step.n_in = 1;   /* the outputs' dims are in the plan: shape inputs are not needed */
    if (!step.is_static) /* its outputs get memory when their dims are known */
        for (int32_t i = 0; i < node->n_out; i++)
            if (out[i] >= 0)
                body->values[out[i]].is_static = false;
    step.in = in;
    step.out = out;
    step.flops = op_flops(node);
    if (ir_node_has_body(node))
        lower_bodies(low, body, node, &step);
    return step;
}

static int32_t lower_graph(lowering *low, ir_graph *graph, body_builder *outer)
{
    body_builder body = {.graph = graph, .outer = outer, .index = low->n_bodies};
    if (!GROW(low, low->bodies, low->n_bodies, low->bodies_capacity))
        return 0;
    low->n_bodies++;
    int32_t *inputs = GRT_ARENA_ARRAY(low->arena, int32_t, graph->n_inputs + 1);
    int32_t *outputs = GRT_ARENA_ARRAY(low->arena, int32_t, graph->n_outputs + 1);
    grt_plan_step *steps = GRT_ARENA_ARRAY(low->arena, grt_plan_step, graph->n_nodes + 1);
    if (!inputs || !outputs || !steps) {
        low->failed = true;
        return 0;
    }
    for (int32_t i = 0; i < graph->n_inputs; i++) {
        inputs[i] = lower_add_value(low, &body, graph->inputs[i], GRT_VALUE_INPUT);
        ir_value *fallback = graph->defaults[i];
        if (fallback && fallback->type.data && !low->failed)
            body.values[inputs[i]].weight = add_weight(low, fallback->type.data);
    }
    int32_t n_steps = 0;
    IR_FOR_EACH_NODE (node, graph)
        steps[n_steps++] = lower_node(low, &body, node);
    for (int32_t i = 0; i < graph->n_outputs; i++)
        outputs[i] = value_id(low, &body, graph->outputs[i].value);
    low->bodies[body.index] = (grt_plan_body){.name = graph->name,
                                              .n_values = body.n_values,
                                              .n_steps = n_steps,
                                              .n_inputs = graph->n_inputs,
                                              .n_outputs = graph->n_outputs,
                                              .n_captures = body.n_captures,
                                              .values = body.values,
                                              .steps = steps,
                                              .inputs = inputs,
                                              .outputs = outputs,
                                              .output_names = graph->output_names,
                                              .captures_outer = body.captures_outer,
                                              .captures_inner = body.captures_inner,
                                              .parent = outer ? outer->index : -1};
    HASH_CLEAR(hh, body.ids);
    return body.index;
}

static void find_static_symbols(lowering *low)
{
    const ir_graph *graph = low->module->main;
    for (int32_t i = 0; i < graph->n_inputs; i++) {
        const ir_type *type = &graph->inputs[i]->type;
        for (int32_t k = 0; type->kind == GRT_KIND_TENSOR && k < type->rank; k++) {
            grt_dim_expr e = grt_dim_get(low->module->dims, type->dims[k]);
            if (e.op == GRT_DIM_SYMBOL)
                low->symbol_static[e.value] = true;
        }
    }
}

static bool lower_init(lowering *low)
{
    int32_t n_dims = grt_dims_count(low->module->dims), n_symbols = grt_dims_symbols(low->module->dims);
    low->plan = GRT_ARENA_NEW(low->arena, grt_plan);
    low->dim_map = GRT_ARENA_ARRAY(low->arena, int32_t, n_dims + 1);
    low->dims = GRT_ARENA_ARRAY(low->arena, grt_dim_expr, n_dims + 1);
    low->dim_static = GRT_ARENA_ARRAY(low->arena, bool, n_dims + 1);
    low->symbol_map = GRT_ARENA_ARRAY(low->arena, int32_t, n_symbols + 1);
    low->symbol_static = GRT_ARENA_ARRAY(low->arena, bool, n_symbols + 1);
    low->symbols = GRT_ARENA_ARRAY(low->arena, const char *, n_symbols + 1);
    if (grt_arena_failed(low->arena))
        return false;
    memset(low->dim_map, 0xff, (size_t)n_dims * sizeof *low->dim_map);
    memset(low->symbol_map, 0xff, (size_t)n_symbols * sizeof *low->symbol_map);
    return true;
}

static void release_module(void *module)
{
    ir_module_release(module);
}

static void lower_finish(lowering *low, const grt_target *target)
{
    grt_plan *plan = low->plan;
    plan->arena = low->arena;
    plan->bodies = low->bodies;
    plan->n_bodies = low->n_bodies;
    plan->weights = low->weights;
    plan->dims = low->dims;
    plan->symbols = low->symbols;
    plan->target = grt_arena_strdup(low->arena, target->name);
    plan->producer = low->module->producer;
    plan->metadata = low->module->metadata;
    plan->opset = low->module->opset;
    plan->source_nodes = low->module->source_nodes;
    plan->options = "";
    for (int32_t i = 0; i < plan->n_weights; i++) {
        plan->parameters += grt_tensor_elements(&plan->weights[i]);
        plan->weights_bytes += grt_tensor_bytes(&plan->weights[i]);
    }
    for (int32_t b = 0; b < plan->n_bodies; b++)
        for (int32_t s = 0; s < plan->bodies[b].n_steps; s++)
            plan->flops += plan->bodies[b].steps[s].flops;
}

grt_status ir_lower(ir_module *module, const grt_target *target, grt_plan **out_plan)
{
    lowering low = {.arena = grt_arena_create(), .module = module};
    if (!low.arena || !lower_init(&low))
        goto memory;
    find_static_symbols(&low);
    lower_graph(&low, module->main, NULL);
    HASH_CLEAR(hh, low.weight_ids);
    if (low.failed || grt_arena_failed(low.arena))
        goto memory;
    lower_finish(&low, target);
    if (!grt_arena_defer(low.arena, release_module, module)) {
        grt_arena_release(low.arena);
        return grt_fail_memory(sizeof module); /* the module is gone already */
    }
    *out_plan = low.plan;
    return GRT_OK;
memory:
    grt_arena_release(low.arena);
    ir_module_release(module);
    return grt_fail_memory(0);
}
