/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulate/translate.h"

#include <ctype.h>
#include <string.h>

enum { MOST_OPERANDS = 8, MOST_TEXT = 512 };

/* An asm statement: its instructions, and the expressions that are its operands. */
typedef struct statement {
    char text[MOST_TEXT];
    size_t size;
    struct {
        const char *at;
        int length;
    } operands[MOST_OPERANDS];
    int n;
} statement;

static const char *skip_space(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

/* A string at p goes to `to`, if there is one; returns what is behind it, NULL if it does not end. */
static const char *read_string(const char *p, statement *to)
{
    for (p++; *p && *p != '"'; p++) {
        const bool escaped = *p == '\\';
        p += escaped;
        if (to && to->size + 1 == MOST_TEXT)
            return NULL;
        if (to)
            to->text[to->size++] = escaped ? ' ' : *p;
    }
    return *p ? p + 1 : NULL;
}

/* `"=f"(y)`: the expression in parentheses. */
static const char *read_operand(const char *p, statement *st)
{
    int depth = 0;
    p = read_string(p, NULL);
    if (!p || *p != '(')
        return p; /* a clobber */
    const char *begin = p + 1;
    do
        depth += (*p == '(') - (*p == ')');
    while (*p && (p++, depth));
    if (depth || st->n == MOST_OPERANDS)
        return NULL;
    st->operands[st->n].at = begin;
    st->operands[st->n++].length = (int)(p - begin - 1);
    return p;
}

/* From behind the opening parenthesis to behind the closing one; NULL if it is not understood. */
static const char *read_statement(const char *p, statement *st)
{
    p = skip_space(p);
    while (p && *p == '"')
        p = (p = read_string(p, st)) ? skip_space(p) : NULL;
    while (p && (*p == ':' || *p == ',')) {
        p = skip_space(p + 1);
        if (*p == '"')
            p = (p = read_operand(p, st)) ? skip_space(p) : NULL;
    }
    return p && *p == ')' ? p + 1 : NULL;
}

/* `name.of.it %0, [%1], 16` */
static bool translate_instruction(const char *p, size_t n, const statement *st, grt_text *out)
{
    const char *end = p + n, *separator = "";
    grt_text_add(out, "asm_");
    for (; p < end && !isspace((unsigned char)*p); p++)
        grt_text_add(out, "%c", *p == '.' || *p == ':' ? '_' : *p);
    grt_text_add(out, "(");
    for (; p < end; p++) {
        if (isspace((unsigned char)*p) || strchr(",[]", *p))
            continue;
        const bool operand = *p == '%';
        size_t index = 0;
        for (p += operand; p < end && isdigit((unsigned char)*p); p++)
            index = 10 * index + (size_t)(*p - '0');
        p--;
        if (operand && index >= (size_t)st->n)
            return false;
        if (operand)
            grt_text_add(out, "%s%.*s", separator, st->operands[index].length, st->operands[index].at);
        else
            grt_text_add(out, "%s%zu", separator, index);
        separator = ", ";
    }
    grt_text_add(out, ");");
    return true;
}

static bool translate_statement(const statement *st, grt_text *out)
{
    const char *p = st->text, *end = st->text + st->size;
    grt_text_add(out, "{ ");
    while (p < end) {
        const char *stop = memchr(p, ';', (size_t)(end - p));
        const size_t n = (size_t)((stop ? stop : end) - p);
        const char *begin = p;
        while (begin < p + n && isspace((unsigned char)*begin))
            begin++;
        if (begin < p + n && !translate_instruction(begin, n - (size_t)(begin - p), st, out))
            return false;
        p += n + 1;
    }
    grt_text_add(out, " }");
    return true;
}

static const struct {
    const char *cuda, *host;
} phrases[] = {
    {"extern \"C\" __global__", "static"},
    {"extern __shared__ __align__(16) u8 shared[]", "u8 *const shared = (u8 *)emulated_shared()"},
    {"extern __shared__ __align__(16) unsigned char shared[]",
     "unsigned char *const shared = (unsigned char *)emulated_shared()"},
    /* kernel<<<grid, block, shared, stream>>>(arguments); see launches.h */
    {"<<<", "->*emulated::on("},
    {">>>(", ")("},
};

enum { N_PHRASES = sizeof phrases / sizeof *phrases };

bool emulate_translate(const char *source, grt_text *out)
{
    const char *p = source;
    while (*p) {
        size_t i = 0;
        while (i < N_PHRASES && strncmp(p, phrases[i].cuda, strlen(phrases[i].cuda)))
            i++;
        if (i < N_PHRASES) {
            grt_text_add(out, "%s", phrases[i].host);
            p += strlen(phrases[i].cuda);
        } else if (!strncmp(p, "asm(", 4) || !strncmp(p, "asm volatile(", 13)) {
            statement st = {.size = 0};
            p = read_statement(strchr(p, '(') + 1, &st);
            if (!p || !translate_statement(&st, out))
                return false;
        } else {
            grt_text_add(out, "%c", *p++);
        }
    }
    return !out->failed;
}
