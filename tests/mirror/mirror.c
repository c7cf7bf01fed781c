/* SPDX-License-Identifier: Apache-2.0 */
/* The mirror backend: the CPU's kernels behind a device's interface.
 *
 * Its memory is separate from the host's, copies are explicit, and ops that size their outputs at run time
 * are missing, as on a GPU. So everything that sessions on devices do (transfers, fallback, static memory) is
 * tested on machines without one. With GRAPHRT_MIRROR_MEMORY=BYTES in the environment, each device has so
 * much memory and no more. Parts have some of a device's 16 processors, four at a time. With
 * GRAPHRT_MIRROR_FAULT=DEVICE:COPIES, that device fails with the copy after so many, and with all that is
 * asked of it from then on, as a GPU after an error that sticks. */
#include "tests/mirror/mirror.h"

#include "src/base/checked.h"
#include "tests/mirror/code.h"
#include "tests/mirror/kernel.h"
#include "tests/mirror/stream.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEVICES = 8,
    ISLAND = 4,
    ALIGNMENT = 256,
    GRANULE = 2 << 20,
    PROCESSORS = 16,
    PROCESSORS_TOGETHER = 4
};

typedef struct mirror_device {
    grt_device base;
    size_t total; /* bytes of memory */
    atomic_size_t used;
    atomic_long copies_left;     /* until it fails; below 0: it has failed */
    struct mirror_device *whole; /* that it is a part of; NULL: of none */
    atomic_llong processors;     /* that no part has, or that this part has */
    grt_codes *codes;            /* see code.h */
} mirror_device;

static mirror_device *whole_of(grt_device *base)
{
    mirror_device *device = (mirror_device *)base;
    return device->whole ? device->whole : device;
}

static int32_t device_count(void)
{
    return DEVICES;
}

grt_codes *mirror_codes(grt_device *device)
{
    return device ? whole_of(device)->codes : NULL;
}

static void close_device(grt_device *device)
{
    grt_codes_release(mirror_codes(device));
    free(device);
}

static void part_close(grt_device *part)
{
    free(part);
}

static void identify(grt_device *device, grt_text *key)
{
    (void)device;
    grt_text_add(key, "gpu=mirror;sm=0;");
}

static grt_status alloc_pinned(grt_device *device, size_t bytes, void **out_data)
{
    (void)device;
    void *data = aligned_alloc(ALIGNMENT, grt_align_up(bytes, ALIGNMENT));
    if (!data)
        return grt_fail_memory(bytes);
    memset(data, 0xa5, bytes); /* what nobody wrote is visible */
    *out_data = data;
    return GRT_OK;
}

static void free_pinned(grt_device *device, void *data)
{
    (void)device;
    free(data);
}

static grt_status pin(grt_device *device, void *data, size_t bytes)
{
    (void)device, (void)data, (void)bytes;
    return GRT_OK;
}

static void unpin(grt_device *device, void *data)
{
    (void)device, (void)data;
}

static grt_status check_works(grt_device *base, long copies)
{
    mirror_device *device = whole_of(base);
    if (atomic_load(&device->copies_left) < 0 || atomic_fetch_sub(&device->copies_left, copies) < copies) {
        atomic_store(&device->copies_left, -1);
        return grt_fail(GRT_STATUS_DEVICE, "mirror:%d has failed, as it was told to", base->index);
    }
    return GRT_OK;
}

/* Memory of the device has its size in front. Large blocks take whole granules, as a GPU's do. */
static grt_status alloc_memory(grt_device *base, size_t bytes, void **out_data)
{
    mirror_device *device = whole_of(base);
    GRT_TRY(check_works(base, 0));
    const size_t size = grt_align_up(bytes, bytes < GRANULE / 2 ? ALIGNMENT : GRANULE),
                 used = atomic_fetch_add(&device->used, size);
    const size_t left = used < device->total ? device->total - used : 0;
    char *data = NULL;
    grt_status status = GRT_OK;
    if (size > left)
        status = grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                          "mirror:%d is out of memory: %zu bytes wanted, %zu of %zu free", base->index, bytes,
                          left, device->total);
    else
        status = alloc_pinned(base, bytes + ALIGNMENT, (void **)&data);
    if (status != GRT_OK) {
        atomic_fetch_sub(&device->used, size);
        return status;
    }
    memcpy(data, &size, sizeof size);
    *out_data = data + ALIGNMENT;
    return GRT_OK;
}

