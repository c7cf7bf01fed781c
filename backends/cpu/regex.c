/* SPDX-License-Identifier: Apache-2.0 */
/* The pattern becomes a tree, the tree a program. */
#include "backends/cpu/regex.h"

#include "backends/cpu/regex_program.h"
#include "src/base/grow.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_DEPTH = 500,       /* of nested groups */
    MAX_REPEAT = 1000,     /* as RE2 */
    MAX_PROGRAM = 1 << 15, /* instructions, after repetitions are written out */
};

typedef enum tree_kind { T_EMPTY, T_CLASS, T_ASSERT, T_CONCAT, T_ALTERNATE, T_REPEAT } tree_kind;

typedef struct tree {
    tree_kind kind;
    assertion assertion;
    char_class *chars;
    struct tree *a, *b;
    int32_t min, max; /* max -1: no bound */
} tree;

typedef struct parser {
    grt_arena *arena;
    const char *at, *end;
    int depth;
    bool fold, dot_all, multi_line;
    bool quoted; /* between \Q and \E */
    grt_status status;
} parser;

/* ---- parsing ---- */

static void regex_fail(parser *p, grt_status status, const char *what)
{
    if (p->status == GRT_OK)
        p->status = grt_fail(status, "the pattern has %s", what);
}

static tree *new_tree(parser *p, tree_kind kind)
{
    tree *t = GRT_ARENA_NEW(p->arena, tree);
    if (!t && p->status == GRT_OK)
        p->status = grt_fail_memory(sizeof *t);
    if (t)
        t->kind = kind;
    return t;
}

static tree *regex_join(parser *p, tree_kind kind, tree *a, tree *b)
{
    if (!a || !b)
        return a ? a : b;
    tree *t = new_tree(p, kind);
    if (t) {
        t->a = a;
        t->b = b;
    }
    return t;
}

static void regex_add_range(parser *p, char_class *chars, int32_t lo, int32_t hi)
{
    if (!GRT_ARENA_GROW(p->arena, chars->ranges, chars->n, chars->capacity)) {
        p->status = grt_fail_memory(0);
        return;
    }
    if (p->fold && hi >= 0x80 && !(lo == 0x80 && hi == 0x10ffff))
        regex_fail(p, GRT_STATUS_UNSUPPORTED,
                   "(?i) with letters beyond ASCII, whose case is not folded: spell both cases out");
    chars->ranges[chars->n++] = (range){lo, hi};
}

static tree *new_class(parser *p)
{
    tree *t = new_tree(p, T_CLASS);
    char_class *chars = t ? GRT_ARENA_NEW(p->arena, char_class) : NULL;
    if (!chars) {
        if (p->status == GRT_OK)
            p->status = grt_fail_memory(0);
        return NULL;
    }
    chars->fold = p->fold;
    t->chars = chars;
    return t;
}

static tree *literal(parser *p, int32_t c)
{
    tree *t = new_class(p);
    if (t)
        regex_add_range(p, t->chars, c, c);
    return t;
}

static tree *assert_tree(parser *p, assertion what)
{
    tree *t = new_tree(p, T_ASSERT);
    if (t)
        t->assertion = what;
    return t;
}

