/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others made fit for a terminal and a log: names, attributes and strings of models may hold
 * anything.
 */
#include "src/base/status.h"

#include <stdio.h>
#include <string.h>

/* Characters that move, hide or turn around what is beside them. Controls are below, and in the two rows of
 * ASCII's and Latin 1's. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},     {0xad, 0xad},     /* soft hyphen */
    {0x61c, 0x61c},     {0x180e, 0x180e}, {0x200b, 0x200b}, /* Arabic mark, separators without width */
    {0x200e, 0x200f},   {0x2028, 0x202e}, {0x2060, 0x206f}, /* directions, lines */
    {0xfeff, 0xfeff},   {0xfff9, 0xfffb}, {0xfffe, 0xffff}, /* byte order, annotations */
    {0xe0000, 0xe0fff},                                     /* tags */
};

static bool is_hidden(uint32_t c)
{
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (c >= hidden[i].first && c <= hidden[i].last)
            return true;
    return false;
}

/* The character at p, and its bytes; 0 bytes: this is no UTF-8 (or a form that is longer than need be). */
static size_t printable_decode(const unsigned char *p, size_t size, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    if (n == 0 || n > size)
        return 0;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    *out = c;
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : n;
}

enum { PIECE = 16 };

/* One character as it is to be shown; how many bytes of p it was. */
static size_t show(const unsigned char *p, size_t size, char out[PIECE])
{
    uint32_t c = 0;
    const size_t n = printable_decode(p, size, &c);
    if (n == 0)
        snprintf(out, PIECE, "\\x%02x", p[0]);
    else if (!is_hidden(c))
        snprintf(out, PIECE, "%.*s", (int)n, (const char *)p);
    else if (c == '\n' || c == '\t' || c == '\r')
        snprintf(out, PIECE, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
    else
        snprintf(out, PIECE, c < 0x80 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
    return n ? n : 1;
}

size_t grt_printable(const char *text, size_t size, char *out, size_t out_size)
{
    static const char dots[] = "...";
    const unsigned char *p = (const unsigned char *)text, *end = p + (text ? size : 0);
    size_t n = 0, fits = 0; /* so much, and the dots */
    char piece[PIECE];
    if (!out || out_size == 0)
        return 0;
    while (p < end) {
        p += show(p, (size_t)(end - p), piece);
        const size_t length = strlen(piece);
        if (n + length >= out_size) {
            n = fits + (size_t)snprintf(out + fits, out_size - fits, "%s", dots);
            return n < out_size ? n : out_size - 1;
        }
        memcpy(out + n, piece, length);
        n += length;
        if (n + sizeof dots <= out_size)
            fits = n;
    }
    out[n] = '\0';
    return n;
}
