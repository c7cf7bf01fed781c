/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend module: devices, memory, streams, graphs; kernels come from backends/cuda/ops/. */
#include "backends/cuda/cuda.h"

#include "backends/cuda/code.h"
#include "backends/cuda/current.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/local.h"
#include "backends/cuda/packing.h"
#include "backends/cuda/peer.h"
#include "backends/custom.h"

#include <stdio.h>
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

/* Errors after which the driver refuses everything to this process on this GPU. */
static bool ends_context(cudaError_t error)
{
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice:
    case cudaErrorContextIsDestroyed:
        return true;
    default:
        return false;
    }
}

grt_status cuda_fail(cudaError_t error, const char *expression, const char *file, int line)
{
    const char *base = strrchr(file, '/');
    bool memory = error == cudaErrorMemoryAllocation;
    char lost[256] = "";
    int device = -1;
    cudaGetLastError(); /* what was reported here is not found again behind the next launch */
    if (ends_context(error)) {
        cudaGetDevice(&device);
        snprintf(
            lost, sizeof lost,
            "; the process's context on cuda:%d is lost: start a new process to use that GPU again, and "
            "others too "
            "if they refuse; the CPU goes on; GRAPHRT_DEBUG=1 in the environment names the node that does it",
            device);
    }
    return grt_fail(memory ? GRT_STATUS_OUT_OF_MEMORY : GRT_STATUS_DEVICE, "%s: %s (%s) at %s:%d%s",
                    cudaGetErrorName(error), cudaGetErrorString(error), expression, base ? base + 1 : file,
                    line, lost);
}

static int32_t device_count(void)
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

static void close_device(grt_device *base)
{
    cuda_device *device = (cuda_device *)base;
    bool switched;
    if (cuda_enter(base, &switched) == GRT_OK) {
        cuda_codes_release(device->codes);
        cuda_libraries_release(device->libraries);
        cudaStreamDestroy(device->stream);
        cuda_leave(base, switched);
    }
    free(device);
}

static grt_status alloc_here(grt_device *device, size_t bytes, void **out_data)
{
    void *data = NULL;
    cudaError_t error = cudaMalloc(&data, bytes);
    if (error == cudaErrorMemoryAllocation) {
        size_t free_bytes = 0, total = 0;
        cudaGetLastError(); /* not sticky: the process stays usable */
        cudaMemGetInfo(&free_bytes, &total);
        return grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                        "cuda:%d is out of memory: %zu bytes wanted, %zu of %zu free", device->index, bytes,
                        free_bytes, total);
    }
    CUDA_TRY(error);
    *out_data = data;
    return GRT_OK;
}

grt_status cuda_alloc(grt_device *device, size_t bytes, void **out_data)
{
    bool switched;
    GRT_TRY(cuda_enter(device, &switched));
    const grt_status status = alloc_here(device, bytes, out_data);
    cuda_leave(device, switched);
    return status;
}

grt_status cuda_upload_now(grt_device *device, void *dst, const void *src, size_t bytes)
{
    const cudaStream_t stream = ((cuda_device *)device)->stream;
    CUDA_ON(device, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, stream));
    CUDA_ON(device, cudaStreamSynchronize(stream));
    return GRT_OK;
}

static void free_memory(grt_device *device, void *data)
{
    CUDA_ON_QUIETLY(device, cudaFree(data));
}

static grt_status upload(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    CUDA_ON(device, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, stream));
    return GRT_OK;
}

static grt_status download(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    CUDA_ON(device, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, stream));
    return GRT_OK;
}

static grt_status copy(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    CUDA_ON(device, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream));
    return GRT_OK;
}

static grt_status alloc_pinned(grt_device *device, size_t bytes, void **out_data)
{
    CUDA_ON(device, cudaHostAlloc(out_data, bytes, cudaHostAllocPortable));
    return GRT_OK;
}

static void free_pinned(grt_device *device, void *data)
{
    CUDA_ON_QUIETLY(device, cudaFreeHost(data));
}

