/* SPDX-License-Identifier: Apache-2.0 */
/* Hash-consed dimension expressions. */
#include "src/base/dim.h"

#include "src/base/checked.h"
#include "src/base/hash.h"
#include "src/base/grow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    grt_dim_expr key;
    grt_dim dim;
    UT_hash_handle hh;
} entry;

typedef struct named_symbol {
    const char *name;
    int32_t index;
    UT_hash_handle hh;
} named_symbol;

/* What building and walking an expression needs to know without walking it. */
typedef struct facts {
    int32_t depth;         /* 1 for constants and symbols */
    int32_t newest_symbol; /* -1: none */
    bool is_size;
} facts;

/* Constants that were asked for last, by their low bits: most of what is asked for is one of few sizes. */
enum { RECENT_CONSTANTS = 64 };

struct grt_dims {
    struct {
        grt_dim_expr *v;
        int32_t n, capacity;
    } exprs;
    struct {
        facts *v;
        int32_t n, capacity;
    } facts; /* per expression */
    entry *by_key;
    named_symbol *by_name;
    struct {
        named_symbol **v;
        int32_t n, capacity;
    } symbols;
    struct {
        int64_t value;
        grt_dim dim;
        bool set;
    } recent[RECENT_CONSTANTS];
    int32_t fresh;
    bool failed;
};

grt_dims *grt_dims_create(void)
{
    return calloc(1, sizeof(grt_dims));
}

void grt_dims_clear(grt_dims *table)
{
    entry *e, *next_entry;
    HASH_ITER (hh, table->by_key, e, next_entry) {
        HASH_DEL(table->by_key, e);
        free(e);
    }
    HASH_CLEAR(hh, table->by_name);
    for (int32_t i = 0; i < table->symbols.n; i++)
        free(table->symbols.v[i]);
    free(table->symbols.v);
    free(table->exprs.v);
    free(table->facts.v);
    *table = (grt_dims){0};
}

void grt_dims_release(grt_dims *table)
{
    if (!table)
        return;
    grt_dims_clear(table);
    free(table);
}

bool grt_dims_failed(const grt_dims *table)
{
    return table->failed;
}

static bool has_operands(grt_dim_op op)
{
    return op != GRT_DIM_CONST && op != GRT_DIM_SYMBOL;
}

static facts facts_of(const grt_dims *table, grt_dim_expr expr)
{
    if (!has_operands(expr.op)) {
        const bool symbol = expr.op == GRT_DIM_SYMBOL;
        return (facts){1, symbol ? (int32_t)expr.value : -1, symbol || expr.value >= 0};
    }
    const facts a = table->facts.v[expr.a], b = table->facts.v[expr.b];
    return (facts){
        .depth = 1 + (a.depth > b.depth ? a.depth : b.depth),
        .newest_symbol = a.newest_symbol > b.newest_symbol ? a.newest_symbol : b.newest_symbol,
        /* each of the others keeps what both operands are */
        .is_size = expr.op == GRT_DIM_MAX ? a.is_size || b.is_size : a.is_size && b.is_size,
    };
}

static grt_dim dim_append(grt_dims *table, grt_dim_expr expr)
{
    if (!GRT_GROW(table->exprs.v, table->exprs.n, table->exprs.capacity) ||
        !GRT_GROW(table->facts.v, table->exprs.n, table->facts.capacity)) {
        table->failed = true;
        return GRT_DIM_NONE;
    }
    table->exprs.v[table->exprs.n] = expr;
    table->facts.v[table->exprs.n] = facts_of(table, expr);
    return table->exprs.n++;
}

/* Deeper expressions become fresh symbols, so that walks over them may recurse. Real models stay below 20. */
enum { MAX_DEPTH = 200 };

static grt_dim intern(grt_dims *table, grt_dim_op op, grt_dim a, grt_dim b, int64_t value)
{
    if (has_operands(op)) {
        if (a < 0 || b < 0)
            return GRT_DIM_NONE;
        if (table->facts.v[a].depth >= MAX_DEPTH || table->facts.v[b].depth >= MAX_DEPTH)
            return grt_dim_fresh(table);
    }
    grt_dim_expr key;
    memset(&key, 0, sizeof key); /* padding is hashed too */
    key.op = op, key.a = a, key.b = b, key.value = value;
    entry *found;
    HASH_FIND(hh, table->by_key, &key, sizeof key, found);
    if (found)
        return found->dim;
    grt_dim dim = dim_append(table, key);
    entry *e = dim < 0 ? NULL : calloc(1, sizeof *e);
    if (e) {
        memcpy(&e->key, &key, sizeof key);
        e->dim = dim;
        HASH_ADD(hh, table->by_key, key, sizeof key, e);
        if (GRT_HASH_HAS(e))
            return dim;
        free(e); /* it is not found again, and made anew */
    }
    table->failed = true;
    return dim;
}

