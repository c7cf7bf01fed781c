/* SPDX-License-Identifier: Apache-2.0 */
/* The library's errors, and ours, as errors of the server. */
#ifndef GRT_SERVING_TRITON_ERRORS_H
#define GRT_SERVING_TRITON_ERRORS_H

#include "serving/triton/tritonbackend.h"

#include <graphrt/graphrt.h>

/* A new error with this text, which belongs to the caller; never NULL. */
TRITONSERVER_Error *error_new(TRITONSERVER_Error_Code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
TRITONSERVER_Error *error_no_memory(void);

/* NULL for GRT_OK; otherwise the calling thread's grt_last_error() behind "what: ". */
TRITONSERVER_Error *error_from_status(grt_status status, const char *what);

/* A line of the server's log. */
void log_line(TRITONSERVER_LogLevel level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An error that nobody can be given: a line of the log. Takes the error; NULL does nothing. */
void log_error(TRITONSERVER_Error *error);

/* Return early on an error. Only where nothing that the function acquired is left to release. */
#define TRITON_TRY(expr)                     \
    do {                                     \
        TRITONSERVER_Error *error_ = (expr); \
        if (error_)                          \
            return error_;                   \
    } while (0)

#endif
