/* SPDX-License-Identifier: Apache-2.0 */
/* The table of expressions: each is there once. */
#include "src/base/dim_table.h"

#include "src/base/grow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

grt_dims *grt_dims_create(void)
{
    return calloc(1, sizeof(grt_dims));
}

void grt_dims_clear(grt_dims *table)
{
    grt_dim_entry *e, *next_entry;
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

static grt_dim_facts facts_of(const grt_dims *table, grt_dim_expr expr)
{
    if (!has_operands(expr.op)) {
        const bool symbol = expr.op == GRT_DIM_SYMBOL;
        return (grt_dim_facts){1, symbol ? (int32_t)expr.value : -1, symbol || expr.value >= 0};
    }
    const grt_dim_facts a = table->facts.v[expr.a], b = table->facts.v[expr.b];
    return (grt_dim_facts){
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

grt_dim grt_dims_intern(grt_dims *table, grt_dim_op op, grt_dim a, grt_dim b, int64_t value)
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
    grt_dim_entry *found;
    HASH_FIND(hh, table->by_key, &key, sizeof key, found);
    if (found)
        return found->dim;
    grt_dim dim = dim_append(table, key);
    grt_dim_entry *e = dim < 0 ? NULL : calloc(1, sizeof *e);
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
    const grt_dim dim = grt_dims_intern(table, GRT_DIM_CONST, 0, 0, value);
    table->recent[place].value = value;
    table->recent[place].dim = dim;
    table->recent[place].set = dim >= 0;
    return dim;
}

static grt_dim add_symbol(grt_dims *table, const char *name)
{
    grt_dim_name *s = calloc(1, sizeof *s + strlen(name) + 1);
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
    return grt_dims_intern(table, GRT_DIM_SYMBOL, 0, 0, s->index);
}

grt_dim grt_dim_symbol(grt_dims *table, const char *name)
{
    grt_dim_name *s;
    HASH_FIND_STR(table->by_name, name, s);
    return s ? grt_dims_intern(table, GRT_DIM_SYMBOL, 0, 0, s->index) : add_symbol(table, name);
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
        bool group = table->exprs.v[e.a].op == GRT_DIM_ADD;
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
