/* SPDX-License-Identifier: Apache-2.0 */
/* Topological order of nodes. The standard demands it; files of many tools lack it.
 *
 * A depth-first walk in file order, with a stack of its own: a node is placed when all that it needs is. A
 * sorted file keeps its order; time is linear. Values that a body captures are inputs of the node that owns
 * the body. */
#include "graph/import/importer.h"
#include "src/base/grow.h"

#include <string.h>

enum { NEW, OPEN, PLACED };

typedef struct sorter {
    importer *imp;
    Onnx__NodeProto **nodes;
    int32_t n;
    names makers;   /* output name -> the address of its node's place in `nodes` */
    int32_t *needs; /* of node 0, of node 1...: indices of nodes */
    int32_t *first; /* n + 1 places in `needs` */
    int32_t n_needs, room;
    int32_t current;        /* the node whose needs are being gathered */
    int32_t early;          /* nodes that need a later one */
    const char *early_name; /* what the first of them needs */
    int32_t early_node;
} sorter;

/* The names that a body gives, and those of the bodies around it. */
typedef struct inside {
    const struct inside *outer;
    names own;
} inside;

static grt_status add_need(sorter *s, const char *name, int32_t maker)
{
    if (!GRT_ARENA_GROW(s->imp->scratch, s->needs, s->n_needs, s->room))
        return grt_fail_memory((size_t)s->room * 2 * sizeof *s->needs);
    s->needs[s->n_needs++] = maker;
    if (maker >= s->current) {
        if (!s->early++) {
            s->early_name = name;
            s->early_node = s->current;
        }
    }
    return GRT_OK;
}

static grt_status need(sorter *s, const inside *body, const char *name)
{
    for (; body; body = body->outer)
        if (names_find(&body->own, name))
            return GRT_OK;
    const names_entry *e = *name ? names_find(&s->makers, name) : NULL;
    return e ? add_need(s, name, (int32_t)((Onnx__NodeProto **)e->thing - s->nodes)) : GRT_OK;
}

static grt_status own(sorter *s, inside *body, const char *name)
{
    return names_add(&body->own, s->imp->scratch, name) ? GRT_OK : grt_fail_memory(0);
}

static grt_status own_names(sorter *s, inside *body, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_input; i++)
        GRT_TRY(own(s, body, text_or_empty(graph->input[i]->name)));
    for (size_t i = 0; i < graph->n_initializer; i++)
        GRT_TRY(own(s, body, text_or_empty(graph->initializer[i]->name)));
    for (size_t i = 0; i < graph->n_sparse_initializer; i++)
        if (graph->sparse_initializer[i]->values)
            GRT_TRY(own(s, body, text_or_empty(graph->sparse_initializer[i]->values->name)));
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            GRT_TRY(own(s, body, graph->node[i]->output[k]));
    return GRT_OK;
}

static grt_status body_needs(sorter *s, const inside *outer, const Onnx__GraphProto *graph);

/* Recurses as deep as messages may be nested, which src/onnx/pb.c bounds. */
static grt_status node_needs(sorter *s, const inside *body, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_input; i++)
        GRT_TRY(need(s, body, node->input[i]));
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g)
            GRT_TRY(body_needs(s, body, node->attribute[i]->g));
    return GRT_OK;
}

static grt_status body_needs(sorter *s, const inside *outer, const Onnx__GraphProto *graph)
{
    inside body = {.outer = outer};
    GRT_TRY(own_names(s, &body, graph));
    for (size_t i = 0; i < graph->n_node; i++)
        GRT_TRY(node_needs(s, &body, graph->node[i]));
    for (size_t i = 0; i < graph->n_output; i++)
        GRT_TRY(need(s, &body, text_or_empty(graph->output[i]->name)));
    return GRT_OK;
}

static grt_status order_gather(sorter *s)
{
    for (int32_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->nodes[i]->n_output; k++) {
            if (!*s->nodes[i]->output[k])
                continue;
            names_entry *e = names_add(&s->makers, s->imp->scratch, s->nodes[i]->output[k]);
            if (!e)
                return grt_fail_memory(0);
            if (!e->thing)
                e->thing = &s->nodes[i];
        }
    s->first = GRT_ARENA_ARRAY(s->imp->scratch, int32_t, s->n + 1);
    if (!s->first)
        return grt_fail_memory(0);
    for (s->current = 0; s->current < s->n; s->current++) {
        GRT_TRY(node_needs(s, NULL, s->nodes[s->current]));
        s->first[s->current + 1] = s->n_needs;
    }
    return GRT_OK;
}

