/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of graphs, and of the ops that have bodies: If, Loop, Scan, SequenceMap. A rule of graph/ops/
 * sees types only, so what needs the bodies' nodes is here.
 *
 * The inputs of a Loop's or Scan's body are seen once per iteration. A state's type is first taken to be that
 * of its initial value; where the body hands back something else it is widened (a dim that differs becomes a
 * fresh symbol, a rank that differs is forgotten) and the body is inferred again, until nothing changes. */
#include "graph/ir/infer.h"

#include <string.h>

/* Nested loops multiply their rounds; from this depth on states are taken to have any shape, which needs one
 * round only. */
enum { MAX_EXACT_DEPTH = 4 };

static grt_status infer_graph(ir_graph *graph, int32_t depth);

/* ---- types ---- */

static const ir_type nothing = {.rank = -1};

/* The type without its content, for values that change between iterations. */
static ir_type contentless(const ir_type *type)
{
    ir_type t = *type;
    t.data = NULL;
    t.elems = NULL;
    t.n_elems = 0;
    return t;
}

/* A view of a body's type from outside: symbols made inside differ per iteration, or are unknown if the body
 * did not run. */
static grt_status export_dims(ir_module *module, ir_type *type, int32_t first_inner_symbol)
{
    if (type->rank <= 0)
        return GRT_OK;
    grt_dim *dims = GRT_ARENA_ARRAY(module->arena, grt_dim, type->rank);
    if (!dims)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < type->rank; i++) {
        bool inner = grt_dim_newest_symbol(module->dims, type->dims[i]) >= first_inner_symbol;
        dims[i] = inner ? grt_dim_fresh(module->dims) : type->dims[i];
    }
    type->dims = dims;
    return GRT_OK;
}

static grt_status infer_bodies_set_type(ir_value *value, ir_type type)
{
    if (!value)
        return GRT_OK;
    /* What the model declares fills in what is unknown. */
    if (!type.dtype)
        type.dtype = value->type.dtype;
    if (!type.dtype ||
        (type.kind == GRT_KIND_OPTIONAL && value->type.kind == type.kind && !type.element_kind))
        type.element_kind = value->type.element_kind;
    if (!type.keys)
        type.keys = value->type.keys;
    value->type = type;
    return GRT_OK;
}

static grt_status infer_bodies_check_dtypes(const ir_node *node, const char *what, int32_t index,
                                            const ir_type *a, const ir_type *b)
{
    /* An optional may hold what the other side is. */
    bool kinds_differ = a->kind != b->kind && a->kind != GRT_KIND_OPTIONAL && b->kind != GRT_KIND_OPTIONAL;
    kinds_differ |=
        (a->element_kind == GRT_KIND_MAP) != (b->element_kind == GRT_KIND_MAP) || a->keys != b->keys;
    if (a->dtype && b->dtype && (a->dtype != b->dtype || kinds_differ))
        return grt_fail_op(
            &node->desc, GRT_STATUS_INVALID_MODEL, "%s %d: one side is %s%s, the other %s%s", what, index,
            a->kind == GRT_KIND_TENSOR ? "" : "a sequence, optional or map of ", grt_dtype_name(a->dtype),
            b->kind == GRT_KIND_TENSOR ? "" : "a sequence, optional or map of ", grt_dtype_name(b->dtype));
    return GRT_OK;
}

/* ---- bodies ---- */

static ir_graph *infer_body_of(const ir_node *node, const char *name)
{
    const grt_attr *attr = grt_attr_find(&node->desc, name);
    return attr && attr->kind == GRT_ATTR_GRAPH ? attr->graph : NULL;
}

static grt_status need_body(const ir_node *node, const char *name, ir_graph **out_body)
{
    *out_body = infer_body_of(node, name);
    if (!*out_body)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "the graph attribute '%s' is missing",
                           name);
    return GRT_OK;
}

static grt_status forget_types(ir_graph *graph, void *user)
{
    (void)user;
    IR_FOR_EACH_NODE (node, graph)
        for (int32_t i = 0; i < node->n_out; i++)
            if (node->out[i])
                node->out[i]->type = nothing;
    return GRT_OK;
}

static const ir_type *infer_bodies_result(const ir_graph *body, int32_t i)
{
    return i < body->n_outputs && body->outputs[i].value ? &body->outputs[i].value->type : &nothing;
}

/* Values that go round in a loop: body inputs first.. with body outputs of the same number further on. */
typedef struct states {
    ir_graph *body;
    int32_t n, first_in, first_out;
    uint32_t *widened; /* per state, bit k: dim k is a symbol of its own */
} states;

