/* SPDX-License-Identifier: Apache-2.0 */
/* ScatterElements, ScatterND, TensorScatter, graphrt::WriteSlice: copy, check all indices, then write in
 * order, so that the last of equal indices wins and reductions are the same on every run. */
#include "backends/cpu/move.h"
#include "backends/shared/slice.h"

#include "src/base/float.h"

#include <string.h>

typedef enum reduction { TAKE, ADD, MUL, MAX, MIN } reduction;

typedef struct scatter_state {
    int64_t axis;
    reduction how;
    bool circular;
} scatter_state;

static grt_status create_scatter(const grt_kernel_node *node, void **out_state)
{
    static const char *const names[] = {
        [TAKE] = "none", [ADD] = "add", [MUL] = "mul", [MAX] = "max", [MIN] = "min"};
    const char *name = grt_attr_string(node->desc, "reduction", "none");
    GRT_TRY(cpu_state(sizeof(scatter_state), out_state));
    scatter_state *state = *out_state;
    state->axis = grt_attr_int(node->desc, "axis", grt_op_is(node->desc, "", "TensorScatter") ? -2 : 0);
    state->circular = !strcmp(grt_attr_string(node->desc, "mode", "linear"), "circular");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!strcmp(name, names[k]))
            state->how = (reduction)k;
    return GRT_OK;
}

static bool supports_scatter(const grt_kernel_node *node, grt_text *why)
{
    bool number = grt_dtype_in(node->in[0].dtype, GRT_SET_NUMBERS | GRT_BIT(BOOL));
    if (number || !strcmp(grt_attr_string(node->desc, "reduction", "none"), "none"))
        return true;
    grt_text_add(why, "reductions are for numbers and bools, not %s", grt_dtype_name(node->in[0].dtype));
    return false;
}

static void start_output(const grt_run *run)
{
    if (run->out[0]->data != run->in[0]->data)
        cpu_copy(run->out[0]->data, run->in[0]->data, grt_tensor_bytes(run->in[0]), run->threads);
}

#define COMBINE(T, LOAD, STORE)                                                        \
    for (int64_t i = 0; i < n; i++) {                                                  \
        T *to = (T *)dst + i;                                                          \
        const T *from = (const T *)src + i;                                            \
        switch (how) {                                                                 \
        case ADD:                                                                      \
            *to = (T)STORE(LOAD(*to) + LOAD(*from));                                   \
            break;                                                                     \
        case MUL:                                                                      \
            *to = (T)STORE(LOAD(*to) * LOAD(*from));                                   \
            break;                                                                     \
        case MAX:                                                                      \
            *to = LOAD(*from) > LOAD(*to) || LOAD(*from) != LOAD(*from) ? *from : *to; \
            break;                                                                     \
        case MIN:                                                                      \
            *to = LOAD(*from) < LOAD(*to) || LOAD(*from) != LOAD(*from) ? *from : *to; \
            break;                                                                     \
        default:                                                                       \
            break;                                                                     \
        }                                                                              \
    }                                                                                  \
    break

/* Integers of one size wrap alike, so sums and products are formed without sign. */
static void combine_signed(reduction how, grt_dtype dtype, void *dst, const void *src, int64_t n)
{
    switch (dtype) {
    case GRT_DTYPE_INT8:
        COMBINE(int8_t, (int64_t), );
    case GRT_DTYPE_INT16:
        COMBINE(int16_t, (int64_t), );
    case GRT_DTYPE_INT32:
        COMBINE(int32_t, (int64_t), );
    default:
        COMBINE(int64_t, , );
    }
}

