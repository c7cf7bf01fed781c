/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend: one device, host memory, kernels from backends/cpu/ops/. */
#include "backends/cpu/cpu.h"
#include "backends/custom.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/packing.h"
#include "backends/cpu/tables.h"
#include "backends/cpu/widen.h"

#include <stdlib.h>

static int32_t cpu_device_count(void)
{
    return 1;
}

static void cpu_close_device(grt_device *device)
{
    free(device);
}

/* Its memory is the host's, so there is nothing to copy, to enqueue or to wait for. */
static const grt_device_api api = {.close = cpu_close_device, .memory = &grt_host_memory};

static grt_status cpu_open_device(int32_t index, grt_device **out_device)
{
    if (index != 0)
        return grt_fail(GRT_STATUS_DEVICE, "there is no device cpu:%d; the only one is cpu:0", index);
    GRT_TRY(cpu_isa_check());
    grt_device *device = calloc(1, sizeof *device);
    if (!device)
        return grt_fail_memory(sizeof *device);
    *device = (grt_device){.api = &api, .backend = &grt_backend_cpu, .index = 0};
    *out_device = device;
    return GRT_OK;
}

static const grt_kernel_row *cpu_find_kernel(const grt_kernel_node *node, grt_text *why)
{
    const grt_kernel_row *row;
    if (grt_custom_kernel(node, false, why, &row))
        return row;
    row = grt_kernel_find(cpu_tables.list, cpu_tables.n, node, why);
    return row ? row : cpu_widen_find(node);
}

const grt_backend grt_backend_cpu = {
    .name = "cpu",
    .traits = {.channels_last = true,
               .volumes_last = true,
               .transposed_last = true,
               .dilated_lines_last = true,
               .lines_in_groups_last = true,
               .long_groups_last = true,
               .bfloat16_products = true,
               .filters_channels = true,
               .folds_rows = true,
               .batch_limit = 1 << 20},
    .device_count = cpu_device_count,
    .device_open = cpu_open_device,
    .api = &api,
    .find_kernel = cpu_find_kernel,
    .unpack = cpu_packing_unpack,
};
