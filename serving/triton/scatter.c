/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/scatter.h"

#include "serving/triton/dtypes.h"
#include "serving/triton/strings.h"

#include <string.h>

/* The size of the dim that the model calls `symbol`, in an input of the request. */
static bool size_of_symbol(const served_model *m, const request *r, const char *symbol, int64_t *out)
{
    for (size_t i = 0; i < m->n_inputs; i++)
        for (int32_t d = 0; r->inputs[i].handle && d < m->inputs[i].info.rank && d < r->inputs[i].tensor.rank;
             d++) {
            const char *name = m->inputs[i].info.symbols[d];
            if (name && !strcmp(name, symbol)) {
                *out = r->inputs[i].tensor.dims[d];
                return true;
            }
        }
    return false;
}

/* Dims of output k, if they are known before the run. */
static bool predict_dims(const served_model *m, const request *r, size_t k, grt_tensor *out)
{
    const grt_io_info *info = &m->outputs[k].info;
    *out = (grt_tensor){.dtype = info->dtype, .rank = info->rank};
    for (int32_t d = 0; d < info->rank; d++) {
        out->dims[d] = info->dims[d];
        if (info->dims[d] < 0 &&
            (!info->symbols[d] || !size_of_symbol(m, r, info->symbols[d], &out->dims[d])))
            return false;
    }
    return info->rank >= 0 && info->dtype != GRT_DTYPE_STRING;
}

/* Memory of the response for an output of these dims. Triton has no scalars: they have one dim, of size 1. */
static TRITONSERVER_Error *response_memory(const instance *in, request *r, const char *name,
                                           const grt_tensor *t, size_t bytes, grt_tensor *out)
{
    TRITONBACKEND_Output *output;
    TRITONSERVER_MemoryType memory = in->gpu ? TRITONSERVER_MEMORY_CPU_PINNED : TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    const int64_t one = 1;
    const bool scalar = t->rank == 0;
    *out = *t;
    TRITON_TRY(TRITONBACKEND_ResponseOutput(r->response, &output, name, dtype_to_triton(t->dtype),
                                            scalar ? &one : t->dims, scalar ? 1 : (uint32_t)t->rank));
    TRITON_TRY(TRITONBACKEND_OutputBuffer(output, &out->data, bytes, &memory, &device));
    out->memory = memory == TRITONSERVER_MEMORY_GPU ? GRT_MEMORY_DEVICE : GRT_MEMORY_HOST;
    out->device = (int32_t)device;
    return NULL;
}

static bool aligned(const grt_tensor *t)
{
    return (uintptr_t)t->data % (t->memory == GRT_MEMORY_DEVICE ? 16 : grt_dtype_bits(t->dtype) / 8) == 0;
}

/* On GPUs the context's own memory is page-locked already: writing elsewhere in host memory gains nothing
 * there. */
static TRITONSERVER_Error *triton_scatter_bind_output(instance *in, request *r, size_t k)
{
    const served_io *io = &in->model->outputs[k];
    output_target *target = &in->targets[k];
    grt_tensor dims;
    if (!r->wanted[k] || io->state || (in->gpu && !r->alone) || !predict_dims(in->model, r, k, &dims))
        return NULL;
    TRITON_TRY(response_memory(in, r, io->info.name, &dims, grt_tensor_bytes(&dims), &target->to));
    target->made = true;
    target->bound = aligned(&target->to);
    return target->bound
               ? error_from_status(grt_context_set_output(in->context, k, &target->to), in->model->name)
               : NULL;
}

TRITONSERVER_Error *scatter_bind(instance *in, request *r)
{
    for (size_t k = 0; k < in->model->n_outputs; k++) {
        if (in->targets[k].bound)
            TRITON_TRY(error_from_status(grt_context_set_output(in->context, k, NULL), in->model->name));
        in->targets[k] = (output_target){0};
        if (r)
            TRITON_TRY(triton_scatter_bind_output(in, r, k));
    }
    return NULL;
}

/* The request's rows of an output. */
static TRITONSERVER_Error *slice_rows(const instance *in, size_t k, int64_t first, int64_t rows, int64_t of,
                                      grt_tensor *t)
{
    TRITON_TRY(error_from_status(grt_context_get_output(in->context, k, t), in->model->name));
    if (in->model->settings.max_batch <= 0)
        return NULL;
    if (t->rank < 1 || t->dims[0] != of)
        return error_new(TRITONSERVER_ERROR_INTERNAL,
                         "output '%s' has %lld rows for a batch of %lld: set max_batch_size to 0",
                         in->model->outputs[k].info.name, t->rank < 1 ? 0 : (long long)t->dims[0],
                         (long long)of);
    if (of > 0 && t->data)
        t->data = (char *)t->data + grt_tensor_bytes(t) / (size_t)of * (size_t)first;
    t->dims[0] = rows;
    return NULL;
}

static TRITONSERVER_Error *copy_output(const char *name, const grt_tensor *from, size_t bytes,
                                       const grt_tensor *to)
{
    if (to->memory == GRT_MEMORY_DEVICE)
        return error_new(TRITONSERVER_ERROR_UNSUPPORTED,
                         "output '%s' is wanted in memory of a GPU, but its size is known only after the "
                         "run, or it is no output of a GPU",
                         name);
    if (from->dtype == GRT_DTYPE_STRING)
        strings_write(from->data, grt_tensor_elements(from), to->data);
    else if (bytes)
        memcpy(to->data, from->data, bytes);
    return NULL;
}

static TRITONSERVER_Error *update_state(const request *r, const char *name, const grt_tensor *from,
                                        size_t bytes)
{
    TRITONBACKEND_State *state;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    grt_tensor to = *from;
    TRITON_TRY(TRITONBACKEND_StateNew(&state, r->handle, name, dtype_to_triton(from->dtype), from->dims,
                                      (uint32_t)from->rank));
    TRITON_TRY(TRITONBACKEND_StateBuffer(state, &to.data, bytes, &memory, &device));
    to.memory = memory == TRITONSERVER_MEMORY_GPU ? GRT_MEMORY_DEVICE : GRT_MEMORY_HOST;
    TRITON_TRY(copy_output(name, from, bytes, &to));
    return TRITONBACKEND_StateUpdate(state);
}

static TRITONSERVER_Error *scatter_output(instance *in, request *r, size_t k, int64_t first, int64_t rows)
{
    const served_io *io = &in->model->outputs[k];
    grt_tensor from, to = in->targets[k].to;
    TRITON_TRY(slice_rows(in, k, first, r->rows, rows, &from));
    const size_t bytes = from.dtype == GRT_DTYPE_STRING ? strings_size(from.data, grt_tensor_elements(&from))
                                                        : grt_tensor_bytes(&from);
    if (bytes == SIZE_MAX)
        return error_new(TRITONSERVER_ERROR_UNSUPPORTED, "output '%s' has a string of 4 GiB or more",
                         io->info.name);
    if (io->state)
        TRITON_TRY(update_state(r, io->info.name, &from, bytes));
    if (!r->wanted[k])
        return NULL;
    if (!in->targets[k].made)
        TRITON_TRY(response_memory(in, r, io->info.name, &from, bytes, &to));
    return copy_output(io->info.name, &from, bytes, &to);
}

TRITONSERVER_Error *scatter_outputs(instance *in, request *r, int64_t first, int64_t rows)
{
    for (size_t k = 0; k < in->model->n_outputs; k++)
        if ((r->wanted[k] || in->model->outputs[k].state) && !in->targets[k].bound)
            TRITON_TRY(scatter_output(in, r, k, first, rows));
    return NULL;
}
