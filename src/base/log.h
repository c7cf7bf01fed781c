/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for whoever operates the program. Nothing of a run that is prepared and succeeds is told. */
#ifndef GRT_BASE_LOG_H
#define GRT_BASE_LOG_H

#include "src/base/status.h"

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_int grt_log_wanted; /* the least important level that anybody wants */

static inline bool grt_log_is_on(grt_log_level level)
{
    return (int)level <= atomic_load_explicit(&grt_log_wanted, memory_order_relaxed);
}

void grt_log_write(grt_log_level level, const char *category, const char *format, ...) GRT_PRINTF(3, 4);

/* The arguments are not looked at where nobody listens. */
#define GRT_LOG(level, category, ...)                              \
    do {                                                           \
        if (grt_log_is_on(GRT_LOG_##level))                        \
            grt_log_write(GRT_LOG_##level, category, __VA_ARGS__); \
    } while (0)

#endif
