/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow: If, Loop, Scan, SequenceMap. Their bodies are inferred by graph/ir/infer_bodies.c and
 * executed by the runtime, so the rows here have no rule of their own. */
#include "graph/ir/ir.h"

static const op_attr if_attrs[] = {
    {"then_branch", GRT_ATTR_GRAPH, true},
    {"else_branch", GRT_ATTR_GRAPH, true},
    {0},
};
static const op_attr body_attrs[] = {{"body", GRT_ATTR_GRAPH, true}, {0}};
static const op_attr scan_attrs[] = {
    {"body", GRT_ATTR_GRAPH, true},
    {"num_scan_inputs", GRT_ATTR_INT, true},
    {"scan_input_axes", GRT_ATTR_INTS, false},
    {"scan_input_directions", GRT_ATTR_INTS, false},
    {"scan_output_axes", GRT_ATTR_INTS, false},
    {"scan_output_directions", GRT_ATTR_INTS, false},
    {0},
};

/* The body of a batched scan, moved into a Scan of its own that handles one batch element. */
static ir_node *scan_one_element(ir_node *node, ir_graph *batch, ir_graph *body, int64_t n_scanned)
{
    int32_t n = node->n_in - 1;
    ir_value **in = GRT_ARENA_ARRAY(batch->module->arena, ir_value *, n);
    for (int32_t i = 0; in && i < n; i++) {
        in[i] = ir_value_fresh(batch, "element");
        if (!in[i])
            return NULL;
        ir_graph_add_input(batch, in[i], NULL);
    }
    ir_node *inner = in ? ir_node_create(batch, NULL, "", "Scan", node->desc.name, n, in, node->n_out) : NULL;
    if (!inner)
        return NULL;
    ir_attr_set(inner, (grt_attr){.name = "body", .kind = GRT_ATTR_GRAPH, .graph = body});
    ir_attr_set_int(inner, "num_scan_inputs", n_scanned);
    size_t n_directions;
    const int64_t *directions = grt_attr_ints(&node->desc, "directions", &n_directions);
    if (directions)
        ir_attr_set_ints(inner, "scan_input_directions", directions, n_directions);
    body->parent = inner;
    for (int32_t i = 0; i < inner->n_out; i++)
        ir_graph_add_output(batch, inner->out[i]);
    return inner;
}

/* Scan-8 has a batch axis in front of everything and optional sequence lengths as its first input. It is a
 * scan over the batch whose body is a scan over one element's sequence. */
static grt_status upgrade_scan(ir_node *node, int32_t opset)
{
    if (opset >= 9)
        return GRT_OK;
    if (ir_in(node, 0))
        return grt_fail_op(
            &node->desc, GRT_STATUS_UNSUPPORTED,
            "input sequence_lens of the opset 8 form is not supported: export with opset 9 or newer, where "
            "every sequence has the length of its scan axis");
    const grt_attr *attr = grt_attr_find(&node->desc, "body");
    int64_t n_scanned = grt_attr_int(&node->desc, "num_scan_inputs", 0);
    if (!attr || attr->kind != GRT_ATTR_GRAPH || node->n_in < 2)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "needs a body and at least one scan input");
    ir_graph *batch = ir_graph_create(node->graph->module, node, "batch");
    if (!batch || !scan_one_element(node, batch, attr->graph, n_scanned))
        return grt_fail_memory(0);
    int32_t n = node->n_in - 1;
    for (int32_t i = 0; i < n; i++)
        ir_node_set_input(node, i, node->in[i + 1].value);
    ir_node_drop_inputs(node, n);
    ir_attr_set(node, (grt_attr){.name = "body", .kind = GRT_ATTR_GRAPH, .graph = batch});
    ir_attr_set_int(node, "num_scan_inputs", n);
    ir_attr_remove(node, "directions");
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "If",
     .since = 25,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = OP_VARIADIC,
     .attrs = if_attrs,
     .control = OP_IF},
    {.domain = "",
     .name = "Loop",
     .since = 25,
     .min_in = 2,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = OP_VARIADIC,
     .attrs = body_attrs,
     .control = OP_LOOP},
    {.domain = "",
     .name = "Scan",
     .since = 25,
     .min_in = 1,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = OP_VARIADIC,
     .attrs = scan_attrs,
     .upgrade = upgrade_scan,
     .control = OP_SCAN},
    {.domain = "",
     .name = "SequenceMap",
     .since = 17,
     .min_in = 1,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = OP_VARIADIC,
     .attrs = body_attrs,
     .control = OP_SEQUENCE_MAP},
};
OP_TABLE(control, rows);
