/* SPDX-License-Identifier: Apache-2.0 */
/* Normal forms: what the operations on dims make, so that equal sums and products have equal handles. */
#include "src/base/dim_table.h"

#include "src/base/checked.h"

#include <string.h>

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

bool grt_dim_apply(grt_dim_op op, int64_t a, int64_t b, int64_t *out)
{
    bool divides = op == GRT_DIM_FLOORDIV || op == GRT_DIM_CEILDIV || op == GRT_DIM_MOD;
    if (divides && (b == 0 || (a == INT64_MIN && b == -1)))
        return false;
    switch (op) {
    case GRT_DIM_ADD:
        return grt_add_i64(a, b, out);
    case GRT_DIM_MUL:
        return grt_mul_i64(a, b, out);
    case GRT_DIM_FLOORDIV:
        *out = floor_div(a, b);
        return true;
    case GRT_DIM_CEILDIV:
        *out = floor_div(a, b) + (a % b != 0);
        return true;
    case GRT_DIM_MOD:
        *out = a - floor_div(a, b) * b;
        return true;
    case GRT_DIM_MAX:
        *out = a > b ? a : b;
        return true;
    case GRT_DIM_MIN:
        *out = a < b ? a : b;
        return true;
    case GRT_DIM_BROADCAST:
        *out = a == 1 ? b : a;
        return a == b || a == 1 || b == 1;
    default:
        return false;
    }
}

/* Sums are kept as left-leaning chains ((t0 + t1) + t2) + c of terms in handle order, each term coefficient *
 * product, the constant last. Adding merges two such chains, so that s + 1 - s is 1. */
enum { MAX_TERMS = 32 };
typedef struct sum {
    int32_t n;
    int64_t c;
    struct {
        grt_dim base;
        int64_t k;
    } terms[MAX_TERMS];
} sum;

static bool sum_add_term(sum *s, grt_dim base, int64_t k)
{
    int32_t i = 0;
    while (i < s->n && s->terms[i].base < base)
        i++;
    if (i < s->n && s->terms[i].base == base) {
        if (!grt_add_i64(s->terms[i].k, k, &s->terms[i].k))
            return false;
        if (!s->terms[i].k) {
            memmove(&s->terms[i], &s->terms[i + 1], (size_t)(s->n - i - 1) * sizeof s->terms[0]);
            s->n--;
        }
        return true;
    }
    if (s->n == MAX_TERMS || !k)
        return !k;
    memmove(&s->terms[i + 1], &s->terms[i], (size_t)(s->n - i) * sizeof s->terms[0]);
    s->terms[i].base = base;
    s->terms[i].k = k;
    s->n++;
    return true;
}

/* s += k * dim */
static bool sum_collect(const grt_dims *table, sum *s, grt_dim dim, int64_t k)
{
    grt_dim_expr e = table->exprs.v[dim];
    int64_t c;
    if (e.op == GRT_DIM_CONST)
        return grt_mul_i64(e.value, k, &c) && grt_add_i64(s->c, c, &s->c);
    if (e.op == GRT_DIM_ADD)
        return sum_collect(table, s, e.a, k) && sum_collect(table, s, e.b, k);
    if (e.op == GRT_DIM_MUL && grt_dim_is_const(table, e.b, &c))
        return grt_mul_i64(c, k, &c) && sum_collect(table, s, e.a, c);
    return sum_add_term(s, dim, k);
}

static grt_dim sum_build(grt_dims *table, const sum *s)
{
    grt_dim total = GRT_DIM_NONE;
    for (int32_t i = 0; i < s->n; i++) {
        grt_dim k = grt_dim_const(table, s->terms[i].k);
        grt_dim term = s->terms[i].k == 1 ? s->terms[i].base
                                          : grt_dims_intern(table, GRT_DIM_MUL, s->terms[i].base, k, 0);
        total = total < 0 ? term : grt_dims_intern(table, GRT_DIM_ADD, total, term, 0);
    }
    grt_dim c = grt_dim_const(table, s->c);
    if (total < 0)
        return c;
    return s->c ? grt_dims_intern(table, GRT_DIM_ADD, total, c, 0) : total;
}

static grt_dim make_add(grt_dims *table, grt_dim a, grt_dim b)
{
    sum s = {0};
    if (sum_collect(table, &s, a, 1) && sum_collect(table, &s, b, 1))
        return sum_build(table, &s);
    return grt_dims_intern(table, GRT_DIM_ADD, a < b ? a : b, a < b ? b : a, 0);
}

/* Products of non-constants are left-leaning chains in handle order; a constant factor distributes over sums.
 */
