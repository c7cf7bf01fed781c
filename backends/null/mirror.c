/* The mirror backend: the CPU's kernels behind a device's interface.
 *
 * Its memory is separate from the host's, copies are explicit, and ops that size their outputs at run time
 * are missing, as on a GPU. So everything that sessions on devices do (transfers, fallback, static memory,
 * replay) is tested on machines without one. */
#include "backends/backend.h"
#include "backends/null/mirror_stream.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES = 8, ISLAND = 4 };

static int32_t device_count(void)
{
    return DEVICES;
}

static void close_device(grt_device *device)
{
    free(device);
}

static grt_status make_current(grt_device *device)
{
    (void)device;
    return GRT_OK;
}

static grt_status alloc_memory(grt_device *device, size_t bytes, void **out_data)
{
    (void)device;
    void *data = aligned_alloc(256, grt_align_up(bytes, 256));
    if (!data)
        return grt_fail_memory(bytes);
    memset(data, 0xa5, bytes); /* what nobody wrote is visible */
    *out_data = data;
    return GRT_OK;
}

static void free_memory(grt_device *device, void *data)
{
    (void)device;
    free(data);
}

static grt_status copy_memory(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    if (!stream)
        return grt_fail(GRT_STATUS_INTERNAL, "mirror:%d: a copy without a stream", device->index);
    return mirror_stream_copy(stream, dst, src, bytes);
}

static grt_status stream_create(grt_device *device, void **out_stream)
{
    (void)device;
    mirror_stream *stream;
    GRT_TRY(mirror_stream_create(&stream));
    *out_stream = stream;
    return GRT_OK;
}

static void stream_release(grt_device *device, void *stream)
{
    (void)device;
    mirror_stream_release(stream);
}

static grt_status stream_wait(grt_device *device, void *stream)
{
    (void)device;
    mirror_stream_wait(stream);
    return GRT_OK;
}

static grt_status fence_create(grt_device *device, void **out_fence)
{
    (void)device;
    mirror_fence *fence;
    GRT_TRY(mirror_fence_create(&fence));
    *out_fence = fence;
    return GRT_OK;
}

static void fence_release(grt_device *device, void *fence)
{
    (void)device;
    mirror_fence_release(fence);
}

static grt_status fence_record(grt_device *device, void *fence, void *stream)
{
    (void)device;
    return mirror_fence_record(fence, stream);
}

static grt_status fence_wait(grt_device *device, void *fence)
{
    (void)device;
    mirror_fence_wait(fence);
    return GRT_OK;
}

static grt_status stream_wait_fence(grt_device *device, void *stream, void *fence)
{
    (void)device;
    return mirror_stream_wait_fence(stream, fence);
}

/* Two islands of four, as machines have them whose GPUs hang on two sockets. */
static bool peer_can(grt_device *device, grt_device *from)
{
    return device != from && device->index / ISLAND == from->index / ISLAND;
}

static grt_status peer_enable(grt_device *device, grt_device *from)
{
    return peer_can(device, from) ? GRT_OK
                                  : grt_fail(GRT_STATUS_INTERNAL, "mirror:%d cannot reach mirror:%d",
                                             device->index, from->index);
}

static grt_status peer_copy(grt_device *device, void *dst, grt_device *from, const void *src, size_t bytes,
                            void *stream)
{
    if (!peer_can(device, from))
        return grt_fail(GRT_STATUS_INTERNAL, "mirror:%d cannot copy from mirror:%d", device->index,
                        from->index);
    return mirror_stream_copy(stream, dst, src, bytes);
}

static const grt_device_vtable vtable = {
    .close = close_device,
    .make_current = make_current,
    .alloc = alloc_memory,
    .free = free_memory,
    .upload = copy_memory,
    .download = copy_memory,
    .copy = copy_memory,
    .alloc_pinned = alloc_memory,
    .free_pinned = free_memory,
    .stream_create = stream_create,
    .stream_release = stream_release,
    .stream_wait = stream_wait,
    .fence_create = fence_create,
    .fence_release = fence_release,
    .fence_record = fence_record,
    .fence_wait = fence_wait,
    .stream_wait_fence = stream_wait_fence,
    .peer_can = peer_can,
    .peer_enable = peer_enable,
    .peer_copy = peer_copy,
};

static grt_status open_device(int32_t index, grt_device **out_device)
{
    if (index < 0 || index >= DEVICES)
        return grt_fail(GRT_STATUS_DEVICE, "there is no device mirror:%d; mirror:0 to mirror:%d exist", index,
                        DEVICES - 1);
    grt_device *device = calloc(1, sizeof *device);
    if (!device)
        return grt_fail_memory(sizeof *device);
    *device = (grt_device){.vtable = &vtable, .backend = &grt_backend_mirror, .index = index};
    *out_device = device;
    return GRT_OK;
}

static const grt_kernel_row *find_kernel(const grt_kernel_node *node, grt_text *why)
{
    const grt_kernel_row *row = grt_backend_cpu.find_kernel(node, why);
    for (int32_t i = 0; row && i < node->n_in; i++)
        if (node->in[i].dtype == GRT_DTYPE_STRING)
            row = NULL;
    if (row && !(row->flags & (GRT_KERNEL_DYNAMIC | GRT_KERNEL_VALUES)))
        return row;
    if (row && why)
        grt_text_add(why, "ops that size their outputs at run time are left to the CPU");
    return NULL;
}

static grt_status unpack(const grt_tensor *weight, const grt_packing *packing, void *out)
{
    return grt_backend_cpu.unpack(weight, packing, out);
}

const grt_backend grt_backend_mirror = {
    .name = "mirror",
    .device_count = device_count,
    .device_open = open_device,
    .find_kernel = find_kernel,
    .unpack = unpack,
    .own_memory = true,
    .channels_last = true,
};
