/* SPDX-License-Identifier: Apache-2.0 */
/* Common subexpressions: nodes that do the same to the same inputs become one, and so do equal small
 * constants. A node in a body may take the result of one outside, not the other way round. */
#include "graph/passes/cse.h"
#include "graph/passes/rewrite.h"

#include "src/base/hash.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Larger constants are compared by identity only: reading all weights would cost more than it could save. */
enum { LARGEST_COMPARED = 64 << 10 };

typedef struct entry {
    uint64_t hash;
    ir_node *node;
    ir_value *constant;
    struct entry *same_hash;
    UT_hash_handle hh;
} entry;

/* The nodes seen so far in one graph; those of the graphs around it are seen too. */
typedef struct scope {
    struct scope *outer;
    entry *nodes;
} scope;

typedef struct cse {
    pass_context *context;
    grt_arena *scratch;
    entry *constants;
    bool failed;
} cse;

static void cse_remember(cse *c, entry **table, uint64_t hash, ir_node *node, ir_value *constant)
{
    entry *e = GRT_ARENA_NEW(c->scratch, entry), *first;
    if (!e) {
        c->failed = true;
        return;
    }
    *e = (entry){.hash = hash, .node = node, .constant = constant};
    HASH_FIND(hh, *table, &hash, sizeof hash, first);
    if (first) {
        e->same_hash = first->same_hash;
        first->same_hash = e;
    } else {
        HASH_ADD(hh, *table, hash, sizeof e->hash, e);
        c->failed = c->failed || !GRT_HASH_HAS(e);
    }
}

static entry *first_of(entry *table, uint64_t hash)
{
    entry *found;
    HASH_FIND(hh, table, &hash, sizeof hash, found);
    return found;
}

static uint64_t cse_mix(uint64_t seed, const void *data, size_t size)
{
    return size ? XXH3_64bits_withSeed(data, size, seed) : seed + 0x9e3779b97f4a7c15u;
}

static bool is_comparable(const grt_tensor *t)
{
    return t && t->dtype != GRT_DTYPE_STRING && grt_tensor_bytes(t) <= LARGEST_COMPARED;
}

static uint64_t hash_tensor(uint64_t h, const grt_tensor *t)
{
    if (!t)
        return h;
    h = cse_mix(h + (uint64_t)t->dtype, t->dims, (size_t)t->rank * sizeof t->dims[0]);
    return is_comparable(t) ? cse_mix(h, t->data, grt_tensor_bytes(t)) : h;
}

static bool equal_tensors(const grt_tensor *a, const grt_tensor *b)
{
    if (a == b)
        return true;
    return a && b && is_comparable(a) && is_comparable(b) && a->dtype == b->dtype &&
           grt_dims_equal(a->dims, a->rank, b->dims, b->rank) &&
           !memcmp(a->data, b->data, grt_tensor_bytes(a));
}

static uint64_t hash_attr(uint64_t h, const grt_attr *a)
{
    h = cse_mix(h + (uint64_t)a->kind, a->name, strlen(a->name));
    switch (a->kind) {
    case GRT_ATTR_INT:
        return cse_mix(h, &a->i, sizeof a->i);
    case GRT_ATTR_FLOAT:
        return cse_mix(h, &a->f, sizeof a->f);
    case GRT_ATTR_STRING:
        return cse_mix(h, a->s.data, a->s.size);
    case GRT_ATTR_INTS:
        return cse_mix(h, a->ints.v, a->ints.n * sizeof *a->ints.v);
    case GRT_ATTR_FLOATS:
        return cse_mix(h, a->floats.v, a->floats.n * sizeof *a->floats.v);
    case GRT_ATTR_TENSOR:
        return hash_tensor(h, a->t);
    default: /* equal_attr decides */
        return h;
    }
}

static bool equal_bytes(const void *a, size_t n_a, const void *b, size_t n_b, size_t size)
{
    return n_a == n_b && (!n_a || !memcmp(a, b, n_a * size));
}

static bool equal_attr(const grt_attr *a, const grt_attr *b)
{
    if (a->kind != b->kind || strcmp(a->name, b->name))
        return false;
    switch (a->kind) {
    case GRT_ATTR_INT:
        return a->i == b->i;
    case GRT_ATTR_FLOAT: /* bitwise: -0 is not 0, and NaN equals itself */
        return !memcmp(&a->f, &b->f, sizeof a->f);
    case GRT_ATTR_STRING:
        return equal_bytes(a->s.data, a->s.size, b->s.data, b->s.size, 1);
    case GRT_ATTR_INTS:
        return equal_bytes(a->ints.v, a->ints.n, b->ints.v, b->ints.n, sizeof *a->ints.v);
    case GRT_ATTR_FLOATS:
        return equal_bytes(a->floats.v, a->floats.n, b->floats.v, b->floats.n, sizeof *a->floats.v);
    case GRT_ATTR_STRINGS:
        for (size_t i = 0; i < a->strings.n && i < b->strings.n; i++)
            if (!equal_bytes(a->strings.v[i].data, a->strings.v[i].size, b->strings.v[i].data,
                             b->strings.v[i].size, 1))
                return false;
        return a->strings.n == b->strings.n;
    case GRT_ATTR_TENSOR:
        return equal_tensors(a->t, b->t);
    case GRT_ATTR_TYPE:
        return a->type.kind == b->type.kind && a->type.dtype == b->type.dtype;
    default:
        return false;
    }
}

