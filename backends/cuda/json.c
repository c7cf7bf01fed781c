/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/json.h"

#include <string.h>

typedef struct cursor {
    const char *at, *end;
} cursor;

static void cuda_json_skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

static bool cuda_json_take(cursor *c, char wanted)
{
    cuda_json_skip_space(c);
    const bool found = c->at < c->end && *c->at == wanted;
    c->at += found;
    return found;
}

static bool take_word(cursor *c, const char *word)
{
    const size_t n = strlen(word);
    const bool found = (size_t)(c->end - c->at) >= n && !memcmp(c->at, word, n);
    c->at += found ? n : 0;
    return found;
}

static size_t count_digits(cursor *c)
{
    const char *begin = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return (size_t)(c->at - begin);
}

static bool is_hexadecimal(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool take_escape(cursor *c)
{
    if (c->at == c->end || !*c->at || !strchr("\"\\/bfnrtu", *c->at))
        return false;
    if (*c->at++ != 'u')
        return true;
    for (int i = 0; i < 4; i++)
        if (c->at == c->end || !is_hexadecimal(*c->at++))
            return false;
    return true;
}

/* Bytes above ASCII are left to the reader. */
static bool take_string(cursor *c)
{
    if (!cuda_json_take(c, '"'))
        return false;
    while (c->at < c->end && *c->at != '"') {
        const unsigned char byte = (unsigned char)*c->at++;
        if (byte < 0x20 || (byte == '\\' && !take_escape(c)))
            return false;
    }
    return cuda_json_take(c, '"');
}

static bool take_number(cursor *c)
{
    cuda_json_take(c, '-');
    const char *begin = c->at;
    const size_t whole = count_digits(c);
    if (!whole || (whole > 1 && *begin == '0'))
        return false;
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (!count_digits(c))
            return false;
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
            c->at++;
        return count_digits(c) > 0;
    }
    return true;
}

static bool take_value(cursor *c, int depth);

/* Members of an object, or items of a list, behind the opening bracket. */
static bool take_members(cursor *c, char closing, int depth)
{
    if (depth == 0)
        return false;
    if (cuda_json_take(c, closing))
        return true;
    do {
        if (closing == '}' && !(take_string(c) && cuda_json_take(c, ':')))
            return false;
        if (!take_value(c, depth - 1))
            return false;
    } while (cuda_json_take(c, ','));
    return cuda_json_take(c, closing);
}

static bool take_value(cursor *c, int depth)
{
    cuda_json_skip_space(c);
    if (c->at == c->end)
        return false;
    switch (*c->at) {
    case '{':
    case '[':
        c->at++;
        return take_members(c, c->at[-1] == '{' ? '}' : ']', depth);
    case '"':
        return take_string(c);
    case 't':
        return take_word(c, "true");
    case 'f':
        return take_word(c, "false");
    case 'n':
        return take_word(c, "null");
    default:
        return take_number(c);
    }
}

bool cuda_json_is_object(const char *text, size_t size)
{
    cursor c = {text, text + size};
    if (size > CUDA_JSON_MOST || !cuda_json_take(&c, '{') || !take_members(&c, '}', CUDA_JSON_DEEPEST))
        return false;
    cuda_json_skip_space(&c);
    return c.at == c.end;
}