static grt_status stream_create(grt_device *device, void **out_stream)
{
    cudaStream_t stream;
    CUDA_ON(device, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    *out_stream = stream;
    return GRT_OK;
}

static void stream_release(grt_device *device, void *stream)
{
    CUDA_ON_QUIETLY(device, cudaStreamDestroy(stream));
}

static grt_status stream_wait(grt_device *device, void *stream)
{
    CUDA_ON(device, cudaStreamSynchronize(stream));
    return GRT_OK;
}

/* ---- graphs ---- */

static grt_status graph_begin(grt_device *device, void *stream)
{
    CUDA_ON(device, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    return GRT_OK;
}

static cudaError_t instantiate(cudaGraph_t graph, cudaGraphExec_t *out)
{
    const cudaError_t error = cudaGraphInstantiate(out, graph, 0);
    cudaGraphDestroy(graph);
    return error;
}

static grt_status graph_end(grt_device *device, void *stream, void **out_graph)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    CUDA_ON(device, cudaStreamEndCapture(stream, &graph));
    CUDA_ON(device, instantiate(graph, &executable));
    *out_graph = executable;
    return GRT_OK;
}

static grt_status graph_launch(grt_device *device, void *graph, void *stream)
{
    CUDA_ON(device, cudaGraphLaunch(graph, stream));
    return GRT_OK;
}

static void graph_release(grt_device *device, void *graph)
{
    CUDA_ON_QUIETLY(device, cudaGraphExecDestroy(graph));
}

static void identify(grt_device *base, grt_text *key)
{
    const cuda_device *device = (const cuda_device *)base;
    int driver = 0;
    cudaDriverGetVersion(&driver);
    grt_text_add(key, "gpu=%s;sm=%d%d;driver=%d;", device->prop.name, device->prop.major, device->prop.minor,
                 driver);
}

static bool stream_is_captured(grt_device *device, void *stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    CUDA_ON_QUIETLY(device, cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}

/* A handle may be that of a stream that was destroyed, or mean another stream in each thread. */
static uint64_t stream_id(grt_device *device, void *stream)
{
    unsigned long long id = 0;
    CUDA_ON_QUIETLY(device, cudaStreamGetId(stream, &id));
    return id;
}

/* ---- times ---- */

static grt_status event_create(grt_device *device, void **out_event)
{
    cudaEvent_t event;
    CUDA_ON(device, cudaEventCreate(&event));
    *out_event = event;
    return GRT_OK;
}

static void event_release(grt_device *device, void *event)
{
    CUDA_ON_QUIETLY(device, cudaEventDestroy(event));
}

static grt_status event_record(grt_device *device, void *event, void *stream)
{
    CUDA_ON(device, cudaEventRecord(event, stream));
    return GRT_OK;
}

static grt_status event_elapsed(grt_device *device, void *begin, void *end, double *out_ms)
{
    float ms = 0;
    CUDA_ON(device, cudaEventSynchronize(end));
    CUDA_TRY(cudaEventElapsedTime(&ms, begin, end));
    *out_ms = (double)ms;
    return GRT_OK;
}

/* ---- pointers of callers ---- */

static grt_status check_pointer(grt_device *device, const void *data)
{
    struct cudaPointerAttributes found;
    CUDA_ON(device, cudaPointerGetAttributes(&found, data));
    if (found.type == cudaMemoryTypeManaged ||
        (found.type == cudaMemoryTypeDevice && found.device == device->index))
        return GRT_OK;
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%p is %s; memory of cuda:%d is wanted", data,
                    found.type == cudaMemoryTypeDevice ? "memory of another device"
                    : found.type == cudaMemoryTypeHost ? "pinned host memory"
                                                       : "host memory that CUDA does not know",
                    device->index);
}

static const grt_device_vtable vtable = {
    .close = close_device,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .alloc = cuda_alloc,
    .free = free_memory,
    .upload = upload,
    .download = download,
    .copy = copy,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .stream_create = stream_create,
    .stream_release = stream_release,
    .stream_wait = stream_wait,
    .graph_begin = graph_begin,
    .graph_end = graph_end,
    .graph_launch = graph_launch,
    .graph_release = graph_release,
    .fence_create = cuda_fence_create,
    .fence_release = cuda_fence_release,
    .fence_record = cuda_fence_record,
    .fence_wait = cuda_fence_wait,
    .stream_wait_fence = cuda_stream_wait_fence,
    .peer_can = cuda_peer_can,
    .peer_enable = cuda_peer_enable,
    .peer_copy = cuda_peer_copy,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .identify = identify,
    .stream_id = stream_id,
    .local_check = cuda_local_check,
    .local_release = cuda_local_release,
    .stream_is_captured = stream_is_captured,
    .event_create = event_create,
    .event_release = event_release,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .check_pointer = check_pointer,
};

static grt_status read_properties(cuda_device *device)
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

static grt_status make_parts(cuda_device *device)
{
    GRT_TRY(read_properties(device));
    CUDA_TRY(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
    GRT_TRY(cuda_libraries_create(device->base.index, &device->libraries));
    return cuda_codes_create(&device->codes);
}

static grt_status start(cuda_device *device)
{
    bool switched;
    GRT_TRY(cuda_current_open(device->base.index, &device->context));
    GRT_TRY(cuda_enter(&device->base, &switched));
    const grt_status status = make_parts(device);
    if (status != GRT_OK) {
        cuda_libraries_release(device->libraries);
        if (device->stream)
            cudaStreamDestroy(device->stream);
    }
    cuda_leave(&device->base, switched);
    return status;
}

static grt_status open_working(int32_t index, grt_device **out_device)
{
    int32_t n = device_count();
    if (n == 0)
        return GRT_STATUS_DEVICE;
    if (index < 0 || index >= n)
        return grt_fail(GRT_STATUS_DEVICE, "there is no device cuda:%d; cuda:0 to cuda:%d exist", index,
                        n - 1);
    cuda_device *device = calloc(1, sizeof *device);
    if (!device)
        return grt_fail_memory(sizeof *device);
    device->base = (grt_device){.vtable = &vtable, .backend = &grt_backend_cuda, .index = index};
    grt_status status = start(device);
    if (status != GRT_OK) {
        free(device);
        return status;
    }
    *out_device = &device->base;
    return GRT_OK;
}

static grt_status open_device(int32_t index, grt_device **out_device)
{
    grt_status status = open_working(index, out_device);
    if (status != GRT_OK)
        cuda_libraries_settle();
    return status;
}

/* ---- devices that are not in this machine ---- */

static void close_description(grt_device *base)
{
    cuda_device *device = (cuda_device *)base;
    cuda_libraries_release(device->libraries);
    free(device);
}

/* No driver is known: choices serve all of them. */
static void identify_description(grt_device *base, grt_text *key)
{
    const cuda_device *device = (const cuda_device *)base;
    grt_text_add(key, "gpu=%s;sm=%d%d;driver=0;", device->prop.name, device->prop.major, device->prop.minor);
}

static const grt_device_vtable description_vtable = {.close = close_description,
                                                     .identify = identify_description};

static grt_status open_description(const grt_device_description *d, grt_device **out_device)
{
    if (d->sm < 80 || d->sm > 9999 || !*d->name || strlen(d->name) >= sizeof((cuda_device *)0)->prop.name ||
        strchr(d->name, ';'))
        return grt_fail(
            GRT_STATUS_INVALID_ARGUMENT,
            "the description of '%.200s' has compute capability %d.%d; a name without ';' and 8.0 or "
            "newer is wanted",
            d->name, d->sm / 10, d->sm % 10);
    cuda_device *device = calloc(1, sizeof *device);
    if (!device)
        return grt_fail_memory(sizeof *device);
    device->base = (grt_device){.vtable = &description_vtable, .backend = &grt_backend_cuda, .index = -1};
    memcpy(device->prop.name, d->name, strlen(d->name));
    device->prop.major = d->sm / 10;
    device->prop.minor = d->sm % 10;
    grt_status status = cuda_libraries_describe(d->name, d->properties, &device->libraries);
    if (status != GRT_OK) {
        free(device);
        return status;
    }
    *out_device = &device->base;
    return GRT_OK;
}

static grt_status describe(grt_device *base, grt_text *name, int32_t *out_sm, grt_text *properties)
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

static const grt_kernel_row *find_kernel(const grt_kernel_node *node, grt_text *why)
{
    const grt_kernel_row *row;
    if (grt_custom_kernel(node, true, why, &row))
        return row;
    return grt_kernel_find(tables, sizeof tables / sizeof *tables, node, why);
}

/* The module's one entry: looked up by name, see backends/module.c. */
__attribute__((visibility("default"))) const grt_backend grt_backend_cuda = {
    .name = "cuda",
    .device_count = device_count,
    .device_open = open_device,
    .find_kernel = find_kernel,
    .own_memory = true,
    .expect = cuda_libraries_expect,
    .open_description = open_description,
    .describe = describe,
    .unpack = cuda_packing_unpack,
    .channels_last = true,
    .joins_products = true,
    .lone_product = 1 << 28, /* fills any GPU by itself */
};
