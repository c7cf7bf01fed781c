/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/supported.h"

#include "graph/ops/refused.h"
#include "graph/passes/rewrite.h"

#include <inttypes.h>

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
    bool alone; /* the target has no fallback */
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
        const char *reason = !node->row            ? op_refused_why(node->desc.domain, node->desc.op)
                             : *grt_text_get(&why) ? grt_text_get(&why)
                                                   : "there is no kernel for it";
        grt_text_add(&text, "inputs (");
        ir_node_add_inputs(node, &text);
        grt_text_add(&text, "): %s", reason);
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

static void supported_collect(void *user, const grt_finding *finding)
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
    grt_status status = pass_report_unsupported(context, false, supported_collect, &c);
    if (status == GRT_OK && c.n)
        status = grt_fail_lines(GRT_STATUS_UNSUPPORTED, grt_text_get(&c.text),
                                "%" PRId64 " node%s without a kernel on '%s':", c.n, c.n == 1 ? "" : "s",
                                context->target->name);
    grt_text_release(&c.text);
    return status;
}
