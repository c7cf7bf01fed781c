/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellation of long calls. */
#ifndef GRT_BASE_CANCEL_H
#define GRT_BASE_CANCEL_H

#include "src/base/status.h"

/* Zeroed: never cancelled. */
typedef struct grt_cancel {
    bool (*asked)(void *user);
    void *user;
} grt_cancel;

/* CANCELLED if the caller has asked for it. cancel may be NULL. */
static inline grt_status grt_cancel_check(const grt_cancel *cancel)
{
    if (!cancel || !cancel->asked || !cancel->asked(cancel->user))
        return GRT_OK;
    return grt_fail(GRT_STATUS_CANCELLED, "cancelled by the caller");
}

#endif
