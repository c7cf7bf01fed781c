/* SPDX-License-Identifier: Apache-2.0 */
/* Status texts and the per-thread error message. */
#include "src/base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Long enough for a message that lists a few nodes; longer ones end in "...". */
enum { MESSAGE_SIZE = 16384 };
static _Thread_local char message[MESSAGE_SIZE];

const char *grt_status_text(grt_status status)
{
    switch (status) {
#define X(name, text)       \
    case GRT_STATUS_##name: \
        return text;
        GRT_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

const char *grt_last_error(void)
{
    return message;
}

#define GRT_STRING_(x) #x
#define GRT_STRING(x)  GRT_STRING_(x)
const char *grt_version(void)
{
    return GRT_STRING(GRT_VERSION_MAJOR) "." GRT_STRING(GRT_VERSION_MINOR) "." GRT_STRING(GRT_VERSION_PATCH);
}

static void status_append(size_t *at, const char *text)
{
    const size_t length = strlen(text), room = MESSAGE_SIZE - 1 - *at, n = length < room ? length : room;
    memmove(message + *at, text, n);
    *at += n;
    message[*at] = '\0';
    if (n < length)
        memcpy(message + MESSAGE_SIZE - 4, "...", 4);
}

void grt_error_set(const char *text)
{
    size_t at = 0;
    if (text != message)
        status_append(&at, text);
}

char *grt_error_keep(void)
{
    return strdup(message);
}

void grt_error_give_back(char *text)
{
    grt_error_set(text ? text : "");
    free(text);
}

/* Formats are ours, arguments may be a model's: what is not printable in the whole is theirs. A word of a
 * thousand bytes says no more than its beginning, and would hide what comes after it. */
static void set_printable(const char *text)
{
    enum { LONG_WORD = 1000 };
    char shown[LONG_WORD];
    size_t at = 0;
    while (*text) {
        const size_t n = strcspn(text, " ");
        grt_printable(text, n, shown, sizeof shown);
        status_append(&at, shown);
        text += n;
        if (*text) {
            status_append(&at, " ");
            text++;
        }
    }
    message[at] = '\0';
}

/* Formatted aside: the arguments may point into the current message. */
static void set_formatted(const char *format, va_list args)
{
    char few[1024], *text = few;
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(few, sizeof few, format, args);
    if (length >= (int)sizeof few && (text = malloc((size_t)length + 1)))
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    set_printable(text ? text : few);
    if (text != few)
        free(text);
}

grt_status grt_fail_v(grt_status status, const char *format, va_list args)
{
    set_formatted(format, args);
    return status;
}

grt_status grt_fail(grt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_formatted(format, args);
    va_end(args);
    return status;
}

grt_status grt_fail_lines(grt_status status, const char *lines, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_formatted(format, args);
    va_end(args);
    size_t at = strlen(message);
    status_append(&at, lines);
    return status;
}

grt_status grt_fail_context(grt_status status, const char *format, ...)
{
    static _Thread_local char cause[MESSAGE_SIZE];
    memcpy(cause, message, strlen(message) + 1);
    va_list args;
    va_start(args, format);
    set_formatted(format, args);
    va_end(args);
    size_t at = strlen(message);
    status_append(&at, ": ");
    status_append(&at, cause);
    return status;
}

grt_status grt_fail_memory(size_t bytes)
{
    if (!bytes)
        return grt_fail(GRT_STATUS_OUT_OF_MEMORY, "out of memory");
    return grt_fail(GRT_STATUS_OUT_OF_MEMORY, "out of memory: %zu bytes wanted", bytes);
}
