/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/strings.h"

#include <string.h>

enum { LENGTH_BYTES = 4 };

static size_t read_length(const unsigned char *at)
{
    return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

bool strings_find(const void *data, size_t size, int64_t n, grt_string *out_strings)
{
    const unsigned char *at = data;
    for (int64_t i = 0; i < n; i++) {
        if (size < LENGTH_BYTES)
            return false;
        const size_t length = read_length(at);
        at += LENGTH_BYTES;
        size -= LENGTH_BYTES;
        if (size < length)
            return false;
        out_strings[i] = (grt_string){.data = (const char *)at, .size = length};
        at += length;
        size -= length;
    }
    return size == 0;
}

size_t strings_size(const grt_string *strings, int64_t n)
{
    size_t size = 0;
    for (int64_t i = 0; i < n; i++) {
        if (strings[i].size > UINT32_MAX)
            return SIZE_MAX;
        size += LENGTH_BYTES + strings[i].size;
    }
    return size;
}

void strings_write(const grt_string *strings, int64_t n, void *out)
{
    unsigned char *at = out;
    for (int64_t i = 0; i < n; i++) {
        for (int b = 0; b < LENGTH_BYTES; b++)
            *at++ = (unsigned char)(strings[i].size >> (8 * b));
        if (strings[i].size)
            memcpy(at, strings[i].data, strings[i].size);
        at += strings[i].size;
    }
}