static const char *shown_name(const Onnx__NodeProto *node)
{
    const char *name = text_or_empty(node->name);
    for (size_t i = 0; !*name && i < node->n_output; i++)
        name = node->output[i];
    return name;
}

static culprit culprit_of(const Onnx__NodeProto *node)
{
    return (culprit){shown_name(node), text_or_empty(node->op_type), 0};
}

/* The nodes stack[from..to) wait for each other. */
static grt_status cycle(sorter *s, const int32_t *stack, int32_t from, int32_t to)
{
    enum { SHOWN = 8 };
    grt_text list = {0};
    for (int32_t i = from; i < to && i < from + SHOWN; i++)
        grt_text_add(&list, "%s%s '%s'", i > from ? ", " : "", text_or_empty(s->nodes[stack[i]]->op_type),
                     shown_name(s->nodes[stack[i]]));
    if (to - from > SHOWN)
        grt_text_add(&list, " and %d more", to - from - SHOWN);
    const culprit who = culprit_of(s->nodes[stack[from]]);
    grt_status status =
        to - from == 1 ? problem(s->imp, &who, "it needs its own output: a graph must be without cycles")
                       : problem(s->imp, &who,
                                 "it is in a cycle of nodes, each of which needs the next one's output: %s",
                                 grt_text_get(&list));
    grt_text_release(&list);
    return status;
}

/* Nodes in an order that holds, into `out`; *out_cycle if there is none. */
static grt_status walk(sorter *s, Onnx__NodeProto **out, bool *out_cycle)
{
    grt_arena *scratch = s->imp->scratch;
    int32_t *stack = GRT_ARENA_ARRAY(scratch, int32_t, s->n), *next = GRT_ARENA_ARRAY(scratch, int32_t, s->n);
    uint8_t *state = GRT_ARENA_ARRAY(scratch, uint8_t, s->n);
    int32_t placed = 0;
    *out_cycle = false;
    if (!stack || !next || !state)
        return grt_fail_memory(0);
    memcpy(next, s->first, (size_t)s->n * sizeof *next);
    for (int32_t i = 0; i < s->n; i++) {
        int32_t depth = 0;
        if (state[i] == NEW) {
            stack[depth++] = i;
            state[i] = OPEN;
        }
        while (depth) {
            const int32_t at = stack[depth - 1];
            if (next[at] == s->first[at + 1]) {
                state[at] = PLACED;
                out[placed++] = s->nodes[at];
                depth--;
                continue;
            }
            const int32_t needed = s->needs[next[at]++];
            if (state[needed] == NEW) {
                state[needed] = OPEN;
                stack[depth++] = needed;
            } else if (state[needed] == OPEN) {
                int32_t from = depth - 1;
                while (stack[from] != needed)
                    from--;
                *out_cycle = true;
                return cycle(s, stack, from, depth);
            }
        }
    }
    return GRT_OK;
}

grt_status order_nodes(importer *imp, const char *graph, Onnx__NodeProto **nodes, size_t n, bool *out_ordered)
{
    *out_ordered = true;
    if (n > INT32_MAX / 2)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "graph '%s' has %zu nodes, more than can be counted", graph,
                        n);
    sorter s = {.imp = imp, .nodes = nodes, .n = (int32_t)n};
    GRT_TRY(order_gather(&s));
    if (!s.early)
        return GRT_OK;
    Onnx__NodeProto **ordered = GRT_ARENA_ARRAY(imp->scratch, Onnx__NodeProto *, n);
    bool cyclic;
    if (!ordered)
        return grt_fail_memory(0);
    GRT_TRY(walk(&s, ordered, &cyclic));
    *out_ordered = !cyclic;
    if (cyclic)
        return GRT_OK;
    const culprit who = culprit_of(nodes[s.early_node]);
    GRT_TRY(warning(
        imp, &who,
        "it uses '%s', which a later node makes; %d input%s of '%s' came before %s; the nodes were "
        "put in order",
        s.early_name, s.early, s.early == 1 ? "" : "s", graph, s.early == 1 ? "its maker" : "their makers"));
    memcpy(nodes, ordered, n * sizeof *nodes);
    return GRT_OK;
}
