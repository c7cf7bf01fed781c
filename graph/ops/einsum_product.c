/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum of two operands as a matrix product, or as a Mul where it sums over nothing: their kernels are
 * faster than one for any sum, and passes know them (attention, epilogues, precision, pointwise groups).
 * Moves around them are for passes to remove. */
#include "graph/ops/einsum_product.h"

#include "src/base/einsum.h"

#include <string.h>

/* What a label is to the product: in both operands and the output, in one operand and the output, or summed
 * over. */
typedef enum role { BATCH, ROW, COLUMN, SUMMED, N_ROLES } role;

typedef struct axes {
    ir_value *value;
    int32_t rank;
    int8_t labels[GRT_MAX_RANK];
} axes;

typedef struct product {
    ir_node *before;
    axes left, right, out;
    int8_t labels[N_ROLES][GRT_MAX_RANK];
    int32_t n[N_ROLES];
    grt_dim sizes[GRT_EINSUM_LABELS];
    bool spread; /* rows are dims of their own, for all but the last of which the right operand is repeated */
} product;

/* The axis that has this label, or -1. */
static int32_t einsum_product_axis_of(const axes *a, int8_t label)
{
    for (int32_t k = 0; k < a->rank; k++)
        if (a->labels[k] == label)
            return k;
    return -1;
}

/* A label twice in one operand is a diagonal; one that has two sizes stretches. Neither is a product. */
static bool note_sizes(product *p, const axes *a)
{
    const grt_dims *dims = p->before->graph->module->dims;
    for (int32_t k = 0; k < a->rank; k++) {
        grt_dim *size = &p->sizes[a->labels[k]];
        if (einsum_product_axis_of(a, a->labels[k]) != k || grt_dim_equals(dims, a->value->type.dims[k], 0))
            return false;
        if (*size != GRT_DIM_NONE && *size != a->value->type.dims[k])
            return false;
        *size = a->value->type.dims[k];
    }
    return true;
}

static bool read_axes(product *p, const ir_node *node)
{
    axes *const in[] = {&p->left, &p->right};
    int32_t ellipsis = 0, wide;
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        p->sizes[k] = GRT_DIM_NONE;
    for (int32_t i = 0; i < 2; i++) {
        in[i]->value = ir_in(node, i);
        if (!in[i]->value || in[i]->value->type.rank < 1)
            return false;
        in[i]->rank = in[i]->value->type.rank;
        if (grt_einsum_input(&node->desc, i, 2, in[i]->rank, in[i]->labels, &wide) != GRT_OK ||
            !note_sizes(p, in[i]))
            return false;
        ellipsis = wide > ellipsis ? wide : ellipsis;
    }
    p->out.value = node->out[0];
    return grt_einsum_output(&node->desc, ellipsis, p->out.labels, &p->out.rank) == GRT_OK &&
           p->out.rank == node->out[0]->type.rank;
}

static void add_label(product *p, role r, int8_t label)
{
    p->labels[r][p->n[r]++] = label;
}

/* True if [batch..., rows..., last] are the labels of the operand in order. */
static bool is_in_order(const product *p, const axes *a, const int8_t *rows, role last)
{
    int32_t at = 0;
    for (int32_t k = 0; k < p->n[BATCH]; k++)
        if (at >= a->rank || a->labels[at++] != p->labels[BATCH][k])
            return false;
    for (int32_t k = 0; k < p->n[ROW]; k++)
        if (at >= a->rank || a->labels[at++] != rows[k])
            return false;
    for (int32_t k = 0; k < p->n[last]; k++)
        if (at >= a->rank || a->labels[at++] != p->labels[last][k])
            return false;
    return at == a->rank;
}

/* Rows in the order of the left operand, if that stays where it is then, and the output is moved anyway. */
static void sort_rows(product *p)
{
    int8_t rows[GRT_MAX_RANK];
    int32_t n = 0;
    for (int32_t k = 0; k < p->left.rank; k++)
        for (int32_t i = 0; i < p->n[ROW]; i++)
            if (p->labels[ROW][i] == p->left.labels[k])
                rows[n++] = p->left.labels[k];
    if (!is_in_order(p, &p->out, p->labels[ROW], COLUMN) && is_in_order(p, &p->left, rows, SUMMED))
        memcpy(p->labels[ROW], rows, (size_t)n * sizeof *rows);
}

static int32_t unknown_of(const product *p, role r)
{
    int32_t n = 0;
    for (int32_t k = 0; k < p->n[r]; k++)
        n += !grt_dim_is_const(p->before->graph->module->dims, p->sizes[p->labels[r][k]], NULL);
    return n;
}

/* A Reshape finds one size that is not known: rows cannot be one dim beside another such size, nor be taken
 * apart again. */
static bool cannot_be_joined(const product *p)
{
    const int32_t rows = unknown_of(p, ROW);
    return rows + (unknown_of(p, COLUMN) || unknown_of(p, SUMMED)) > 1 && p->n[BATCH] && p->n[ROW] > 1 &&
           p->n[COLUMN] == 1 && p->n[SUMMED] == 1;
}

