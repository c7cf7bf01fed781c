/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/request.h"

#include "serving/triton/dtypes.h"

#include <string.h>

/* Asks for memory of the host; memory of a GPU comes anyway if the client has put the content there. */
static TRITONSERVER_Error *read_piece(request *r, request_input *in)
{
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU_PINNED;
    int64_t device = 0;
    const void *data;
    uint64_t bytes;
    TRITON_TRY(TRITONBACKEND_InputBuffer(in->handle, 0, &data, &bytes, &memory, &device));
    if (memory == TRITONSERVER_MEMORY_GPU)
        r->alone = true;
    in->tensor.data = (void *)(uintptr_t)data; /* inputs are read only */
    in->tensor.memory = memory == TRITONSERVER_MEMORY_GPU          ? GRT_MEMORY_DEVICE
                        : memory == TRITONSERVER_MEMORY_CPU_PINNED ? GRT_MEMORY_PINNED
                                                                   : GRT_MEMORY_HOST;
    in->tensor.device = (int32_t)device;
    return NULL;
}

static TRITONSERVER_Error *check_size(const served_io *io, const request_input *in)
{
    if (io->info.dtype == GRT_DTYPE_STRING || grt_tensor_bytes(&in->tensor) == in->bytes)
        return NULL;
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s': its dims want %zu bytes, it has %llu",
                     io->info.name, grt_tensor_bytes(&in->tensor), (unsigned long long)in->bytes);
}

static TRITONSERVER_Error *read_input(const served_io *io, request *r, request_input *in)
{
    const int64_t *dims;
    uint32_t rank;
    TRITONSERVER_DataType type;
    TRITON_TRY(TRITONBACKEND_InputProperties(in->handle, NULL, &type, &dims, &rank, &in->bytes, &in->pieces));
    if (rank > GRT_MAX_RANK)
        return error_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' has %u dims, more than %d",
                         io->info.name, rank, GRT_MAX_RANK);
    in->tensor = (grt_tensor){.dtype = dtype_from_triton(type), .rank = (int32_t)rank};
    if (io->info.rank == 0 && rank == 1 && dims[0] == 1) /* Triton has no scalars */
        in->tensor.rank = 0;
    else if (rank)
        memcpy(in->tensor.dims, dims, rank * sizeof *dims);
    TRITON_TRY(check_size(io, in));
    return in->pieces == 1 ? read_piece(r, in) : NULL;
}

static TRITONSERVER_Error *read_inputs(const served_model *m, request *r)
{
    for (size_t i = 0; i < m->n_inputs; i++) {
        request_input *in = &r->inputs[i];
        *in = (request_input){0};
        TRITONSERVER_Error *missing =
            TRITONBACKEND_RequestInput(r->handle, m->inputs[i].info.name, &in->handle);
        if (missing && !m->inputs[i].info.has_default)
            return missing;
        if (missing) {
            TRITONSERVER_ErrorDelete(missing);
            in->handle = NULL;
            continue;
        }
        TRITON_TRY(read_input(&m->inputs[i], r, in));
    }
    return NULL;
}

/* Where the client has memory of a GPU for an output, it is written there. */
static void note_output_memory(request *r, const char *name)
{
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    size_t bytes = 0;
    TRITONSERVER_Error *unknown =
        TRITONBACKEND_RequestOutputBufferProperties(r->handle, name, &bytes, &memory, &device);
    if (unknown)
        TRITONSERVER_ErrorDelete(unknown); /* the client does not say */
    else if (memory == TRITONSERVER_MEMORY_GPU)
        r->alone = true;
}

static TRITONSERVER_Error *read_outputs(const served_model *m, request *r)
{
    uint32_t n;
    memset(r->wanted, 0, m->n_outputs * sizeof *r->wanted);
    TRITON_TRY(TRITONBACKEND_RequestOutputCount(r->handle, &n));
    for (uint32_t i = 0; i < n; i++) {
        const char *name;
        TRITON_TRY(TRITONBACKEND_RequestOutputName(r->handle, i, &name));
        size_t k = 0;
        while (k < m->n_outputs && strcmp(m->outputs[k].info.name, name) != 0)
            k++;
        if (k == m->n_outputs)
            return error_new(TRITONSERVER_ERROR_INVALID_ARG, "the model has no output '%s'", name);
        r->wanted[k] = true;
        note_output_memory(r, name);
    }
    return NULL;
}

static TRITONSERVER_Error *check_cancelled(const request *r)
{
    bool cancelled;
    TRITON_TRY(TRITONBACKEND_RequestIsCancelled(r->handle, &cancelled));
    return cancelled ? error_new(TRITONSERVER_ERROR_CANCELLED, "the client has cancelled the request") : NULL;
}

/* All inputs that are there must agree on the batch. */
static TRITONSERVER_Error *read_rows(const served_model *m, request *r)
{
    r->rows = -1;
    for (size_t i = 0; m->settings.max_batch > 0 && i < m->n_inputs; i++) {
        const grt_tensor *t = &r->inputs[i].tensor;
        if (!r->inputs[i].handle)
            continue;
        if (t->rank < 1 || (r->rows >= 0 && t->dims[0] != r->rows))
            return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                             "input '%s' has a batch of %lld, the inputs before it have %lld",
                             m->inputs[i].info.name, t->rank < 1 ? 0 : (long long)t->dims[0],
                             (long long)r->rows);
        r->rows = t->dims[0];
    }
    if (r->rows < 0)
        r->rows = 1;
    return NULL;
}

TRITONSERVER_Error *request_read(const served_model *m, TRITONBACKEND_Request *handle, request *r)
{
    r->handle = handle;
    r->response = NULL;
    r->alone = false;
    r->rows = 1;
    TRITON_TRY(TRITONBACKEND_ResponseNew(&r->response, handle));
    TRITON_TRY(check_cancelled(r));
    TRITON_TRY(read_inputs(m, r));
    TRITON_TRY(read_rows(m, r));
    return read_outputs(m, r);
}

bool request_fits(const served_model *m, const request *a, const request *b)
{
    if (a->alone || b->alone || m->settings.max_batch <= 0)
        return false;
    for (size_t i = 0; i < m->n_inputs; i++) {
        const request_input *x = &a->inputs[i], *y = &b->inputs[i];
        if (!x->handle != !y->handle || x->tensor.rank != y->tensor.rank)
            return false;
        for (int32_t d = 1; d < x->tensor.rank; d++)
            if (x->tensor.dims[d] != y->tensor.dims[d])
                return false;
    }
    return true;
}

void request_respond(request *r, TRITONSERVER_Error *error)
{
    if (r->response)
        log_error(TRITONBACKEND_ResponseSend(r->response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
    r->response = NULL;
    if (error)
        TRITONSERVER_ErrorDelete(error);
}
