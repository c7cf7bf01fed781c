/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/dnn_profile.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Behind the object that begins at text; NULL if it does not end. Braces in strings are none. */
static const char *end_of_object(const char *text)
{
    int depth = 0;
    bool in_string = false;
    for (const char *c = text; *c; c++) {
        if (in_string) {
            if (*c == '\\' && c[1])
                c++;
            else if (*c == '"')
                in_string = false;
        } else if (*c == '"') {
            in_string = true;
        } else if (*c == '{') {
            depth++;
        } else if (*c == '}' && --depth == 0) {
            return c + 1;
        }
    }
    return NULL;
}

char *cuda_dnn_profile_replace(const char *text, const char *profile)
{
    static const char name[] = "\"GPUProfile\":";
    const char *found = strstr(text, name), *begin = found ? found + sizeof name - 1 : NULL;
    const char *end = begin && *begin == '{' ? end_of_object(begin) : NULL;
    if (!end)
        return NULL;
    const size_t before = (size_t)(begin - text), size = strlen(profile), after = strlen(end) + 1;
    char *out = malloc(before + size + after);
    if (out) {
        memcpy(out, text, before);
        memcpy(out + before, profile, size);
        memcpy(out + before + size, end, after);
    }
    return out;
}
