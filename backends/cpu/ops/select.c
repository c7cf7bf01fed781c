/* SPDX-License-Identifier: Apache-2.0 */
/* Marking and picking elements: NonZero, Compress, OneHot, Trilu, ReverseSequence. */
#include "backends/cpu/move.h"

#include "src/base/element.h"

#include <string.h>

/* Elements are zero by their bits, of floats but the sign; other types one by one. */
#define DEFINE_SET(bits)                                                                               \
    static int64_t count_##bits(const void *data, int64_t n, uint64_t mask)                            \
    {                                                                                                  \
        const cpu_bits##bits *x = data, some = (cpu_bits##bits)mask;                                   \
        int64_t found = 0;                                                                             \
        for (int64_t i = 0; i < n; i++)                                                                \
            found += (x[i] & some) != 0;                                                               \
        return found;                                                                                  \
    }                                                                                                  \
    /* Indices of a row's elements that are set, at most `most`. */                                    \
    static int64_t list_##bits(const void *data, int64_t n, uint64_t mask, int64_t most, int64_t *out) \
    {                                                                                                  \
        const cpu_bits##bits *x = data, some = (cpu_bits##bits)mask;                                   \
        int64_t found = 0;                                                                             \
        for (int64_t i = 0; i < n && found < most; i++) {                                              \
            out[found] = i;                                                                            \
            found += (x[i] & some) != 0;                                                               \
        }                                                                                              \
        return found;                                                                                  \
    }
DEFINE_SET(8)
DEFINE_SET(16)
DEFINE_SET(32)
DEFINE_SET(64)

/* What bits of an element say that it is not zero. */
static uint64_t set_mask(grt_dtype dtype)
{
    const uint64_t all = UINT64_MAX >> (64 - 8 * grt_dtype_size(dtype));
    return grt_dtype_in(dtype, GRT_SET_FLOATS) ? all >> 1 : all;
}

static int64_t count_set(const grt_tensor *t, int64_t n)
{
    const uint64_t mask = set_mask(t->dtype);
    switch (grt_dtype_size(t->dtype)) {
    case 1:
        return count_8(t->data, n, mask);
    case 2:
        return count_16(t->data, n, mask);
    case 4:
        return count_32(t->data, n, mask);
    default:
        return count_64(t->data, n, mask);
    }
}

static int64_t list_set(const grt_tensor *t, int64_t row, int64_t n, int64_t most, int64_t *out)
{
    const uint64_t mask = set_mask(t->dtype);
    const void *data = cpu_at_const(t->data, row * n, grt_dtype_size(t->dtype));
    switch (grt_dtype_size(t->dtype)) {
    case 1:
        return list_8(data, n, mask, most, out);
    case 2:
        return list_16(data, n, mask, most, out);
    case 4:
        return list_32(data, n, mask, most, out);
    default:
        return list_64(data, n, mask, most, out);
    }
}

static grt_status run_non_zero(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    const int32_t last = in->rank - 1;
    const int64_t total = grt_tensor_elements(in), n = count_set(in, total), dims[] = {in->rank, n};
    int64_t at[GRT_MAX_RANK] = {0};
    GRT_TRY(run->hooks->alloc_output(run, 0, 2, dims));
    int64_t *out = run->out[0]->data;
    const int64_t width = last >= 0 ? in->dims[last] : 0;
    for (int64_t row = 0, begin = 0; begin < n && width > 0; row++) {
        const int64_t found = list_set(in, row, width, n - begin, out + last * n + begin);
        for (int32_t k = 0; k < last; k++)
            for (int64_t i = 0; i < found; i++)
                out[k * n + begin + i] = at[k];
        begin += found;
        for (int32_t k = last - 1; k >= 0 && ++at[k] == in->dims[k]; k--)
            at[k] = 0;
    }
    return GRT_OK;
}

typedef struct compress_state {
    bool flat;
    int64_t axis;
} compress_state;

static grt_status create_compress(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(compress_state), out_state));
    compress_state *state = *out_state;
    state->flat = !grt_attr_find(node->desc, "axis");
    state->axis = grt_attr_int(node->desc, "axis", 0);
    return GRT_OK;
}

static grt_status run_compress(const grt_run *run)
{
    const compress_state *state = run->state;
    const grt_tensor *in = run->in[0], *condition = run->in[1];
    const uint8_t *take = condition->data;
    int32_t axis = state->flat ? 0 : (int32_t)grt_axis(state->axis, in->rank);
    int64_t size = state->flat ? grt_tensor_elements(in) : in->dims[axis],
            listed = grt_tensor_elements(condition), n = 0;
    int64_t outer = state->flat ? 1 : grt_dims_product(in->dims, 0, axis);
    int64_t inner = state->flat ? 1 : grt_dims_product(in->dims, axis + 1, in->rank), dims[GRT_MAX_RANK];
    for (int64_t k = 0; k < listed; k++) {
        n += take[k] != 0;
        if (take[k] && k >= size)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "condition[%lld] is true; the axis has size %lld", (long long)k,
                               (long long)size);
    }
    for (int32_t k = 0; k < in->rank; k++)
        dims[k] = in->dims[k];
    dims[axis] = n;
    GRT_TRY(run->hooks->alloc_output(run, 0, state->flat ? 1 : in->rank, dims));
    size_t bytes = (size_t)inner * grt_dtype_size(in->dtype);
    char *to = run->out[0]->data;
    for (int64_t o = 0; o < outer && bytes; o++)
        for (int64_t k = 0; k < listed; k++)
            if (take[k]) {
                memcpy(to, (const char *)in->data + (size_t)(o * size + k) * bytes, bytes);
                to += bytes;
            }
    return GRT_OK;
}

