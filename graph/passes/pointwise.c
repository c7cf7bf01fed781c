/* SPDX-License-Identifier: Apache-2.0 */
/* Pointwise groups: connected element-wise nodes of one output shape become one graphrt::Pointwise node,
 * which reads its inputs and writes its result once (graph/ops/pointwise.h has the form of its program). For
 * targets that gain by it, parts of other values are read where they lie (pointwise_parts.h), also by single
 * nodes: graphrt::PointwiseParts.
 *
 * Casts between floats, and of truth, are members without an instruction: all is computed in float32, and
 * each input is read, and the result written, in its own type. So a Cast that rounds is the last of its
 * group, and a Cast of a rounded result reads it from outside: what a model rounds by a Cast, or overflows,
 * stays so.
 *
 * Where a step more costs more than some arithmetic, single numbers that only a group reads are computed in
 * it, for each element.
 *
 * Nodes are visited from the last to the first. A node joins the group that all uses of its result lie in,
 * else it begins one of its own: so no value inside a group is needed outside, and no path leads out of a
 * group and back. */
#include "graph/passes/pointwise_node.h"
#include "graph/passes/pointwise_parts.h"

#include "graph/ops/pointwise.h"
#include "src/base/grow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INSTRUCTIONS = 32, MAX_INPUTS = 8, MAX_CONSTANTS = MAX_INSTRUCTIONS * PW_MAX_OPERANDS };

typedef struct group {
    ir_node *members[MAX_INSTRUCTIONS]; /* the last one first */
    int32_t n, n_inputs;
    const ir_value *inputs[MAX_INPUTS];
} group;

typedef struct groups {
    pass_context *context;
    grt_arena *scratch;
    group **v;
    int64_t n, capacity;
} groups;

static bool pointwise_join(group *g, ir_node *node, bool takes_scalars)
{
    const ir_type *y = &node->out[0]->type;
    if (g->n == MAX_INSTRUCTIONS)
        return false;
    if (g->n && !rewrite_same_shape(&g->members[0]->out[0]->type, y) && !(takes_scalars && y->rank == 0))
        return false;
    const ir_value *inputs[MAX_INPUTS];
    int32_t n = 0;
    double unused;
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] != node->out[0])
            inputs[n++] = g->inputs[i];
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        if (value && !pointwise_node_is_immediate(value, &unused) &&
            !pointwise_node_add_input(inputs, &n, MAX_INPUTS, value))
            return false;
    }
    memcpy(g->inputs, inputs, (size_t)n * sizeof *inputs);
    g->n_inputs = n;
    g->members[g->n++] = node;
    return true;
}

static bool pointwise_begin(groups *all, ir_node *node)
{
    if (!GRT_GROW(all->v, all->n, all->capacity))
        return false;
    group *g = GRT_ARENA_NEW(all->scratch, group);
    if (!g)
        return false;
    if (pointwise_join(g, node, false)) {
        node->mark = all->n;
        all->v[all->n++] = g;
    }
    return true;
}

static grt_status form(groups *all, ir_graph *graph)
{
    const bool moves = all->context->target->traits->merges_small_steps;
    for (ir_node *node = graph->last; node; node = node->prev) {
        node->mark = -1;
        if (pointwise_node_opcode(node) < 0 && !pointwise_node_is_cast(node))
            continue;
        int64_t at = pointwise_node_group_of_uses(node->out[0]);
        if (at >= 0 && pointwise_node_may_stay_inside(node) && pointwise_join(all->v[at], node, moves))
            node->mark = at;
        else if (!pointwise_begin(all, node))
            return grt_fail_memory(sizeof(group));
    }
    return GRT_OK;
}

/* Operands are numbered [inputs, constants, results]; until all constants are known, the latter two count
 * from these. */
enum { CONSTANTS_FROM = 1000, RESULTS_FROM = 2000 };

typedef struct program {
    const group *group;
    int64_t code[MAX_INSTRUCTIONS * 4];
    int32_t n;
    float constants[MAX_CONSTANTS];
    int32_t n_constants;
} program;

static int64_t constant_operand(program *p, float value)
{
    for (int32_t i = 0; i < p->n_constants; i++)
        if (!memcmp(&p->constants[i], &value, sizeof value))
            return CONSTANTS_FROM + i;
    p->constants[p->n_constants] = value;
    return CONSTANTS_FROM + p->n_constants++;
}

