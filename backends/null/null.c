/* The null backend: executes nothing, checks everything. Outputs are zeros of the right shape.
 *
 * It is the skeleton for a new backend, and stands in for eight devices where a test wants many. Ops whose
 * output size depends on data are refused, since nothing is computed. */
#include "backends/backend.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES = 8 };

static int32_t device_count(void)
{
    return DEVICES;
}

static void close_device(grt_device *device)
{
    free(device);
}

static grt_status alloc_memory(grt_device *device, size_t bytes, void **out_data)
{
    (void)device;
    void *data = aligned_alloc(256, grt_align_up(bytes, 256));
    if (!data)
        return grt_fail_memory(bytes);
    *out_data = data;
    return GRT_OK;
}

static void free_memory(grt_device *device, void *data)
{
    (void)device;
    free(data);
}

static const grt_device_vtable vtable = {.close = close_device, .alloc = alloc_memory, .free = free_memory};

static grt_status open_device(int32_t index, grt_device **out_device)
{
    if (index < 0 || index >= DEVICES)
        return grt_fail(GRT_STATUS_DEVICE, "there is no device null:%d; null:0 to null:%d exist", index,
                        DEVICES - 1);
    grt_device *device = calloc(1, sizeof *device);
    if (!device)
        return grt_fail_memory(sizeof *device);
    *device = (grt_device){&vtable, &grt_backend_null, index};
    *out_device = device;
    return GRT_OK;
}

/* What a kernel may rely on, checked in its stead. */
static grt_status run_nothing(const grt_run *run)
{
    for (int32_t i = 0; i < run->n_in; i++)
        if (run->in[i] && !run->in[i]->data && grt_tensor_bytes(run->in[i]))
            return grt_fail_op(run->desc, GRT_STATUS_INTERNAL, "input %d has no memory", i);
    for (int32_t i = 0; i < run->n_out; i++) {
        if (!run->out[i])
            continue;
        size_t bytes = grt_tensor_bytes(run->out[i]);
        if (bytes == SIZE_MAX || (bytes && !run->out[i]->data))
            return grt_fail_op(run->desc, GRT_STATUS_INTERNAL, "output %d has no dims or no memory", i);
        if (bytes)
            memset(run->out[i]->data, 0, bytes);
    }
    return GRT_OK;
}

static const grt_kernel_row any_op = {.domain = "", .op = "any", .run = run_nothing};

static const grt_kernel_row *find_kernel(const grt_kernel_node *node, grt_text *why)
{
    (void)node;
    (void)why;
    return &any_op;
}

const grt_backend grt_backend_null = {
    .name = "null",
    .device_count = device_count,
    .device_open = open_device,
    .find_kernel = find_kernel,
    .channels_last = false,
};
