/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/part.h"

#include "backends/cuda/tables.h"

#include <cuda.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 64, MOST_GROUPS = 64, SINCE = 12050 };

static struct {
    CUresult (*whole)(CUdevice, CUdevResource *, CUdevResourceType);
    CUresult (*split)(CUdevResource *, unsigned int *, const CUdevResource *, CUdevResource *, unsigned int,
                      unsigned int);
    CUresult (*describe)(CUdevResourceDesc *, CUdevResource *, unsigned int);
    CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned int);
    CUresult (*destroy)(CUgreenCtx);
    CUresult (*stream)(CUstream *, CUgreenCtx, unsigned int, int);
} green;
static bool green_complete;
static pthread_once_t green_once = PTHREAD_ONCE_INIT;

/* Each device is split once, into the smallest groups: only groups of one split can be put together. */
static struct {
    unsigned int n; /* 0: it has not been split */
    bool remainder; /* the last group is what did not fit into one */
    CUdevResource groups[MOST_GROUPS];
    bool taken[MOST_GROUPS];
} splits[MOST_DEVICES];
static pthread_mutex_t splits_lock = PTHREAD_MUTEX_INITIALIZER;

struct cuda_part {
    CUgreenCtx context;
    bool groups[MOST_GROUPS];
};

static void find_green(const char *name, void *out_function)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult result;
    const bool found =
        cudaGetDriverEntryPointByVersion(name, &function, SINCE, cudaEnableDefault, &result) == cudaSuccess &&
        result == cudaDriverEntryPointSuccess;
    green_complete = green_complete && found;
    memcpy(out_function, &function, sizeof function);
}

static void find_all_green(void)
{
    green_complete = true;
    find_green("cuDeviceGetDevResource", &green.whole);
    find_green("cuDevSmResourceSplitByCount", &green.split);
    find_green("cuDevResourceGenerateDesc", &green.describe);
    find_green("cuGreenCtxCreate", &green.create);
    find_green("cuGreenCtxDestroy", &green.destroy);
    find_green("cuGreenCtxStreamCreate", &green.stream);
    (void)cudaGetLastError(); /* of a driver that lacks one */
}

static grt_status fail_green(const cuda_device *device, const char *call, CUresult result)
{
    return grt_fail(GRT_STATUS_DEVICE, "cuda:%d: %s: error %d of the driver", device->base.index, call,
                    (int)result);
}

/* With the lock. */
static grt_status split_device(const cuda_device *device)
{
    CUdevResource whole, rest = {.type = CU_DEV_RESOURCE_TYPE_INVALID};
    unsigned int n = MOST_GROUPS - 1;
    const size_t at = (size_t)device->base.index;
    if (splits[at].n)
        return GRT_OK;
    CUresult result = green.whole(device->base.index, &whole, CU_DEV_RESOURCE_TYPE_SM);
    if (result != CUDA_SUCCESS)
        return fail_green(device, "cuDeviceGetDevResource", result);
    result = green.split(splits[at].groups, &n, &whole, &rest, 0, 1);
    if (result != CUDA_SUCCESS || !n)
        return fail_green(device, "cuDevSmResourceSplitByCount", result);
    splits[at].remainder = rest.type == CU_DEV_RESOURCE_TYPE_SM && rest.sm.smCount > 0;
    if (splits[at].remainder)
        splits[at].groups[n++] = rest;
    splits[at].n = n;
    return GRT_OK;
}

/* With the lock. The groups that make up `wanted` multiprocessors, or what is free. What is left over by the
 * split may be too scattered for clusters of blocks: it only goes with other groups. */
static unsigned int choose_part_groups(const cuda_device *device, int64_t wanted, struct cuda_part *part,
                                       CUdevResource *out_groups, unsigned int *out_n)
{
    const size_t at = (size_t)device->base.index;
    unsigned int found = 0;
    *out_n = 0;
    for (unsigned int i = 0; i < splits[at].n; i++) {
        const bool alone = splits[at].remainder && i == splits[at].n - 1 && !*out_n;
        part->groups[i] = !splits[at].taken[i] && found < wanted && !alone;
        if (part->groups[i]) {
            out_groups[(*out_n)++] = splits[at].groups[i];
            found += splits[at].groups[i].sm.smCount;
        }
    }
    return found;
}