/* Ranges of \d \s \w, or of what they exclude for \D \S \W. False if c names none of them. */
static bool add_perl_class(parser *p, char_class *chars, char c)
{
    static const range digit[] = {{'0', '9'}}, space[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
    static const range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    char lower = (char)(c | 0x20);
    const range *ranges = lower == 'd' ? digit : lower == 's' ? space : lower == 'w' ? word : NULL;
    int n = lower == 'd' ? 1 : lower == 's' ? 3 : 4;
    if (!ranges)
        return false;
    int32_t from = 0;
    bool fold = p->fold;
    p->fold = false; /* these sets are closed under folding */
    for (int i = 0; i < n; i++) {
        if (c == lower)
            regex_add_range(p, chars, ranges[i].lo, ranges[i].hi);
        else if (ranges[i].lo > from)
            regex_add_range(p, chars, from, ranges[i].lo - 1);
        from = ranges[i].hi + 1;
    }
    if (c != lower)
        regex_add_range(p, chars, from, 0x10ffff);
    p->fold = fold;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static int32_t parse_hex(parser *p)
{
    int32_t code = 0;
    int digits = 0;
    bool braces = p->at < p->end && *p->at == '{';
    p->at += braces;
    while (p->at < p->end && hex_digit(*p->at) >= 0 && digits < (braces ? 6 : 2)) {
        code = code * 16 + hex_digit(*p->at++);
        digits++;
    }
    bool closed = !braces || (p->at < p->end && *p->at == '}');
    if (!closed || !digits || (!braces && digits != 2) || code > 0x10ffff)
        regex_fail(p, GRT_STATUS_INVALID_MODEL, "a wrong \\x escape: it must be \\x7F or \\x{10FFFF}");
    else
        p->at += braces;
    return code;
}

/* The character that an escape stands for; `at` is behind the backslash. */
static int32_t parse_escape(parser *p)
{
    static const char names[] = "afnrtv", codes[] = "\a\f\n\r\t\v";
    if (p->at >= p->end) {
        regex_fail(p, GRT_STATUS_INVALID_MODEL, "a backslash at its end");
        return 0;
    }
    char c = *p->at;
    const char *name = c ? strchr(names, c) : NULL;
    if ((unsigned char)c >= 0x80)
        return cpu_regex_decode(&p->at, p->end);
    p->at++;
    if (name)
        return codes[name - names];
    if (c == 'x')
        return parse_hex(p);
    if (c == '0' || (c >= '1' && c <= '7' && p->at < p->end && *p->at >= '0' && *p->at <= '7')) {
        int32_t code = c - '0';
        for (int i = 0; i < 2 && p->at < p->end && *p->at >= '0' && *p->at <= '7'; i++)
            code = code * 8 + (*p->at++ - '0');
        return code;
    }
    if (c == 'p' || c == 'P' || c == 'C')
        regex_fail(p, GRT_STATUS_UNSUPPORTED,
                   "\\p, \\P or \\C; Unicode classes and single bytes are not supported");
    else if (cpu_regex_is_word(c))
        regex_fail(p, GRT_STATUS_INVALID_MODEL, "an escape that RE2 does not have");
    return (unsigned char)c;
}

/* [:name:] inside a class; `at` is behind "[:". */
static void add_posix_class(parser *p, char_class *chars)
{
    static const struct {
        const char *name;
        range ranges[4];
    } classes[] = {
        {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
        {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
        {"ascii", {{1, 127}, {0, 0}}},
        {"blank", {{'\t', '\t'}, {' ', ' '}}},
        {"cntrl", {{1, 31}, {127, 127}}},
        {"digit", {{'0', '9'}}},
        {"graph", {{'!', '~'}}},
        {"lower", {{'a', 'z'}}},
        {"print", {{' ', '~'}}},
        {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
        {"space", {{'\t', '\r'}, {' ', ' '}}},
        {"upper", {{'A', 'Z'}}},
        {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
        {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    };
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        size_t n = strlen(classes[i].name);
        if ((size_t)(p->end - p->at) < n + 2 || memcmp(p->at, classes[i].name, n) ||
            memcmp(p->at + n, ":]", 2))
            continue;
        for (int k = 0; k < 4 && classes[i].ranges[k].hi; k++)
            regex_add_range(p, chars, classes[i].ranges[k].lo, classes[i].ranges[k].hi);
        p->at += n + 2;
        return;
    }
    regex_fail(p, GRT_STATUS_UNSUPPORTED, "a [:class:] that is unknown or negated");
}

/* One end of a range, or a whole class (then *out_single is false). */
static int32_t parse_member(parser *p, char_class *chars, bool *out_single)
{
    *out_single = true;
    if (*p->at == '[' && p->end - p->at > 1 && p->at[1] == ':') {
        p->at += 2;
        *out_single = false;
        add_posix_class(p, chars);
        return 0;
    }
    if (*p->at != '\\')
        return cpu_regex_decode(&p->at, p->end);
    p->at++;
    if (p->at < p->end && add_perl_class(p, chars, *p->at)) {
        p->at++;
        *out_single = false;
        return 0;
    }
    return parse_escape(p);
}

/* [...]; `at` is behind the bracket. */
static tree *parse_class(parser *p)
{
    tree *t = new_class(p);
    if (!t)
        return NULL;
    if (p->at < p->end && *p->at == '^') {
        t->chars->negated = true;
        p->at++;
    }
    for (bool first = true; p->status == GRT_OK; first = false) {
        bool single, single_hi = true;
        if (p->at >= p->end) {
            regex_fail(p, GRT_STATUS_INVALID_MODEL, "a [ without its ]");
            break;
        }
        if (*p->at == ']' && !first) {
            p->at++;
            break;
        }
        int32_t lo = parse_member(p, t->chars, &single), hi = lo;
        if (!single)
            continue;
        if (p->end - p->at > 1 && *p->at == '-' && p->at[1] != ']') {
            p->at++;
            hi = parse_member(p, t->chars, &single_hi);
        }
        if (!single_hi || hi < lo)
            regex_fail(p, GRT_STATUS_INVALID_MODEL, "a range in [] whose ends are no characters in order");
        else
            regex_add_range(p, t->chars, lo, hi);
    }
    return t;
}

static tree *parse_alternatives(parser *p);

/* (?flags) and (?flags:...; `at` is behind "(?". Returns true if a group follows. */
static bool parse_flags(parser *p)
{
    bool on = true;
    for (; p->at < p->end; p->at++) {
        switch (*p->at) {
        case 'i':
            p->fold = on;
            break;
        case 's':
            p->dot_all = on;
            break;
        case 'm':
            p->multi_line = on;
            break;
        case 'U': /* greediness does not change what matches as a whole */
            break;
        case '-':
            on = false;
            break;
        case ':':
        case ')':
            return *p->at++ == ':';
        default:
            regex_fail(p, GRT_STATUS_INVALID_MODEL, "a group (?...) that RE2 does not have");
            return false;
        }
    }
    regex_fail(p, GRT_STATUS_INVALID_MODEL, "a ( without its )");
    return false;
}

/* (...); `at` is behind the bracket. */
static tree *parse_group(parser *p)
{
    parser outer = *p;
    if (p->end - p->at > 1 && *p->at == '?') {
        p->at++;
        bool named = (p->end - p->at > 1 && *p->at == 'P' && p->at[1] == '<') || *p->at == '<';
        if (named) {
            while (p->at < p->end && *p->at != '>')
                p->at++;
            p->at += p->at < p->end;
        } else if (!parse_flags(p)) {
            return new_tree(p, T_EMPTY); /* the flags hold until the end of the group around */
        }
    }
    if (++p->depth > MAX_DEPTH) {
        regex_fail(p, GRT_STATUS_UNSUPPORTED, "groups nested more than 500 deep");
        return NULL;
    }
    tree *inside = parse_alternatives(p);
    p->depth--;
    if (p->at < p->end && *p->at == ')')
        p->at++;
    else
        regex_fail(p, GRT_STATUS_INVALID_MODEL, "a ( without its )");
    p->fold = outer.fold;
    p->dot_all = outer.dot_all;
    p->multi_line = outer.multi_line;
    return inside;
}

static tree *parse_backslash(parser *p)
{
    char c = p->at < p->end ? *p->at : '\0';
    const char *found = c ? strchr("AzbB", c) : NULL;
    static const assertion assertions[] = {A_BEGIN, A_END, A_WORD, A_NOT_WORD};
    if (found) {
        p->at++;
        return assert_tree(p, assertions[found - strchr("AzbB", 'A')]);
    }
    if (c == 'Q') {
        p->at++;
        p->quoted = true;
        return new_tree(p, T_EMPTY);
    }
    tree *t = new_class(p);
    if (t && add_perl_class(p, t->chars, c)) {
        p->at++;
        t->chars->fold = false;
        return t;
    }
    return literal(p, parse_escape(p));
}

static tree *parse_dot(parser *p)
{
    tree *t = new_class(p);
    if (!t)
        return NULL;
    t->chars->fold = false;
    t->chars->negated = true;
    if (!p->dot_all)
        regex_add_range(p, t->chars, '\n', '\n');
    return t;
}

/* Behind \E, what follows is no longer quoted. */
static bool end_quote(parser *p)
{
    if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'E')
        return false;
    p->at += 2;
    p->quoted = false;
    return true;
}

static tree *parse_atom(parser *p)
{
    if (p->quoted) {
        if (end_quote(p))
            return new_tree(p, T_EMPTY);
        tree *t = literal(p, cpu_regex_decode(&p->at, p->end));
        end_quote(p); /* a repetition that follows is the last character's */
        return t;
    }
    switch (*p->at) {
    case '(':
        p->at++;
        return parse_group(p);
    case '[':
        p->at++;
        return parse_class(p);
    case '\\':
        p->at++;
        return parse_backslash(p);
    case '.':
        p->at++;
        return parse_dot(p);
    case '^':
        p->at++;
        return assert_tree(p, p->multi_line ? A_LINE_BEGIN : A_BEGIN);
    case '$':
        p->at++;
        return assert_tree(p, p->multi_line ? A_LINE_END : A_END);
    case '*':
    case '+':
    case '?':
        regex_fail(p, GRT_STATUS_INVALID_MODEL, "a repetition of nothing");
        return NULL;
    default:
        return literal(p, cpu_regex_decode(&p->at, p->end));
    }
}

/* {n}, {n,}, {n,m}; anything else that starts with a brace is text. */
static bool parse_bounds(parser *p, int32_t *min, int32_t *max)
{
    const char *at = p->at + 1;
    int32_t bounds[2] = {-1, -1};
    int which = 0;
    for (; at < p->end && *at != '}'; at++) {
        if (*at == ',' && which == 0 && bounds[0] >= 0) {
            which = 1;
        } else if (*at >= '0' && *at <= '9') {
            int32_t value = (bounds[which] < 0 ? 0 : bounds[which]) * 10 + (*at - '0');
            bounds[which] = value > MAX_REPEAT ? MAX_REPEAT + 1 : value;
        } else {
            return false;
        }
    }
    if (at >= p->end || bounds[0] < 0)
        return false;
    p->at = at + 1;
    *min = bounds[0];
    *max = which ? bounds[1] : bounds[0];
    if (*min > MAX_REPEAT || *max > MAX_REPEAT || (*max >= 0 && *max < *min))
        regex_fail(p, GRT_STATUS_INVALID_MODEL, "repetition counts above 1000, or not in order");
    return true;
}

static tree *parse_repeated(parser *p)
{
    tree *t = parse_atom(p);
    while (p->status == GRT_OK && !p->quoted && p->at < p->end) {
        int32_t min = *p->at == '+', max = *p->at == '?' ? 1 : -1;
        if (*p->at == '*' || *p->at == '+' || *p->at == '?')
            p->at++;
        else if (*p->at != '{' || !parse_bounds(p, &min, &max))
            break;
        if (p->at < p->end && *p->at == '?') /* lazy: the same texts match */
            p->at++;
        tree *repeat = new_tree(p, T_REPEAT);
        if (!repeat)
            return NULL;
        repeat->a = t;
        repeat->min = min;
        repeat->max = max;
        t = repeat;
    }
    return t;
}

static tree *parse_alternatives(parser *p)
{
    tree *all = NULL, *one = new_tree(p, T_EMPTY);
    while (p->status == GRT_OK && p->at < p->end && (p->quoted || *p->at != ')')) {
        if (!p->quoted && *p->at == '|') {
            p->at++;
            all = regex_join(p, T_ALTERNATE, all, one);
            one = new_tree(p, T_EMPTY);
        } else {
            one = regex_join(p, T_CONCAT, one, parse_repeated(p));
        }
    }
    return regex_join(p, T_ALTERNATE, all, one);
}

/* ---- the program ---- */

static int32_t regex_emit(cpu_regex *regex, instruction i)
{
    if (regex->n >= MAX_PROGRAM || !GRT_GROW(regex->program, regex->n, regex->capacity))
        return -1;
    regex->program[regex->n] = i;
    return regex->n++;
}

/* False: the program got too long. */
static bool emit_tree(cpu_regex *regex, const tree *t);

static bool emit_alternate(cpu_regex *regex, const tree *t)
{
    int32_t split = regex_emit(regex, (instruction){.op = OP_SPLIT});
    if (split < 0 || !emit_tree(regex, t->a))
        return false;
    int32_t jump = regex_emit(regex, (instruction){.op = OP_JUMP});
    if (jump < 0)
        return false;
    regex->program[split].x = split + 1;
    regex->program[split].y = regex->n;
    if (!emit_tree(regex, t->b))
        return false;
    regex->program[jump].x = regex->n;
    return true;
}

static bool emit_repeat(cpu_regex *regex, const tree *t)
{
    for (int32_t i = 0, n = -1; i < t->min && n != regex->n; i++) { /* what is empty once is empty always */
        n = regex->n;
        if (!emit_tree(regex, t->a))
            return false;
    }
    if (t->max < 0) {
        int32_t split = regex_emit(regex, (instruction){.op = OP_SPLIT});
        if (split < 0 || !emit_tree(regex, t->a) ||
            regex_emit(regex, (instruction){.op = OP_JUMP, .x = split}) < 0)
            return false;
        regex->program[split].x = split + 1;
        regex->program[split].y = regex->n;
        return true;
    }
    for (int32_t i = t->min; i < t->max;
         i++) { /* each further one is optional, its absence leads to the next */
        int32_t split = regex_emit(regex, (instruction){.op = OP_SPLIT});
        if (split < 0 || !emit_tree(regex, t->a))
            return false;
        regex->program[split].x = split + 1;
        regex->program[split].y = regex->n;
    }
    return true;
}

static bool emit_tree(cpu_regex *regex, const tree *t)
{
    switch (t->kind) {
    case T_EMPTY:
        return true;
    case T_CLASS:
        return regex_emit(regex, (instruction){.op = OP_CLASS, .chars = t->chars}) >= 0;
    case T_ASSERT:
        return regex_emit(regex, (instruction){.op = OP_ASSERT, .assertion = t->assertion}) >= 0;
    case T_CONCAT:
        return emit_tree(regex, t->a) && emit_tree(regex, t->b);
    case T_ALTERNATE:
        return emit_alternate(regex, t);
    case T_REPEAT:
        return emit_repeat(regex, t);
    }
    return false;
}

enum { MAX_PATTERN = 20000 }; /* bytes: bounds the depth of the tree, hence of the recursion above */

grt_status cpu_regex_compile(const char *pattern, size_t size, cpu_regex **out_regex)
{
    if (size > MAX_PATTERN)
        return grt_fail(GRT_STATUS_UNSUPPORTED, "the pattern has %zu bytes; at most %d are supported", size,
                        MAX_PATTERN);
    cpu_regex *regex = calloc(1, sizeof *regex);
    grt_arena *arena = regex ? grt_arena_create() : NULL;
    if (!arena) {
        free(regex);
        return grt_fail_memory(sizeof *regex);
    }
    regex->arena = arena;
    parser p = {.arena = arena, .at = pattern, .end = pattern + size};
    const tree *t = parse_alternatives(&p);
    if (p.status == GRT_OK && p.at < p.end)
        regex_fail(&p, GRT_STATUS_INVALID_MODEL, "a ) without its (");
    if (p.status == GRT_OK && (!t || grt_arena_failed(arena)))
        p.status = grt_fail_memory(0);
    if (p.status == GRT_OK && (!emit_tree(regex, t) || regex_emit(regex, (instruction){.op = OP_MATCH}) < 0))
        regex_fail(&p, GRT_STATUS_UNSUPPORTED, "repetitions that make it too large");
    if (p.status != GRT_OK) {
        cpu_regex_release(regex);
        return p.status;
    }
    *out_regex = regex;
    return GRT_OK;
}

void cpu_regex_release(cpu_regex *regex)
{
    if (!regex)
        return;
    grt_arena_release(regex->arena);
    free(regex->program);
    free(regex);
}
