/* SPDX-License-Identifier: Apache-2.0 */
/* Legalise: ops that the target has no kernel for are replaced by simpler ones, as their rows say, until
 * nothing changes. What is still without a kernel then is reported, all of it at once. */
#include "graph/passes/passes.h"

#include <inttypes.h>
#include <string.h>

/* ---- expansion ---- */

/* Expansions are made of simpler ops, so this only stops rows that expand into each other. */
enum { EXPANSIONS_PER_NODE = 64, EXPANSIONS_AT_LEAST = 1024 };

typedef struct legaliser {
    pass_context *context;
    int64_t left;
} legaliser;

static grt_status legalise_graph(legaliser *l, ir_graph *graph);

/* Replace the node if that is needed and possible; *out_first is then the first node of what took its place.
 */
static grt_status expand(legaliser *l, ir_node *node, bool *out_done, ir_node **out_first)
{
    *out_done = false;
    if (!node->row || !node->row->expand ||
        (!(node->row->flags & OP_EXPANDS_ALWAYS) && rewrite_supported(l->context, node, NULL)))
        return GRT_OK;
    ir_graph *graph = node->graph;
    ir_node *before = node->prev;
    if (l->left-- <= 0)
        return grt_fail_op(&node->desc, GRT_STATUS_INTERNAL,
                           "expanding the ops without a kernel does not come to an end");
    GRT_TRY(node->row->expand(node, out_done));
    *out_first = before ? before->next : graph->first;
    l->context->changed += *out_done;
    return GRT_OK;
}

static grt_status legalise_graph(legaliser *l, ir_graph *graph)
{
    bool fresh = false; /* past an expansion, types of what it made must be found */
    ir_node *until = NULL;
    for (ir_node *node = graph->first; node;) {
        ir_node *next = node->next, *first;
        bool done;
        fresh = fresh && node != until;
        if (fresh)
            GRT_TRY(op_infer_node(node));
        GRT_TRY(expand(l, node, &done, &first));
        if (done) {
            until = fresh ? until : next;
            fresh = true;
            node = first;
            continue;
        }
        for (size_t i = 0; i < node->desc.n_attrs; i++)
            if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
                GRT_TRY(legalise_graph(l, node->desc.attrs[i].graph));
        node = next;
    }
    return GRT_OK;
}

static grt_status count_nodes(ir_graph *graph, void *user)
{
    *(int64_t *)user += graph->n_nodes;
    return GRT_OK;
}

/* Rows put new values in the place of old ones; the model's outputs must keep their names. */
static grt_status restore_names(ir_graph *graph, const char *const *names)
{
    for (int32_t i = 0; i < graph->n_outputs; i++) {
        ir_value *value = graph->outputs[i].value;
        if (value->name == names[i] || !strcmp(value->name, names[i]))
            continue;
        bool taken = !value->producer;
        for (int32_t k = 0; k < graph->n_outputs; k++)
            taken |= k != i && graph->outputs[k].value == value;
        if (!taken) {
            value->name = names[i];
            continue;
        }
        ir_node *copy = ir_node_create(graph, NULL, "", "Identity", names[i], 1, &value, 1);
        if (!copy)
            return grt_fail_memory(0);
        GRT_TRY(op_infer_node(copy));
        copy->out[0]->name = names[i];
        ir_graph_set_output(graph, i, copy->out[0]);
    }
    return GRT_OK;
}

grt_status pass_legalise(pass_context *context)
{
    ir_graph *graph = context->module->main;
    const char **names = GRT_ARENA_ARRAY(context->module->arena, const char *, graph->n_outputs);
    if (!names)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < graph->n_outputs; i++)
        names[i] = graph->outputs[i].value->name;
    int64_t nodes = 0;
    GRT_TRY(ir_graph_walk(graph, count_nodes, &nodes));
    legaliser l = {context, nodes * EXPANSIONS_PER_NODE + EXPANSIONS_AT_LEAST};
    GRT_TRY(legalise_graph(&l, graph));
    return restore_names(graph, names);
}

/* ---- report ---- */