static void scatter_combine(reduction how, grt_dtype dtype, void *dst, const void *src, int64_t n)
{
    bool ordered = how == MAX || how == MIN;
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        COMBINE(float, , );
    case GRT_DTYPE_DOUBLE:
        COMBINE(double, , );
    case GRT_DTYPE_FLOAT16:
        COMBINE(uint16_t, grt_half_to_float, grt_float_to_half);
    case GRT_DTYPE_BFLOAT16:
        COMBINE(uint16_t, grt_bfloat16_to_float, grt_float_to_bfloat16);
    case GRT_DTYPE_BOOL:
        COMBINE(uint8_t, (unsigned), 0 !=);
    default:
        break;
    }
    if (ordered && grt_dtype_in(dtype, GRT_SET_SIGNED)) {
        combine_signed(how, dtype, dst, src, n);
        return;
    }
    if (!grt_dtype_in(dtype, GRT_SET_INTS))
        return;
    switch (grt_dtype_size(dtype)) {
    case 1:
        COMBINE(uint8_t, (uint64_t), );
    case 2:
        COMBINE(uint16_t, (uint64_t), );
    case 4:
        COMBINE(uint32_t, (uint64_t), );
    default:
        COMBINE(uint64_t, (uint64_t), );
    }
}

static void write_run(reduction how, grt_dtype dtype, void *dst, const void *src, int64_t n)
{
    if (how == TAKE)
        memcpy(dst, src, (size_t)n * grt_dtype_size(dtype));
    else
        scatter_combine(how, dtype, dst, src, n);
}

static grt_status scatter_out_of_range(const grt_run *run, int64_t at, int64_t index, int64_t size)
{
    return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "index %lld at position %lld is out of range for an axis of size %lld",
                       (long long)index, (long long)at, (long long)size);
}

/* Updates [at, at + n), whose targets differ in the index and, by `step` elements each, in their place. */
static void scatter_row(const grt_run *run, reduction how, int64_t base, int64_t at, int64_t n, int64_t size,
                        int64_t stride, int64_t step)
{
    const grt_tensor *indices = run->in[1], *updates = run->in[2];
    const grt_dtype dtype = run->in[0]->dtype;
    const size_t bytes = grt_dtype_size(dtype);
    const bool words = bytes == sizeof(cpu_bits32) && how == TAKE,
               sums = dtype == GRT_DTYPE_FLOAT && how == ADD;
    for (int64_t k = 0; k < n; k++) {
        const int64_t index = cpu_index(indices, at + k),
                      to = base + (index < 0 ? index + size : index) * stride + k * step;
        if (words)
            ((cpu_bits32 *)run->out[0]->data)[to] = ((const cpu_bits32 *)updates->data)[at + k];
        else if (sums)
            ((float *)run->out[0]->data)[to] += ((const float *)updates->data)[at + k];
        else
            write_run(how, dtype, cpu_at(run->out[0]->data, to, bytes),
                      cpu_at_const(updates->data, at + k, bytes), 1);
    }
}

static grt_status run_scatter_elements(const grt_run *run)
{
    const scatter_state *state = run->state;
    const grt_tensor *data = run->in[0], *indices = run->in[1];
    int32_t axis = (int32_t)grt_axis(state->axis, data->rank);
    int64_t strides[GRT_MAX_RANK], total = grt_tensor_elements(indices), size = data->dims[axis];
    grt_dims_strides(data->dims, data->rank, strides);
    for (int32_t k = 0; k < data->rank; k++)
        if (k != axis && indices->dims[k] > data->dims[k])
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "indices has size %lld in dim %d, more than data's %lld",
                               (long long)indices->dims[k], k, (long long)data->dims[k]);
    const int64_t wrong = cpu_index_outside(indices, size);
    if (wrong >= 0)
        return scatter_out_of_range(run, wrong, cpu_index(indices, wrong), size);
    start_output(run);
    if (total == 0)
        return GRT_OK;
    const int32_t last = data->rank - 1;
    const int64_t n = indices->dims[last], stride = strides[axis];
    strides[axis] = 0;
    for (int64_t row = 0; row < total / n; row++)
        scatter_row(run, state->how, grt_strided_offset(indices->dims, last, strides, row), row * n, n, size,
                    stride, strides[last]);
    return GRT_OK;
}

