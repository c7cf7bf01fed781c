/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to each row of a head by itself goes in front of the transpose that puts heads in front of
 * tokens: passes look for heads in rows.
 *
 *   norm(Transpose(x)), Transpose(x) * c, Transpose(x) / max(|Transpose(x)|, e)
 *
 * Such steps work on one element, or on the last dim, and commute with a permutation of the others. All that
 * read the transpose are among them, so that none is left behind. */
#include "graph/ir/constant.h"
#include "graph/passes/recognise.h"

#include <string.h>

enum { RANK = 4, MOST_VALUES = 12, MOST_INPUTS = 3 };
static const int64_t heads_first[RANK] = {0, 2, 1, 3};

typedef struct row_value {
    ir_value *value; /* heads first */
    ir_value *rows;  /* tokens first */
    int32_t uses;    /* that were found */
} row_value;

typedef struct row_steps {
    row_value values[MOST_VALUES]; /* each behind what it is made of */
    int32_t n;
} row_steps;

static bool is_heads_first(const int64_t *perm, size_t n)
{
    return perm && n == RANK && !memcmp(perm, heads_first, sizeof heads_first);
}

/* Along the last dim alone. */
static bool heads_last_axis(int64_t axis)
{
    return grt_axis(axis, RANK) == RANK - 1;
}

static bool reduces_rows(const ir_node *node)
{
    const int64_t *axes;
    int64_t n;
    return rewrite_has(node, OP_REDUCES) && grt_attr_int(&node->desc, "keepdims", 1) && ir_in(node, 1) &&
           ir_const_ints(ir_in(node, 1), &axes, &n) && n == 1 && heads_last_axis(axes[0]);
}

/* A norm along the dims from attribute `axis` on, or along that one. */
static bool normalises_along(const ir_node *node)
{
    return (node->row && node->row->batch == OP_BATCH_NORM) || rewrite_is(node, "LpNormalization");
}

/* A column that is repeated for one node, which would do that as well. */
static bool repeats_column(const ir_node *node)
{
    const ir_node *user = rewrite_is(node, "Expand") ? rewrite_only_user(node->out[0]) : NULL;
    const ir_type *in = user ? &ir_in(node, 0)->type : NULL;
    bool same = in && in->rank == RANK && rewrite_has(user, OP_POINTWISE) && user->n_in == 2;
    for (int32_t i = 0; same && i < RANK - 1; i++)
        same = in->dims[i] == node->out[0]->type.dims[i];
    return same;
}

static bool treats_rows_alike(const ir_node *node)
{
    if (node->n_out != 1 || node->n_in < 1 || node->n_in > MOST_INPUTS)
        return false;
    if (normalises_along(node))
        return heads_last_axis(grt_attr_int(&node->desc, "axis", -1));
    return rewrite_has(node, OP_POINTWISE) || reduces_rows(node);
}

/* Elements that follow rows: a Reshape to heads, and what was made of one. */
static bool is_in_rows(const ir_value *x)
{
    return x->type.rank >= RANK && x->producer &&
           (rewrite_is_reshape(x->producer) || treats_rows_alike(x->producer));
}

/* x, if the value is that with heads put first. */
static ir_value *heads_turned(const ir_value *value)
{
    const ir_node *node = rewrite_producer(value, "Transpose");
    size_t n;
    const int64_t *perm = node ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    ir_value *x = perm ? ir_in(node, 0) : NULL;
    return x && x->type.rank == RANK && is_heads_first(perm, n) && is_in_rows(x) ? x : NULL;
}

/* The same for one of queries, keys and values that lie side by side: a Gather of it behind the Transpose of
 * all. A new Gather in front of `before`, or NULL. */
static ir_value *heads_turned_part(ir_node *before, const ir_value *value)
{
    const ir_node *gather = rewrite_producer(value, "Gather");
    const ir_node *node = gather ? rewrite_producer(ir_in(gather, 0), "Transpose") : NULL;
    size_t n;
    const int64_t *perm = node ? grt_attr_ints(&node->desc, "perm", &n) : NULL;
    const ir_value *index = gather ? ir_in(gather, 1) : NULL;
    if (!perm || n != RANK + 1 || !index || !index->type.data || index->type.rank != 0 ||
        !is_in_rows(ir_in(node, 0)))
        return NULL;
    const int64_t axis = grt_axis(grt_attr_int(&gather->desc, "axis", 0), RANK + 1);
    if (axis < 0)
        return NULL;
    int64_t left[RANK];
    for (int32_t i = 0, k = 0; i <= RANK; i++)
        if (i != axis)
            left[k++] = perm[i] - (perm[i] > perm[axis]);
    if (!is_heads_first(left, RANK))
        return NULL;
    ir_node *made = ir_node_create(before->graph, before, "", "Gather", gather->desc.name, 2,
                                   (ir_value *[]){ir_in(node, 0), ir_in(gather, 1)}, 1);
    if (!made)
        return NULL;
    ir_attr_set_int(made, "axis", perm[axis]);
    return op_infer_node(made) == GRT_OK ? made->out[0] : NULL;
}