/* Compare what went in with what came out; *out_changed if an input had to be widened. */
static grt_status infer_bodies_widen(const ir_node *node, const states *s, bool *out_changed)
{
    ir_module *module = node->graph->module;
    for (int32_t i = 0; i < s->n; i++) {
        ir_type *in = &s->body->inputs[s->first_in + i]->type;
        const ir_type *out = infer_bodies_result(s->body, s->first_out + i);
        GRT_TRY(infer_bodies_check_dtypes(node, "loop-carried value", i, in, out));
        if (!in->dtype && out->dtype) {
            in->dtype = out->dtype;
            *out_changed = true;
        }
        if (in->rank < 0)
            continue;
        if (out->rank != in->rank) {
            in->rank = -1;
            in->dims = NULL;
            *out_changed = true;
            continue;
        }
        grt_dim *dims = GRT_ARENA_ARRAY(module->arena, grt_dim, in->rank);
        if (!dims)
            return grt_fail_memory(0);
        for (int32_t k = 0; k < in->rank; k++) {
            dims[k] = in->dims[k];
            if (in->dims[k] == out->dims[k] || (s->widened[i] >> k & 1u))
                continue;
            s->widened[i] |= 1u << k;
            dims[k] = grt_dim_fresh(module->dims);
            *out_changed = true;
        }
        in->dims = dims;
    }
    return GRT_OK;
}

/* Infer the body until the states' types hold for every iteration. */
static grt_status infer_rounds(ir_node *node, states *s, int32_t depth)
{
    s->widened = GRT_ARENA_ARRAY(node->graph->module->arena, uint32_t, s->n);
    if (!s->widened)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < s->n && depth >= MAX_EXACT_DEPTH; i++)
        s->body->inputs[s->first_in + i]->type.rank = -1;
    for (bool changed = true; changed;) {
        changed = false;
        GRT_TRY(infer_graph(s->body, depth + 1));
        GRT_TRY(infer_bodies_widen(node, s, &changed));
        if (changed)
            GRT_TRY(ir_graph_walk(s->body, forget_types, NULL));
    }
    return GRT_OK;
}

static grt_status need_counts(const ir_node *node, const ir_graph *body, int64_t inputs, int64_t outputs)
{
    if (body->n_inputs != inputs || body->n_outputs != outputs)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                           "its body must have %lld inputs and %lld outputs, found %d and %d",
                           (long long)inputs, (long long)outputs, body->n_inputs, body->n_outputs);
    return GRT_OK;
}

/* ---- If ---- */

static grt_status join_branches(ir_node *node, int32_t i, const ir_graph *yes, const ir_graph *no,
                                int32_t first_inner)
{
    ir_module *module = node->graph->module;
    ir_type a = contentless(infer_bodies_result(yes, i)), b = contentless(infer_bodies_result(no, i));
    GRT_TRY(infer_bodies_check_dtypes(node, "output", i, &a, &b));
    if (!a.dtype) {
        a.dtype = b.dtype;
        a.kind = b.kind;
        a.element_kind = b.element_kind;
    }
    if (a.rank != b.rank) {
        a.rank = -1;
        a.dims = NULL;
    }
    GRT_TRY(export_dims(module, &a, first_inner));
    for (int32_t k = 0; k < a.rank; k++)
        if (a.dims[k] != b.dims[k])
            ((grt_dim *)a.dims)[k] = grt_dim_fresh(module->dims); /* export_dims made the array */
    return infer_bodies_set_type(node->out[i], a);
}

static grt_status infer_if(ir_node *node, int32_t depth)
{
    ir_graph *yes, *no;
    GRT_TRY(need_body(node, "then_branch", &yes));
    GRT_TRY(need_body(node, "else_branch", &no));
    GRT_TRY(need_counts(node, yes, 0, node->n_out));
    GRT_TRY(need_counts(node, no, 0, node->n_out));
    int32_t first_inner = grt_dims_symbols(node->graph->module->dims);
    GRT_TRY(infer_graph(yes, depth + 1));
    GRT_TRY(infer_graph(no, depth + 1));
    for (int32_t i = 0; i < node->n_out; i++)
        GRT_TRY(join_branches(node, i, yes, no, first_inner));
    return GRT_OK;
}

/* ---- Loop ---- */

/* The body's result i with one more dim in front of `axis`. */
static grt_status stacked(ir_module *module, const ir_type *item, int64_t axis, grt_dim count,
                          int32_t first_inner, ir_type *out)
{
    *out = contentless(item);
    if (item->rank < 0 || item->rank >= GRT_MAX_RANK) {
        out->rank = -1;
        out->dims = NULL;
        return GRT_OK;
    }
    GRT_TRY(export_dims(module, out, first_inner));
    grt_dim *dims = GRT_ARENA_ARRAY(module->arena, grt_dim, item->rank + 1);
    if (!dims)
        return grt_fail_memory(0);
    for (int32_t k = 0, from = 0; k <= item->rank; k++)
        dims[k] = k == axis ? count : out->dims[from++];
    out->rank = item->rank + 1;
    out->dims = dims;
    return GRT_OK;
}