static void free_memory(grt_device *base, void *data)
{
    mirror_device *device = whole_of(base);
    char *begin = (char *)data - ALIGNMENT;
    size_t size;
    memcpy(&size, begin, sizeof size);
    atomic_fetch_sub(&device->used, size);
    free(begin);
}

static grt_status memory_in_use(grt_device *base, size_t *out_bytes)
{
    *out_bytes = atomic_load(&whole_of(base)->used);
    return GRT_OK;
}

/* It is the host's: tests bind their own arrays as if they were the device's. */
static grt_status check_pointer(grt_device *device, const void *data)
{
    (void)device, (void)data;
    return GRT_OK;
}

static grt_status copy_memory(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    if (!stream)
        return grt_fail(GRT_STATUS_INTERNAL, "mirror:%d: a copy without a stream", device->index);
    GRT_TRY(check_works(device, 1));
    return mirror_stream_copy(stream, dst, src, bytes);
}

static grt_status stream_create(grt_device *device, int32_t priority, void **out_stream)
{
    (void)device, (void)priority;
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
    mirror_stream_wait(stream);
    return check_works(device, 0);
}

static uint64_t stream_id(grt_device *device, void *stream)
{
    (void)device;
    return mirror_stream_id(stream);
}

static bool stream_is_captured(grt_device *device, void *stream)
{
    (void)device;
    return mirror_stream_captured(stream);
}

static grt_status graph_begin(grt_device *device, void *stream)
{
    (void)device;
    return mirror_stream_begin(stream);
}

static grt_status graph_end(grt_device *device, void *stream, void **out_graph)
{
    (void)device;
    mirror_graph *graph;
    GRT_TRY(mirror_stream_end(stream, &graph));
    if (out_graph)
        *out_graph = graph;
    else
        mirror_graph_release(graph);
    return GRT_OK;
}

static grt_status graph_launch(grt_device *device, void *graph, void *stream)
{
    GRT_TRY(check_works(device, 0));
    return mirror_stream_launch(stream, graph);
}

