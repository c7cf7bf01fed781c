/* SPDX-License-Identifier: Apache-2.0 */
/* What a pattern becomes: a program for a machine that follows all alternatives at once (Thompson's
 * construction). Made by regex.c, run by regex_match.c. */
#ifndef GRT_BACKENDS_CPU_REGEX_PROGRAM_H
#define GRT_BACKENDS_CPU_REGEX_PROGRAM_H

#include "src/base/arena.h"

typedef struct range {
    int32_t lo, hi;
} range;

typedef struct char_class {
    range *ranges;
    int32_t n, capacity;
    bool negated, fold; /* fold: ASCII letters match in both cases */
} char_class;

typedef enum assertion { A_BEGIN, A_END, A_LINE_BEGIN, A_LINE_END, A_WORD, A_NOT_WORD } assertion;
typedef enum op { OP_CLASS, OP_ASSERT, OP_SPLIT, OP_JUMP, OP_MATCH } op;

typedef struct instruction {
    op op;
    assertion assertion;
    int32_t x, y; /* OP_SPLIT: both; OP_JUMP: x */
    const char_class *chars;
} instruction;

struct cpu_regex {
    grt_arena *arena;
    instruction *program;
    int32_t n, capacity;
};

/* One UTF-8 character, or U+FFFD for a byte that starts none. */
int32_t cpu_regex_decode(const char **at, const char *end);

static inline bool cpu_regex_is_letter(int32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool cpu_regex_is_word(int32_t c)
{
    return cpu_regex_is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}

#endif