static grt_status infer_loop(ir_node *node, int32_t depth)
{
    ir_module *module = node->graph->module;
    ir_graph *body;
    GRT_TRY(need_body(node, "body", &body));
    int32_t n = node->n_in > 2 ? node->n_in - 2 : 0;
    if (node->n_out < n)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "it carries %d values but has %d outputs",
                           n, node->n_out);
    GRT_TRY(need_counts(node, body, n + 2, node->n_out + 1));
    int32_t first_inner = grt_dims_symbols(module->dims);
    GRT_TRY(infer_bodies_set_type(body->inputs[0], (ir_type){.dtype = GRT_DTYPE_INT64}));
    GRT_TRY(infer_bodies_set_type(body->inputs[1], (ir_type){.dtype = GRT_DTYPE_BOOL}));
    for (int32_t i = 0; i < n; i++)
        GRT_TRY(infer_bodies_set_type(body->inputs[2 + i],
                                      ir_in(node, 2 + i) ? contentless(&ir_in(node, 2 + i)->type) : nothing));
    /* The condition goes round too, as state -1: a body may hand back bool[1]. */
    states s = {.body = body, .n = n + 1, .first_in = 1, .first_out = 0};
    GRT_TRY(infer_rounds(node, &s, depth));
    for (int32_t i = 0; i < n; i++) {
        ir_type type = contentless(&body->inputs[2 + i]->type);
        if (infer_bodies_result(body, 1 + i)->dtype && type.kind != infer_bodies_result(body, 1 + i)->kind)
            type = contentless(infer_bodies_result(body, 1 + i));
        GRT_TRY(export_dims(module, &type, first_inner));
        GRT_TRY(infer_bodies_set_type(node->out[i], type));
    }
    for (int32_t i = n; i < node->n_out; i++) {
        ir_type type;
        GRT_TRY(stacked(module, infer_bodies_result(body, 1 + i), 0, grt_dim_fresh(module->dims), first_inner,
                        &type));
        GRT_TRY(infer_bodies_set_type(node->out[i], type));
    }
    return GRT_OK;
}

/* ---- Scan ---- */

static int64_t list_at(const grt_op_desc *desc, const char *name, int32_t i)
{
    size_t n;
    const int64_t *v = grt_attr_ints(desc, name, &n);
    return (size_t)i < n ? v[i] : 0;
}

/* One slice of a scanned input; *count becomes the number of slices. */
static grt_status slice_type(ir_node *node, int32_t i, const ir_type *whole, ir_type *out, grt_dim *count)
{
    ir_module *module = node->graph->module;
    *out = contentless(whole);
    if (whole->rank < 0)
        return GRT_OK;
    int64_t axis = grt_axis(list_at(&node->desc, "scan_input_axes", i), whole->rank);
    if (axis < 0)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                           "scan_input_axes[%d] is %lld, but the scanned input has rank %d", i,
                           (long long)list_at(&node->desc, "scan_input_axes", i), whole->rank);
    grt_dim *dims = GRT_ARENA_ARRAY(module->arena, grt_dim, whole->rank);
    if (!dims)
        return grt_fail_memory(0);
    for (int32_t k = 0, to = 0; k < whole->rank; k++)
        if (k != axis)
            dims[to++] = whole->dims[k];
    if (*count < 0 || grt_dim_is_const(module->dims, whole->dims[axis], NULL))
        *count = whole->dims[axis];
    out->rank = whole->rank - 1;
    out->dims = dims;
    return GRT_OK;
}

static grt_status infer_scan(ir_node *node, int32_t depth)
{
    ir_module *module = node->graph->module;
    ir_graph *body;
    GRT_TRY(need_body(node, "body", &body));
    int64_t scanned = grt_attr_int(&node->desc, "num_scan_inputs", 0);
    if (scanned < 1 || scanned > node->n_in)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                           "num_scan_inputs is %lld, but there are %d inputs", (long long)scanned,
                           node->n_in);
    int32_t n = node->n_in - (int32_t)scanned;
    GRT_TRY(need_counts(node, body, node->n_in, node->n_out));
    if (node->n_out < n)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "it has %d states but %d outputs", n,
                           node->n_out);
    int32_t first_inner = grt_dims_symbols(module->dims);
    grt_dim count = GRT_DIM_NONE;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = ir_in(node, i);
        ir_type type = value ? contentless(&value->type) : nothing;
        if (i >= n && value)
            GRT_TRY(slice_type(node, i - n, &value->type, &type, &count));
        GRT_TRY(infer_bodies_set_type(body->inputs[i], type));
    }
    states s = {.body = body, .n = n};
    GRT_TRY(infer_rounds(node, &s, depth));
    for (int32_t i = 0; i < node->n_out; i++) {
        ir_type type = contentless(i < n ? &body->inputs[i]->type : infer_bodies_result(body, i));
        if (i < n) {
            GRT_TRY(export_dims(module, &type, first_inner));
        } else {
            int64_t axis = list_at(&node->desc, "scan_output_axes", i - n);
            if (type.rank >= 0 && (axis = grt_axis(axis, type.rank + 1)) < 0)
                return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                                   "scan_output_axes[%d] does not fit rank %d", i - n, type.rank + 1);
            grt_dim length = count < 0 ? grt_dim_fresh(module->dims) : count;
            GRT_TRY(stacked(module, infer_bodies_result(body, i), axis, length, first_inner, &type));
        }
        GRT_TRY(infer_bodies_set_type(node->out[i], type));
    }
    return GRT_OK;
}

