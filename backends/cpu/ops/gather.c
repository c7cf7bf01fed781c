/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherElements, GatherND: indices are checked first, then runs are copied. */
#include "backends/cpu/move.h"

#include <string.h>

static grt_status gather_create_axis(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(int64_t), out_state));
    *(int64_t *)*out_state = grt_attr_int(node->desc, "axis", 0);
    return GRT_OK;
}

static grt_status gather_out_of_range(const grt_run *run, int64_t at, int64_t index, int64_t size)
{
    return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "index %lld at position %lld is out of range for an axis of size %lld",
                       (long long)index, (long long)at, (long long)size);
}

/* True if the index is valid for an axis of this size; negative indices are replaced by their positive form
 * in *index. */
static inline bool fix_index(int64_t *index, int64_t size)
{
    *index = *index < 0 ? *index + size : *index;
    return *index >= 0 && *index < size;
}

/* One row of the output: its elements differ in the index of the last axis only. at: the row's indices. */
#define PICK_ALL(at, stride, step)  \
    for (int64_t k = 0; k < n; k++) \
    to[k] = from[((at)[k] + ((at)[k] < 0 ? size : 0)) * (stride) + k * (step)]
#define DEFINE_PICK(bits)                                                                           \
    static void pick_##bits(void *dst, const void *src, const void *at, grt_dtype dtype, int64_t n, \
                            int64_t size, int64_t stride, int64_t step)                             \
    {                                                                                               \
        cpu_bits##bits *restrict to = dst;                                                          \
        const cpu_bits##bits *from = src;                                                           \
        const int32_t *narrow = at;                                                                 \
        const int64_t *wide = at;                                                                   \
        if (dtype == GRT_DTYPE_INT32)                                                               \
            PICK_ALL(narrow, stride, step);                                                         \
        else if (stride == 1 && step == 0)                                                          \
            PICK_ALL(wide, 1, 0);                                                                   \
        else                                                                                        \
            PICK_ALL(wide, stride, step);                                                           \
    }
DEFINE_PICK(8)
DEFINE_PICK(16)
DEFINE_PICK(32)
DEFINE_PICK(64)
DEFINE_PICK(128)

/* Single elements of each row of the data, whose indices are the same for all rows. */
static void gather_singles(const grt_run *run, const grt_tensor *data, const grt_tensor *indices,
                           grt_tensor *out, int64_t rows, int64_t size)
{
    const int64_t n = grt_tensor_elements(indices), pieces = (n + CPU_GRAIN - 1) / CPU_GRAIN;
    const size_t bytes = grt_dtype_size(data->dtype), of_index = grt_dtype_size(indices->dtype);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (rows * n > 2 * CPU_GRAIN)
    for (int64_t k = 0; k < rows * pieces; k++) {
        const int64_t row = k / pieces, first = k % pieces * CPU_GRAIN,
                      count = n - first < CPU_GRAIN ? n - first : CPU_GRAIN;
        const void *src = cpu_at_const(data->data, row * size, bytes);
        const void *at = cpu_at_const(indices->data, first, of_index);
        void *dst = cpu_at(out->data, row * n + first, bytes);
        CPU_BY_SIZE(bytes, pick_, dst, src, at, indices->dtype, count, size, 1, 0);
    }
}

static grt_status gather_pick(const grt_run *run, const grt_tensor *data, const grt_tensor *indices,
                              grt_tensor *out)
{
    int32_t axis = (int32_t)grt_axis(*(const int64_t *)run->state, data->rank);
    int64_t outer = grt_dims_product(data->dims, 0, axis),
            inner = grt_dims_product(data->dims, axis + 1, data->rank);
    int64_t size = data->dims[axis], n = grt_tensor_elements(indices);
    size_t bytes = (size_t)inner * grt_dtype_size(data->dtype);
    const int64_t wrong = cpu_index_outside(indices, size);
    if (wrong >= 0)
        return gather_out_of_range(run, wrong, cpu_index(indices, wrong), size);
    if (bytes == 0)
        return GRT_OK;
    if (inner == 1) {
        gather_singles(run, data, indices, out, outer, size);
        return GRT_OK;
    }
    int64_t total = outer * n;
    bool many = total > 1 && total * inner > 2 * CPU_GRAIN;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (many)
    for (int64_t k = 0; k < total; k++) {
        int64_t index = cpu_index(indices, k % n);
        index = index < 0 ? index + size : index;
        const char *from = (const char *)data->data + (size_t)(k / n * size + index) * bytes;
        char *to = (char *)out->data + (size_t)k * bytes;
        if (bytes == 4)
            memcpy(to, from, 4);
        else if (bytes == 8)
            memcpy(to, from, 8);
        else
            memcpy(to, from, bytes);
    }
    return GRT_OK;
}

