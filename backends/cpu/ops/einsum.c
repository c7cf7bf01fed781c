/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: for each output element the sum, over the labels that the output lacks, of the products of the
 * operands. Two operands of float32, or of 16-bit floats that are widened, that share all summed labels are
 * one batched matrix product. */
#include "backends/cpu/convert.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/move.h"

#include "src/base/checked.h"
#include "src/base/einsum.h"
#include "src/base/element.h"

#include <string.h>

/* One matrix product: how each operand is gathered into a dense [batch, rows, columns], or used in place.
 */
typedef struct product {
    bool possible;
    cpu_move gather_a, gather_b, scatter_c;
    bool dense_a, dense_b, dense_c;
    grt_gemm gemm;
    size_t bytes_a, bytes_b, bytes_c;
    size_t wide_a, wide_b, wide_c; /* bytes of operands and result in float32, where they are 16-bit floats */
} product;

/* Labels of the output come first, then those that are summed over. */
typedef struct einsum_shape {
    int32_t n_labels, n_out;
    int64_t dims[GRT_EINSUM_LABELS];
    int64_t n_results, n_terms;
    product product;
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
                                   "dim %d of input %d is %lld where the same letter had %lld", k, i,
                                   (long long)in->dims[k], (long long)*size);
            *size = *size < 0 || *size == 1 ? in->dims[k] : *size;
        }
    }
    return GRT_OK;
}

typedef enum label_kind { BATCH, ROW, COLUMN, SUMMED, ONE } label_kind;

/* False if a label is summed in one operand alone. Labels of size 1 play no part. */
static bool label_kinds(const einsum_shape *s, label_kind *kinds)
{
    for (int32_t k = 0; k < s->n_labels; k++) {
        bool in_a = s->strides[0][k] != 0, in_b = s->strides[1][k] != 0, in_out = k < s->n_out;
        kinds[k] = s->dims[k] == 1  ? ONE
                   : in_a && in_b   ? (in_out ? BATCH : SUMMED)
                   : in_a && in_out ? ROW
                                    : COLUMN;
        if (kinds[k] == COLUMN && (!in_b || !in_out))
            return false;
    }
    return true;
}

/* Walk the labels of three kinds as one dense tensor in that order: `strides` are those of the other side. */
static void walk_kinds(const einsum_shape *s, const label_kind *kinds, const label_kind order[3],
                       const int64_t *strides, cpu_move *move, bool *out_dense)
{
    int32_t labels[GRT_EINSUM_LABELS], n = 0;
    int64_t dense = 1;
    *move = (cpu_move){.size = sizeof(float)};
    for (int i = 0; i < 3; i++)
        for (int32_t k = 0; k < s->n_labels; k++)
            if (kinds[k] == order[i])
                labels[n++] = k;
    move->rank = n;
    *out_dense = true;
    for (int32_t i = n - 1; i >= 0; i--) {
        move->dims[i] = s->dims[labels[i]];
        move->to[i] = dense;
        move->from[i] = strides[labels[i]];
        *out_dense = *out_dense && move->from[i] == dense;
        dense *= move->dims[i];
    }
}

static int64_t kind_size(const einsum_shape *s, const label_kind *kinds, label_kind kind)
{
    int64_t n = 1;
    for (int32_t k = 0; k < s->n_labels; k++)
        n *= kinds[k] == kind ? s->dims[k] : 1;
    return n;
}

/* Whether labels of kind `x` lie closer together than those of kind `y`: then they should be the columns. */
static bool closer(const einsum_shape *s, const label_kind *kinds, const int64_t *strides, label_kind x,
                   label_kind y)
{
    int64_t least_x = INT64_MAX, least_y = INT64_MAX;
    for (int32_t k = 0; k < s->n_labels; k++) {
        if (kinds[k] == x && strides[k] < least_x)
            least_x = strides[k];
        if (kinds[k] == y && strides[k] < least_y)
            least_y = strides[k];
    }
    return least_x < least_y;
}

enum { SMALL = 512, MAX_WALK = CPU_MOVE_RANK };

static size_t float_bytes(int64_t n)
{
    return grt_align_up((size_t)n * sizeof(float), 64);
}