static grt_status run_scatter_nd(const grt_run *run)
{
    const scatter_state *state = run->state;
    const grt_tensor *data = run->in[0], *indices = run->in[1], *updates = run->in[2];
    int64_t depth = indices->dims[indices->rank - 1],
            n = grt_dims_product(indices->dims, 0, indices->rank - 1);
    int64_t strides[GRT_MAX_RANK], inner = grt_dims_product(data->dims, (int32_t)depth, data->rank);
    size_t bytes = grt_dtype_size(data->dtype);
    grt_dims_strides(data->dims, data->rank, strides);
    for (int64_t k = 0; k < n; k++)
        for (int64_t d = 0; d < depth; d++) {
            int64_t index = cpu_index(indices, k * depth + d);
            if (index < -data->dims[d] || index >= data->dims[d])
                return scatter_out_of_range(run, k * depth + d, index, data->dims[d]);
        }
    start_output(run);
    for (int64_t k = 0; k < n; k++) {
        int64_t offset = 0;
        for (int64_t d = 0; d < depth; d++) {
            int64_t index = cpu_index(indices, k * depth + d);
            offset += (index < 0 ? index + data->dims[d] : index) * strides[d];
        }
        write_run(state->how, data->dtype, cpu_at(run->out[0]->data, offset, bytes),
                  cpu_at_const(updates->data, k * inner, bytes), inner);
    }
    return GRT_OK;
}

static grt_status run_tensor_scatter(const grt_run *run)
{
    const scatter_state *state = run->state;
    const grt_tensor *cache = run->in[0], *update = run->in[1], *at = run->n_in > 2 ? run->in[2] : NULL;
    int32_t axis = (int32_t)grt_axis(state->axis, cache->rank);
    int64_t batch = cache->dims[0], heads = grt_dims_product(cache->dims, 1, axis),
            length = cache->dims[axis];
    int64_t n = update->dims[axis], inner = grt_dims_product(cache->dims, axis + 1, cache->rank);
    size_t bytes = (size_t)inner * grt_dtype_size(cache->dtype);
    for (int64_t b = 0; b < batch && at; b++) {
        int64_t start = cpu_index(at, b);
        if (start < 0 || (state->circular ? n > length : n > length || start > length - n))
            return grt_fail_op(
                run->desc, GRT_STATUS_INVALID_ARGUMENT,
                "write_indices[%lld] is %lld; %lld entries do not fit into an axis of size %lld from there",
                (long long)b, (long long)start, (long long)n, (long long)length);
    }
    start_output(run);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t s = 0; s < n; s++) {
                const int64_t start = at ? cpu_index(at, b) : 0;
                const int64_t to = state->circular ? (start % length + s) % length : start + s;
                memcpy((char *)run->out[0]->data + (size_t)((b * heads + h) * length + to) * bytes,
                       (const char *)update->data + (size_t)((b * heads + h) * n + s) * bytes, bytes);
            }
    return GRT_OK;
}

static grt_status run_write_slice(const grt_run *run)
{
    const grt_tensor *updates = run->in[1];
    grt_tensor *out = run->out[0];
    grt_slice slice;
    int64_t from[GRT_MAX_RANK];
    GRT_TRY(grt_write_slice_plan(run->desc, out, updates, &slice));
    start_output(run);
    if (grt_tensor_elements(updates) == 0)
        return GRT_OK;
    grt_dims_strides(updates->dims, updates->rank, from);
    cpu_move move = {.size = grt_dtype_size(out->dtype)};
    for (int32_t k = 0; k < out->rank; k++)
        cpu_move_axis(&move, updates->dims[k], slice.steps[k], from[k]);
    cpu_move_run(&move, cpu_at(out->data, slice.offset, move.size), updates->data, run->threads);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "ScatterElements",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_INDEX, CPU_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = supports_scatter,
     .create = create_scatter,
     .destroy = free,
     .run = run_scatter_elements},
    {.op = "ScatterND",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_INDEX, CPU_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = supports_scatter,
     .create = create_scatter,
     .destroy = free,
     .run = run_scatter_nd},
    {.op = "TensorScatter",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_MOVABLE, CPU_INDEX},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = create_scatter,
     .destroy = free,
     .run = run_tensor_scatter},
    {.op = "WriteSlice",
     .domain = "graphrt",
     .types = {CPU_MOVABLE, CPU_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .run = run_write_slice},
};
CPU_KERNELS(scatter, rows);
