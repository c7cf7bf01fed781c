/* SPDX-License-Identifier: Apache-2.0 */
/* A table of dims from inside, for dim_form.c, which makes expressions in it. */
#ifndef GRT_BASE_DIM_TABLE_H
#define GRT_BASE_DIM_TABLE_H

#include "src/base/dim.h"
#include "src/base/hash.h"

typedef struct grt_dim_entry {
    grt_dim_expr key;
    grt_dim dim;
    UT_hash_handle hh;
} grt_dim_entry;

typedef struct grt_dim_name {
    const char *name;
    int32_t index;
    UT_hash_handle hh;
} grt_dim_name;

/* What building and walking an expression needs to know without walking it. */
typedef struct grt_dim_facts {
    int32_t depth;         /* 1 for constants and symbols */
    int32_t newest_symbol; /* -1: none */
    bool is_size;
} grt_dim_facts;

/* Constants that were asked for last, by their low bits: most of what is asked for is one of few sizes. */
enum { RECENT_CONSTANTS = 64 };

struct grt_dims {
    struct {
        grt_dim_expr *v;
        int32_t n, capacity;
    } exprs;
    struct {
        grt_dim_facts *v;
        int32_t n, capacity;
    } facts; /* per expression */
    grt_dim_entry *by_key;
    grt_dim_name *by_name;
    struct {
        grt_dim_name **v;
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

/* The handle of this expression as it is written; a fresh symbol where it would be too deep. GRT_DIM_NONE if
 * an operand is, or without memory. */
grt_dim grt_dims_intern(grt_dims *table, grt_dim_op op, grt_dim a, grt_dim b, int64_t value);

#endif