static grt_dim make_mul(grt_dims *table, grt_dim a, grt_dim b)
{
    int64_t k;
    if (a < 0 || b < 0)
        return GRT_DIM_NONE;
    if (grt_dim_is_const(table, a, NULL)) {
        grt_dim swap = a;
        a = b, b = swap;
    }
    if (grt_dim_is_const(table, b, &k)) {
        sum s = {0};
        if (k == 0)
            return grt_dim_const(table, 0);
        if (sum_collect(table, &s, a, k))
            return sum_build(table, &s);
        return grt_dims_intern(table, GRT_DIM_MUL, a, b, 0);
    }
    grt_dim_expr ea = table->exprs.v[a], eb = table->exprs.v[b];
    if (ea.op == GRT_DIM_MUL && grt_dim_is_const(table, ea.b, NULL))
        return make_mul(table, make_mul(table, ea.a, b), ea.b);
    if (eb.op == GRT_DIM_MUL && grt_dim_is_const(table, eb.b, NULL))
        return make_mul(table, make_mul(table, a, eb.a), eb.b);
    if (eb.op == GRT_DIM_MUL)
        return make_mul(table, make_mul(table, a, eb.a), eb.b);
    if (ea.op == GRT_DIM_MUL && ea.b > b) /* keep the chain's factors in handle order */
        return grt_dims_intern(table, GRT_DIM_MUL, make_mul(table, ea.a, b), ea.b, 0);
    if (ea.op != GRT_DIM_MUL && a > b)
        return grt_dims_intern(table, GRT_DIM_MUL, b, a, 0);
    return grt_dims_intern(table, GRT_DIM_MUL, a, b, 0);
}

/* dim / k if every term of it is a multiple of k; GRT_DIM_NONE otherwise. */
static grt_dim divide_terms(grt_dims *table, grt_dim dim, int64_t k)
{
    sum s = {0};
    if (!sum_collect(table, &s, dim, 1) || s.c % k)
        return GRT_DIM_NONE;
    s.c /= k;
    for (int32_t i = 0; i < s.n; i++) {
        if (s.terms[i].k % k)
            return GRT_DIM_NONE;
        s.terms[i].k /= k;
    }
    return sum_build(table, &s);
}

/* True if broadcast(a, b) == a. This holds where a is broadcast(b, ..) itself, and
 * where b is min(a, c) with c from 1 on: if a is greater than c, the two only fit for c = 1. */
static bool broadcasts_into(const grt_dims *table, grt_dim a, grt_dim b)
{
    const grt_dim_expr outer = table->exprs.v[a], inner = table->exprs.v[b];
    int64_t c;
    if (outer.op == GRT_DIM_BROADCAST && (outer.a == b || outer.b == b))
        return true;
    if (inner.op != GRT_DIM_MIN || (inner.a != a && inner.b != a))
        return false;
    return grt_dim_is_const(table, inner.a == a ? inner.b : inner.a, &c) && c >= 1;
}

/* A quotient that leaves nothing: GRT_DIM_NONE if it is not known to. */
static grt_dim make_quotient(grt_dims *table, grt_dim a, grt_dim b)
{
    int64_t k;
    if (!grt_dim_is_const(table, b, &k) || k < 1)
        return GRT_DIM_NONE;
    return k == 1 ? a : divide_terms(table, a, k);
}

static grt_dim make_broadcast(grt_dims *table, grt_dim a, grt_dim b)
{
    int64_t x, y;
    const bool known_a = grt_dim_is_const(table, a, &x), known_b = grt_dim_is_const(table, b, &y);
    if (a == b || (known_b && y == 1))
        return a;
    if (known_a && x == 1)
        return b;
    /* A fixed dim other than 1 decides: the other must be equal or 1. */
    if (known_a)
        return a;
    if (known_b)
        return b;
    if (broadcasts_into(table, a, b))
        return a;
    if (broadcasts_into(table, b, a))
        return b;
    return grt_dims_intern(table, GRT_DIM_BROADCAST, a < b ? a : b, a < b ? b : a, 0);
}

grt_dim grt_dim_make(grt_dims *table, grt_dim_op op, grt_dim a, grt_dim b)
{
    int64_t x, y, v;
    if (a < 0 || b < 0)
        return grt_dim_fresh(table);
    if (grt_dim_is_const(table, a, &x) && grt_dim_is_const(table, b, &y))
        return grt_dim_apply(op, x, y, &v) ? grt_dim_const(table, v) : grt_dim_fresh(table);
    grt_dim exact;
    switch (op) {
    case GRT_DIM_ADD:
        return make_add(table, a, b);
    case GRT_DIM_MUL:
        return make_mul(table, a, b);
    case GRT_DIM_FLOORDIV:
    case GRT_DIM_CEILDIV:
        exact = make_quotient(table, a, b);
        return exact >= 0 ? exact : grt_dims_intern(table, op, a, b, 0);
    case GRT_DIM_MOD:
        exact = make_quotient(table, a, b);
        return exact >= 0 ? grt_dim_const(table, 0) : grt_dims_intern(table, op, a, b, 0);
    case GRT_DIM_BROADCAST:
        return make_broadcast(table, a, b);
    case GRT_DIM_MAX:
    case GRT_DIM_MIN:
        return a == b ? a : grt_dims_intern(table, op, a < b ? a : b, a < b ? b : a, 0);
    default:
        return grt_dims_intern(table, op, a, b, 0);
    }
}

