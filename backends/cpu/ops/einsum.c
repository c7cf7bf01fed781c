/* Einsum: for each output element the sum, over the labels that the output lacks, of the products of the operands. */
#include "backends/cpu/move.h"

#include "backends/cpu/element.h"
#include "src/base/einsum.h"

#include <string.h>

/* Labels of the output come first, then those that are summed over. */
typedef struct einsum_shape {
    int32_t n_labels, n_out;
    int64_t dims[GRT_EINSUM_LABELS];
    int64_t n_results, n_terms;
    int64_t strides[][GRT_EINSUM_LABELS]; /* per operand: 0 where it lacks the label or stretches */
} einsum_shape;

static grt_status read_sizes(const grt_reshape *reshape, int64_t *sizes, int32_t *out_ellipsis)
{
    int8_t labels[GRT_MAX_RANK];
    int32_t wide;
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        sizes[k] = -1;
    *out_ellipsis = 0;
    for (int32_t i = 0; i < reshape->n_in; i++) {
        const grt_tensor *in = reshape->in[i];
        GRT_TRY(grt_einsum_input(reshape->desc, i, reshape->n_in, in->rank, labels, &wide));
        *out_ellipsis = wide > *out_ellipsis ? wide : *out_ellipsis;
        for (int32_t k = 0; k < in->rank; k++) {
            int64_t *size = &sizes[labels[k]];
            if (*size >= 0 && *size != 1 && in->dims[k] != 1 && *size != in->dims[k])
                return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                                   "dim %d of input %d is %lld where the same letter had %lld", k, i, (long long)in->dims[k],
                                   (long long)*size);
            *size = *size < 0 || *size == 1 ? in->dims[k] : *size;
        }
    }
    return GRT_OK;
}

static grt_status reshape_einsum(grt_reshape *reshape)
{
    int64_t sizes[GRT_EINSUM_LABELS];
    int32_t ellipsis, wide, place[GRT_EINSUM_LABELS];
    int8_t labels[GRT_MAX_RANK];
    GRT_TRY(read_sizes(reshape, sizes, &ellipsis));
    size_t bytes = sizeof(einsum_shape) + (size_t)reshape->n_in * sizeof(int64_t[GRT_EINSUM_LABELS]);
    einsum_shape *shape = calloc(1, bytes);
    if (!shape)
        return grt_fail_memory(bytes);
    reshape->shape = shape;
    GRT_TRY(grt_einsum_output(reshape->desc, ellipsis, labels, &shape->n_out));
    memset(place, -1, sizeof place);
    for (int32_t k = 0; k < shape->n_out; k++)
        place[labels[k]] = shape->n_labels++;
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        if (sizes[k] >= 0 && place[k] < 0)
            place[k] = shape->n_labels++;
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        if (place[k] >= 0)
            shape->dims[place[k]] = sizes[k];
    for (int32_t i = 0; i < reshape->n_in; i++) {
        const grt_tensor *in = reshape->in[i];
        int64_t strides[GRT_MAX_RANK];
        GRT_TRY(grt_einsum_input(reshape->desc, i, reshape->n_in, in->rank, labels, &wide));
        grt_dims_strides(in->dims, in->rank, strides);
        for (int32_t k = 0; k < in->rank; k++) /* a letter twice walks the diagonal */
            shape->strides[i][place[labels[k]]] += in->dims[k] == 1 ? 0 : strides[k];
    }
    shape->n_results = grt_dims_product(shape->dims, 0, shape->n_out);
    shape->n_terms = grt_dims_product(shape->dims, shape->n_out, shape->n_labels);
    if (shape->n_results < 0 || shape->n_terms < 0)
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT, "the number of terms exceeds 2^63");
    return GRT_OK;
}