static grt_status make_green(const cuda_device *device, CUdevResource *groups, unsigned int n,
                             CUgreenCtx *out_context)
{
    CUdevResourceDesc description;
    CUresult result = green.describe(&description, groups, n);
    if (result != CUDA_SUCCESS)
        return fail_green(device, "cuDevResourceGenerateDesc", result);
    result = green.create(out_context, description, device->base.index, CU_GREEN_CTX_DEFAULT_STREAM);
    return result == CUDA_SUCCESS ? GRT_OK : fail_green(device, "cuGreenCtxCreate", result);
}

/* With the lock. */
static void mark_groups(const cuda_device *device, const struct cuda_part *part, bool taken)
{
    const size_t at = (size_t)device->base.index;
    for (unsigned int i = 0; i < splits[at].n; i++)
        if (part->groups[i])
            splits[at].taken[i] = taken;
}

/* With the lock. */
static grt_status take_groups(const cuda_device *device, int64_t wanted, struct cuda_part *part,
                              int *out_multiprocessors)
{
    CUdevResource groups[MOST_GROUPS];
    unsigned int n;
    GRT_TRY(split_device(device));
    const unsigned int found = choose_part_groups(device, wanted, part, groups, &n);
    if (found < wanted)
        return grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                        "cuda:%d has %u multiprocessors left that a session can have to itself, %lld are "
                        "wanted: ask for fewer, or release a session that has some",
                        device->base.index, found, (long long)wanted);
    GRT_TRY(make_green(device, groups, n, &part->context));
    mark_groups(device, part, true);
    *out_multiprocessors = (int)found;
    return GRT_OK;
}

static grt_status check_parts(const cuda_device *whole, int64_t wanted)
{
    pthread_once(&green_once, find_all_green);
    if (!green_complete || whole->base.index >= MOST_DEVICES)
        return grt_fail(
            GRT_STATUS_UNSUPPORTED,
            "cuda:%d: the driver cannot give a session some multiprocessors to itself; one of CUDA "
            "12.5 or newer can",
            whole->base.index);
    if (wanted < 1 || wanted > whole->prop.multiProcessorCount)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "cuda:%d has %d multiprocessors, %lld are wanted",
                        whole->base.index, whole->prop.multiProcessorCount, (long long)wanted);
    return GRT_OK;
}

/* Its own numbers and streams; all else is the whole device's. */
static void become_part(const cuda_device *whole, struct cuda_part *part, int multiprocessors,
                        cuda_device *out_device)
{
    *out_device = *whole;
    out_device->part = part;
    out_device->prop.multiProcessorCount = multiprocessors;
}

static grt_status part_take(grt_device *base, int64_t wanted, grt_device **part)
{
    const cuda_device *whole = (const cuda_device *)base;
    int multiprocessors = 0;
    GRT_TRY(check_parts(whole, wanted));
    cuda_device *device = *part ? (cuda_device *)*part : calloc(1, sizeof *device);
    struct cuda_part *made = calloc(1, sizeof *made);
    grt_status status = device && made ? GRT_OK : grt_fail_memory(sizeof *device);
    pthread_mutex_lock(&splits_lock);
    if (status == GRT_OK)
        status = take_groups(whole, wanted, made, &multiprocessors);
    pthread_mutex_unlock(&splits_lock);
    if (status != GRT_OK) {
        free(made);
        if (!*part)
            free(device);
        return status;
    }
    become_part(whole, made, multiprocessors, device);
    *part = &device->base;
    return GRT_OK;
}

static void part_give(grt_device *base)
{
    cuda_device *device = (cuda_device *)base;
    pthread_mutex_lock(&splits_lock);
    (void)green.destroy(device->part->context);
    mark_groups(device, device->part, false);
    pthread_mutex_unlock(&splits_lock);
    free(device->part);
    device->part = NULL;
}

static void part_close(grt_device *base)
{
    free(base);
}

grt_status cuda_part_stream_create(const cuda_device *device, int priority, void **out_stream)
{
    CUstream stream;
    const CUresult result = green.stream(&stream, device->part->context, CU_STREAM_NON_BLOCKING, priority);
    if (result != CUDA_SUCCESS)
        return fail_green(device, "cuGreenCtxStreamCreate", result);
    *out_stream = stream;
    return GRT_OK;
}

const grt_part_api cuda_parts = {.take = part_take, .give = part_give, .close = part_close};
