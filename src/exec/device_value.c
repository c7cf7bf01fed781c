/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/device_value.h"

#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

/* A value's memory; when nobody holds it any more, it waits in its pool's list. */
typedef struct block {
    grt_buffer buffer; /* first: a pointer to it is a pointer to the block */
    struct block *next;
    size_t bytes; /* of the device's; buffer.size is what the value wants */
    grt_device *device;
} block;

struct grt_device_heap {
    grt_device *device;
    grt_account *account;
    block *waiting;
    size_t bytes;
};

grt_status grt_device_heap_create(grt_device *device, grt_account *account, grt_device_heap **out_pool)
{
    grt_device_heap *pool = calloc(1, sizeof *pool);
    if (!pool)
        return grt_fail_memory(sizeof *pool);
    pool->device = device;
    pool->account = account;
    *out_pool = pool;
    return GRT_OK;
}

static void free_waiting(grt_device_heap *pool)
{
    for (block *b = pool->waiting, *next; b; b = next) {
        next = b->next;
        pool->bytes -= b->bytes;
        grt_account_give(pool->account, GRT_ACCOUNT_VALUES, b->bytes);
        grt_device_free(b->device, b->buffer.data);
        free(b);
    }
    pool->waiting = NULL;
}

void grt_device_heap_release(grt_device_heap *pool)
{
    if (pool)
        free_waiting(pool);
    free(pool);
}

void grt_device_heap_trim(grt_device_heap *pool)
{
    if (pool)
        free_waiting(pool);
}

size_t grt_device_heap_bytes(const grt_device_heap *pool)
{
    return pool ? pool->bytes : 0;
}

static void give_to_device(grt_buffer *buffer)
{
    block *b = (block *)buffer;
    grt_device_free(b->device, buffer->data);
    free(b);
}

static void give_to_pool(grt_buffer *buffer)
{
    grt_device_heap *pool = buffer->owner;
    block *b = (block *)buffer;
    b->next = pool->waiting;
    pool->waiting = b;
}

/* Sizes that depend on data change from run to run: one class for those that differ by less than an eighth.
 */
static size_t size_class(size_t bytes)
{
    size_t step = 256;
    while (step * 16 <= bytes)
        step *= 2;
    return grt_align_up(bytes ? bytes : 1, step);
}

/* The smallest block that fits, if not more than half of it would lie idle. */
static block *take_waiting(grt_device_heap *pool, size_t bytes)
{
    block **best = NULL;
    for (block **at = &pool->waiting; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes && (*at)->bytes / 2 <= bytes && (!best || (*at)->bytes < (*best)->bytes))
            best = at;
    if (!best)
        return NULL;
    block *found = *best;
    *best = found->next;
    return found;
}

static grt_status alloc_counted(grt_device *device, grt_device_heap *pool, size_t bytes, void **out_data)
{
    grt_account *account = pool ? pool->account : NULL;
    GRT_TRY(grt_account_take(account, GRT_ACCOUNT_VALUES, bytes));
    const grt_status status = grt_device_alloc(device, bytes, out_data);
    if (status != GRT_OK)
        grt_account_give(account, GRT_ACCOUNT_VALUES, bytes);
    return status;
}

static grt_status new_block(grt_device *device, grt_device_heap *pool, size_t bytes, block **out_block)
{
    block *b = calloc(1, sizeof *b);
    if (!b)
        return grt_fail_memory(sizeof *b);
    grt_status status = alloc_counted(device, pool, bytes, &b->buffer.data);
    if (status == GRT_STATUS_OUT_OF_MEMORY && pool && pool->waiting) {
        free_waiting(pool); /* too small, all of them */
        status = alloc_counted(device, pool, bytes, &b->buffer.data);
    }
    if (status != GRT_OK) {
        free(b);
        return status;
    }
    b->bytes = bytes;
    b->device = device;
    if (pool)
        pool->bytes += bytes;
    *out_block = b;
    return GRT_OK;
}

grt_status grt_device_value_alloc(grt_device *device, grt_device_heap *pool, grt_value *dst, grt_dtype dtype,
                                  int32_t rank, const int64_t *dims)
{
    if (!device || grt_device_is_host(device))
        return grt_value_alloc(dst, dtype, rank, dims);
    grt_tensor t = {.dtype = dtype, .rank = rank, .memory = GRT_MEMORY_DEVICE, .device = device->index};
    if (rank > 0)
        memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    const size_t bytes = grt_tensor_bytes(&t);
    if (bytes > SIZE_MAX / 2)
        return grt_fail_memory(bytes);
    grt_value_clear(dst); /* first: what it holds may be just what is wanted now */
    dst->t = t;
    block *b = pool ? take_waiting(pool, size_class(bytes)) : NULL;
    if (!b)
        GRT_TRY(new_block(device, pool, pool ? size_class(bytes) : bytes, &b));
    atomic_init(&b->buffer.refs, 1);
    b->buffer.size = bytes;
    b->buffer.release = pool ? give_to_pool : give_to_device;
    b->buffer.owner = pool;
    dst->t.data = b->buffer.data;
    dst->buffer = &b->buffer;
    return GRT_OK;
}

grt_status grt_device_value_download(grt_device *device, void *stream, grt_value *dst, const grt_tensor *src)
{
    grt_tensor t = *src;
    GRT_TRY(grt_value_alloc(dst, t.dtype, t.rank, t.dims));
    GRT_TRY(grt_device_download(device, dst->t.data, t.data, grt_tensor_bytes(&t), stream));
    return grt_device_wait(device, stream);
}