static void plan_product(const grt_reshape *reshape, einsum_shape *s, size_t *out_workspace)
{
    label_kind kinds[GRT_EINSUM_LABELS];
    product *p = &s->product;
    int64_t out_strides[GRT_EINSUM_LABELS] = {0};
    size_t scratch;
    *out_workspace = 0;
    const grt_dtype dtype = reshape->in[0]->dtype;
    const bool narrow = dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16;
    if (reshape->n_in != 2 || (dtype != GRT_DTYPE_FLOAT && !narrow) || s->n_results <= 0 || s->n_terms <= 0 ||
        s->n_results < SMALL / s->n_terms || s->n_labels > MAX_WALK || !label_kinds(s, kinds))
        return;
    grt_dims_strides(s->dims, s->n_out, out_strides);
    int64_t batch = kind_size(s, kinds, BATCH), m = kind_size(s, kinds, ROW), n = kind_size(s, kinds, COLUMN);
    int64_t k = kind_size(s, kinds, SUMMED);
    bool trans_a = closer(s, kinds, s->strides[0], ROW, SUMMED),
         trans_b = closer(s, kinds, s->strides[1], SUMMED, COLUMN);
    walk_kinds(s, kinds, (label_kind[]){BATCH, trans_a ? SUMMED : ROW, trans_a ? ROW : SUMMED}, s->strides[0],
               &p->gather_a, &p->dense_a);
    walk_kinds(s, kinds, (label_kind[]){BATCH, trans_b ? COLUMN : SUMMED, trans_b ? SUMMED : COLUMN},
               s->strides[1], &p->gather_b, &p->dense_b);
    walk_kinds(s, kinds, (label_kind[]){BATCH, ROW, COLUMN}, out_strides, &p->scatter_c, &p->dense_c);
    for (int32_t i = 0; i < p->scatter_c.rank; i++) { /* this one goes the other way */
        int64_t to = p->scatter_c.from[i];
        p->scatter_c.from[i] = p->scatter_c.to[i];
        p->scatter_c.to[i] = to;
    }
    p->gemm = (grt_gemm){.batch = batch,
                         .m = m,
                         .n = n,
                         .k = k,
                         .lda = trans_a ? m : k,
                         .ldb = trans_b ? k : n,
                         .ldc = n,
                         .stride_a = m * k,
                         .stride_b = n * k,
                         .stride_c = m * n,
                         .trans_a = trans_a,
                         .trans_b = trans_b,
                         .alpha = 1};
    if (!grt_gemm_scratch_bytes(&p->gemm, reshape->threads, &scratch))
        return;
    p->bytes_a = p->dense_a ? 0 : float_bytes(batch * m * k);
    p->bytes_b = p->dense_b ? 0 : float_bytes(batch * n * k);
    p->bytes_c = p->dense_c ? 0 : float_bytes(batch * m * n);
    if (narrow) {
        p->wide_a = float_bytes(grt_tensor_elements(reshape->in[0]));
        p->wide_b = float_bytes(grt_tensor_elements(reshape->in[1]));
        p->wide_c = float_bytes(s->n_results);
    }
    p->possible = true;
    *out_workspace = p->wide_a + p->wide_b + p->wide_c + p->bytes_a + p->bytes_b + p->bytes_c + scratch;
}

/* a, b and c are float32. */
static void run_wide_product(const grt_run *run, const product *p, const float *a, const float *b, float *c,
                             char *room)
{
    float *const out = c;
    cpu_move move;
    if (!p->dense_a) {
        move = p->gather_a;
        cpu_move_run(&move, room, a, run->threads);
        a = (const float *)room;
    }
    room += p->bytes_a;
    if (!p->dense_b) {
        move = p->gather_b;
        cpu_move_run(&move, room, b, run->threads);
        b = (const float *)room;
    }
    room += p->bytes_b;
    if (!p->dense_c)
        c = (float *)room;
    grt_gemm_run(&p->gemm, a, b, c, room + p->bytes_c, run->threads);
    if (!p->dense_c) {
        move = p->scatter_c;
        cpu_move_run(&move, out, c, run->threads);
    }
}

static void run_product(const grt_run *run, const product *p)
{
    const grt_tensor *a = run->in[0], *b = run->in[1];
    grt_tensor *c = run->out[0];
    char *room = run->workspace;
    if (!p->wide_a) {
        run_wide_product(run, p, a->data, b->data, c->data, room);
        return;
    }
    float *wide_a = (float *)room, *wide_b = (float *)(room + p->wide_a),
          *wide_c = (float *)(room + p->wide_a + p->wide_b);
    cpu_widen(a->dtype, a->data, 0, grt_tensor_elements(a), wide_a);
    cpu_widen(b->dtype, b->data, 0, grt_tensor_elements(b), wide_b);
    run_wide_product(run, p, wide_a, wide_b, wide_c, room + p->wide_a + p->wide_b + p->wide_c);
    cpu_narrow(c->dtype, wide_c, grt_tensor_elements(c), c->data, 0, (cpu_convert_options){0});
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
    plan_product(reshape, shape, &reshape->workspace_bytes);
    return GRT_OK;
}

