/* Values whose memory is a device's. */
#include "src/device_value.h"

#include <stdlib.h>
#include <string.h>

static void free_device_buffer(grt_buffer *buffer)
{
    grt_device_free(buffer->owner, buffer->data);
    free(buffer);
}

grt_status grt_device_value_alloc(grt_device *device, grt_value *dst, grt_dtype dtype, int32_t rank,
                                  const int64_t *dims)
{
    if (!device || grt_device_is_host(device))
        return grt_value_alloc(dst, dtype, rank, dims);
    grt_tensor t = {.dtype = dtype, .rank = rank, .memory = GRT_MEMORY_DEVICE, .device = device->index};
    if (rank > 0)
        memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    size_t bytes = grt_tensor_bytes(&t);
    grt_buffer *buffer = bytes == SIZE_MAX ? NULL : calloc(1, sizeof *buffer);
    if (!buffer)
        return grt_fail_memory(bytes);
    grt_status status = grt_device_alloc(device, bytes, &buffer->data);
    if (status != GRT_OK) {
        free(buffer);
        return status;
    }
    atomic_init(&buffer->refs, 1);
    buffer->size = bytes;
    buffer->release = free_device_buffer;
    buffer->owner = device;
    grt_value_clear(dst);
    t.data = buffer->data;
    dst->t = t;
    dst->buffer = buffer;
    return GRT_OK;
}

grt_status grt_device_value_download(grt_device *device, void *stream, grt_value *dst, const grt_tensor *src)
{
    grt_tensor t = *src;
    GRT_TRY(grt_value_alloc(dst, t.dtype, t.rank, t.dims));
    GRT_TRY(grt_device_download(device, dst->t.data, t.data, grt_tensor_bytes(&t), stream));
    return grt_device_wait(device, stream);
}