static bool pointwise_is_input(const program *p, const ir_value *value)
{
    for (int32_t i = 0; i < p->group->n_inputs; i++)
        if (p->group->inputs[i] == value)
            return true;
    return false;
}

static int64_t operand(program *p, const ir_value *value)
{
    double v;
    while (!pointwise_is_input(p, value) && !pointwise_node_is_immediate(value, &v) &&
           pointwise_node_is_cast(value->producer))
        value = ir_in(value->producer, 0);
    if (pointwise_node_is_immediate(value, &v))
        return constant_operand(p, (float)v);
    for (int32_t i = 0; i < p->group->n_inputs; i++)
        if (p->group->inputs[i] == value)
            return i;
    return RESULTS_FROM + value->producer->mark; /* marks of members are their instructions now */
}

static void pointwise_add_instruction(program *p, ir_node *node)
{
    const int32_t opcode = pointwise_node_opcode(node);
    if (opcode < 0) /* a Cast */
        return;
    const pw_info *info = grt_pointwise_info(opcode);
    int64_t *code = &p->code[4 * p->n];
    float params[PW_MAX_PARAMS];
    int32_t n_params = grt_pointwise_params(&node->desc, opcode, params);
    code[0] = opcode;
    for (int32_t k = 0; k < 3; k++) {
        code[1 + k] = -1;
        if (k < info->arity && ir_in(node, k))
            code[1 + k] = operand(p, ir_in(node, k));
        else if (k < info->arity) /* Clip without a bound */
            code[1 + k] = constant_operand(p, k == 1 ? -INFINITY : INFINITY);
        else if (k - info->arity < n_params)
            code[1 + k] = constant_operand(p, params[k - info->arity]);
    }
    node->mark = p->n++;
}

/* A group of Casts alone has one input, which is read and written in another type. */
static void pointwise_add_copy(program *p)
{
    int64_t *code = &p->code[4 * p->n++];
    code[0] = PW_Copy;
    code[1] = operand(p, p->group->inputs[0]);
    code[2] = code[3] = -1;
}

static void number_operands(program *p)
{
    int64_t constants = p->group->n_inputs, results = constants + p->n_constants;
    for (int32_t i = 0; i < 4 * p->n; i++) {
        if (i % 4 == 0)
            continue;
        if (p->code[i] >= RESULTS_FROM)
            p->code[i] += results - RESULTS_FROM;
        else if (p->code[i] >= CONSTANTS_FROM)
            p->code[i] += constants - CONSTANTS_FROM;
    }
}

static ir_node *pointwise_create(const program *p, const char *op, const ir_value *const *inputs,
                                 int32_t n_inputs)
{
    const group *g = p->group;
    const pointwise_group made = {.members = g->members,
                                  .n_members = g->n,
                                  .inputs = inputs,
                                  .n_inputs = n_inputs,
                                  .code = p->code,
                                  .n_code = p->n,
                                  .constants = p->constants,
                                  .n_constants = p->n_constants};
    ir_node *node = pointwise_node_create(op, &made);
    if (node)
        pointwise_node_name_type(node, grt_pointwise_info((int32_t)p->code[4 * (p->n - 1)])->truth,
                                 g->members[0]->out[0]->type.dtype);
    return node;
}

/* Puts the node in the place of the group, or removes it. Constants no longer take part in broadcasting,
 * which may change the shape; and the target must support the node. */
static grt_status offer(groups *all, const group *g, ir_node *node, bool *out_taken)
{
    ir_node *root = g->members[0];
    GRT_TRY(op_infer_node(node));
    const ir_type *made = &node->out[0]->type, *wanted = &root->out[0]->type;
    *out_taken = made->dtype == wanted->dtype && rewrite_same_shape(made, wanted) &&
                 rewrite_supported(all->context, node, NULL) && rewrite_take_over(root->out[0], node->out[0]);
    if (!*out_taken) {
        ir_node_remove(node);
        return GRT_OK;
    }
    for (int32_t i = 0; i < g->n; i++)
        ir_node_remove(g->members[i]);
    all->context->changed++;
    return GRT_OK;
}

