/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum of many operands as a chain of ones of two, so that its work is not the product of all its labels'
 * sizes. Labels of one operand alone are summed first. Two operands become a product (einsum_product.h). */
#include "graph/ops/einsum_pairs.h"

#include "graph/ops/einsum_product.h"
#include "graph/ops/ml_parts.h"
#include "src/base/einsum.h"

#include <string.h>

enum { MOST_TERMS = 64, MOST_LETTERS = 52, WORDS = MOST_TERMS * (GRT_MAX_RANK + 1) };

typedef uint64_t letters; /* a set of them */

typedef struct term {
    ir_value *value;
    int8_t axes[GRT_MAX_RANK]; /* a letter for each */
    int32_t rank;
    letters set;
} term;

typedef struct chain {
    ir_node *before;
    term terms[MOST_TERMS];
    int32_t n;
    term out;
    int8_t letter_of[GRT_EINSUM_LABELS]; /* -1: none yet */
    int32_t n_letters;
    bool changed;
} chain;

static bool set_axes(chain *c, term *t, const int8_t *labels)
{
    for (int32_t k = 0; k < t->rank; k++) {
        int8_t *letter = &c->letter_of[labels[k]];
        if (*letter < 0 && c->n_letters == MOST_LETTERS)
            return false;
        if (*letter < 0)
            *letter = (int8_t)c->n_letters++;
        t->axes[k] = *letter;
        t->set |= (letters)1 << *letter;
    }
    return true;
}

static bool read_terms(chain *c, const ir_node *node)
{
    int8_t labels[GRT_MAX_RANK];
    int32_t ellipsis = 0, wide;
    memset(c->letter_of, -1, sizeof c->letter_of);
    c->n = node->n_in;
    for (int32_t i = 0; i < c->n; i++) {
        ir_value *value = ir_in(node, i);
        if (!value || value->type.rank < 0)
            return false;
        c->terms[i] = (term){.value = value, .rank = value->type.rank};
        if (grt_einsum_input(&node->desc, i, c->n, c->terms[i].rank, labels, &wide) != GRT_OK ||
            !set_axes(c, &c->terms[i], labels))
            return false;
        ellipsis = wide > ellipsis ? wide : ellipsis;
    }
    return grt_einsum_output(&node->desc, ellipsis, labels, &c->out.rank) == GRT_OK &&
           set_axes(c, &c->out, labels);
}

static char *write_axes(const term *t, char *at)
{
    for (int32_t k = 0; k < t->rank; k++) {
        const int letter = t->axes[k];
        *at++ = (char)(letter < 26 ? 'a' + letter : 'A' + letter - 26);
    }
    return at;
}

/* What is in between is not rounded to 16 bits. */
static ir_value *einsum_pairs_widened(const chain *c, ir_value *value)
{
    if (!grt_dtype_in(value->type.dtype, GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)))
        return value;
    ir_value *wide = ml_cast(c->before, value, GRT_DTYPE_FLOAT);
    return wide && op_infer_node(wide->producer) == GRT_OK ? wide : NULL;
}

/* The product of the terms, summed over all letters that `out` lacks. NULL where inference refuses it, or out
 * of memory, which the arena remembers. */
static ir_value *make_einsum(const chain *c, const term *const *terms, int32_t n, const term *out)
{
    char equation[WORDS + sizeof "->"], *at = equation;
    ir_value *in[MOST_TERMS];
    for (int32_t i = 0; i < n; i++) {
        if (i)
            *at++ = ',';
        at = write_axes(terms[i], at);
        in[i] = einsum_pairs_widened(c, terms[i]->value);
        if (!in[i])
            return NULL;
    }
    *at++ = '-';
    *at++ = '>';
    *write_axes(out, at) = '\0';
    ir_node *made = ir_node_create(c->before->graph, c->before, "", "Einsum", c->before->desc.name, n, in, 1);
    if (!made)
        return NULL;
    ir_attr_set_string(made, "equation", equation);
    return op_infer_node(made) == GRT_OK ? made->out[0] : NULL;
}

