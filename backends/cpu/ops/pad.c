/* SPDX-License-Identifier: Apache-2.0 */
/* Pad and CenterCropPad. A constant border is filled around a strided copy; the other modes walk tables of
 * source indices. */
#include "backends/cpu/move.h"

#include <string.h>

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

static grt_status create_pad(const grt_kernel_node *node, void **out_state)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *mode = grt_attr_string(node->desc, "mode", "constant");
    GRT_TRY(cpu_state(sizeof(pad_mode), out_state));
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!strcmp(mode, names[k]))
            *(pad_mode *)*out_state = (pad_mode)k;
    return GRT_OK;
}

/* Where the input goes: `first` and `size` say which part of each axis is used, `at` where that starts in the
 * output. */
typedef struct placement {
    int64_t first[GRT_MAX_RANK], size[GRT_MAX_RANK], at[GRT_MAX_RANK];
} placement;

static void place(placement *p, int32_t axis, int64_t dim, int64_t out_dim, int64_t before)
{
    p->first[axis] = before == INT64_MIN ? INT64_MAX : before < 0 ? -before : 0;
    p->at[axis] = before > 0 ? before : 0;
    int64_t have = dim - p->first[axis], room = out_dim - p->at[axis];
    p->size[axis] = have < room ? have : room;
    p->size[axis] = p->size[axis] < 0 ? 0 : p->size[axis];
}

static grt_status read_pads(const grt_run *run, placement *p)
{
    const grt_tensor *in = run->in[0], *pads = run->in[1], *axes = run->n_in > 3 ? run->in[3] : NULL;
    int64_t n = axes ? grt_tensor_elements(axes) : in->rank;
    if (grt_tensor_elements(pads) != 2 * n)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "pads has %lld entries; %lld axes need %lld", (long long)grt_tensor_elements(pads),
                           (long long)n, (long long)(2 * n));
    for (int32_t k = 0; k < in->rank; k++)
        place(p, k, in->dims[k], run->out[0]->dims[k], 0);
    for (int64_t k = 0; k < n; k++) {
        int64_t axis = grt_axis(axes ? cpu_index(axes, k) : k, in->rank);
        if (axis < 0)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "axes[%lld] is %lld; for rank %d it must be in [%d, %d]", (long long)k,
                               (long long)cpu_index(axes, k), in->rank, -in->rank, in->rank - 1);
        place(p, (int32_t)axis, in->dims[axis], run->out[0]->dims[axis], cpu_index(pads, k));
    }
    return GRT_OK;
}

/* The used part of the input, surrounded by *value. */
static void pad_constant(const grt_run *run, const placement *p, const void *value)
{
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK], in_offset = 0, out_offset = 0;
    const int64_t used = grt_dims_product(p->size, 0, in->rank), total = grt_tensor_elements(out);
    cpu_move move = {.size = grt_dtype_size(in->dtype)};
    if (used < total)
        cpu_fill(out->data, value, move.size, total, run->threads);
    if (used == 0) /* then the borders are as wide as the model says, not as the tensors are */
        return;
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    for (int32_t k = 0; k < in->rank; k++) {
        in_offset += p->first[k] * from[k];
        out_offset += p->at[k] * to[k];
        cpu_move_axis(&move, p->size[k], to[k], from[k]);
    }
    cpu_move_run(&move, cpu_at(out->data, out_offset, move.size),
                 cpu_at_const(in->data, in_offset, move.size), run->threads);
}

/* ---- tables ---- */

static int64_t source_index(pad_mode mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == PAD_EDGE)
        return i < 0 ? 0 : n - 1;
    int64_t period = mode == PAD_WRAP ? n : n > 1 ? 2 * (n - 1) : 1;
    i %= period;
    i = i < 0 ? i + period : i;
    return i < n ? i : period - i;
}