/* The group with inputs that are parts; *out_taken is false if it has none, or they stay. */
static grt_status fuse_parts(groups *all, const program *p, bool *out_taken)
{
    const group *g = p->group;
    const ir_value *inputs[MAX_INPUTS];
    int64_t parts[3 * MAX_INPUTS] = {0};
    bool any = false;
    *out_taken = false;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        pointwise_part part;
        ir_value *value = (ir_value *)g->inputs[i], *source = NULL;
        if (pointwise_part_of(value, &part))
            source = pointwise_part_source(g->members[0], value, &part);
        inputs[i] = source ? source : value;
        any |= source != NULL;
        if (source) {
            parts[3 * i] = value->type.rank - part.axis;
            parts[3 * i + 1] = part.start;
            grt_dim_is_const(value->graph->module->dims, value->type.dims[part.axis], &parts[3 * i + 2]);
        }
    }
    if (!any)
        return GRT_OK;
    ir_node *node = pointwise_create(p, "PointwiseParts", inputs, g->n_inputs);
    if (!node)
        return grt_fail_memory(0);
    ir_attr_set_ints(node, "parts", parts, 3 * (size_t)g->n_inputs);
    return offer(all, g, node, out_taken);
}

/* The group with the inputs of the Concat that is its first one in its place. */
static grt_status fuse_joined(groups *all, const program *p, bool *out_taken)
{
    const group *g = p->group;
    const ir_node *concat = g->inputs[0]->producer;
    const ir_value *inputs[PW_MOST_JOINED + MAX_INPUTS];
    int32_t n = 0;
    for (int32_t i = 0; i < concat->n_in; i++)
        inputs[n++] = ir_in(concat, i);
    for (int32_t i = 1; i < g->n_inputs; i++)
        inputs[n++] = g->inputs[i];
    ir_node *node = pointwise_create(p, "PointwiseConcat", inputs, n);
    if (!node)
        return grt_fail_memory(0);
    ir_attr_set_int(node, "joined", concat->n_in);
    return offer(all, g, node, out_taken);
}

/* Puts an input of all elements that is joined of others first; false if there is none. */
static bool put_joined_first(group *g)
{
    const ir_value *first = g->inputs[0];
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (pointwise_is_joined(g->inputs[i]) &&
            rewrite_same_shape(&g->inputs[i]->type, &g->members[0]->out[0]->type)) {
            g->inputs[0] = g->inputs[i];
            g->inputs[i] = first;
            return true;
        }
    return false;
}

static grt_status fuse(groups *all, group *g)
{
    program p = {.group = g};
    bool taken = false;
    const bool moves = all->context->target->traits->merges_small_steps;
    if (g->n < (moves ? 1 : 2) || g->n_inputs < 1)
        return GRT_OK;
    const bool joined = moves && put_joined_first(g);
    for (int32_t i = g->n; i-- > 0;)
        pointwise_add_instruction(&p, g->members[i]);
    const bool casts = p.n == 0;
    if (casts && !moves)
        return GRT_OK;
    if (casts)
        pointwise_add_copy(&p);
    number_operands(&p);
    if (joined)
        GRT_TRY(fuse_joined(all, &p, &taken));
    if (moves && !taken)
        GRT_TRY(fuse_parts(all, &p, &taken));
    if (taken || casts || g->n < 2)
        return GRT_OK;
    ir_node *node = pointwise_create(&p, "Pointwise", g->inputs, g->n_inputs);
    return node ? offer(all, g, node, &taken) : grt_fail_memory(0);
}

static grt_status pointwise_visit_with(groups *all, ir_graph *graph)
{
    GRT_TRY(form(all, graph));
    for (int64_t i = 0; i < all->n; i++)
        GRT_TRY(fuse(all, all->v[i]));
    return GRT_OK;
}

static grt_status pointwise_visit(pass_context *context, ir_graph *graph)
{
    groups all = {.context = context, .scratch = grt_arena_create()};
    grt_status status = all.scratch ? pointwise_visit_with(&all, graph) : grt_fail_memory(0);
    free(all.v);
    grt_arena_release(all.scratch);
    return status;
}

grt_status pass_pointwise(pass_context *context)
{
    return rewrite_each_graph(context, pointwise_visit);
}
