/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern as a tree. Made by regex_parse.c, which knows the syntax; regex.c makes the program of it. */
#ifndef GRT_BACKENDS_CPU_REGEX_TREE_H
#define GRT_BACKENDS_CPU_REGEX_TREE_H

#include "backends/cpu/regex_program.h"
#include "src/base/status.h"

typedef enum regex_tree_kind {
    T_EMPTY,
    T_CLASS,
    T_ASSERT,
    T_CONCAT,
    T_ALTERNATE,
    T_REPEAT,
} regex_tree_kind;

typedef struct regex_tree {
    regex_tree_kind kind;
    assertion assertion;
    char_class *chars;
    struct regex_tree *a, *b;
    int32_t min, max; /* max -1: no bound */
} regex_tree;

/* The tree is the arena's. Errors as cpu_regex_compile. */
grt_status cpu_regex_parse(grt_arena *arena, const char *pattern, size_t size, const regex_tree **out_tree);

#endif
