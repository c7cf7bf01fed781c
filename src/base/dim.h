/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolic dimensions: hash-consed integer expressions over named symbols.
 *
 * Handles of equal expressions of one table are equal, so `a == b` proves equality (a != b proves nothing).
 * Expressions are simplified as they are built: constants fold, sums and products have a normal form.
 * Division rounds to minus infinity. A table is owned by one thread at a time. dim_table.c keeps the table,
 * dim_form.c has the normal forms. */
#ifndef GRT_BASE_DIM_H
#define GRT_BASE_DIM_H

#include "src/base/text.h"

typedef int32_t grt_dim;
#define GRT_DIM_NONE (-1)

typedef enum grt_dim_op {
    GRT_DIM_CONST = 0, /* value */
    GRT_DIM_SYMBOL,    /* value: symbol index */
    GRT_DIM_ADD,
    GRT_DIM_MUL,
    GRT_DIM_FLOORDIV,
    GRT_DIM_CEILDIV,
    GRT_DIM_MOD,
    GRT_DIM_MAX,
    GRT_DIM_MIN,
    GRT_DIM_BROADCAST, /* the dim of two broadcast together: they are equal, or one of them is 1 */
} grt_dim_op;

typedef struct grt_dim_expr {
    grt_dim_op op;
    grt_dim a, b;  /* operands: always smaller handles than this one's */
    int64_t value; /* CONST, SYMBOL */
} grt_dim_expr;

typedef struct grt_dims grt_dims;

grt_dims *grt_dims_create(void);
void grt_dims_release(grt_dims *table);
/* Forget everything. */
void grt_dims_clear(grt_dims *table);
/* True if there was a lack of memory. Dims are less informative then than they should be: who made a model
 * from them, or left something out for want of them, checks at the end. */
bool grt_dims_failed(const grt_dims *table);

/* On lack of memory or overflow of a constant these return a fresh symbol: correct, merely uninformative. */
grt_dim grt_dim_const(grt_dims *table, int64_t value);
grt_dim grt_dim_symbol(grt_dims *table, const char *name); /* the same name gives the same symbol */
grt_dim grt_dim_fresh(grt_dims *table);                    /* a symbol of its own, named "?0", "?1", ... */
grt_dim grt_dim_make(grt_dims *table, grt_dim_op op, grt_dim a, grt_dim b);
static inline grt_dim grt_dim_add(grt_dims *t, grt_dim a, grt_dim b)
{
    return grt_dim_make(t, GRT_DIM_ADD, a, b);
}
static inline grt_dim grt_dim_mul(grt_dims *t, grt_dim a, grt_dim b)
{
    return grt_dim_make(t, GRT_DIM_MUL, a, b);
}
static inline grt_dim grt_dim_floordiv(grt_dims *t, grt_dim a, grt_dim b)
{
    return grt_dim_make(t, GRT_DIM_FLOORDIV, a, b);
}
static inline grt_dim grt_dim_ceildiv(grt_dims *t, grt_dim a, grt_dim b)
{
    return grt_dim_make(t, GRT_DIM_CEILDIV, a, b);
}
grt_dim grt_dim_sub(grt_dims *table, grt_dim a, grt_dim b);
grt_dim grt_dim_addc(grt_dims *table, grt_dim a, int64_t c);
grt_dim grt_dim_mulc(grt_dims *table, grt_dim a, int64_t c);
/* a / b where b is known to divide a (an element count that is conserved): 2*s / 2 is s. */
grt_dim grt_dim_divide_exact(grt_dims *table, grt_dim a, grt_dim b);

bool grt_dim_is_const(const grt_dims *table, grt_dim dim, int64_t *out_value); /* out_value may be NULL */
static inline bool grt_dim_equals(const grt_dims *table, grt_dim dim, int64_t value)
{
    int64_t v;
    return grt_dim_is_const(table, dim, &v) && v == value;
}
/* Largest index of a symbol in the expression; -1 if there is none. Symbols are numbered in the order of
 * their creation, so this tells whether an expression could be written before a certain point. */
int32_t grt_dim_newest_symbol(const grt_dims *table, grt_dim dim);
/* Proof that the expression is never negative, given that symbols stand for sizes. False proves nothing. */
bool grt_dim_is_size(const grt_dims *table, grt_dim dim);
int32_t grt_dims_count(const grt_dims *table);   /* handles are 0 .. count-1, operands first */
int32_t grt_dims_symbols(const grt_dims *table); /* symbols are 0 .. symbols-1 */
grt_dim_expr grt_dim_get(const grt_dims *table, grt_dim dim);
const char *grt_dims_symbol_name(const grt_dims *table, int32_t symbol);
/* Append "2*seq+1" to text. */
void grt_dim_print(const grt_dims *table, grt_dim dim, grt_text *text);

/* Value of one expression given its operands' values; false on overflow, division by zero, a dim that does
 * not broadcast. */
bool grt_dim_apply(grt_dim_op op, int64_t a, int64_t b, int64_t *out);

#endif