/* Labels in the order of the output, so that its moves are few. The operand whose label is last there is the
 * right one. False if a label is summed over in one operand alone. */
static bool assign_roles(product *p)
{
    for (int32_t k = p->out.rank - 1; k >= 0; k--) {
        const int8_t label = p->out.labels[k];
        const bool left = einsum_product_axis_of(&p->left, label) >= 0,
                   right = einsum_product_axis_of(&p->right, label) >= 0;
        if (left && right)
            continue;
        if (left) {
            const axes swapped = p->left;
            p->left = p->right;
            p->right = swapped;
        }
        break;
    }
    for (int32_t k = 0; k < p->out.rank; k++) {
        const int8_t label = p->out.labels[k];
        const bool left = einsum_product_axis_of(&p->left, label) >= 0,
                   right = einsum_product_axis_of(&p->right, label) >= 0;
        add_label(p, left && right ? BATCH : left ? ROW : COLUMN, label);
    }
    for (int32_t k = 0; k < p->left.rank; k++)
        if (einsum_product_axis_of(&p->out, p->left.labels[k]) < 0)
            add_label(p, SUMMED, p->left.labels[k]);
    if (p->n[SUMMED] < 1 || p->n[BATCH] + p->n[ROW] + p->n[SUMMED] != p->left.rank ||
        p->n[BATCH] + p->n[COLUMN] + p->n[SUMMED] != p->right.rank)
        return false;
    sort_rows(p);
    p->spread = cannot_be_joined(p);
    return true;
}

/* A node in front of the Einsum. NULL where it cannot be made. */
static ir_node *einsum_product_put(const product *p, const char *op, ir_value *a, ir_value *b)
{
    ir_value *const in[] = {a, b};
    return ir_node_create(p->before->graph, p->before, "", op, p->before->desc.name, b ? 2 : 1, in, 1);
}

