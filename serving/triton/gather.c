/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/gather.h"

#include "serving/triton/strings.h"

#include <stdlib.h>
#include <string.h>

static TRITONSERVER_Error *reserve_bytes(instance *in, staging *s, size_t size)
{
    if (size <= s->size && s->data)
        return NULL;
    grt_session_free_host(in->session, s->data);
    *s = (staging){.strings = s->strings, .n_strings = s->n_strings};
    TRITON_TRY(
        error_from_status(grt_session_alloc_host(in->session, size ? size : 1, &s->data), in->model->name));
    s->size = size;
    return NULL;
}

static TRITONSERVER_Error *reserve_strings(staging *s, size_t n)
{
    if (n <= s->n_strings)
        return NULL;
    grt_string *grown = n > SIZE_MAX / sizeof *grown ? NULL : realloc(s->strings, n * sizeof *grown);
    if (!grown)
        return error_no_memory();
    s->strings = grown;
    s->n_strings = n;
    return NULL;
}

static TRITONSERVER_Error *copy_pieces(const instance *in, const request_input *from, const char *name,
                                       char *to)
{
    uint64_t at = 0;
    for (uint32_t p = 0; p < from->pieces; p++) {
        const void *data;
        uint64_t bytes;
        TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
        int64_t device = 0;
        TRITON_TRY(TRITONBACKEND_InputBuffer(from->handle, p, &data, &bytes, &memory, &device));
        if (memory == TRITONSERVER_MEMORY_GPU)
            return error_new(TRITONSERVER_ERROR_UNSUPPORTED,
                             "input '%s' is in several pieces, or not aligned, in memory of a GPU: put it "
                             "there as a whole, aligned "
                             "to 16 bytes",
                             name);
        if (bytes > from->bytes - at)
            return error_new(TRITONSERVER_ERROR_INTERNAL,
                             "input '%s': its pieces have more bytes than it has", name);
        if (bytes && in->gpu)
            copiers_copy(in->model->copiers, to + at, data, bytes);
        else if (bytes)
            memcpy(to + at, data, bytes);
        at += bytes;
    }
    return at == from->bytes ? NULL
                             : error_new(TRITONSERVER_ERROR_INTERNAL,
                                         "input '%s': its pieces have less bytes than it has", name);
}

/* All bytes of input `i` of the batch, one request behind the other, and `padding` times its last row. */
static TRITONSERVER_Error *stage_bytes(instance *in, size_t i, request *const *batch, size_t n,
                                       int64_t padding)
{
    const request *last = batch[n - 1];
    const uint64_t row = padding ? last->inputs[i].bytes / (uint64_t)last->rows : 0;
    uint64_t size, at = 0;
    if (__builtin_mul_overflow(row, padding, &size))
        return error_no_memory();
    for (size_t k = 0; k < n; k++)
        if (__builtin_add_overflow(size, batch[k]->inputs[i].bytes, &size))
            return error_no_memory();
    TRITON_TRY(reserve_bytes(in, &in->inputs[i], size));
    for (size_t k = 0; k < n; k++) {
        const request_input *from = &batch[k]->inputs[i];
        TRITON_TRY(copy_pieces(in, from, in->model->inputs[i].info.name, (char *)in->inputs[i].data + at));
        at += from->bytes;
    }
    for (char *to = (char *)in->inputs[i].data + at; row && padding; padding--, to += row)
        memcpy(to, to - row, row);
    return NULL;
}

/* Of the bytes that stage_bytes has put together. */
static TRITONSERVER_Error *stage_strings(instance *in, size_t i, request *const *batch, size_t n,
                                         int64_t padding)
{
    staging *s = &in->inputs[i];
    const char *at = s->data;
    size_t first = 0;
    for (size_t k = 0; k < n; k++) {
        const request_input *from = &batch[k]->inputs[i];
        const int64_t count = grt_tensor_elements(&from->tensor);
        /* each has a length of four bytes: more strings than that cannot be there */
        if (count < 0 || (uint64_t)count > from->bytes / 4)
            return error_new(
                TRITONSERVER_ERROR_INVALID_ARG, "input '%s': %lld strings do not fit in its %llu bytes",
                in->model->inputs[i].info.name, (long long)count, (unsigned long long)from->bytes);
        TRITON_TRY(reserve_strings(s, first + (size_t)count));
        if (!strings_find(at, from->bytes, count, s->strings + first))
            return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                             "input '%s': its %llu bytes are not %lld strings, each behind its length",
                             in->model->inputs[i].info.name, (unsigned long long)from->bytes,
                             (long long)count);
        at += from->bytes;
        first += (size_t)count;
    }
    const request *last = batch[n - 1];
    const int64_t row = padding ? grt_tensor_elements(&last->inputs[i].tensor) / last->rows : 0;
    TRITON_TRY(reserve_strings(s, first + (size_t)(row * padding)));
    for (int64_t k = row * padding; k; k--, first++)
        s->strings[first] = s->strings[first - (size_t)row];
    return NULL;
}

/* Copies from pageable memory wait for each other in the driver, whatever thread they are of; copies of our
 * own into page-locked memory do not. Small ones are not worth it. */
static bool is_staged(const instance *in, const request_input *from)
{
    return in->gpu && in->model->settings.pins_inputs && from->tensor.memory == GRT_MEMORY_HOST &&
           from->bytes >= 64 << 10;
}

static bool usable_in_place(const request_input *from)
{
    const size_t element = grt_dtype_bits(from->tensor.dtype) / 8;
    return from->pieces == 1 && from->tensor.dtype != GRT_DTYPE_STRING &&
           (uintptr_t)from->tensor.data % (from->tensor.memory == GRT_MEMORY_DEVICE ? 16 : element) == 0;
}

static TRITONSERVER_Error *gather_input(instance *in, size_t i, request *const *batch, size_t n, int64_t rows,
                                        int64_t padding)
{
    const request_input *first = &batch[0]->inputs[i];
    if (!first->handle)
        return error_from_status(grt_context_set_input(in->context, i, NULL), in->model->name);
    grt_tensor tensor = first->tensor;
    if (in->model->settings.max_batch > 0)
        tensor.dims[0] = rows;
    if (n > 1 || padding || !usable_in_place(first) || is_staged(in, first)) {
        TRITON_TRY(stage_bytes(in, i, batch, n, tensor.dtype == GRT_DTYPE_STRING ? 0 : padding));
        tensor.data = in->inputs[i].data;
        tensor.memory = in->gpu ? GRT_MEMORY_PINNED : GRT_MEMORY_HOST;
    }
    if (tensor.dtype == GRT_DTYPE_STRING) {
        TRITON_TRY(stage_strings(in, i, batch, n, padding));
        tensor.data = in->inputs[i].strings;
        tensor.memory = GRT_MEMORY_HOST;
    }
    if (!in->gpu && tensor.memory == GRT_MEMORY_PINNED)
        tensor.memory = GRT_MEMORY_HOST;
    return error_from_status(grt_context_set_input(in->context, i, &tensor), in->model->name);
}

TRITONSERVER_Error *gather_inputs(instance *in, request *const *batch, size_t n, int64_t rows)
{
    int64_t padding = rows;
    for (size_t k = 0; k < n; k++)
        padding -= batch[k]->rows;
    for (size_t i = 0; i < in->model->n_inputs; i++)
        TRITON_TRY(gather_input(in, i, batch, n, rows, padding));
    return NULL;
}