static void add_type(grt_text *text, const grt_dims *dims, const ir_value *value)
{
    static const char *const kinds[] = {"", "sequence of ", "optional "};
    if (!value) {
        grt_text_add(text, "none");
        return;
    }
    const ir_type *type = &value->type;
    grt_text_add(text, "%s%s", kinds[type->kind], type->dtype ? grt_dtype_name(type->dtype) : "unknown");
    if (type->rank < 0)
        return;
    grt_text_add(text, "[");
    for (int32_t i = 0; i < type->rank; i++) {
        grt_text_add(text, i ? "x" : "");
        grt_dim_print(dims, type->dims[i], text);
    }
    grt_text_add(text, "]");
}

static void describe(const ir_node *node, const char *why, grt_text *text)
{
    const grt_dims *dims = node->graph->module->dims;
    grt_text_add(text, "inputs (");
    /* A node may have thousands of inputs. */
    enum { SHOWN = 8 };
    for (int32_t i = 0; i < node->n_in; i++) {
        grt_text_add(text, i ? ", " : "");
        if (i == SHOWN) {
            grt_text_add(text, "%d more", node->n_in - SHOWN);
            break;
        }
        add_type(text, dims, node->in[i].value);
    }
    grt_text_add(text, "): %s", *why ? why : "there is no kernel for it");
}

/* "Conv" or "graphrt::Conv", for grt_finding.op. */
static const char *op_text(const ir_node *node)
{
    const grt_op_desc *desc = &node->desc;
    const char *text = *desc->domain
                           ? grt_arena_printf(node->graph->module->arena, "%s::%s", desc->domain, desc->op)
                           : desc->op;
    return text ? text : "";
}

typedef struct report {
    const pass_context *context;
    bool alone; /* the target has nobody to fall back to */
    void (*each)(void *user, const grt_finding *finding);
    void *user;
} report;

static grt_status report_node(const report *r, const ir_node *node)
{
    grt_text why = {0}, text = {0};
    /* Bodies of control flow run on the host, whatever the target. */
    const bool good = r->alone && !node->graph->parent ? rewrite_supported(r->context, node, &why)
                                                       : rewrite_runs(r->context, node, &why);
    if (!good) {
        describe(node, node->row ? grt_text_get(&why) : "this op is not known", &text);
        r->each(r->user, &(grt_finding){.struct_size = sizeof(grt_finding),
                                        .status = GRT_STATUS_UNSUPPORTED,
                                        .node = node->desc.name,
                                        .op = op_text(node),
                                        .opset = node->opset,
                                        .message = grt_text_get(&text)});
    }
    bool failed = why.failed || text.failed;
    grt_text_release(&why);
    grt_text_release(&text);
    return failed ? grt_fail_memory(0) : GRT_OK;
}

static grt_status report_graph(ir_graph *graph, void *user)
{
    IR_FOR_EACH_NODE (node, graph)
        GRT_TRY(report_node(user, node));
    return GRT_OK;
}

grt_status pass_report_unsupported(const pass_context *context, bool alone,
                                   void (*each)(void *user, const grt_finding *finding), void *user)
{
    report r = {context, alone, each, user};
    return ir_graph_walk(context->module->main, report_graph, &r);
}

typedef struct collection {
    grt_text text;
    int64_t n;
} collection;

static void collect(void *user, const grt_finding *finding)
{
    collection *c = user;
    c->n++;
    if (c->text.size < 12000) { /* the message's room; graphc check shows them all */
        grt_text line = {0};
        grt_text_add(&line, "%s (opset %" PRId64 ") node '%s': %s", finding->op, finding->opset,
                     finding->node, finding->message);
        grt_text_add(&c->text, "\n  ");
        grt_text_add_printable(&c->text, grt_text_get(&line));
        grt_text_release(&line);
    }
}

grt_status pass_check_supported(const pass_context *context)
{
    collection c = {0};
    grt_status status = pass_report_unsupported(context, false, collect, &c);
    if (status == GRT_OK && c.n)
        status = grt_fail_lines(GRT_STATUS_UNSUPPORTED, grt_text_get(&c.text),
                                "%" PRId64 " node%s without a kernel on '%s':", c.n, c.n == 1 ? "" : "s",
                                context->target->name);
    grt_text_release(&c.text);
    return status;
}
