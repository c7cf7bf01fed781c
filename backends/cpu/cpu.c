/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend: one device, host memory, kernels from backends/cpu/ops/. */
#include "backends/cpu/cpu.h"
#include "backends/custom.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/packing.h"
#include "backends/cpu/widen.h"

#include "src/base/checked.h"

#include <stdlib.h>

#define X(file) extern const grt_kernel_table cpu_kernels_##file;
#include "cpu_kernels.inc"
#undef X

static const grt_kernel_table *const tables[] = {
#define X(file) &cpu_kernels_##file,
#include "cpu_kernels.inc"
#undef X
};

static int32_t device_count(void)
{
    return 1;
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
    if (index != 0)
        return grt_fail(GRT_STATUS_DEVICE, "there is no device cpu:%d; the only one is cpu:0", index);
    GRT_TRY(cpu_isa_check());
    grt_device *device = calloc(1, sizeof *device);
    if (!device)
        return grt_fail_memory(sizeof *device);
    *device = (grt_device){.vtable = &vtable, .backend = &grt_backend_cpu, .index = 0};
    *out_device = device;
    return GRT_OK;
}

static const grt_kernel_row *find_kernel(const grt_kernel_node *node, grt_text *why)
{
    const size_t n = sizeof tables / sizeof *tables;
    const grt_kernel_row *row;
    if (grt_custom_kernel(node, false, why, &row))
        return row;
    row = grt_kernel_find(tables, n, node, why);
    return row ? row : cpu_widen_find(tables, n, node);
}

const grt_backend grt_backend_cpu = {
    .name = "cpu",
    .device_count = device_count,
    .device_open = open_device,
    .find_kernel = find_kernel,
    .channels_last = true,
    .lone_product = 1 << 20,
    .unpack = cpu_packing_unpack,
};