grt_dim grt_dim_addc(grt_dims *table, grt_dim a, int64_t c)
{
    return grt_dim_make(table, GRT_DIM_ADD, a, grt_dim_const(table, c));
}

grt_dim grt_dim_mulc(grt_dims *table, grt_dim a, int64_t c)
{
    return grt_dim_make(table, GRT_DIM_MUL, a, grt_dim_const(table, c));
}

grt_dim grt_dim_sub(grt_dims *table, grt_dim a, grt_dim b)
{
    return grt_dim_make(table, GRT_DIM_ADD, a, grt_dim_mulc(table, b, -1));
}

/* r where a = r * b, term by term; GRT_DIM_NONE otherwise. */
static grt_dim divide_sums(grt_dims *table, grt_dim a, grt_dim b)
{
    sum sa = {0}, sb = {0};
    if (!sum_collect(table, &sa, a, 1) || !sum_collect(table, &sb, b, 1) || sa.n != sb.n || !sb.n ||
        sa.terms[0].k % sb.terms[0].k)
        return GRT_DIM_NONE;
    const int64_t r = sa.terms[0].k / sb.terms[0].k;
    int64_t k;
    for (int32_t i = 0; i < sb.n; i++)
        if (sa.terms[i].base != sb.terms[i].base || !grt_mul_i64(sb.terms[i].k, r, &k) || k != sa.terms[i].k)
            return GRT_DIM_NONE;
    return grt_mul_i64(sb.c, r, &k) && k == sa.c ? grt_dim_const(table, r) : GRT_DIM_NONE;
}

/* Expressions share parts, and hostile ones share many. */
enum { MAX_DIVIDE_VISITS = 200 };

/* a / b where b divides a as they are written: (x * y * 6) / (y * 2), (x * y + y) / y. GRT_DIM_NONE where
 * that cannot be seen. */
static grt_dim divide_written(grt_dims *table, grt_dim a, grt_dim b, int *visits)
{
    int64_t k;
    if (++*visits > MAX_DIVIDE_VISITS)
        return GRT_DIM_NONE;
    if (a < 0 || b < 0 || a == b)
        return a == b && a >= 0 ? grt_dim_const(table, 1) : GRT_DIM_NONE;
    if (grt_dim_is_const(table, b, &k))
        return k > 0 ? divide_terms(table, a, k) : GRT_DIM_NONE;
    const grt_dim_expr eb = table->exprs.v[b], ea = table->exprs.v[a];
    if (eb.op == GRT_DIM_MUL)
        return divide_written(table, divide_written(table, a, eb.b, visits), eb.a, visits);
    if (eb.op == GRT_DIM_ADD && ea.op == GRT_DIM_ADD)
        return divide_sums(table, a, b);
    if (ea.op == GRT_DIM_ADD) {
        const grt_dim left = divide_written(table, ea.a, b, visits),
                      right = divide_written(table, ea.b, b, visits);
        return left < 0 || right < 0 ? GRT_DIM_NONE : grt_dim_add(table, left, right);
    }
    if (ea.op != GRT_DIM_MUL)
        return GRT_DIM_NONE;
    grt_dim rest = divide_written(table, ea.b, b, visits);
    if (rest >= 0)
        return grt_dim_mul(table, ea.a, rest);
    rest = divide_written(table, ea.a, b, visits);
    return rest < 0 ? GRT_DIM_NONE : grt_dim_mul(table, rest, ea.b);
}

grt_dim grt_dim_divide_exact(grt_dims *table, grt_dim a, grt_dim b)
{
    if (a < 0 || b < 0)
        return grt_dim_fresh(table);
    /* Factors of b that a has go; what is left of b divides what is left of a once, at the end: the quotient
     * of a part of a product need not be a whole number. */
    grt_dim left = grt_dim_const(table, 1);
    int visits = 0;
    for (bool last = false; !last;) {
        const grt_dim_expr eb = table->exprs.v[b];
        last = eb.op != GRT_DIM_MUL;
        const grt_dim factor = last ? b : eb.b, quotient = divide_written(table, a, factor, &visits);
        if (quotient >= 0)
            a = quotient;
        else
            left = grt_dim_mul(table, left, factor);
        b = last ? b : eb.a;
    }
    return grt_dim_floordiv(table, a, left);
}
