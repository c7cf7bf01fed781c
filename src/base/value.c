/* SPDX-License-Identifier: Apache-2.0 */
/* Counted buffers and the values made of them. */
#include "src/base/value.h"

#include "src/base/account.h"
#include "src/base/checked.h"
#include "src/base/large.h"
#include "src/base/text.h"
#include "src/base/grow.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static void free_buffer(grt_buffer *buffer)
{
    free(buffer->data);
    free(buffer);
}

/* Its owner is the account that it was counted in. */
static void free_counted_buffer(grt_buffer *buffer)
{
    grt_account_give(buffer->owner, GRT_ACCOUNT_VALUES, buffer->size);
    grt_account_release(buffer->owner);
    free_buffer(buffer);
}

static grt_buffer *make_buffer(size_t size)
{
    grt_buffer *buffer = calloc(1, sizeof *buffer);
    void *data = buffer ? grt_alloc_large(ALIGNMENT, size) : NULL;
    if (!data) {
        free(buffer);
        return NULL;
    }
    atomic_init(&buffer->refs, 1);
    buffer->size = size;
    buffer->data = data;
    buffer->release = free_buffer;
    return buffer;
}

static grt_buffer *make_counted_buffer(grt_account *account, size_t size)
{
    grt_buffer *buffer = make_buffer(size);
    if (buffer) {
        buffer->owner = grt_account_retain(account);
        buffer->release = free_counted_buffer;
    } else
        grt_account_give(account, GRT_ACCOUNT_VALUES, size);
    return buffer;
}

static grt_status new_buffer(size_t size, grt_buffer **out_buffer)
{
    grt_account *account = grt_account_current();
    if (size > SIZE_MAX / 2)
        return grt_fail_memory(size);
    GRT_TRY(grt_account_take(account, GRT_ACCOUNT_VALUES, size));
    *out_buffer = account ? make_counted_buffer(account, size) : make_buffer(size);
    return *out_buffer ? GRT_OK : grt_fail_memory(size);
}

grt_buffer *grt_buffer_create(size_t size)
{
    grt_buffer *buffer;
    return new_buffer(size, &buffer) == GRT_OK ? buffer : NULL;
}

grt_buffer *grt_buffer_retain(grt_buffer *buffer)
{
    if (buffer)
        atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
    return buffer;
}

void grt_buffer_release(grt_buffer *buffer)
{
    if (buffer && atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) == 1)
        buffer->release(buffer);
}

void grt_value_clear(grt_value *value)
{
    for (size_t i = 0; i < value->n; i++)
        grt_value_clear(&value->items[i]);
    free(value->items);
    grt_buffer_release(value->buffer);
    *value = (grt_value){0};
}

grt_status grt_value_alloc(grt_value *dst, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    grt_tensor t = {.dtype = dtype, .rank = rank};
    if (rank > 0)
        memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    const size_t bytes = grt_tensor_bytes(&t);
    char text[GRT_TYPE_TEXT_SIZE];
    if (bytes == SIZE_MAX)
        return grt_fail(GRT_STATUS_OUT_OF_MEMORY, "%s is too large for this machine's address space",
                        grt_tensor_text(&t, text));
    grt_buffer *buffer;
    GRT_TRY(new_buffer(bytes, &buffer));
    if (dtype == GRT_DTYPE_STRING)
        memset(buffer->data, 0, bytes);
    grt_value_clear(dst);
    t.data = buffer->data;
    dst->t = t;
    dst->buffer = buffer;
    return GRT_OK;
}

static bool can_reuse(const grt_value *value, size_t bytes)
{
    enum { MOST_WASTE = 4 }; /* times the requested size */
    const grt_buffer *buffer = value->kind == GRT_KIND_TENSOR ? value->buffer : NULL;
    return buffer && (buffer->release == free_buffer || buffer->release == free_counted_buffer) &&
           value->t.dtype != GRT_DTYPE_STRING &&
           atomic_load_explicit(&buffer->refs, memory_order_acquire) == 1 && buffer->size >= bytes &&
           buffer->size / MOST_WASTE <= bytes;
}