static row_value *heads_seen(row_steps *s, const ir_value *value)
{
    for (int32_t i = 0; i < s->n; i++)
        if (s->values[i].value == value)
            return &s->values[i];
    return NULL;
}

/* The same for all rows: scalars, and vectors along the last dim. */
static bool is_for_all_rows(const ir_value *value)
{
    return !value || value->type.rank == 0 || value->type.rank == 1;
}

/* Finds what the value is made of, up to transposes to heads. */
static bool heads_find(row_steps *s, ir_node *root, ir_value *value, int32_t depth)
{
    enum { MOST_DEPTH = 6 };
    if (is_for_all_rows(value))
        return true;
    row_value *known = heads_seen(s, value);
    if (known) {
        known->uses++;
        return true;
    }
    ir_node *node = value->producer;
    if (value->type.rank != RANK || !node || node->graph != root->graph || depth > MOST_DEPTH)
        return false;
    ir_value *x = heads_turned(value);
    x = x ? x : heads_turned_part(root, value);
    if (!x) {
        if (!treats_rows_alike(node) && !repeats_column(node))
            return false;
        const int32_t n_in = repeats_column(node) ? 1 : node->n_in;
        for (int32_t i = 0; i < n_in; i++)
            if (!heads_find(s, root, ir_in(node, i), depth + 1))
                return false;
    }
    if (s->n == MOST_VALUES)
        return false;
    s->values[s->n++] = (row_value){value, x, 1};
    return true;
}

/* The node's result in rows, which all its inputs are in. */
static ir_value *heads_in_rows(row_steps *s, ir_node *root, const ir_node *node)
{
    ir_value *in[MOST_INPUTS];
    const ir_type *out = &node->out[0]->type;
    if (repeats_column(node))
        return heads_seen(s, ir_in(node, 0))->rows;
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = is_for_all_rows(ir_in(node, i)) ? ir_in(node, i) : heads_seen(s, ir_in(node, i))->rows;
    ir_node *made = ir_node_create(root->graph, root, "", node->desc.op, node->desc.name, node->n_in, in, 1);
    if (!made)
        return NULL;
    ir_attrs_copy(made, node);
    if (op_infer_node(made) != GRT_OK)
        return NULL;
    const ir_type *type = &made->out[0]->type;
    bool fits = type->rank == RANK && type->dtype == out->dtype;
    for (int32_t i = 0; fits && i < RANK; i++)
        fits = type->dims[heads_first[i]] == out->dims[i];
    return fits ? made->out[0] : NULL;
}

/* A column that is no longer repeated may not be what a row's norm is of. */
static bool reads_repeated(const row_steps *s)
{
    for (int32_t i = 0; i < s->n; i++) {
        const ir_node *node = s->values[i].value->producer;
        if (!s->values[i].rows && !repeats_column(node) && !rewrite_has(node, OP_POINTWISE) &&
            rewrite_producer(ir_in(node, 0), "Expand"))
            return true;
    }
    return false;
}

static bool all_uses_found(const row_steps *s)
{
    for (int32_t i = 0; i < s->n - 1; i++)
        if (s->values[i].uses != s->values[i].value->n_uses)
            return false;
    return true;
}

/* The value is cut along rows, as rotary embedding does it. */
static bool is_turned_by_position(const ir_value *value)
{
    bool found = false;
    for (const ir_use *use = value->uses; use && !found; use = use->next)
        found = use->node && (rewrite_has(use->node, OP_PARTS) || rewrite_is(use->node, "RotaryEmbedding") ||
                              rewrite_is(use->node, "Slice"));
    return found;
}

/* Attention looks through scales by itself, and what is no attention may want them where they are. */
static bool heads_gain(const row_steps *s)
{
    const ir_value *last = s->values[s->n - 1].value;
    bool found = is_turned_by_position(last);
    for (int32_t i = 0; i < s->n && !found; i++)
        found = !s->values[i].rows && !rewrite_has(s->values[i].value->producer, OP_POINTWISE) &&
                !repeats_column(s->values[i].value->producer);
    return found;
}

bool recognise_row_of_head(pass_context *context, ir_node *node)
{
    row_steps s = {.n = 0};
    if (node->out[0]->type.rank != RANK || !treats_rows_alike(node) ||
        !heads_find(&s, node, node->out[0], 0) || s.n < 2 || !all_uses_found(&s) || reads_repeated(&s) ||
        !heads_gain(&s))
        return false; /* unused nodes are dead */
    for (int32_t i = 0; i < s.n; i++) {
        row_value *v = &s.values[i];
        if (!v->rows && !(v->rows = heads_in_rows(&s, node, v->value->producer)))
            return false;
    }
    ir_node *moved = recognise_unary(node, "Transpose", s.values[s.n - 1].rows);
    if (moved)
        ir_attr_set_ints(moved, "perm", heads_first, RANK);
    return recognise_put(context, node, moved); /* what nobody reads is removed by `dce` */
}
