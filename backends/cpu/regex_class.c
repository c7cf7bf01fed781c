/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of patterns, and their classes. */
#include "backends/cpu/regex_parser.h"

#include "src/base/grow.h"

#include <string.h>

void cpu_regex_add_range(regex_parser *p, char_class *chars, int32_t lo, int32_t hi)
{
    if (!GRT_ARENA_GROW(p->arena, chars->ranges, chars->n, chars->capacity)) {
        p->status = grt_fail_memory(0);
        return;
    }
    if (p->fold && hi >= 0x80 && !(lo == 0x80 && hi == 0x10ffff))
        cpu_regex_fail(p, GRT_STATUS_UNSUPPORTED,
                       "(?i) with letters beyond ASCII, whose case is not folded: spell both cases out");
    chars->ranges[chars->n++] = (range){lo, hi};
}

regex_tree *cpu_regex_class(regex_parser *p)
{
    regex_tree *t = cpu_regex_tree(p, T_CLASS);
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

bool cpu_regex_add_perl_class(regex_parser *p, char_class *chars, char c)
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
            cpu_regex_add_range(p, chars, ranges[i].lo, ranges[i].hi);
        else if (ranges[i].lo > from)
            cpu_regex_add_range(p, chars, from, ranges[i].lo - 1);
        from = ranges[i].hi + 1;
    }
    if (c != lower)
        cpu_regex_add_range(p, chars, from, 0x10ffff);
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

static int32_t parse_hex(regex_parser *p)
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
        cpu_regex_fail(p, GRT_STATUS_INVALID_MODEL, "a wrong \\x escape: it must be \\x7F or \\x{10FFFF}");
    else
        p->at += braces;
    return code;
}

int32_t cpu_regex_parse_escape(regex_parser *p)
{
    static const char names[] = "afnrtv", codes[] = "\a\f\n\r\t\v";
    if (p->at >= p->end) {
        cpu_regex_fail(p, GRT_STATUS_INVALID_MODEL, "a backslash at its end");
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
        cpu_regex_fail(p, GRT_STATUS_UNSUPPORTED,
                       "\\p, \\P or \\C; Unicode classes and single bytes are not supported");
    else if (cpu_regex_is_word(c))
        cpu_regex_fail(p, GRT_STATUS_INVALID_MODEL, "an escape that RE2 does not have");
    return (unsigned char)c;
}

/* [:name:] inside a class; `at` is behind "[:". */
static void add_posix_class(regex_parser *p, char_class *chars)
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
            cpu_regex_add_range(p, chars, classes[i].ranges[k].lo, classes[i].ranges[k].hi);
        p->at += n + 2;
        return;
    }
    cpu_regex_fail(p, GRT_STATUS_UNSUPPORTED, "a [:class:] that is unknown or negated");
}

/* One end of a range, or a whole class (then *out_single is false). */
static int32_t parse_member(regex_parser *p, char_class *chars, bool *out_single)
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
    if (p->at < p->end && cpu_regex_add_perl_class(p, chars, *p->at)) {
        p->at++;
        *out_single = false;
        return 0;
    }
    return cpu_regex_parse_escape(p);
}

regex_tree *cpu_regex_parse_class(regex_parser *p)
{
    regex_tree *t = cpu_regex_class(p);
    if (!t)
        return NULL;
    if (p->at < p->end && *p->at == '^') {
        t->chars->negated = true;
        p->at++;
    }
    for (bool first = true; p->status == GRT_OK; first = false) {
        bool single, single_hi = true;
        if (p->at >= p->end) {
            cpu_regex_fail(p, GRT_STATUS_INVALID_MODEL, "a [ without its ]");
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
            cpu_regex_fail(p, GRT_STATUS_INVALID_MODEL,
                           "a range in [] whose ends are no characters in order");
        else
            cpu_regex_add_range(p, t->chars, lo, hi);
    }
    return t;
}
