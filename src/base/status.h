/* SPDX-License-Identifier: Apache-2.0 */
/* Failing with a message: every fallible function returns grt_status and leaves its story in the thread's
 * error slot. */
#ifndef GRT_BASE_STATUS_H
#define GRT_BASE_STATUS_H

#include "graphrt/graphrt.h"

#include <stdarg.h>

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

#define GRT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Set the calling thread's message and return `status`: `return grt_fail(GRT_STATUS_IO, "...")`. The message
 * is made printable (grt_printable), so that arguments may be a model's text; it is one line. */
grt_status grt_fail(grt_status status, const char *format, ...) GRT_PRINTF(2, 3);
grt_status grt_fail_v(grt_status status, const char *format, va_list args);

/* Put "context: " before the current message: callers add what the callee could not know (node, file). */
grt_status grt_fail_context(grt_status status, const char *format, ...) GRT_PRINTF(2, 3);

/* With lines behind it, "\n  one\n  two", that are printable: those of messages, or what
 * grt_text_add_printable made. */
grt_status grt_fail_lines(grt_status status, const char *lines, const char *format, ...) GRT_PRINTF(3, 4);

/* OUT_OF_MEMORY with the number of bytes that were wanted. 0: one of several small objects could not be made,
 * whose size would tell nobody anything; the message has no number then. */
grt_status grt_fail_memory(size_t bytes);

/* Set or clear the message without failing: worker threads hand theirs to the thread that waits for them. It
 * is taken as it is. */
void grt_error_set(const char *message);
/* For what may fail without being an error: the thread's message, to be given back behind it. NULL when out
 * of memory: then it is lost. */
char *grt_error_keep(void);
void grt_error_give_back(char *message);

/* Return early on failure. Only where nothing acquired in the function is left to release. */
#define GRT_TRY(expr)                    \
    do {                                 \
        grt_status try_status_ = (expr); \
        if (try_status_ != GRT_OK)       \
            return try_status_;          \
    } while (0)

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
