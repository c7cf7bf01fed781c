/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/errors.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT_SIZE = 4096 };

TRITONSERVER_Error *error_new(TRITONSERVER_Error_Code code, const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return TRITONSERVER_ErrorNew(code, text);
}

TRITONSERVER_Error *error_no_memory(void)
{
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory");
}

static TRITONSERVER_Error_Code code_of_status(grt_status status)
{
    switch (status) {
    case GRT_STATUS_INVALID_ARGUMENT:
    case GRT_STATUS_INVALID_MODEL:
    case GRT_STATUS_INVALID_PLAN:
    case GRT_STATUS_UNTRUSTED:
        return TRITONSERVER_ERROR_INVALID_ARG;
    case GRT_STATUS_UNSUPPORTED:
        return TRITONSERVER_ERROR_UNSUPPORTED;
    case GRT_STATUS_IO:
        return TRITONSERVER_ERROR_NOT_FOUND;
    case GRT_STATUS_OUT_OF_MEMORY:
    case GRT_STATUS_DEVICE:
    case GRT_STATUS_BUSY:
        return TRITONSERVER_ERROR_UNAVAILABLE;
    case GRT_STATUS_CANCELLED:
    case GRT_STATUS_DEADLINE_EXCEEDED:
        return TRITONSERVER_ERROR_CANCELLED;
    default:
        return TRITONSERVER_ERROR_INTERNAL;
    }
}

TRITONSERVER_Error *error_from_status(grt_status status, const char *what)
{
    return status == GRT_OK ? NULL : error_new(code_of_status(status), "%s: %s", what, grt_last_error());
}

void log_line(TRITONSERVER_LogLevel level, const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    TRITONSERVER_Error *error = TRITONSERVER_LogMessage(level, "graphrt", 0, text);
    if (error)
        TRITONSERVER_ErrorDelete(error);
}

void log_error(TRITONSERVER_Error *error)
{
    if (!error)
        return;
    log_line(TRITONSERVER_LOG_ERROR, "%s", TRITONSERVER_ErrorMessage(error));
    TRITONSERVER_ErrorDelete(error);
}