static void graph_release(grt_device *device, void *graph)
{
    (void)device;
    mirror_graph_release(graph);
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

static grt_status elapsed(grt_device *device, void *begin, void *end, double *out_ms)
{
    (void)device;
    *out_ms = mirror_fence_ms(end) - mirror_fence_ms(begin);
    return GRT_OK;
}

/* Two islands of four, as machines have them whose GPUs hang on two sockets. */
static bool peer_can(grt_device *device, grt_device *from)
{
    return device->index != from->index && device->index / ISLAND == from->index / ISLAND;
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

static grt_status part_take(grt_device *base, int64_t n, grt_device **part)
{
    mirror_device *whole = (mirror_device *)base;
    const long long wanted = (n + PROCESSORS_TOGETHER - 1) / PROCESSORS_TOGETHER * PROCESSORS_TOGETHER;
    if (n < 1 || n > PROCESSORS)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "mirror:%d has %d processors, %lld are wanted",
                        base->index, PROCESSORS, (long long)n);
    if (atomic_fetch_sub(&whole->processors, wanted) < wanted) {
        const long long left = atomic_fetch_add(&whole->processors, wanted) + wanted;
        return grt_fail(GRT_STATUS_OUT_OF_MEMORY, "mirror:%d has %lld processors left, %lld are wanted",
                        base->index, left, (long long)n);
    }
    mirror_device *device = *part ? (mirror_device *)*part : calloc(1, sizeof *device);
    if (!device) {
        atomic_fetch_add(&whole->processors, wanted);
        return grt_fail_memory(sizeof *device);
    }
    device->base = whole->base;
    device->whole = whole;
    atomic_store(&device->processors, wanted);
    *part = &device->base;
    return GRT_OK;
}

static void part_give(grt_device *base)
{
    atomic_fetch_add(&whole_of(base)->processors, atomic_exchange(&((mirror_device *)base)->processors, 0));
}

static const grt_memory_api memory = {
    .alloc = alloc_memory, .free = free_memory, .check = check_pointer, .in_use = memory_in_use};
static const grt_copy_api copies = {.upload = copy_memory, .download = copy_memory, .copy = copy_memory};
static const grt_stream_api streams = {.create = stream_create,
                                       .release = stream_release,
                                       .wait = stream_wait,
                                       .id = stream_id,
                                       .is_captured = stream_is_captured};
static const grt_fence_api fences = {.create = fence_create,
                                     .release = fence_release,
                                     .record = fence_record,
                                     .wait = fence_wait,
                                     .stream_wait = stream_wait_fence};
static const grt_graph_api graphs = {
    .begin = graph_begin, .end = graph_end, .launch = graph_launch, .release = graph_release};
static const grt_timer_api timer = {
    .create = fence_create, .release = fence_release, .record = fence_record, .elapsed = elapsed};
static const grt_peer_api peers = {.can = peer_can, .enable = peer_enable, .copy = peer_copy};
static const grt_pinned_api pinned = {.alloc = alloc_pinned, .free = free_pinned, .pin = pin, .unpin = unpin};

static const grt_part_api parts = {.take = part_take, .give = part_give, .close = part_close};

#define TABLES                                                                                         \
    .close = close_device, .memory = &memory, .copies = &copies, .streams = &streams, .parts = &parts, \
    .fences = &fences, .graphs = &graphs, .peers = &peers, .pinned = &pinned, .timer = &timer
static const grt_device_api api = {TABLES};
static const grt_device_api choosing_api = {TABLES, .identify = identify}; /* generated kernels are kept */

static long copies_until_fault(int32_t index)
{
    const char *fault = getenv("GRAPHRT_MIRROR_FAULT");
    char *end = NULL;
    if (!fault || strtol(fault, &end, 10) != index || *end != ':')
        return LONG_MAX;
    return strtol(end + 1, NULL, 10);
}

static grt_status open_device(int32_t index, grt_device **out_device)
{
    if (index < 0 || index >= DEVICES)
        return grt_fail(GRT_STATUS_DEVICE, "there is no device mirror:%d; mirror:0 to mirror:%d exist", index,
                        DEVICES - 1);
    mirror_device *device = calloc(1, sizeof *device);
    if (!device)
        return grt_fail_memory(sizeof *device);
    const char *total = getenv("GRAPHRT_MIRROR_MEMORY");
    device->base = (grt_device){.api = mirror_code_is_wanted() ? &choosing_api : &api,
                                .backend = &grt_backend_mirror,
                                .index = index};
    device->total = total ? strtoull(total, NULL, 10) : SIZE_MAX;
    atomic_init(&device->used, 0);
    atomic_init(&device->processors, PROCESSORS);
    atomic_init(&device->copies_left, copies_until_fault(index));
    const grt_status status = mirror_code_open(&device->base, &device->codes);
    if (status != GRT_OK)
        close_device(&device->base);
    else
        *out_device = &device->base;
    return status;
}

static const grt_kernel_row *find_kernel(const grt_kernel_node *node, grt_text *why)
{
    const grt_kernel_row *row = grt_backend_cpu.find_kernel(node, why);
    for (int32_t i = 0; row && i < node->n_in; i++)
        if (node->in[i].dtype == GRT_DTYPE_STRING)
            row = NULL;
    if (row && !(row->flags & (GRT_KERNEL_DYNAMIC | GRT_KERNEL_VALUES)))
        return mirror_kernel(row, why);
    if (row && why)
        grt_text_add(why, "ops that size their outputs at run time are left to the CPU");
    return NULL;
}

static grt_status unpack(const grt_tensor *weight, const grt_packing *packing, void *out)
{
    return grt_backend_cpu.unpack(weight, packing, out);
}

/* The module's one entry: looked up by name, see backends/module.c. */
__attribute__((visibility("default"))) const grt_backend grt_backend_mirror = {
    .name = "mirror",
    .traits = {.own_memory = true,
               .channels_last = true,
               .long_groups_last = true,
               .merges_products = true,
               .half_floats = true,
               .joins_networks = true,
               .filters_channels = true,
               .folds_rows = true,
               .loads_code = true,
               .merges_small_steps = true,
               .weight_rows = true,
               .splits_phases = true},
    .device_count = device_count,
    .device_open = open_device,
    .api = &api,
    .find_kernel = find_kernel,
    .unpack = unpack,
};