static grt_status run_gather(const grt_run *run)
{
    return gather_pick(run, run->in[0], run->in[1], run->out[0]);
}

static grt_status run_gather_each(const grt_run *run)
{
    for (int32_t i = 0; i < run->n_out; i++)
        if (run->out[i])
            GRT_TRY(gather_pick(run, run->in[i], run->in[run->n_out + i], run->out[i]));
    return GRT_OK;
}

static grt_status run_gather_elements(const grt_run *run)
{
    const grt_tensor *data = run->in[0], *indices = run->in[1];
    grt_tensor *out = run->out[0];
    int32_t axis = (int32_t)grt_axis(*(const int64_t *)run->state, data->rank), last = data->rank - 1;
    int64_t size = data->dims[axis], total = grt_tensor_elements(indices), strides[GRT_MAX_RANK];
    if (total == 0)
        return GRT_OK;
    const int64_t wrong = cpu_index_outside(indices, size);
    if (wrong >= 0)
        return gather_out_of_range(run, wrong, cpu_index(indices, wrong), size);
    for (int32_t k = 0; k <= last; k++)
        if (k != axis && indices->dims[k] > data->dims[k])
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "indices has size %lld in dim %d, more than data's %lld",
                               (long long)indices->dims[k], k, (long long)data->dims[k]);
    grt_dims_strides(data->dims, data->rank, strides);
    int64_t n = indices->dims[last], n_rows = total / n, stride = strides[axis];
    strides[axis] = 0;
    size_t bytes = grt_dtype_size(data->dtype);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (total > CPU_GRAIN)
    for (int64_t row = 0; row < n_rows; row++) {
        const int64_t base = grt_strided_offset(indices->dims, last, strides, row);
        const void *src = cpu_at_const(data->data, base, bytes);
        void *dst = cpu_at(out->data, row * n, bytes);
        const void *at = cpu_at_const(indices->data, row * n, grt_dtype_size(indices->dtype));
        CPU_BY_SIZE(bytes, pick_, dst, src, at, indices->dtype, n, size, stride, strides[last]);
    }
    return GRT_OK;
}

static grt_status create_batch(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(int64_t), out_state));
    *(int64_t *)*out_state = grt_attr_int(node->desc, "batch_dims", 0);
    return GRT_OK;
}

static grt_status run_gather_nd(const grt_run *run)
{
    const grt_tensor *data = run->in[0], *indices = run->in[1];
    grt_tensor *out = run->out[0];
    int32_t batch = (int32_t) * (const int64_t *)run->state;
    int64_t depth = indices->dims[indices->rank - 1], strides[GRT_MAX_RANK];
    int64_t n = grt_dims_product(indices->dims, 0, indices->rank - 1);
    int64_t per_batch = grt_dims_product(indices->dims, batch, indices->rank - 1);
    int64_t data_batch = grt_dims_product(data->dims, batch, data->rank);
    int64_t inner = grt_dims_product(data->dims, batch + (int32_t)depth, data->rank);
    size_t bytes = (size_t)inner * grt_dtype_size(data->dtype);
    grt_dims_strides(data->dims, data->rank, strides);
    for (int64_t k = 0; k < n; k++)
        for (int64_t d = 0; d < depth; d++) {
            int64_t index = cpu_index(indices, k * depth + d);
            if (!fix_index(&index, data->dims[batch + d]))
                return gather_out_of_range(run, k * depth + d, cpu_index(indices, k * depth + d),
                                           data->dims[batch + d]);
        }
    if (bytes == 0)
        return GRT_OK;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (n > 1 && n * inner > 2 * CPU_GRAIN)
    for (int64_t k = 0; k < n; k++) {
        int64_t offset = k / per_batch * data_batch;
        for (int64_t d = 0; d < depth; d++) {
            int64_t index = cpu_index(indices, k * depth + d);
            offset += (index < 0 ? index + data->dims[batch + d] : index) * strides[batch + d];
        }
        memcpy((char *)out->data + (size_t)k * bytes,
               cpu_at_const(data->data, offset, grt_dtype_size(data->dtype)), bytes);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Gather",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_INDEX},
     .create = gather_create_axis,
     .destroy = free,
     .run = run_gather},
    {.op = "GatherEach",
     .domain = "graphrt",
     .types = {CPU_MOVABLE},
     .create = gather_create_axis,
     .destroy = free,
     .run = run_gather_each},
    {.op = "GatherElements",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_INDEX},
     .create = gather_create_axis,
     .destroy = free,
     .run = run_gather_elements},
    {.op = "GatherND",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_INDEX},
     .create = create_batch,
     .destroy = free,
     .run = run_gather_nd},
};
CPU_KERNELS(gather, rows);
