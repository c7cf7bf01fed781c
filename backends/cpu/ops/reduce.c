/* SPDX-License-Identifier: Apache-2.0 */
/* The Reduce family: which axes of which kind, and who gets which part of the work. */
#include "backends/cpu/reduction.h"

#include "backends/cpu/threads.h"

/* Joins neighbouring axes that are both reduced or both kept; the innermost goes to `inner`. */
static void collapse(cpu_reduce *j, const grt_tensor *data, const bool *reduced)
{
    int64_t dims[GRT_MAX_RANK + 1], strides[GRT_MAX_RANK + 1], stride = 1;
    bool kinds_of[GRT_MAX_RANK + 1];
    int32_t n = 0; /* from the innermost outwards */
    for (int32_t k = data->rank - 1; k >= 0; k--) {
        if (data->dims[k] == 1)
            continue;
        if (n && kinds_of[n - 1] == reduced[k]) {
            dims[n - 1] *= data->dims[k];
        } else {
            dims[n] = data->dims[k], strides[n] = stride, kinds_of[n] = reduced[k];
            n++;
        }
        stride *= data->dims[k];
    }
    if (n == 0)
        dims[0] = 1, strides[0] = 1, kinds_of[0] = false, n = 1;
    j->inner = dims[0];
    j->by_row = !kinds_of[0];
    for (int32_t i = n - 1; i >= 1; i--) {
        cpu_reduce_axes *list = kinds_of[i] ? &j->reduced : &j->kept;
        list->dims[list->n] = dims[i];
        list->strides[list->n++] = strides[i];
    }
    j->n_reduced = cpu_reduce_product(&j->reduced);
    j->count = (double)j->n_reduced * (j->by_row ? 1 : (double)j->inner);
}

static cpu_reduce reduction_of(const grt_run *run, const bool *reduced)
{
    const grt_reduce *state = run->state;
    const grt_tensor *data = run->in[0];
    const bool is_signed = grt_dtype_in(data->dtype, GRT_SET_SIGNED);
    cpu_reduce j = {.how = state->fold,
                    .finish = state->finish,
                    .dtype = data->dtype,
                    .in = data->data,
                    .out = run->out[0]->data,
                    .size = grt_dtype_size(data->dtype)};
    j.ints = !grt_dtype_in(data->dtype, GRT_SET_FLOATS) && j.how != FOLD_EXP;
    j.flip = is_signed && (j.how == FOLD_MAX || j.how == FOLD_MIN) ? (uint64_t)1 << 63 : 0;
    if (j.how == FOLD_ABS && j.ints && !is_signed)
        j.how = FOLD_SUM;
    collapse(&j, data, reduced);
    return j;
}

static grt_status run_reduce(const grt_run *run)
{
    const grt_reduce *state = run->state;
    bool reduced[GRT_MAX_RANK];
    GRT_TRY(grt_reduce_axes(run->desc, run->in[0], run->n_in > 1 ? run->in[1] : NULL, run->out[0],
                            state->empty_is_none, reduced));
    const cpu_reduce j = reduction_of(run, reduced);
    if (cpu_reduce_whole(&j, run->threads))
        return GRT_OK;
    const int64_t strips = j.by_row ? (j.inner + REDUCE_STRIP - 1) / REDUCE_STRIP : 1,
                  items = cpu_reduce_product(&j.kept) * strips;
    if (j.by_row && cpu_reduce_many_rows(&j, strips, items, run->threads))
        return GRT_OK;
    int64_t parts = grt_tensor_elements(run->in[0]) < 2 * CPU_GRAIN ? 1 : 4 * run->threads;
    parts = parts > items ? items : parts;
#pragma omp parallel for num_threads(run->threads) schedule(dynamic) if (parts > 1)
    for (int64_t p = 0; p < parts; p++) {
        const int64_t begin = items * p / parts, end = items * (p + 1) / parts;
        if (j.by_row)
            cpu_reduce_columns(&j, strips, begin, end);
        else
            cpu_reduce_runs(&j, begin, end);
    }
    return GRT_OK;
}

#define REDUCE_OF(space, name, set)                                                          \
    {                                                                                        \
        .op = name, .domain = space, .types = {set, CPU_INDEX}, .create = grt_reduce_create, \
        .destroy = free, .run = run_reduce                                                   \
    }
#define REDUCE(name, set) REDUCE_OF("", name, set),
/* Narrower inputs are widened. */
#define WIDE(name) REDUCE_OF("graphrt", name, GRT_BIT(FLOAT)),

static const grt_kernel_row rows[] = {REDUCE_ROWS(REDUCE) REDUCE_WIDE_ROWS(WIDE)};
CPU_KERNELS(reduce, rows);
