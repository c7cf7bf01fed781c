/* SPDX-License-Identifier: Apache-2.0 */
/* What is joined, each part transposed alike, is joined first and transposed once. */
#include "graph/passes/simplify.h"

enum { MOST_INPUTS = 64 };

typedef struct joined_parts {
    int32_t rank, n;
    int64_t perm[GRT_MAX_RANK], back[GRT_MAX_RANK]; /* of the parts, and the other way round */
    bool has_others;                                /* parts that are no Transpose */
} joined_parts;

static ir_node *transpose_of_part(const ir_value *part)
{
    ir_node *node = part && part->n_uses == 1 ? rewrite_producer(part, "Transpose") : NULL;
    return node && ir_in(node, 0) ? node : NULL;
}

/* The Expand by known sizes that makes a part of a value whose elements stay where they are when its dims
 * are moved: so it can be expanded in the other order as well. */
static ir_node *expand_of_part(const joined_parts *p, const ir_value *part)
{
    ir_node *node = part && part->n_uses == 1 ? rewrite_producer(part, "Expand") : NULL;
    const ir_value *x = node ? ir_in(node, 0) : NULL;
    if (!x || x->type.rank != p->rank || part->type.rank != p->rank)
        return NULL;
    const grt_dims *dims = node->graph->module->dims;
    int64_t size;
    bool ok = simplify_keeps_order(&x->type, p->back, dims);
    for (int32_t i = 0; i < p->rank && ok; i++)
        ok = x->type.dims[i] == part->type.dims[i] || grt_dim_is_const(dims, part->type.dims[i], &size);
    return ok ? node : NULL;
}

/* Reads how the parts are transposed. False if not alike. */
static bool read_parts(const ir_node *concat, joined_parts *p)
{
    int64_t other[GRT_MAX_RANK];
    bool found = false;
    *p = (joined_parts){.rank = concat->out[0]->type.rank, .n = concat->n_in};
    for (int32_t i = 0; i < p->n; i++) {
        const ir_node *node = transpose_of_part(ir_in(concat, i));
        if (!node)
            continue;
        if (!simplify_permutation(node, p->rank, found ? other : p->perm))
            return false;
        for (int32_t k = 0; found && k < p->rank; k++)
            if (other[k] != p->perm[k])
                return false;
        found = true;
    }
    for (int32_t k = 0; k < p->rank && found; k++)
        p->back[p->perm[k]] = k;
    for (int32_t i = 0; i < p->n && found; i++)
        if (!transpose_of_part(ir_in(concat, i))) {
            p->has_others = true;
            found = expand_of_part(p, ir_in(concat, i)) != NULL;
        }
    return found;
}

/* The same elements expanded in the other order. */
static ir_value *expanded_back(simplify_work *w, const joined_parts *p, const ir_node *expand,
                               ir_node *before)
{
    ir_value *x = ir_in(expand, 0);
    int64_t sizes[GRT_MAX_RANK];
    for (int32_t k = 0; k < p->rank; k++) {
        const int64_t i = p->back[k];
        if (x->type.dims[i] == expand->out[0]->type.dims[i] ||
            !grt_dim_is_const(before->graph->module->dims, expand->out[0]->type.dims[i], &sizes[k]))
            sizes[k] = 1;
    }
    const char *name = expand->desc.name;
    ir_node *moved = ir_node_create(before->graph, before, "", "Transpose", name, 1, &x, 1);
    if (!moved)
        return NULL;
    ir_attr_set_ints(moved, "perm", p->back, (size_t)p->rank);
    ir_value *in[] = {moved->out[0], ir_constant_ints(before->graph, name, sizes, p->rank)};
    ir_node *made = in[1] && op_infer_node(moved) == GRT_OK
                        ? ir_node_create(before->graph, before, "", "Expand", name, 2, in, 1)
                        : NULL;
    if (!made || op_infer_node(made) != GRT_OK)
        return NULL;
    simplify_queue(w, moved);
    return made->out[0];
}

/* A Transpose of the whole instead of one of a part is no gain, unless it joins that of its only reader. */
static bool joined_transposes_gain(const joined_parts *p, const ir_node *concat)
{
    return !p->has_others || rewrite_is(rewrite_only_user(concat->out[0]), "Transpose");
}

bool simplify_joined_transposes(simplify_work *w, ir_node *node)
{
    ir_value *in[MOST_INPUTS];
    ir_node *moved[MOST_INPUTS];
    joined_parts p;
    const int64_t axis = grt_axis(grt_attr_int(&node->desc, "axis", 0), node->out[0]->type.rank);
    if (node->n_in < 2 || node->n_in > MOST_INPUTS || axis < 0 || !read_parts(node, &p) ||
        !joined_transposes_gain(&p, node))
        return false;
    for (int32_t i = 0; i < p.n; i++) {
        moved[i] = ir_in(node, i)->producer;
        in[i] = rewrite_is(moved[i], "Transpose") ? ir_in(moved[i], 0) : expanded_back(w, &p, moved[i], node);
        if (!in[i])
            return false; /* unused nodes are dead */
    }
    ir_node *joined = ir_node_create(node->graph, node, "", "Concat", node->desc.name, p.n, in, 1);
    if (!joined)
        return false;
    ir_attr_set_int(joined, "axis", p.perm[axis]);
    if (op_infer_node(joined) != GRT_OK)
        return false;
    simplify_become_transpose(node, joined->out[0], p.perm, p.rank);
    for (int32_t i = 0; i < p.n; i++)
        simplify_drop_if_dead(moved[i]);
    return simplify_changed(w, node);
}