/* The letters that the output or any term but i and j has. */
static letters needed_beside(const chain *c, int32_t i, int32_t j)
{
    letters set = c->out.set;
    for (int32_t k = 0; k < c->n; k++)
        if (k != i && k != j)
            set |= c->terms[k].set;
    return set;
}

/* `result` becomes the product of the terms, summed over all letters but those of `kept`. False: see
 * make_einsum. */
static bool contract(chain *c, const term *const *terms, int32_t n, letters kept, term *result)
{
    term t = {.set = kept};
    letters missing = kept;
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < terms[i]->rank; k++) {
            const letters letter = (letters)1 << terms[i]->axes[k];
            if (!(missing & letter))
                continue;
            missing &= ~letter;
            if (t.rank == GRT_MAX_RANK)
                return true; /* stays as it is */
            t.axes[t.rank++] = terms[i]->axes[k];
        }
    t.value = make_einsum(c, terms, n, &t);
    if (!t.value)
        return false;
    *result = t;
    c->changed = true;
    return true;
}

static bool sum_alone(chain *c)
{
    for (int32_t i = 0; c->n > 1 && i < c->n; i++) {
        const letters kept = c->terms[i].set & needed_beside(c, i, i);
        const term *one = &c->terms[i];
        if (kept != c->terms[i].set && !contract(c, &one, 1, kept, &c->terms[i]))
            return false;
    }
    return true;
}

static int size_of(letters set)
{
    return __builtin_popcountll(set);
}

/* The pair whose result has the fewest letters, as long as that has no more than one of the two, or than the
 * output. */
static bool find_pair(const chain *c, int32_t *out_i, int32_t *out_j, letters *out_kept)
{
    int best = MOST_LETTERS + 1;
    for (int32_t i = 0; i < c->n; i++)
        for (int32_t j = i + 1; j < c->n; j++) {
            const letters a = c->terms[i].set, b = c->terms[j].set, kept = (a | b) & needed_beside(c, i, j);
            const int size = size_of(kept);
            if (size >= best || (size > size_of(a) && size > size_of(b) && size > size_of(c->out.set)))
                continue;
            best = size;
            *out_i = i;
            *out_j = j;
            *out_kept = kept;
        }
    return best <= MOST_LETTERS;
}

static bool join_pairs(chain *c)
{
    int32_t i, j;
    letters kept;
    while (c->n > 2 && find_pair(c, &i, &j, &kept)) {
        const term *pair[] = {&c->terms[i], &c->terms[j]};
        const ir_value *before = c->terms[i].value;
        if (!contract(c, pair, 2, kept, &c->terms[i]))
            return false;
        if (c->terms[i].value == before)
            return true;
        memmove(&c->terms[j], &c->terms[j + 1], (size_t)(c->n - j - 1) * sizeof c->terms[0]);
        c->n--;
    }
    return true;
}

/* What is left of the chain, in the dtype of the whole. */
static ir_value *last_einsum(const chain *c)
{
    const term *rest[MOST_TERMS];
    for (int32_t i = 0; i < c->n; i++)
        rest[i] = &c->terms[i];
    ir_value *y = make_einsum(c, rest, c->n, &c->out);
    return y ? ml_cast(c->before, y, c->before->out[0]->type.dtype) : NULL;
}

grt_status einsum_expand(ir_node *node, bool *out_done)
{
    chain c = {.before = node};
    ir_node *const last = node->prev;
    *out_done = false;
    if (node->n_in < 2 || node->n_in > MOST_TERMS || !read_terms(&c, node))
        return GRT_OK;
    ir_value *y = sum_alone(&c) && join_pairs(&c) && c.changed ? last_einsum(&c) : NULL;
    if (!y) {
        einsum_take_back(node, last);
        return einsum_to_product(node, out_done);
    }
    ir_value_replace(node->out[0], y);
    ir_node_remove(node);
    *out_done = true;
    return GRT_OK;
}
