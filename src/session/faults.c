/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions whose device has failed: see graphrt/faults.h. */
#include "src/base/log.h"
#include "src/session/session.h"

#include <graphrt/faults.h>

#include <stdlib.h>
#include <string.h>

/* A device that still gives memory has refused one thing; one that does not is gone. */
static bool still_works(grt_device *device)
{
    enum { LITTLE = 256 };
    void *data;
    const grt_status status = grt_device_alloc(device, LITTLE, &data);
    if (status == GRT_OK)
        grt_device_free(device, data);
    return status != GRT_STATUS_DEVICE;
}

static char *copy_message(void)
{
    char *copy = strdup(grt_last_error());
    return copy ? copy : strdup("");
}

void grt_session_probe(grt_session *session)
{
    char *message = copy_message(), *none = NULL;
    if (!message || still_works(session->device)) {
        grt_error_set(message ? message : "out of memory");
        free(message);
        return;
    }
    grt_error_set(message);
    if (!atomic_compare_exchange_strong(&session->lost, &none, message))
        free(message);
    else
        GRT_LOG(ERROR, "run", "%s is lost: %s", session->name, message);
}

grt_status grt_session_check(const grt_session *session)
{
    if (!session)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_session_check: session is NULL");
    const char *lost = atomic_load_explicit(&session->lost, memory_order_acquire);
    return lost ? grt_fail(GRT_STATUS_DEVICE, "the session on %s is lost: %s", session->name, lost) : GRT_OK;
}