#define DEFINE_PICK(bits)                                                                                 \
    static void pick_##bits(void *dst, const void *src, const int64_t *table, int64_t begin, int64_t end) \
    {                                                                                                     \
        for (int64_t k = begin; k < end; k++)                                                             \
            ((cpu_bits##bits *)dst)[k] = ((const cpu_bits##bits *)src)[table[k]];                         \
    }
DEFINE_PICK(8)
DEFINE_PICK(16)
DEFINE_PICK(32)
DEFINE_PICK(64)
DEFINE_PICK(128)

static grt_status pad_tables(const grt_run *run, pad_mode mode, const placement *p)
{
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int64_t from[GRT_MAX_RANK], *tables[GRT_MAX_RANK], *next = run->workspace,
                                                       total = grt_tensor_elements(out);
    int32_t last = in->rank - 1;
    size_t bytes = grt_dtype_size(in->dtype);
    if (total == 0)
        return GRT_OK;
    grt_dims_strides(in->dims, in->rank, from);
    for (int32_t k = 0; k <= last; k++) {
        /* elements that are cut off are not reflected or repeated */
        int64_t n = p->size[k];
        if (n <= 0)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "axis %d has nothing that could fill its border", k);
        tables[k] = next;
        for (int64_t i = 0; i < out->dims[k]; i++)
            *next++ = (p->first[k] + source_index(mode, i - p->at[k], n)) * from[k];
    }
    int64_t n = last < 0 ? 1 : out->dims[last], rows = total / n;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (total > CPU_GRAIN)
    for (int64_t row = 0; row < rows; row++) {
        int64_t offset = 0, rest = row;
        for (int32_t k = last - 1; k >= 0; k--) {
            offset += tables[k][rest % out->dims[k]];
            rest /= out->dims[k];
        }
        const char *src = cpu_at_const(in->data, offset, bytes);
        char *dst = cpu_at(out->data, row * n, bytes);
        if (last < 0) {
            memcpy(dst, src, bytes);
            continue;
        }
        int64_t begin = p->at[last], end = begin + p->size[last];
        CPU_BY_SIZE(bytes, pick_, dst, src, tables[last], 0, begin);
        memcpy(dst + (size_t)begin * bytes, src + (size_t)p->first[last] * bytes,
               (size_t)(end - begin) * bytes);
        CPU_BY_SIZE(bytes, pick_, dst, src, tables[last], end, n);
    }
    return GRT_OK;
}

static grt_status reshape_pad(grt_reshape *reshape)
{
    if (*(const pad_mode *)reshape->state == PAD_CONSTANT)
        return GRT_OK;
    size_t entries = 0;
    for (int32_t k = 0; k < reshape->out[0]->rank; k++)
        entries += (size_t)reshape->out[0]->dims[k];
    reshape->workspace_bytes = entries * sizeof(int64_t);
    return GRT_OK;
}

static grt_status run_pad(const grt_run *run)
{
    static const uint64_t zero[2];
    pad_mode mode = *(const pad_mode *)run->state;
    const grt_tensor *value = run->n_in > 2 ? run->in[2] : NULL;
    placement p;
    GRT_TRY(read_pads(run, &p));
    if (mode != PAD_CONSTANT)
        return pad_tables(run, mode, &p);
    static const grt_string empty = {"", 0};
    const void *nothing = run->in[0]->dtype == GRT_DTYPE_STRING ? (const void *)&empty : zero;
    pad_constant(run, &p, value && grt_tensor_elements(value) ? value->data : nothing);
    return GRT_OK;
}

/* ---- CenterCropPad ---- */

static grt_status run_center(const grt_run *run)
{
    static const uint64_t zero[2];
    const grt_tensor *in = run->in[0], *out = run->out[0];
    placement p;
    /* the start gets half, rounded down; the odd element is cut or added at the end */
    for (int32_t k = 0; k < in->rank; k++) {
        int64_t more = out->dims[k] - in->dims[k];
        place(&p, k, in->dims[k], out->dims[k], more > 0 ? more / 2 : -(-more / 2));
    }
    pad_constant(run, &p, zero);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Pad",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_INDEX, CPU_MOVABLE, CPU_INDEX},
     .create = create_pad,
     .destroy = free,
     .reshape = reshape_pad,
     .run = run_pad},
    {.op = "CenterCropPad", .domain = "", .types = {GRT_SET_PLAIN, CPU_INDEX}, .run = run_center},
};
CPU_KERNELS(pad, rows);