/* ---- SequenceMap ---- */

static grt_status infer_sequence_map(ir_node *node, int32_t depth)
{
    ir_graph *body;
    GRT_TRY(need_body(node, "body", &body));
    GRT_TRY(need_counts(node, body, node->n_in, node->n_out));
    for (int32_t i = 0; i < node->n_in; i++) {
        ir_type type = ir_in(node, i) ? contentless(&ir_in(node, i)->type) : nothing;
        if (type.kind == GRT_KIND_MAP || type.element_kind == GRT_KIND_MAP)
            return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                               "input %d is of maps; it must be a tensor or a sequence of tensors", i);
        if (type.kind == GRT_KIND_SEQUENCE)
            type = (ir_type){.dtype = type.dtype, .rank = -1};
        GRT_TRY(infer_bodies_set_type(body->inputs[i], type));
    }
    GRT_TRY(infer_graph(body, depth + 1));
    for (int32_t i = 0; i < node->n_out; i++)
        GRT_TRY(infer_bodies_set_type(
            node->out[i],
            (ir_type){.kind = GRT_KIND_SEQUENCE, .dtype = infer_bodies_result(body, i)->dtype, .rank = -1}));
    return GRT_OK;
}

/* ---- driver ---- */

static grt_status (*const control[N_OP_CONTROLS])(ir_node *node,
                                                  int32_t depth) = {[OP_IF] = infer_if,
                                                                    [OP_LOOP] = infer_loop,
                                                                    [OP_SCAN] = infer_scan,
                                                                    [OP_SEQUENCE_MAP] = infer_sequence_map};

/* All inputs are there but a Loop's limit and condition, and these are tensors, as is an If's condition. */
static grt_status check_control_inputs(const ir_node *node)
{
    const bool loop = node->row->control == OP_LOOP;
    const int32_t scalars = loop ? 2 : node->row->control == OP_IF ? 1 : 0;
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = ir_in(node, i);
        if (!value && !(loop && i < scalars))
            return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "input %d is missing", i);
        if (value && i < scalars && value->type.kind != GRT_KIND_TENSOR)
            return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "input %d must be a tensor", i);
    }
    return GRT_OK;
}

static grt_status infer_node(ir_node *node, int32_t depth)
{
    const op_control kind = node->row ? node->row->control : OP_NO_CONTROL;
    if (!kind)
        return infer_by_row(node);
    GRT_TRY(check_control_inputs(node));
    GRT_TRY(infer_types(node));
    return control[kind](node, depth);
}

/* The node goes; *out_next is the first of those that took its place. */
static grt_status rewrite_node(ir_node *node, ir_node **out_next)
{
    ir_graph *graph = node->graph;
    ir_node *before = node->prev;
    GRT_TRY(infer_types(node));
    grt_status status = node->row->rewrite(node);
    *out_next = before ? before->next : graph->first;
    /* Whatever else went wrong, it began with this. */
    return status != GRT_OK && grt_arena_failed(graph->module->arena) ? grt_fail_memory(0) : status;
}

static grt_status infer_graph(ir_graph *graph, int32_t depth)
{
    for (ir_node *node = graph->first, *next; node; node = next) {
        if (node->row && node->row->rewrite) {
            GRT_TRY(rewrite_node(node, &next));
            continue;
        }
        GRT_TRY(infer_node(node, depth));
        next = node->next;
    }
    return grt_arena_failed(graph->module->arena) ? grt_fail_memory(0) : GRT_OK;
}

static int32_t depth_of(const ir_graph *graph)
{
    int32_t depth = 0;
    for (; graph->parent; graph = graph->parent->graph)
        depth++;
    return depth;
}

grt_status op_infer_node(ir_node *node)
{
    return infer_node(node, depth_of(node->graph));
}

grt_status ir_infer(ir_module *module)
{
    GRT_TRY(infer_graph(module->main, 0));
    return infer_declared(module);
}