grt_dim grt_dim_const(grt_dims *table, int64_t value)
{
    const size_t place = ((uint64_t)value ^ (uint64_t)value >> 6) % RECENT_CONSTANTS;
    if (table->recent[place].set && table->recent[place].value == value)
        return table->recent[place].dim;
    const grt_dim dim = intern(table, GRT_DIM_CONST, 0, 0, value);
    table->recent[place].value = value;
    table->recent[place].dim = dim;
    table->recent[place].set = dim >= 0;
    return dim;
}

static grt_dim add_symbol(grt_dims *table, const char *name)
{
    named_symbol *s = calloc(1, sizeof *s + strlen(name) + 1);
    if (!s || !GRT_GROW(table->symbols.v, table->symbols.n, table->symbols.capacity)) {
        free(s);
        table->failed = true;
        return GRT_DIM_NONE;
    }
    s->name = strcpy((char *)(s + 1), name);
    s->index = table->symbols.n;
    HASH_ADD_KEYPTR(hh, table->by_name, s->name, strlen(s->name), s);
    if (!GRT_HASH_HAS(s)) {
        free(s);
        table->failed = true;
        return GRT_DIM_NONE;
    }
    table->symbols.v[table->symbols.n++] = s;
    return intern(table, GRT_DIM_SYMBOL, 0, 0, s->index);
}

grt_dim grt_dim_symbol(grt_dims *table, const char *name)
{
    named_symbol *s;
    HASH_FIND_STR(table->by_name, name, s);
    return s ? intern(table, GRT_DIM_SYMBOL, 0, 0, s->index) : add_symbol(table, name);
}

grt_dim grt_dim_fresh(grt_dims *table)
{
    char name[32];
    snprintf(name, sizeof name, "?%" PRId32, table->fresh++);
    return add_symbol(table, name);
}

bool grt_dim_is_const(const grt_dims *table, grt_dim dim, int64_t *out_value)
{
    if (dim < 0 || table->exprs.v[dim].op != GRT_DIM_CONST)
        return false;
    if (out_value)
        *out_value = table->exprs.v[dim].value;
    return true;
}

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

static bool expr_is(const grt_dims *table, grt_dim dim, grt_dim_op op)
{
    return table->exprs.v[dim].op == op;
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
        grt_dim term =
            s->terms[i].k == 1 ? s->terms[i].base : intern(table, GRT_DIM_MUL, s->terms[i].base, k, 0);
        total = total < 0 ? term : intern(table, GRT_DIM_ADD, total, term, 0);
    }
    grt_dim c = grt_dim_const(table, s->c);
    if (total < 0)
        return c;
    return s->c ? intern(table, GRT_DIM_ADD, total, c, 0) : total;
}

static grt_dim make_add(grt_dims *table, grt_dim a, grt_dim b)
{
    sum s = {0};
    if (sum_collect(table, &s, a, 1) && sum_collect(table, &s, b, 1))
        return sum_build(table, &s);
    return intern(table, GRT_DIM_ADD, a < b ? a : b, a < b ? b : a, 0);
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
        return intern(table, GRT_DIM_MUL, a, b, 0);
    }
    grt_dim_expr ea = table->exprs.v[a], eb = table->exprs.v[b];
    if (ea.op == GRT_DIM_MUL && grt_dim_is_const(table, ea.b, NULL))
        return make_mul(table, make_mul(table, ea.a, b), ea.b);
    if (eb.op == GRT_DIM_MUL && grt_dim_is_const(table, eb.b, NULL))
        return make_mul(table, make_mul(table, a, eb.a), eb.b);
    if (eb.op == GRT_DIM_MUL)
        return make_mul(table, make_mul(table, a, eb.a), eb.b);
    if (ea.op == GRT_DIM_MUL && ea.b > b) /* keep the chain's factors in handle order */
        return intern(table, GRT_DIM_MUL, make_mul(table, ea.a, b), ea.b, 0);
    if (ea.op != GRT_DIM_MUL && a > b)
        return intern(table, GRT_DIM_MUL, b, a, 0);
    return intern(table, GRT_DIM_MUL, a, b, 0);
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

