/* SPDX-License-Identifier: Apache-2.0 */
/* Local rewrites that make nodes vanish or cheaper: no-ops, chains of reshapes and transposes, small powers.
 * One table of rules, driven by a worklist, so that a rewrite only costs a look at the nodes around it. */
#include "src/base/grow.h"
#include "graph/passes/rewrite.h"

#include <stdlib.h>
#include <string.h>

/* ---- worklist ---- */

enum { IDLE = 0, QUEUED = 1, REMOVED = 2 };

typedef struct work {
    pass_context *context;
    ir_node **stack;
    size_t n, capacity;
    bool failed;
} work;

static void simplify_push(work *w, ir_node *node)
{
    if (!node || node->mark != IDLE)
        return;
    if (!GRT_GROW(w->stack, w->n, w->capacity)) {
        w->failed = true;
        return;
    }
    node->mark = QUEUED;
    w->stack[w->n++] = node;
}

static void push_users(work *w, const ir_value *value)
{
    for (const ir_use *use = value->uses; use; use = use->next)
        simplify_push(w, use->node);
}

/* In reverse, so that producers are taken from the stack before users. */
static void push_graph(work *w, ir_graph *graph)
{
    for (ir_node *node = graph->last; node; node = node->prev) {
        for (size_t i = 0; i < node->desc.n_attrs; i++)
            if (node->desc.attrs[i].kind == GRT_ATTR_GRAPH)
                push_graph(w, node->desc.attrs[i].graph);
        node->mark = IDLE;
        for (int32_t i = 0; i < node->n_out; i++)
            if (node->out[i])
                node->out[i]->mark = 0;
        simplify_push(w, node);
    }
}

/* ---- what rules do ---- */

/* Output 0 is the value `to`. */
static bool becomes(work *w, ir_node *node, ir_value *to)
{
    ir_value *out = node->out[0];
    if (!to || out == to)
        return false;
    for (int32_t i = 1; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            return false;
    push_users(w, out);
    ir_node *before = to->producer;
    if (!rewrite_replace(out, to))
        return false;
    node->mark = REMOVED;
    ir_node_remove(node);
    simplify_push(w, before);
    w->context->changed++;
    return true;
}

static bool changed(work *w, ir_node *node)
{
    push_users(w, node->out[0]);
    if (node->mark == IDLE)
        simplify_push(w, node);
    w->context->changed++;
    return true;
}

static void drop_if_dead(ir_node *node)
{
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i] && node->out[i]->n_uses)
            return;
    node->mark = REMOVED;
    ir_node_remove(node);
}

static const grt_dims *simplify_dims_of(const ir_node *node)
{
    return node->graph->module->dims;
}

static bool same_shape_as_input(const ir_node *node, int32_t i)
{
    const ir_value *in = ir_in(node, i);
    return in && in->type.kind == GRT_KIND_TENSOR && rewrite_same_shape(&node->out[0]->type, &in->type);
}

static bool constant_is(const ir_node *node, int32_t i, double value)
{
    double v;
    return ir_const_float(ir_in(node, i), &v) && v == value;
}

static bool all_ints_are(const ir_node *node, int32_t i, int64_t value)
{
    const int64_t *v;
    int64_t n;
    if (!ir_const_ints(ir_in(node, i), &v, &n))
        return false;
    for (int64_t k = 0; k < n; k++)
        if (v[k] != value)
            return false;
    return true;
}

/* ---- no-ops ---- */

static bool rule_identity(work *w, ir_node *node)
{
    return becomes(w, node, ir_in(node, 0));
}

/* Passes that look for additions look for Add. */
static bool rule_sum(work *w, ir_node *node)
{
    if (node->n_in != 2)
        return false;
    ir_node_become(node, "", "Add");
    return changed(w, node);
}

static bool rule_only_output(work *w, ir_node *node)
{
    return node->n_out == 1 && same_shape_as_input(node, 0) && becomes(w, node, ir_in(node, 0));
}

static bool rule_same_shape(work *w, ir_node *node)
{
    return same_shape_as_input(node, 0) && becomes(w, node, ir_in(node, 0));
}

/* True if another input of the element-wise node has the shape of its result: that alone says which it is. */
static bool other_input_is_full(const ir_node *node, int32_t index)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (i != index && ir_in(node, i) && same_shape_as_input(node, i))
            return true;
    return false;
}

/* The node reads x where it read x expanded; false, with nothing changed, if its result would be another one.
 */
