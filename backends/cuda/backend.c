/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend, a module: its devices are opened and described here; kernels come from
 * backends/cuda/ops/. */
#include "backends/backend.h"

#include "backends/cuda/code.h"
#include "backends/cuda/current.h"
#include "backends/cuda/description.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/local.h"
#include "backends/cuda/lt_start.h"
#include "backends/cuda/packing.h"
#include "backends/cuda/tables.h"
#include "backends/custom.h"

#include <stdlib.h>
#include <string.h>

#define X(file) extern const grt_kernel_table cuda_kernels_##file;
#include "cuda_kernels.inc"
#undef X

static const grt_kernel_table *const tables[] = {
#define X(file) &cuda_kernels_##file,
#include "cuda_kernels.inc"
#undef X
};

static int32_t cuda_device_count(void)
{
    int n = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaSuccess && n > 0)
        return n;
    cudaDriverGetVersion(&driver);
    if (driver == 0)
        grt_fail(GRT_STATUS_DEVICE,
                 "there is no NVIDIA driver: libcuda.so.1, which comes with it, cannot be opened; install "
                 "one that "
                 "supports CUDA %d or newer",
                 CUDART_VERSION / 1000);
    else if (error == cudaErrorInsufficientDriver)
        grt_fail(
            GRT_STATUS_DEVICE,
            "the NVIDIA driver is too old: it supports CUDA %d.%d, this build wants %d.0 or newer; install a "
            "newer driver",
            driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000);
    else
        grt_fail(GRT_STATUS_DEVICE, "no usable NVIDIA GPU: %s", cudaGetErrorString(error));
    return 0;
}

static void cuda_close_device(grt_device *base)
{
    cuda_device *device = (cuda_device *)base;
    bool switched;
    if (cuda_enter(base, &switched) == GRT_OK) {
        grt_codes_release(device->codes);
        cuda_lt_start_release(device->lt_start);
        cuda_libraries_release(device->libraries);
        cudaStreamDestroy(device->stream);
        cuda_leave(base, switched);
    }
    free(device);
}

static void cuda_identify(grt_device *base, grt_text *key)
{
    const cuda_device *device = (const cuda_device *)base;
    int driver = 0;
    cudaDriverGetVersion(&driver);
    grt_text_add(key, "gpu=%s;sm=%d%d;driver=%d;", device->prop.name, device->prop.major, device->prop.minor,
                 driver);
}

static const grt_current_api current = {.enter = cuda_enter, .leave = cuda_leave};
static const grt_local_api locals = {.check = cuda_local_check, .release = cuda_local_release};

static const grt_device_api api = {
    .close = cuda_close_device,
    .identify = cuda_identify,
    .memory = &cuda_memory,
    .copies = &cuda_copies,
    .streams = &cuda_streams,
    .parts = &cuda_parts,
    .current = &current,
    .fences = &cuda_fences,
    .graphs = &cuda_graphs,
    .peers = &cuda_peers,
    .pinned = &cuda_pinned,
    .timer = &cuda_timer,
    .locals = &locals,
};

static grt_status cuda_read_properties(cuda_device *device)
{
    const int32_t index = device->base.index;
    CUDA_TRY(cudaGetDeviceProperties(&device->prop, index));
    if (device->prop.major < 8)
        return grt_fail(GRT_STATUS_DEVICE,
                        "cuda:%d (%s) has compute capability %d.%d; 8.0 or newer is wanted", index,
                        device->prop.name, device->prop.major, device->prop.minor);
    device->base.cache_bytes = (size_t)device->prop.l2CacheSize;
    return GRT_OK;
}

static grt_status cuda_make_parts(cuda_device *device)
{
    GRT_TRY(cuda_read_properties(device));
    CUDA_TRY(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
    GRT_TRY(cuda_libraries_create(device->base.index, &device->prop, &device->libraries));
    GRT_TRY(cuda_lt_start_create(&device->lt_start));
    return grt_codes_create(&device->base, &cuda_code_maker, &device->codes);
}

static grt_status cuda_start(cuda_device *device)
{
    bool switched;
    GRT_TRY(cuda_current_open(device->base.index, &device->context));
    GRT_TRY(cuda_enter(&device->base, &switched));
    const grt_status status = cuda_make_parts(device);
    if (status != GRT_OK) {
        cuda_lt_start_release(device->lt_start);
        cuda_libraries_release(device->libraries);
        if (device->stream)
            cudaStreamDestroy(device->stream);
    }
    cuda_leave(&device->base, switched);
    return status;
}

static grt_status open_working(int32_t index, grt_device **out_device)
{
    int32_t n = cuda_device_count();
    if (n == 0)
        return GRT_STATUS_DEVICE;
    if (index < 0 || index >= n)
        return grt_fail(GRT_STATUS_DEVICE, "there is no device cuda:%d; cuda:0 to cuda:%d exist", index,
                        n - 1);
    cuda_device *device = calloc(1, sizeof *device);
    if (!device)
        return grt_fail_memory(sizeof *device);
    device->base = (grt_device){.api = &api, .backend = &grt_backend_cuda, .index = index};
    grt_status status = cuda_start(device);
    if (status != GRT_OK) {
        free(device);
        return status;
    }
    *out_device = &device->base;
    return GRT_OK;
}

static grt_status cuda_open_device(int32_t index, grt_device **out_device)
{
    grt_status status = open_working(index, out_device);
    if (status != GRT_OK)
        cuda_libraries_settle();
    return status;
}

static grt_status cuda_describe(grt_device *base, grt_text *name, int32_t *out_sm, grt_text *properties)
{
    cuda_device *device = (cuda_device *)base;
    bool switched;
    GRT_TRY(cuda_enter(base, &switched));
    grt_text_add(name, "%s", device->prop.name);
    *out_sm = 10 * device->prop.major + device->prop.minor;
    const grt_status status = cuda_dnn_properties(device->libraries, properties);
    cuda_leave(base, switched);
    return status;
}

static const grt_kernel_row *cuda_find_kernel(const grt_kernel_node *node, grt_text *why)
{
    const grt_kernel_row *row;
    if (grt_custom_kernel(node, true, why, &row))
        return row;
    return grt_kernel_find(tables, sizeof tables / sizeof *tables, node, why);
}

/* The module's one entry: looked up by name, see backends/module.c. */
__attribute__((visibility("default"))) const grt_backend grt_backend_cuda = {
    .name = "cuda",
    .traits =
        {
            .own_memory = true,
            .channels_last = true,
            .long_groups_last = true,
            .volumes_last = true,
            .dilated_lines_last = true,
            .merges_products = true,
            .half_floats = true,
            .joins_networks = true,
            .folds_rows = true,
            .loads_code = true,
            .merges_small_steps = true,
            .splits_phases = true,
            .weight_rows = true,
            .batch_limit = 1 << 28, /* fills any GPU by itself */
        },
    .device_count = cuda_device_count,
    .device_open = cuda_open_device,
    .api = &api,
    .find_kernel = cuda_find_kernel,
    .expect = cuda_libraries_expect,
    .unpack = cuda_packing_unpack,
    .describe = cuda_describe,
    .open_description = cuda_open_description,
    .description_api = &cuda_description_api,
};