grt_status grt_value_realloc(grt_value *dst, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    grt_tensor t = {.dtype = dtype, .rank = rank};
    if (rank > 0)
        memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    if (dtype == GRT_DTYPE_STRING || !can_reuse(dst, grt_tensor_bytes(&t)))
        return grt_value_alloc(dst, dtype, rank, dims);
    t.data = dst->buffer->data;
    dst->t = t;
    return GRT_OK;
}

static size_t string_bytes(const grt_tensor *t, int64_t n)
{
    const grt_string *s = t->data;
    size_t bytes = 0;
    for (int64_t i = 0; i < n; i++)
        if (!grt_add_size(bytes, s[i].size, &bytes))
            return SIZE_MAX;
    return bytes;
}

static void value_copy_strings(grt_string *dst, const grt_string *src, int64_t n)
{
    char *bytes = (char *)(dst + n);
    for (int64_t i = 0; i < n; i++) {
        dst[i] = (grt_string){bytes, src[i].size};
        if (src[i].size)
            memcpy(bytes, src[i].data, src[i].size);
        bytes += src[i].size;
    }
}

grt_status grt_value_copy_tensor(grt_value *dst, const grt_tensor *src)
{
    size_t bytes = grt_tensor_bytes(src), total = bytes;
    int64_t n = grt_tensor_elements(src);
    bool strings = src->dtype == GRT_DTYPE_STRING;
    if (bytes == SIZE_MAX || (strings && !grt_add_size(bytes, string_bytes(src, n), &total)))
        return grt_fail_memory(SIZE_MAX);
    grt_buffer *buffer;
    GRT_TRY(new_buffer(total, &buffer));
    if (strings)
        value_copy_strings(buffer->data, src->data, n);
    else if (bytes)
        memcpy(buffer->data, src->data, bytes);
    grt_tensor t = *src; /* src may be dst's own view */
    grt_value_clear(dst);
    t.data = buffer->data;
    t.memory = GRT_MEMORY_HOST;
    dst->t = t;
    dst->buffer = buffer;
    return GRT_OK;
}

typedef grt_status copy_fn(grt_value *dst, const grt_value *src);

static grt_status copy_items(grt_value *dst, const grt_value *src, copy_fn *copy)
{
    grt_value list = {.kind = src->kind, .t = src->t};
    list.capacity = src->n + 1; /* with room for the item that SequenceInsert adds */
    list.items = calloc(list.capacity, sizeof *list.items);
    if (!list.items)
        return grt_fail_memory(list.capacity * sizeof *list.items);
    for (; list.n < src->n; list.n++) {
        grt_status status = copy(&list.items[list.n], &src->items[list.n]);
        if (status != GRT_OK) {
            grt_value_clear(&list);
            return status;
        }
    }
    grt_value_clear(dst);
    *dst = list;
    return GRT_OK;
}

grt_status grt_value_share(grt_value *dst, const grt_value *src)
{
    if (src->kind != GRT_KIND_TENSOR)
        return copy_items(dst, src, grt_value_share);
    if (!src->buffer || src->t.dtype == GRT_DTYPE_STRING)
        return grt_value_copy_tensor(dst, &src->t); /* string bytes may lie outside the buffer */
    grt_value shared = {.t = src->t, .buffer = grt_buffer_retain(src->buffer)};
    grt_value_clear(dst);
    *dst = shared;
    return GRT_OK;
}

grt_status grt_value_copy(grt_value *dst, const grt_value *src)
{
    return src->kind == GRT_KIND_TENSOR ? grt_value_copy_tensor(dst, &src->t)
                                        : copy_items(dst, src, grt_value_copy);
}

grt_status grt_value_insert(grt_value *sequence, size_t index, grt_value **out_item)
{
    if (!GRT_GROW(sequence->items, sequence->n, sequence->capacity))
        return grt_fail_memory(2 * sequence->capacity * sizeof *sequence->items);
    memmove(&sequence->items[index + 1], &sequence->items[index],
            (sequence->n - index) * sizeof *sequence->items);
    sequence->n++;
    sequence->items[index] = (grt_value){0};
    *out_item = &sequence->items[index];
    return GRT_OK;
}