static bool reads_unexpanded(ir_node *node, int32_t index, ir_value *x)
{
    ir_value *expanded = ir_in(node, index);
    const ir_type before = node->out[0]->type;
    ir_node_set_input(node, index, x);
    if (op_infer_node(node) == GRT_OK && rewrite_same_shape(&node->out[0]->type, &before))
        return true;
    ir_node_set_input(node, index, expanded);
    (void)op_infer_node(node);
    return false;
}

/* Element-wise ops broadcast by themselves. */
static bool rule_expand(work *w, ir_node *node)
{
    bool any = false;
    if (rule_same_shape(w, node))
        return true;
    for (ir_use *use = node->out[0]->uses, *next; use; use = next) {
        ir_node *user = use->node;
        next = use->next;
        if (!user || !user->row || !(user->row->flags & OP_POINTWISE) || user->n_out != 1 ||
            !other_input_is_full(user, use->index) || !reads_unexpanded(user, use->index, ir_in(node, 0)))
            continue;
        simplify_push(w, user);
        w->context->changed++;
        any = true;
    }
    if (any)
        drop_if_dead(node);
    return any;
}

static bool is_false(const ir_value *flag)
{
    const grt_tensor *t = flag->type.data;
    return t && t->dtype == GRT_DTYPE_BOOL && grt_tensor_elements(t) == 1 && !*(const uint8_t *)t->data;
}

static bool rule_dropout(work *w, ir_node *node)
{
    return (!ir_in(node, 2) || is_false(ir_in(node, 2))) && becomes(w, node, ir_in(node, 0));
}

