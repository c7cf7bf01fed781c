/* Status texts and the per-thread error message. */
#include "src/base/status.h"

#include <stdio.h>
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

static void end_with_dots(int length)
{
    if (length >= MESSAGE_SIZE)
        memcpy(message + MESSAGE_SIZE - 4, "...", 4);
}

void grt_error_set(const char *text)
{
    end_with_dots(snprintf(message, sizeof message, "%s", text));
}

grt_status grt_fail_v(grt_status status, const char *format, va_list args)
{
    /* Formatted aside: the arguments may point into the current message. */
    static _Thread_local char next[MESSAGE_SIZE];
    int length = vsnprintf(next, sizeof next, format, args);
    memcpy(message, next, sizeof next);
    end_with_dots(length);
    return status;
}

grt_status grt_fail(grt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    grt_fail_v(status, format, args);
    va_end(args);
    return status;
}

grt_status grt_fail_context(grt_status status, const char *format, ...)
{
    char prefix[512];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    return grt_fail(status, "%s: %s", prefix, message);
}

grt_status grt_fail_memory(size_t bytes)
{
    if (!bytes)
        return grt_fail(GRT_STATUS_OUT_OF_MEMORY, "out of memory");
    return grt_fail(GRT_STATUS_OUT_OF_MEMORY, "out of memory: %zu bytes wanted", bytes);
}