/* Offset of operand i for the flat index of labels [from, to). */
static int64_t einsum_offset_of(const einsum_shape *s, int32_t i, int32_t from, int32_t to, int64_t flat)
{
    return grt_strided_offset(s->dims + from, to - from, s->strides[i] + from, flat);
}

/* Sum over the last label for one or two float32 operands, the usual case. */
static double sum_floats(const grt_run *run, const einsum_shape *s, int64_t result)
{
    int32_t last = s->n_labels - 1;
    bool inner = last >= s->n_out;
    int64_t n = inner ? s->dims[last] : 1, rows = inner ? s->n_terms / n : 1;
    int64_t step_a = inner ? s->strides[0][last] : 0,
            step_b = inner && run->n_in > 1 ? s->strides[1][last] : 0;
    int64_t base_a = einsum_offset_of(s, 0, 0, s->n_out, result),
            base_b = run->n_in > 1 ? einsum_offset_of(s, 1, 0, s->n_out, result) : 0;
    const float one = 1;
    double sum = 0;
    for (int64_t row = 0; row < rows; row++) {
        const float *a = (const float *)run->in[0]->data + base_a +
                         (inner ? einsum_offset_of(s, 0, s->n_out, last, row) : 0);
        const float *b = &one;
        if (run->n_in > 1)
            b = (const float *)run->in[1]->data + base_b +
                (inner ? einsum_offset_of(s, 1, s->n_out, last, row) : 0);
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
        double term_value = 1;
        for (int32_t i = 0; i < run->n_in; i++)
            term_value *=
                grt_element_get(run->in[i], einsum_offset_of(s, i, 0, s->n_out, result) +
                                                einsum_offset_of(s, i, s->n_out, s->n_labels, term));
        sum += term_value;
    }
    return sum;
}

static uint64_t sum_ints(const grt_run *run, const einsum_shape *s, int64_t result)
{
    uint64_t sum = 0;
    for (int64_t term = 0; term < s->n_terms; term++) {
        uint64_t term_value = 1;
        for (int32_t i = 0; i < run->n_in; i++)
            term_value *=
                (uint64_t)grt_tensor_int(run->in[i], einsum_offset_of(s, i, 0, s->n_out, result) +
                                                         einsum_offset_of(s, i, s->n_out, s->n_labels, term));
        sum += term_value;
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

/* One operand of which nothing is summed: a transpose, or a diagonal. False: another. */
static bool run_einsum_move(const grt_run *run, const einsum_shape *s)
{
    int64_t to[GRT_EINSUM_LABELS];
    if (run->n_in != 1 || s->n_terms != 1 || s->n_labels != s->n_out || s->n_out > MAX_WALK ||
        run->in[0]->dtype != run->out[0]->dtype || s->n_results < 1)
        return false;
    cpu_move move = {.size = grt_dtype_size(run->in[0]->dtype)};
    grt_dims_strides(s->dims, s->n_out, to);
    for (int32_t k = 0; k < s->n_out; k++)
        cpu_move_axis(&move, s->dims[k], to[k], s->strides[0][k]);
    cpu_move_run(&move, run->out[0]->data, run->in[0]->data, run->threads);
    return true;
}

static grt_status run_einsum(const grt_run *run)
{
    const einsum_shape *s = run->shape;
    grt_tensor *out = run->out[0];
    if (run_einsum_move(run, s))
        return GRT_OK;
    if (s->product.possible) {
        run_product(run, &s->product);
        return GRT_OK;
    }
    bool floats = out->dtype == GRT_DTYPE_FLOAT && run->n_in <= 2 && s->n_terms > 0;
    bool ints = grt_dtype_in(out->dtype, GRT_SET_INTS);
    int64_t terms = s->n_terms > 0 ? s->n_terms : 1;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (s->n_results > CPU_GRAIN / terms)
    for (int64_t k = 0; k < s->n_results; k++) {
        if (ints)
            put_int(out, k, sum_ints(run, s, k));
        else
            grt_element_put(out, k, floats ? sum_floats(run, s, k) : sum_reals(run, s, k));
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Einsum",
     .domain = "",
     .types = {GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS},
     .reshape = reshape_einsum,
     .release_shape = free,
     .run = run_einsum},
};
CPU_KERNELS(einsum, rows);