/* Does every value of `from` survive a trip through `through`? */
static bool is_lossless(grt_dtype from, grt_dtype through)
{
    static const struct {
        grt_dtype from;
        grt_dtype_set through;
    } pairs[] = {
        {GRT_DTYPE_FLOAT16, GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
        {GRT_DTYPE_BFLOAT16, GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
        {GRT_DTYPE_FLOAT, GRT_BIT(DOUBLE)},
        {GRT_DTYPE_BOOL, GRT_SET_INTS | GRT_SET_FLOATS},
        {GRT_DTYPE_INT8, GRT_BIT(INT16) | GRT_BIT(INT32) | GRT_BIT(INT64) | GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
        {GRT_DTYPE_UINT8, GRT_BIT(UINT16) | GRT_BIT(UINT32) | GRT_BIT(UINT64) | GRT_BIT(INT16) |
                              GRT_BIT(INT32) | GRT_BIT(INT64) | GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
        {GRT_DTYPE_INT16, GRT_BIT(INT32) | GRT_BIT(INT64) | GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
        {GRT_DTYPE_INT32, GRT_BIT(INT64) | GRT_BIT(DOUBLE)},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].from == from)
            return grt_dtype_in(through, pairs[i].through);
    return false;
}

static bool rule_cast(work *w, ir_node *node)
{
    ir_value *in = ir_in(node, 0);
    grt_dtype to = node->out[0]->type.dtype;
    if (!in || !to)
        return false;
    if (in->type.dtype == to)
        return becomes(w, node, in);
    ir_node *inner = rewrite_producer(in, "Cast");
    if (inner && ir_in(inner, 0) && ir_in(inner, 0)->type.dtype == to && is_lossless(to, in->type.dtype))
        return becomes(w, node, ir_in(inner, 0));
    return false;
}

static bool rule_pad(work *w, ir_node *node)
{
    return all_ints_are(node, 1, 0) && same_shape_as_input(node, 0) && becomes(w, node, ir_in(node, 0));
}

static bool rule_tile(work *w, ir_node *node)
{
    return all_ints_are(node, 1, 1) && becomes(w, node, ir_in(node, 0));
}

static bool rule_clip(work *w, ir_node *node)
{
    return !ir_in(node, 1) && !ir_in(node, 2) && becomes(w, node, ir_in(node, 0));
}

/* x + 0, x * 1 and the like, where the constant does not change the shape. */
static bool neutral(work *w, ir_node *node, int32_t constant, double value)
{
    return constant_is(node, constant, value) && same_shape_as_input(node, 1 - constant) &&
           becomes(w, node, ir_in(node, 1 - constant));
}

static bool rule_div(work *w, ir_node *node)
{
    double one;
    if (!grt_dtype_in(node->out[0]->type.dtype, GRT_SET_FLOATS) || !ir_const_float(ir_in(node, 0), &one) ||
        one != 1 || !same_shape_as_input(node, 1))
        return false;
    ir_value *x = ir_in(node, 1);
    ir_node_become(node, "", "Reciprocal");
    ir_node_set_input(node, 0, x);
    ir_node_drop_inputs(node, 1);
    return changed(w, node);
}

/* f(f(x)) */
static bool involution(work *w, ir_node *node)
{
    ir_node *inner = rewrite_producer(ir_in(node, 0), node->desc.op);
    return inner && becomes(w, node, ir_in(inner, 0));
}

/* ---- powers ---- */

static bool rule_pow(work *w, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    double exponent;
    if (!x || !grt_dtype_in(x->type.dtype, GRT_SET_FLOATS) || !ir_const_float(ir_in(node, 1), &exponent) ||
        !same_shape_as_input(node, 0))
        return false;
    if (exponent == 1)
        return becomes(w, node, x);
    if (exponent == 2) {
        ir_node_become(node, "", "Mul");
        ir_node_set_input(node, 1, x);
    } else if (exponent == 3 && !w->context->exact) { /* two roundings for one */
        ir_node *square =
            ir_node_create(node->graph, node, "", "Mul", node->desc.name, 2, (ir_value *[]){x, x}, 1);
        if (!square || op_infer_node(square) != GRT_OK)
            return false;
        ir_node_become(node, "", "Mul");
        ir_node_set_input(node, 1, square->out[0]);
    } else if (exponent == 0.5 || exponent == -1) {
        ir_node_become(node, "", exponent == 0.5 ? "Sqrt" : "Reciprocal");
        ir_node_drop_inputs(node, 1);
    } else {
        return false;
    }
    return changed(w, node);
}

/* ---- reshapes ---- */

/* Make the node a Reshape of `x`, if it can be (rewrite_become_reshape). */
static bool become_reshape(work *w, ir_node *node, ir_value *x)
{
    return rewrite_become_reshape(node, x) && changed(w, node);
}

static bool permutation(const ir_node *node, int32_t rank, int64_t *out_perm)
{
    size_t n;
    const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
    if (rank < 0 || (perm && n != (size_t)rank))
        return false;
    for (int32_t i = 0; i < rank; i++)
        out_perm[i] = perm ? perm[i] : rank - 1 - i;
    return true;
}

/* `x` under dims that Reshape can be given (as become_reshape), as a new node in front of `before`. NULL if
 * they cannot. */
static ir_value *simplify_reshaped(work *w, ir_node *before, ir_value *x, int32_t rank, const grt_dim *dims)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Reshape", before->desc.name, 1, &x, 1);
    if (!node)
        return NULL;
    node->out[0]->type = (ir_type){.dtype = x->type.dtype, .rank = rank, .dims = dims};
    if (become_reshape(w, node, x))
        return node->out[0];
    ir_node_remove(node);
    return NULL;
}

static void become_transpose(ir_node *node, ir_value *x, const int64_t *perm, int32_t rank)
{
    ir_node_become(node, "", "Transpose");
    node->desc.attrs = NULL;
    node->desc.n_attrs = 0;
    ir_attr_set_ints(node, "perm", perm, (size_t)rank);
    ir_node_set_input(node, 0, x);
    ir_node_drop_inputs(node, 1);
}

/* Batch dims that are joined, the last two exchanged, and the batch dims split again: a Transpose that leaves
 * the batch alone. */
static bool transpose_between(work *w, ir_node *node)
{
    ir_node *transpose = rewrite_producer(ir_in(node, 0), "Transpose");
    ir_value *joined = transpose ? ir_in(transpose, 0) : NULL;
    const ir_type *out = &node->out[0]->type;
    int64_t perm[GRT_MAX_RANK];
    int32_t rank = out->rank, inner = joined ? joined->type.rank : -1;
    if (!joined || !rewrite_is_reshape(joined->producer) || transpose->graph != node->graph || rank < 3 ||
        inner < 2 || !permutation(transpose, inner, perm))
        return false;
    for (int32_t i = 0; i < inner; i++)
        if (perm[i] != (i < inner - 2 ? i : i == inner - 2 ? inner - 1 : inner - 2))
            return false;
    grt_dim *dims = GRT_ARENA_ARRAY(node->graph->module->arena, grt_dim, rank);
    if (!dims || out->dims[rank - 1] != joined->type.dims[inner - 2] ||
        out->dims[rank - 2] != joined->type.dims[inner - 1])
        return false;
    for (int32_t i = 0; i < rank; i++) {
        perm[i] = i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2;
        dims[i] = out->dims[perm[i]];
    }
    /* What was joined has these dims, mostly. A Reshape to them could not always be written: only one of its
     * dims may be found from the others. */
    ir_value *x = ir_in(joined->producer, 0);
    const ir_type split = {.dtype = joined->type.dtype, .rank = rank, .dims = dims};
    if (!x || !rewrite_same_shape(&x->type, &split))
        x = simplify_reshaped(w, node, joined, rank, dims);
    if (!x)
        return false;
    ir_node *join = joined->producer;
    become_transpose(node, x, perm, rank);
    drop_if_dead(transpose);
    drop_if_dead(join);
    return changed(w, node);
}

/* Dims of 1 that vanish after a Transpose vanish before it. */
static bool squeeze_before_transpose(work *w, ir_node *node)
{
    ir_node *transpose = rewrite_producer(ir_in(node, 0), "Transpose");
    ir_value *x = transpose && ir_in(node, 0)->n_uses == 1 ? ir_in(transpose, 0) : NULL;
    const ir_type *out = &node->out[0]->type;
    int64_t perm[GRT_MAX_RANK], kept[GRT_MAX_RANK];
    int32_t n = 0, rank = x ? x->type.rank : -1;
    bool stays[GRT_MAX_RANK] = {false};
    /* Squeeze only: a Reshape that joins a batch of one looks the same, but belongs to what transpose_between
     * undoes. */
    if (!x || !rewrite_is(node, "Squeeze") || transpose->graph != node->graph || out->rank < 2 ||
        out->rank >= rank || !permutation(transpose, rank, perm))
        return false;
    for (int32_t i = 0; i < rank; i++) {
        grt_dim dim = x->type.dims[perm[i]];
        if (n < out->rank && out->dims[n] == dim) {
            stays[perm[i]] = true;
            kept[n++] = perm[i];
        } else if (!grt_dim_equals(simplify_dims_of(node), dim, 1)) {
            return false;
        }
    }
    grt_dim *dims = GRT_ARENA_ARRAY(node->graph->module->arena, grt_dim, out->rank);
    int64_t place[GRT_MAX_RANK];
    if (n != out->rank || !dims)
        return false;
    n = 0;
    for (int32_t i = 0; i < rank; i++)
        if (stays[i]) {
            place[i] = n;
            dims[n++] = x->type.dims[i];
        }
    for (int32_t i = 0; i < n; i++)
        perm[i] = place[kept[i]];
    x = simplify_reshaped(w, node, x, n, dims);
    if (!x)
        return false;
    become_transpose(node, x, perm, n);
    drop_if_dead(transpose);
    return changed(w, node);
}

static bool rule_reshape(work *w, ir_node *node)
{
    if (rule_same_shape(w, node) || transpose_between(w, node) || squeeze_before_transpose(w, node))
        return true;
    ir_value *in = ir_in(node, 0);
    ir_node *inner = in ? in->producer : NULL;
    if (!rewrite_is_reshape(inner) || !ir_in(inner, 0) || inner->graph != node->graph)
        return false;
    if (!become_reshape(w, node, ir_in(inner, 0)))
        return false;
    drop_if_dead(inner);
    return true;
}

/* ---- transposes ---- */

/* Only dims of 1 move: the elements stay where they are. */
static bool keeps_order(const ir_type *in, const int64_t *perm, const grt_dims *dims)
{
    int64_t last = -1;
    for (int32_t i = 0; i < in->rank; i++) {
        if (grt_dim_equals(dims, in->dims[perm[i]], 1))
            continue;
        if (perm[i] < last)
            return false;
        last = perm[i];
    }
    return true;
}

static bool rule_transpose(work *w, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    int64_t outer[GRT_MAX_RANK], inner[GRT_MAX_RANK];
    if (!x || !permutation(node, x->type.rank, outer))
        return false;
    int32_t rank = x->type.rank;
    bool identity = true;
    for (int32_t i = 0; i < rank; i++)
        identity &= outer[i] == i;
    if (identity)
        return becomes(w, node, x);
    if (keeps_order(&x->type, outer, simplify_dims_of(node)) && become_reshape(w, node, x))
        return true;
    ir_node *before = rewrite_producer(x, "Transpose");
    if (!before || !ir_in(before, 0) || !permutation(before, rank, inner))
        return false;
    int64_t both[GRT_MAX_RANK];
    for (int32_t i = 0; i < rank; i++)
        both[i] = inner[outer[i]];
    ir_attr_set_ints(node, "perm", both, (size_t)rank);
    ir_node_set_input(node, 0, ir_in(before, 0));
    drop_if_dead(before);
    return changed(w, node);
}

/* ---- slices ---- */

/* mark: how many uses there were when one was found that is no slice. Until one is gone it need not be looked
 * for again, by each of many slices. */
static bool only_sliced(ir_value *value)
{
    if (value->mark && value->mark == value->n_uses)
        return false;
    for (const ir_use *use = value->uses; use; use = use->next)
        if (!rewrite_is(use->node, "Slice") || use->index != 0) {
            value->mark = value->n_uses;
            return false;
        }
    return true;
}

/* The Slice of what was transposed becomes the Transpose of a Slice, if its axes are known. */
static void slice_first(work *w, ir_node *node, ir_value *x, const int64_t *perm)
{
    int64_t moved[GRT_MAX_RANK], n;
    const int64_t *axes;
    if (node->n_in > 5 || !ir_const_ints(ir_in(node, 3), &axes, &n) || n > x->type.rank)
        return;
    for (int64_t i = 0; i < n; i++) {
        int64_t axis = grt_axis(axes[i], x->type.rank);
        if (axis < 0)
            return;
        moved[i] = perm[axis];
    }
    ir_value *in[5] = {x, ir_in(node, 1), ir_in(node, 2),
                       ir_constant_ints(node->graph, node->desc.name, moved, n), ir_in(node, 4)};
    ir_node *part =
        in[3] ? ir_node_create(node->graph, node, "", "Slice", node->desc.name, node->n_in, in, 1) : NULL;
    if (!part || op_infer_node(part) != GRT_OK)
        return;
    simplify_push(w, part);
    become_transpose(node, part->out[0], perm, x->type.rank);
    (void)changed(w, node);
}

/* Parts of what was transposed: transpose the parts only. All of them at once, as each asks for the others.
 */
static bool slice_before_transpose(work *w, ir_node *node)
{
    ir_node *transpose = rewrite_producer(ir_in(node, 0), "Transpose");
    ir_value *x = transpose ? ir_in(transpose, 0) : NULL;
    int64_t perm[GRT_MAX_RANK], n;
    const int64_t *axes;
    if (!x || transpose->graph != node->graph || !permutation(transpose, x->type.rank, perm) ||
        !ir_const_ints(ir_in(node, 3), &axes, &n) || !only_sliced(ir_in(node, 0)))
        return false;
    for (ir_use *use = transpose->out[0]->uses, *next; use; use = next) {
        next = use->next;
        if (use->graph == node->graph)
            slice_first(w, use->node, x, perm);
    }
    drop_if_dead(transpose);
    return rewrite_is(node, "Transpose");
}

static bool rule_slice(work *w, ir_node *node)
{
    bool forward = !ir_in(node, 4) || all_ints_are(node, 4, 1);
    return (forward && same_shape_as_input(node, 0) && becomes(w, node, ir_in(node, 0))) ||
           slice_before_transpose(w, node);
}

/* ---- the table and its driver ---- */

/* What the op's row says of it. */
static bool apply_traits(work *w, ir_node *node)
{
    const uint32_t flags = node->row ? node->row->flags : 0;
    if (flags & OP_SINGLE && node->n_in == 1)
        return becomes(w, node, ir_in(node, 0));
    if (rewrite_is_reshape(node))
        return rule_reshape(w, node);
    if (flags & OP_INVOLUTION)
        return involution(w, node);
    if (!(flags & (OP_ZERO_IS_NEUTRAL | OP_ONE_IS_NEUTRAL)))
        return false;
    const double value = flags & OP_ONE_IS_NEUTRAL ? 1 : 0;
    return neutral(w, node, 1, value) || (flags & OP_COMMUTATIVE && neutral(w, node, 0, value));
}

/* What is peculiar to single ops. */
static const struct {
    const char *op;
    bool (*apply)(work *w, ir_node *node);
} rules[] = {
    {"Identity", rule_identity}, {"Dropout", rule_dropout},
    {"Cast", rule_cast},         {"CastLike", rule_cast},
    {"Sum", rule_sum},           {"Split", rule_only_output},
    {"Expand", rule_expand},     {"Slice", rule_slice},
    {"Pad", rule_pad},           {"Tile", rule_tile},
    {"Clip", rule_clip},         {"Div", rule_div},
    {"Pow", rule_pow},           {"Transpose", rule_transpose},
};

static void apply_rules(work *w, ir_node *node)
{
    if (*node->desc.domain || !node->n_out || !node->out[0] || node->out[0]->type.kind != GRT_KIND_TENSOR)
        return;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].op, node->desc.op)) {
            if (rules[i].apply(w, node))
                return;
            break;
        }
    apply_traits(w, node);
}

grt_status pass_simplify(pass_context *context)
{
    work w = {.context = context};
    push_graph(&w, context->module->main);
    while (w.n && !w.failed) {
        ir_node *node = w.stack[--w.n];
        if (node->mark == REMOVED)
            continue;
        node->mark = IDLE;
        apply_rules(&w, node);
    }
    free(w.stack);
    return w.failed ? grt_fail_memory(0) : GRT_OK;
}