/* Offset of operand i for the flat index of labels [from, to). */
static int64_t offset_of(const einsum_shape *s, int32_t i, int32_t from, int32_t to, int64_t flat)
{
    int64_t offset = 0;
    for (int32_t k = to - 1; k >= from; k--) {
        offset += flat % s->dims[k] * s->strides[i][k];
        flat /= s->dims[k];
    }
    return offset;
}

/* Sum over the last label for one or two float32 operands, the usual case. */
static double sum_floats(const grt_run *run, const einsum_shape *s, int64_t result)
{
    int32_t last = s->n_labels - 1;
    bool inner = last >= s->n_out;
    int64_t n = inner ? s->dims[last] : 1, rows = inner ? s->n_terms / n : 1;
    int64_t step_a = inner ? s->strides[0][last] : 0, step_b = inner && run->n_in > 1 ? s->strides[1][last] : 0;
    int64_t base_a = offset_of(s, 0, 0, s->n_out, result), base_b = run->n_in > 1 ? offset_of(s, 1, 0, s->n_out, result) : 0;
    const float one = 1;
    double sum = 0;
    for (int64_t row = 0; row < rows; row++) {
        const float *a = (const float *)run->in[0]->data + base_a + (inner ? offset_of(s, 0, s->n_out, last, row) : 0);
        const float *b = &one;
        if (run->n_in > 1)
            b = (const float *)run->in[1]->data + base_b + (inner ? offset_of(s, 1, s->n_out, last, row) : 0);
        double part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = 0; i < n; i++)
            part += (double)a[i * step_a] * (double)b[i * step_b];
        sum += part;
    }
    return sum;
}

static double sum_reals(const grt_run *run, const einsum_shape *s, int64_t result)
{
    double sum = 0;
    for (int64_t term = 0; term < s->n_terms; term++) {
        double product = 1;
        for (int32_t i = 0; i < run->n_in; i++)
            product *= cpu_element_get(run->in[i], offset_of(s, i, 0, s->n_out, result) +
                                                       offset_of(s, i, s->n_out, s->n_labels, term));
        sum += product;
    }
    return sum;
}

static uint64_t sum_ints(const grt_run *run, const einsum_shape *s, int64_t result)
{
    uint64_t sum = 0;
    for (int64_t term = 0; term < s->n_terms; term++) {
        uint64_t product = 1;
        for (int32_t i = 0; i < run->n_in; i++)
            product *= (uint64_t)grt_tensor_int(run->in[i], offset_of(s, i, 0, s->n_out, result) +
                                                                offset_of(s, i, s->n_out, s->n_labels, term));
        sum += product;
    }
    return sum;
}

static void put_int(grt_tensor *out, int64_t i, uint64_t v)
{
    switch (grt_dtype_size(out->dtype)) {
    case 8:
        ((uint64_t *)out->data)[i] = v;
        break;
    case 4:
        ((uint32_t *)out->data)[i] = (uint32_t)v;
        break;
    case 2:
        ((uint16_t *)out->data)[i] = (uint16_t)v;
        break;
    default:
        ((uint8_t *)out->data)[i] = (uint8_t)v;
    }
}

static grt_status run_einsum(const grt_run *run)
{
    const einsum_shape *s = run->shape;
    grt_tensor *out = run->out[0];
    bool floats = out->dtype == GRT_DTYPE_FLOAT && run->n_in <= 2 && s->n_terms > 0;
    bool ints = grt_dtype_in(out->dtype, GRT_SET_INTS);
    int64_t terms = s->n_terms > 0 ? s->n_terms : 1;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (s->n_results > CPU_GRAIN / terms)
    for (int64_t k = 0; k < s->n_results; k++) {
        if (ints)
            put_int(out, k, sum_ints(run, s, k));
        else
            cpu_element_put(out, k, floats ? sum_floats(run, s, k) : sum_reals(run, s, k));
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Einsum", .domain = "", .types = {GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS},
     .reshape = reshape_einsum, .release_shape = free, .run = run_einsum},
};
CPU_KERNELS(einsum, rows);
