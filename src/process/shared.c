/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "src/process/shared.h"

#include "src/base/tensor.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARED_PAGE = 4096 };

static size_t whole_pages(size_t bytes)
{
    return (bytes + SHARED_PAGE - 1) / SHARED_PAGE * SHARED_PAGE;
}

static grt_status fail_shared(const char *what, size_t bytes)
{
    return grt_fail(GRT_STATUS_OUT_OF_MEMORY, "%zu bytes that processes share cannot be %s: %s", bytes, what,
                    strerror(errno));
}

static grt_status map_head(grt_shared *s)
{
    void *head = mmap(NULL, s->head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (head == MAP_FAILED)
        return fail_shared("mapped", s->head_bytes);
    s->head = head;
    return GRT_OK;
}

static size_t head_size(size_t n_tensors)
{
    return whole_pages(sizeof(grt_wire_head) + n_tensors * sizeof(grt_wire_tensor));
}

grt_status grt_shared_create(size_t n_tensors, grt_shared *out_shared)
{
    *out_shared = (grt_shared){.fd = -1, .head_bytes = head_size(n_tensors)};
    out_shared->fd = memfd_create("graphrt", MFD_CLOEXEC);
    if (out_shared->fd < 0 || ftruncate(out_shared->fd, (off_t)out_shared->head_bytes) != 0)
        return fail_shared("made", out_shared->head_bytes);
    return map_head(out_shared);
}

grt_status grt_shared_open(int fd, size_t n_tensors, grt_device *pinning, grt_shared *out_shared)
{
    struct stat info;
    *out_shared = (grt_shared){.fd = fd, .head_bytes = head_size(n_tensors), .pinning = pinning};
    if (fstat(fd, &info) != 0 || (size_t)info.st_size < out_shared->head_bytes)
        return grt_fail(GRT_STATUS_IO, "the memory of a pool has %lld bytes, %zu are wanted",
                        (long long)info.st_size, out_shared->head_bytes);
    return map_head(out_shared);
}

static void let_pages_go(grt_shared *s)
{
    if (s->pinned)
        grt_device_unpin(s->pinning, s->data);
    s->pinned = false;
}

void grt_shared_close(grt_shared *s)
{
    let_pages_go(s);
    if (s->data)
        munmap(s->data, s->bytes);
    if (s->head)
        munmap(s->head, s->head_bytes);
    if (s->fd >= 0)
        close(s->fd);
    *s = (grt_shared){.fd = -1};
}

/* Copies are slower where pages cannot be locked, and right. */
static void lock_pages(grt_shared *s)
{
    s->pinned = s->pinning && grt_device_pin(s->pinning, s->data, s->bytes) == GRT_OK;
}

static grt_status map_data(grt_shared *s, size_t bytes)
{
    let_pages_go(s);
    void *data = s->data ? mremap(s->data, s->bytes, bytes, MREMAP_MAYMOVE)
                         : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, (off_t)s->head_bytes);
    if (data == MAP_FAILED)
        return fail_shared("mapped", bytes);
    s->data = data;
    s->bytes = bytes;
    lock_pages(s);
    return GRT_OK;
}

grt_status grt_shared_reserve(grt_shared *s, size_t bytes)
{
    if (bytes <= s->bytes)
        return GRT_OK;
    if (bytes > SIZE_MAX / 4)
        return grt_fail_memory(bytes);
    const size_t wanted = whole_pages(bytes + bytes / 4); /* a little more next time is no new mapping */
    if (ftruncate(s->fd, (off_t)(s->head_bytes + wanted)) != 0)
        return fail_shared("made", wanted);
    GRT_TRY(map_data(s, wanted));
    s->head->bytes = wanted;
    return GRT_OK;
}

/* The other side may be wrong about it, and what is not there must not be touched. */
grt_status grt_shared_follow(grt_shared *s)
{
    struct stat info;
    const size_t bytes = s->head->bytes;
    if (bytes == s->bytes)
        return GRT_OK;
    if (bytes < s->bytes || bytes > SIZE_MAX / 4 || fstat(s->fd, &info) != 0 ||
        (size_t)info.st_size < s->head_bytes + bytes)
        return grt_fail(GRT_STATUS_IO, "memory that processes share is %zu bytes, not those that there are",
                        bytes);
    return map_data(s, bytes);
}

grt_status grt_shared_place(grt_wire_tensor *tensor, size_t bytes, uint64_t *at)
{
    if (bytes > SIZE_MAX / 4 || *at > SIZE_MAX / 4 - bytes)
        return grt_fail_memory(bytes);
    tensor->offset = *at;
    *at += (bytes + GRT_WIRE_ALIGNMENT - 1) / GRT_WIRE_ALIGNMENT * GRT_WIRE_ALIGNMENT;
    return GRT_OK;
}

grt_status grt_shared_view(const grt_shared *shared, const grt_wire_tensor *tensor, grt_tensor *out_view)
{
    const grt_wire_tensor t = *tensor; /* the other side might write still */
    grt_tensor view = {.dtype = t.dtype, .rank = t.rank};
    size_t bytes = SIZE_MAX;
    if (t.dtype > GRT_DTYPE_NONE && grt_dtype_bits(t.dtype) && t.dtype != GRT_DTYPE_STRING && t.rank >= 0 &&
        t.rank <= GRT_MAX_RANK) {
        memcpy(view.dims, t.dims, (size_t)t.rank * sizeof *view.dims);
        bytes = grt_tensor_bytes(&view);
    }
    if (bytes > shared->bytes || t.offset > shared->bytes - bytes || t.offset % GRT_WIRE_ALIGNMENT)
        return grt_fail(GRT_STATUS_IO, "a tensor in memory that processes share is not within it");
    view.data = shared->data ? shared->data + t.offset : NULL;
    view.memory = shared->pinned ? GRT_MEMORY_PINNED : GRT_MEMORY_HOST;
    *out_view = view;
    return GRT_OK;
}