grt_dim grt_dim_make(grt_dims *table, grt_dim_op op, grt_dim a, grt_dim b)
{
    int64_t x, y, v;
    if (a < 0 || b < 0)
        return grt_dim_fresh(table);
    bool known_a = grt_dim_is_const(table, a, &x), known_b = grt_dim_is_const(table, b, &y);
    if (known_a && known_b)
        return grt_dim_apply(op, x, y, &v) ? grt_dim_const(table, v) : grt_dim_fresh(table);
    switch (op) {
    case GRT_DIM_ADD:
        return make_add(table, a, b);
    case GRT_DIM_MUL:
        return make_mul(table, a, b);
    case GRT_DIM_FLOORDIV:
    case GRT_DIM_CEILDIV:
        if (known_b && y == 1)
            return a;
        if (known_b && y > 1) {
            grt_dim exact = divide_terms(table, a, y);
            if (exact >= 0)
                return exact;
        }
        break;
    case GRT_DIM_MOD:
        if (known_b && (y == 1 || (y > 1 && divide_terms(table, a, y) >= 0)))
            return grt_dim_const(table, 0);
        break;
    case GRT_DIM_BROADCAST:
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
        if (a > b)
            return intern(table, op, b, a, 0);
        break;
    case GRT_DIM_MAX:
    case GRT_DIM_MIN:
        if (a == b)
            return a;
        if (a > b)
            return intern(table, op, b, a, 0);
        break;
    default:
        break;
    }
    return intern(table, op, a, b, 0);
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

int32_t grt_dim_newest_symbol(const grt_dims *table, grt_dim dim)
{
    return dim < 0 ? -1 : table->facts.v[dim].newest_symbol;
}

bool grt_dim_is_size(const grt_dims *table, grt_dim dim)
{
    return dim >= 0 && table->facts.v[dim].is_size;
}

int32_t grt_dims_count(const grt_dims *table)
{
    return table->exprs.n;
}

int32_t grt_dims_symbols(const grt_dims *table)
{
    return table->symbols.n;
}

grt_dim_expr grt_dim_get(const grt_dims *table, grt_dim dim)
{
    return table->exprs.v[dim];
}

const char *grt_dims_symbol_name(const grt_dims *table, int32_t symbol)
{
    return table->symbols.v[symbol]->name;
}

static void print(const grt_dims *table, grt_dim dim, size_t limit, grt_text *text)
{
    static const char *const names[] = {
        [GRT_DIM_FLOORDIV] = "floordiv", [GRT_DIM_CEILDIV] = "ceildiv", [GRT_DIM_MOD] = "mod",
        [GRT_DIM_MAX] = "max",           [GRT_DIM_MIN] = "min",         [GRT_DIM_BROADCAST] = "broadcast"};
    if (dim < 0) {
        grt_text_add(text, "?");
        return;
    }
    if (text->size > limit) {
        grt_text_add(text, "..");
        return;
    }
    grt_dim_expr e = table->exprs.v[dim];
    switch (e.op) {
    case GRT_DIM_CONST:
        grt_text_add(text, "%" PRId64, e.value);
        return;
    case GRT_DIM_SYMBOL:
        grt_text_add(text, "%s", grt_dims_symbol_name(table, (int32_t)e.value));
        return;
    case GRT_DIM_ADD:
        print(table, e.a, limit, text);
        grt_text_add(text, "+");
        print(table, e.b, limit, text);
        return;
    case GRT_DIM_MUL: {
        bool group = expr_is(table, e.a, GRT_DIM_ADD);
        grt_text_add(text, group ? "(" : "");
        print(table, e.a, limit, text);
        grt_text_add(text, group ? ")*" : "*");
        print(table, e.b, limit, text);
        return;
    }
    default:
        grt_text_add(text, "%s(", names[e.op]);
        print(table, e.a, limit, text);
        grt_text_add(text, ",");
        print(table, e.b, limit, text);
        grt_text_add(text, ")");
    }
}

/* Expressions share operands: written out, a small table may fill the memory. The text is for people anyway.
 */
enum { MAX_PRINTED = 2000 };

void grt_dim_print(const grt_dims *table, grt_dim dim, grt_text *text)
{
    print(table, dim, text->size + MAX_PRINTED, text);
}
