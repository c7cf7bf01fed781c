/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, graphs of what is enqueued on them, and times. */
#include "backends/cuda/current.h"
#include "backends/cuda/part.h"
#include "backends/cuda/tables.h"

/* CUDA's numbers fall from 0, the lowest priority, to that of the highest. */
static grt_status stream_create(grt_device *device, int32_t priority, void **out_stream)
{
    cudaStream_t stream;
    int lowest = 0, highest = 0;
    CUDA_ON(device, cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    const int wanted = priority < 0 ? lowest : priority > lowest - highest ? highest : lowest - priority;
    if (((const cuda_device *)device)->part)
        return cuda_part_stream_create((const cuda_device *)device, wanted, out_stream);
    CUDA_ON(device, cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, wanted));
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

const grt_stream_api cuda_streams = {.create = stream_create,
                                     .release = stream_release,
                                     .wait = stream_wait,
                                     .id = stream_id,
                                     .is_captured = stream_is_captured};

static grt_status graph_begin(grt_device *device, void *stream)
{
    CUDA_ON(device, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    return GRT_OK;
}

/* Its first launch would bring it to the device otherwise. */
static cudaError_t instantiate(cudaGraph_t graph, cudaStream_t stream, cudaGraphExec_t *out)
{
    const cudaError_t error = cudaGraphInstantiate(out, graph, 0);
    cudaGraphDestroy(graph);
    if (error == cudaSuccess && cudaGraphUpload(*out, stream) != cudaSuccess)
        (void)cudaGetLastError(); /* then that does */
    return error;
}

static grt_status graph_end(grt_device *device, void *stream, void **out_graph)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    CUDA_ON(device, cudaStreamEndCapture(stream, &graph));
    if (!out_graph) {
        CUDA_ON(device, cudaGraphDestroy(graph));
        return GRT_OK;
    }
    CUDA_ON(device, instantiate(graph, stream, &executable));
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

const grt_graph_api cuda_graphs = {
    .begin = graph_begin, .end = graph_end, .launch = graph_launch, .release = graph_release};

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

const grt_timer_api cuda_timer = {
    .create = event_create, .release = event_release, .record = event_record, .elapsed = event_elapsed};
