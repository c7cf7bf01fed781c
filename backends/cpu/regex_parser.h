/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser of patterns is doing, for its two parts: alternatives, groups and repetitions
 * (regex_parse.c), and characters and their classes (regex_class.c). */
#ifndef GRT_BACKENDS_CPU_REGEX_PARSER_H
#define GRT_BACKENDS_CPU_REGEX_PARSER_H

#include "backends/cpu/regex_tree.h"

typedef struct regex_parser {
    grt_arena *arena;
    const char *at, *end;
    int depth;
    bool fold, dot_all, multi_line;
    bool quoted; /* between \Q and \E */
    grt_status status;
} regex_parser;

/* The first failure stays. */
void cpu_regex_fail(regex_parser *p, grt_status status, const char *what);
/* NULL without memory, as all that follow. */
regex_tree *cpu_regex_tree(regex_parser *p, regex_tree_kind kind);
regex_tree *cpu_regex_class(regex_parser *p);
void cpu_regex_add_range(regex_parser *p, char_class *chars, int32_t lo, int32_t hi);
/* Ranges of \d \s \w, or of what they exclude for \D \S \W. False if c names none of them. */
bool cpu_regex_add_perl_class(regex_parser *p, char_class *chars, char c);
/* The character that an escape stands for; `at` is behind the backslash. */
int32_t cpu_regex_parse_escape(regex_parser *p);
/* [...]; `at` is behind the bracket. */
regex_tree *cpu_regex_parse_class(regex_parser *p);

#endif