static grt_status create_one_hot(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(int64_t), out_state));
    *(int64_t *)*out_state = grt_attr_int(node->desc, "axis", -1);
    return GRT_OK;
}

static grt_status run_one_hot(const grt_run *run)
{
    const grt_tensor *indices = run->in[0], *values = run->in[2];
    grt_tensor *out = run->out[0];
    int32_t axis = (int32_t)grt_axis(*(const int64_t *)run->state, out->rank);
    int64_t depth = out->dims[axis], inner = grt_dims_product(out->dims, axis + 1, out->rank),
            n = grt_tensor_elements(indices);
    size_t bytes = grt_dtype_size(out->dtype);
    if (grt_tensor_elements(values) != 2)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "values must have 2 elements, found %lld",
                           (long long)grt_tensor_elements(values));
    cpu_fill(out->data, values->data, bytes, grt_tensor_elements(out), run->threads);
    const void *on = cpu_at_const(values->data, 1, bytes);
    for (int64_t k = 0; k < n; k++) {
        double number = grt_element_get(indices, k);
        number = number < 0 ? number + (double)depth : number;
        if (number >= 0 && number < (double)depth) /* others mark nothing */
            memcpy(cpu_at(out->data, (k / inner * depth + (int64_t)number) * inner + k % inner, bytes), on,
                   bytes);
    }
    return GRT_OK;
}

static grt_status create_trilu(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(bool), out_state));
    *(bool *)*out_state = grt_attr_int(node->desc, "upper", 1) != 0;
    return GRT_OK;
}

static grt_status run_trilu(const grt_run *run)
{
    const grt_tensor *in = run->in[0], *shift = run->n_in > 1 ? run->in[1] : NULL;
    grt_tensor *out = run->out[0];
    bool upper = *(const bool *)run->state;
    int64_t rows = in->dims[in->rank - 2], cols = in->dims[in->rank - 1], k = shift ? cpu_index(shift, 0) : 0;
    int64_t total = grt_tensor_elements(in), all = cols ? total / cols : 0;
    size_t bytes = grt_dtype_size(in->dtype);
    k = k > cols ? cols : k < -rows ? -rows : k;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (total > CPU_GRAIN)
    for (int64_t row = 0; row < all; row++) {
        char *to = (char *)out->data + (size_t)(row * cols) * bytes;
        const char *from = (const char *)in->data + (size_t)(row * cols) * bytes;
        /* upper: columns from the diagonal on are kept; lower: columns up to it */
        int64_t cut = row % rows + k + (upper ? 0 : 1);
        size_t before = (size_t)(cut < 0      ? 0
                                 : cut > cols ? cols
                                              : cut) *
                        bytes,
               behind = (size_t)cols * bytes - before;
        if (upper) {
            memset(to, 0, before);
            if (to != from)
                memcpy(to + before, from + before, behind);
        } else {
            if (to != from)
                memcpy(to, from, before);
            memset(to + before, 0, behind);
        }
    }
    return GRT_OK;
}

static grt_status create_reverse(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(bool), out_state));
    *(bool *)*out_state = grt_attr_int(node->desc, "time_axis", 0) == 0;
    return GRT_OK;
}

static grt_status run_reverse(const grt_run *run)
{
    const grt_tensor *in = run->in[0], *lens = run->in[1];
    bool time_first = *(const bool *)run->state;
    int64_t times = in->dims[time_first ? 0 : 1], batch = in->dims[time_first ? 1 : 0];
    int64_t time_step = time_first ? batch : 1, batch_step = time_first ? 1 : times;
    size_t bytes = (size_t)grt_dims_product(in->dims, 2, in->rank) * grt_dtype_size(in->dtype);
    for (int64_t b = 0; b < batch; b++) {
        int64_t n = cpu_index(lens, b);
        if (n < 0 || n > times)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "sequence_lens[%lld] is %lld; sequences have %lld entries", (long long)b,
                               (long long)n, (long long)times);
        for (int64_t t = 0; t < times; t++) {
            int64_t source = t < n ? n - 1 - t : t;
            memcpy((char *)run->out[0]->data + (size_t)(b * batch_step + t * time_step) * bytes,
                   (const char *)in->data + (size_t)(b * batch_step + source * time_step) * bytes, bytes);
        }
    }
    return GRT_OK;
}

#define NUMBERS (GRT_SET_NUMBERS | GRT_BIT(BOOL))

static const grt_kernel_row rows[] = {
    {.op = "NonZero", .domain = "", .types = {NUMBERS}, .flags = GRT_KERNEL_DYNAMIC, .run = run_non_zero},
    {.op = "Compress",
     .domain = "",
     .types = {CPU_MOVABLE, GRT_BIT(BOOL)},
     .flags = GRT_KERNEL_DYNAMIC,
     .create = create_compress,
     .destroy = free,
     .run = run_compress},
    {.op = "OneHot",
     .domain = "",
     .types = {GRT_SET_NUMBERS, GRT_SET_NUMBERS, CPU_MOVABLE},
     .create = create_one_hot,
     .destroy = free,
     .run = run_one_hot},
    {.op = "Trilu",
     .domain = "",
     .types = {GRT_SET_PLAIN, GRT_BIT(INT64)},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = create_trilu,
     .destroy = free,
     .run = run_trilu},
    {.op = "ReverseSequence",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_INDEX},
     .create = create_reverse,
     .destroy = free,
     .run = run_reverse},
};
CPU_KERNELS(select, rows);