static ir_value *typed(ir_node *node)
{
    return node && op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

static ir_value *einsum_product_transposed(const product *p, ir_value *x, const int64_t *perm)
{
    bool moves = false;
    for (int32_t k = 0; k < x->type.rank; k++)
        moves |= perm[k] != k;
    ir_node *node = moves ? einsum_product_put(p, "Transpose", x, NULL) : NULL;
    if (node)
        ir_attr_set_ints(node, "perm", perm, (size_t)x->type.rank);
    return moves ? typed(node) : x;
}

/* A shape for Reshape: known sizes, 0 for batch dims that stay where they are, and one -1. */
typedef struct shape {
    int64_t dims[GRT_MAX_RANK];
    int32_t rank;
    bool infers;
} shape;

static void add_batch(const product *p, shape *s)
{
    for (int32_t k = 0; k < p->n[BATCH]; k++) {
        int64_t *dim = &s->dims[s->rank++];
        if (!grt_dim_is_const(p->before->graph->module->dims, p->sizes[p->labels[BATCH][k]], dim))
            *dim = 0;
    }
}

static bool add_dim(shape *s, int64_t dim)
{
    if (s->rank == GRT_MAX_RANK || (dim < 0 && s->infers))
        return false;
    s->infers |= dim < 0;
    s->dims[s->rank++] = dim;
    return true;
}

/* All labels of a role as one dim. */
static bool add_joined(const product *p, role r, shape *s)
{
    int64_t all = 1;
    for (int32_t k = 0; k < p->n[r]; k++) {
        int64_t n;
        if (!grt_dim_is_const(p->before->graph->module->dims, p->sizes[p->labels[r][k]], &n))
            all = -1;
        else if (all > 0 && __builtin_mul_overflow(all, n, &all))
            return false;
    }
    return add_dim(s, all);
}

static bool add_apart(const product *p, role r, shape *s)
{
    for (int32_t k = 0; k < p->n[r]; k++) {
        int64_t n;
        const bool known = grt_dim_is_const(p->before->graph->module->dims, p->sizes[p->labels[r][k]], &n);
        if (!add_dim(s, known ? n : -1))
            return false;
    }
    return true;
}

static ir_value *reshaped(const product *p, ir_value *x, const shape *s)
{
    ir_value *dims = ir_constant_ints(p->before->graph, "", s->dims, s->rank);
    return dims ? typed(einsum_product_put(p, "Reshape", x, dims)) : NULL;
}

/* Rows of a product without a batch may have many dims, or be one. */
static bool is_joined(const product *p, role r)
{
    return p->n[r] != 1 && !(r == ROW && (p->spread || (!p->n[BATCH] && p->n[ROW] > 1)));
}

/* The operand as [batch..., first, second]. */
static ir_value *arranged(const product *p, const axes *a, role first, role second)
{
    const role order[] = {BATCH, first, second};
    int64_t perm[GRT_MAX_RANK];
    int32_t n = 0;
    for (int i = 0; i < 3; i++)
        for (int32_t k = 0; k < p->n[order[i]]; k++)
            perm[n++] = einsum_product_axis_of(a, p->labels[order[i]][k]);
    ir_value *x = einsum_product_transposed(p, a->value, perm);
    if (!x || !(is_joined(p, first) || is_joined(p, second)))
        return x;
    shape s = {0};
    add_batch(p, &s);
    const bool fits = (is_joined(p, first) ? add_joined(p, first, &s) : add_apart(p, first, &s)) &&
                      (is_joined(p, second) ? add_joined(p, second, &s) : add_apart(p, second, &s));
    return fits ? reshaped(p, x, &s) : NULL;
}

/* [batch..., rows, columns] as the output has its labels. */
static ir_value *einsum_product_finished(const product *p, ir_value *y)
{
    const role order[] = {BATCH, ROW, COLUMN};
    int8_t labels[GRT_MAX_RANK];
    int64_t perm[GRT_MAX_RANK];
    int32_t n = 0;
    shape s = {0};
    if (y && (is_joined(p, ROW) || is_joined(p, COLUMN))) {
        add_batch(p, &s);
        if (!add_apart(p, ROW, &s) || !add_apart(p, COLUMN, &s))
            return NULL;
        y = reshaped(p, y, &s);
    }
    for (int i = 0; i < 3; i++)
        for (int32_t k = 0; k < p->n[order[i]]; k++)
            labels[n++] = p->labels[order[i]][k];
    for (int32_t k = 0; k < n; k++)
        for (int32_t i = 0; i < n; i++)
            if (labels[i] == p->out.labels[k])
                perm[k] = i;
    return y && y->type.rank == n ? einsum_product_transposed(p, y, perm) : NULL;
}

static bool all_in_output(const product *p, const axes *a)
{
    for (int32_t k = 0; k < a->rank; k++)
        if (einsum_product_axis_of(&p->out, a->labels[k]) < 0)
            return false;
    return true;
}

/* The operand with a dim for each of the output's labels, 1 where it has none. */
static ir_value *einsum_product_spread(const product *p, const axes *a)
{
    int64_t perm[GRT_MAX_RANK], missing[GRT_MAX_RANK];
    int32_t n = 0, n_missing = 0;
    for (int32_t k = 0; k < p->out.rank; k++) {
        const int32_t axis = einsum_product_axis_of(a, p->out.labels[k]);
        if (axis >= 0)
            perm[n++] = axis;
        else
            missing[n_missing++] = k;
    }
    ir_value *x = einsum_product_transposed(p, a->value, perm);
    if (!x || !n_missing)
        return x;
    ir_value *dims = ir_constant_ints(p->before->graph, "", missing, n_missing);
    return dims ? typed(einsum_product_put(p, "Unsqueeze", x, dims)) : NULL;
}

static ir_value *einsum_product_unsummed(const product *p)
{
    ir_value *left = einsum_product_spread(p, &p->left);
    ir_value *right = left ? einsum_product_spread(p, &p->right) : NULL;
    return right ? typed(einsum_product_put(p, "Mul", left, right)) : NULL;
}

/* The right operand with dims of 1 for all rows but the last. */
static ir_value *repeated_for_rows(const product *p, ir_value *x)
{
    int64_t at[GRT_MAX_RANK];
    const int32_t n = p->spread ? p->n[ROW] - 1 : 0;
    for (int32_t k = 0; k < n; k++)
        at[k] = p->n[BATCH] + k;
    ir_value *list = x && n ? ir_constant_ints(p->before->graph, "", at, n) : NULL;
    return !n ? x : list ? typed(einsum_product_put(p, "Unsqueeze", x, list)) : NULL;
}

static ir_value *einsum_product_summed(product *p)
{
    if (!assign_roles(p))
        return NULL;
    ir_value *left = arranged(p, &p->left, ROW, SUMMED);
    ir_value *right = left ? repeated_for_rows(p, arranged(p, &p->right, SUMMED, COLUMN)) : NULL;
    return right ? einsum_product_finished(p, typed(einsum_product_put(p, "MatMul", left, right))) : NULL;
}

static bool same_type(const ir_type *a, const ir_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int32_t k = 0; k < a->rank; k++)
        if (a->dims[k] != b->dims[k])
            return false;
    return true;
}

void einsum_take_back(ir_node *node, const ir_node *last)
{
    while (node->prev != last)
        ir_node_remove(node->prev);
}

grt_status einsum_to_product(ir_node *node, bool *out_done)
{
    product p = {.before = node};
    *out_done = false;
    if (node->n_in != 2 || !grt_dtype_in(node->out[0]->type.dtype, GRT_SET_FLOATS) || !read_axes(&p, node))
        return GRT_OK;
    ir_node *const last = node->prev;
    ir_value *y = all_in_output(&p, &p.left) && all_in_output(&p, &p.right) ? einsum_product_unsummed(&p)
                                                                            : einsum_product_summed(&p);
    if (y && same_type(&y->type, &node->out[0]->type)) {
        ir_value_replace(node->out[0], y);
        ir_node_remove(node);
        *out_done = true;
        return GRT_OK;
    }
    einsum_take_back(node, last);
    return GRT_OK;
}
