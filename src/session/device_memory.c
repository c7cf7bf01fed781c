/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a session's device, for callers: see graphrt/memory.h. */
#include "src/session/device_memory.h"

#include "src/base/structs.h"
#include "src/session/session.h"

#include <string.h>

static grt_status enqueue_move(grt_device *device, const grt_tensor *to, const grt_tensor *from, void *stream)
{
    const size_t bytes = grt_tensor_bytes(from);
    if (to->memory != GRT_MEMORY_DEVICE)
        return grt_device_download(device, to->data, from->data, bytes, stream);
    return from->memory == GRT_MEMORY_DEVICE ? grt_device_copy(device, to->data, from->data, bytes, stream)
                                             : grt_device_upload(device, to->data, from->data, bytes, stream);
}

grt_status grt_device_move(grt_device *device, const grt_tensor *to, const grt_tensor *from)
{
    void *stream = NULL;
    const size_t bytes = grt_tensor_bytes(from);
    if (!bytes)
        return GRT_OK;
    if (to->memory != GRT_MEMORY_DEVICE && from->memory != GRT_MEMORY_DEVICE) {
        memmove(to->data, from->data, bytes);
        return GRT_OK;
    }
    GRT_TRY(grt_device_stream_create(device, 0, &stream));
    grt_status status = enqueue_move(device, to, from, stream);
    const grt_status waited = grt_device_wait(device, stream);
    grt_device_stream_release(device, stream);
    return status != GRT_OK ? status : waited;
}

grt_status grt_session_alloc_device(grt_session *session, size_t size, void **out_data, int32_t *out_device)
{
    if (!session || !out_data || size > SIZE_MAX / 2)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_session_alloc_device: session or out_data is NULL, or %zu bytes are too many",
                        size);
    GRT_TRY(grt_device_alloc(session->device, size ? size : 1, out_data));
    if (out_device)
        *out_device = session->on_device ? session->device->index : -1;
    return GRT_OK;
}

void grt_session_free_device(grt_session *session, void *data)
{
    if (session)
        grt_device_free(session->device, data);
}

static grt_status check_side(const grt_session *session, const grt_tensor *t, const char *side)
{
    GRT_TRY(grt_reserved_check(t->reserved, sizeof t->reserved, "grt_tensor"));
    const size_t bytes = t->rank < 0 || t->rank > GRT_MAX_RANK ? SIZE_MAX : grt_tensor_bytes(t);
    const char *wrong =
        bytes == SIZE_MAX                                              ? "has no size"
        : t->dtype == GRT_DTYPE_STRING                                 ? "has strings"
        : bytes && !t->data                                            ? "has no data"
        : t->memory < GRT_MEMORY_HOST || t->memory > GRT_MEMORY_DEVICE ? "is in memory of an unknown kind"
        : t->memory == GRT_MEMORY_DEVICE && (!session->on_device || t->device != session->device->index)
            ? "is in memory of another device"
            : NULL;
    return !wrong ? GRT_OK
                  : grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_session_copy: `%s` %s; the session is on %s",
                             side, wrong, session->name);
}

grt_status grt_session_copy(grt_session *session, const grt_tensor *to, const grt_tensor *from)
{
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    if (!session || !to || !from)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_session_copy: session, to or from is NULL");
    GRT_TRY(check_side(session, to, "to"));
    GRT_TRY(check_side(session, from, "from"));
    if (!grt_tensor_same_type(to, from))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_session_copy: `from` is %s, `to` is for %s",
                        grt_tensor_text(from, a), grt_tensor_text(to, b));
    return grt_device_move(session->device, to, from);
}