bool cse_same_attrs(const ir_node *a, const ir_node *b)
{
    if (a->desc.n_attrs != b->desc.n_attrs)
        return false;
    for (size_t i = 0; i < a->desc.n_attrs; i++)
        if (!equal_attr(&a->desc.attrs[i], &b->desc.attrs[i]))
            return false;
    return true;
}

uint64_t cse_hash_attrs(uint64_t seed, const ir_node *node)
{
    for (size_t i = 0; i < node->desc.n_attrs; i++)
        seed = hash_attr(seed, &node->desc.attrs[i]);
    return seed;
}

static uint64_t cse_hash_node(const ir_node *node)
{
    uint64_t h = cse_mix((uint64_t)node->n_out, node->desc.op, strlen(node->desc.op));
    h = cse_mix(h, node->desc.domain, strlen(node->desc.domain));
    for (int32_t i = 0; i < node->n_in; i++)
        h = cse_mix(h, &node->in[i].value, sizeof node->in[i].value);
    return cse_hash_attrs(h, node);
}

/* A node whose shape input was dropped (pass drop_shape_inputs) is told by its results' dims. */
static bool has_dropped_input(const ir_node *node)
{
    for (int32_t i = 0; node->row && i < node->row->min_in; i++)
        if (!ir_in(node, i))
            return true;
    return false;
}

static bool equal_nodes(const ir_node *a, const ir_node *b)
{
    if (a->n_in != b->n_in || a->n_out != b->n_out || strcmp(a->desc.op, b->desc.op) ||
        strcmp(a->desc.domain, b->desc.domain))
        return false;
    for (int32_t i = 0; i < a->n_in; i++)
        if (a->in[i].value != b->in[i].value)
            return false;
    for (int32_t i = 0; i < a->n_out; i++)
        if (!a->out[i] != !b->out[i] ||
            (a->out[i] && has_dropped_input(a) && !rewrite_same_shape(&a->out[i]->type, &b->out[i]->type)))
            return false;
    return cse_same_attrs(a, b);
}

static void share_constant(cse *c, ir_value *value)
{
    if (!value || value->producer || value->mark || !is_comparable(value->type.data))
        return;
    value->mark = 1;
    uint64_t hash = hash_tensor(0, value->type.data);
    for (entry *e = first_of(c->constants, hash); e; e = e->same_hash)
        if (equal_tensors(e->constant->type.data, value->type.data)) {
            ir_value_replace(value, e->constant);
            return;
        }
    cse_remember(c, &c->constants, hash, NULL, value);
}

/* The scratch marks of values say which constants were looked at. */
static grt_status cse_clear_marks(pass_context *context, ir_graph *graph)
{
    (void)context;
    ir_clear_marks(graph);
    for (int32_t i = 0; i < graph->n_outputs && !graph->parent; i++)
        graph->outputs[i].value->mark = 1; /* outputs keep their names: such a constant is left alone */
    return GRT_OK;
}

static bool may_merge(const ir_node *node)
{
    return node->row && !(node->row->flags & OP_RANDOM) && !node->row->control && !ir_node_has_body(node);
}

static ir_node *find_equal(const scope *s, const ir_node *node, uint64_t hash)
{
    for (; s; s = s->outer)
        for (entry *e = first_of(s->nodes, hash); e; e = e->same_hash)
            if (equal_nodes(e->node, node))
                return e->node;
    return NULL;
}

static bool cse_merge(cse *c, ir_node *node, ir_node *into)
{
    bool all = true;
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            all &= rewrite_replace(node->out[i], into->out[i]);
    if (all)
        ir_node_remove(node);
    c->context->changed++;
    return all;
}

static void cse_sweep(cse *c, ir_graph *graph, scope *outer)
{
    scope here = {.outer = outer};
    IR_FOR_EACH_NODE (node, graph) {
        for (int32_t i = 0; i < node->n_in; i++)
            share_constant(c, node->in[i].value);
        for (size_t i = 0; i < node->desc.n_attrs; i++)
            if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
                cse_sweep(c, node->desc.attrs[i].graph, &here);
        if (!may_merge(node))
            continue;
        uint64_t hash = cse_hash_node(node);
        ir_node *equal = find_equal(&here, node, hash);
        if (!equal || !cse_merge(c, node, equal))
            cse_remember(c, &here.nodes, hash, node, NULL);
    }
    HASH_CLEAR(hh, here.nodes);
}

grt_status pass_cse(pass_context *context)
{
    cse c = {.context = context, .scratch = grt_arena_create()};
    if (!c.scratch)
        return grt_fail_memory(0);
    rewrite_each_graph(context, cse_clear_marks);
    cse_sweep(&c, context->module->main, NULL);
    HASH_CLEAR(hh, c.constants);
    grt_arena_release(c.scratch);
    return c.failed ? grt_fail_memory(0) : GRT_OK;
}
