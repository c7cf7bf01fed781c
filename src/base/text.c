/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string. */
#include "src/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_reserve(grt_text *text, size_t more)
{
    size_t need = text->size + more + 1;
    if (need <= text->capacity)
        return true;
    size_t capacity = need * 2;
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void grt_text_add(grt_text *text, const char *format, ...)
{
    if (!text || text->failed)
        return;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0 && text_reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
        text->size += (size_t)length;
    }
    va_end(again);
}

void grt_text_add_printable(grt_text *text, const char *of_others)
{
    char shown[4096];
    grt_printable(of_others, strlen(of_others), shown, sizeof shown);
    grt_text_add(text, "%s", shown);
}

void grt_text_add_dims(grt_text *text, const int64_t *dims, int32_t rank)
{
    if (rank < 0)
        grt_text_add(text, "unknown rank");
    if (rank == 0)
        grt_text_add(text, "scalar");
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            grt_text_add(text, "%s?", i ? "x" : "");
        else
            grt_text_add(text, "%s%" PRId64, i ? "x" : "", dims[i]);
    }
}

const char *grt_text_get(const grt_text *text)
{
    return text->data ? text->data : "";
}

void grt_text_release(grt_text *text)
{
    free(text->data);
    *text = (grt_text){0};
}

const char *grt_tensor_text(const grt_tensor *tensor, char buffer[GRT_TYPE_TEXT_SIZE])
{
    grt_text text = {0};
    grt_text_add(&text, "%s[", grt_dtype_name(tensor->dtype));
    grt_text_add_dims(&text, tensor->dims, tensor->rank);
    grt_text_add(&text, "]");
    snprintf(buffer, GRT_TYPE_TEXT_SIZE, "%s", grt_text_get(&text));
    grt_text_release(&text);
    return buffer;
}

grt_status grt_fail_inputs(grt_status status, const grt_text *inputs)
{
    const char *said = grt_last_error();
    if (!inputs->size || strstr(said, " (inputs: ") || strchr(said, '\n'))
        return status; /* a node inside this one has said its own, or the message is a list */
    return grt_fail(status, "%s (inputs: %s)", said, grt_text_get(inputs));
}
