/* SPDX-License-Identifier: Apache-2.0 */
/* Resize. Nearest picks elements of any type by tables; linear and cubic blend along one axis after the
 * other, shrinking axes first, in float32 or, for types that it does not hold, in float64. */
#include "backends/cpu/dispatch.h"
#include "backends/cpu/move.h"

#include "src/base/element.h"
#include "backends/shared/resize.h"
#include "src/base/checked.h"

#include <string.h>

static grt_status create_resize(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(grt_resize), out_state));
    grt_resize_read(node->desc, *out_state);
    return GRT_OK;
}

#define DEFINE_PICK(bits)                                                                          \
    static void pick_##bits(void *dst, const void *src, const void *outside, const int64_t *table, \
                            int64_t n)                                                             \
    {                                                                                              \
        const cpu_bits##bits *from = src, *other = outside;                                        \
        for (int64_t k = 0; k < n; k++)                                                            \
            ((cpu_bits##bits *)dst)[k] = table[k] < 0 ? *other : from[table[k]];                   \
    }
DEFINE_PICK(8)
DEFINE_PICK(16)
DEFINE_PICK(32)
DEFINE_PICK(64)
DEFINE_PICK(128)

/* Rows of words doubled, into one row or two: upsampling by two, the common case. */
CPU_BODY double_words_body(void *dst, void *other, const void *src, int64_t n)
{
    const cpu_bits32 *restrict from = src;
    cpu_bits32 *restrict to = dst, *restrict too = other;
    if (!too) {
#pragma omp simd
        for (int64_t k = 0; k < n / 2; k++) {
            to[2 * k] = from[k];
            to[2 * k + 1] = from[k];
        }
        return;
    }
#pragma omp simd
    for (int64_t k = 0; k < n / 2; k++) {
        to[2 * k] = from[k];
        to[2 * k + 1] = from[k];
        too[2 * k] = from[k];
        too[2 * k + 1] = from[k];
    }
}
/* Vectors of 32 bytes are faster here than those of 64, whose halves have to be crossed. */
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static void double_words_avx2(void *dst, void *other, const void *src,
                                                              int64_t n)
{
    double_words_body(dst, other, src, n);
}
#endif

static void double_words(void *dst, void *other, const void *src, int64_t n)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (cpu_isa_best() >= CPU_ISA_AVX2) {
        double_words_avx2(dst, other, src, n);
        return;
    }
#endif
    double_words_body(dst, other, src, n);
}

/* Does the table name each element `times` times, one after the other? */
static bool repeats(const int64_t *table, int64_t n, int64_t times)
{
    for (int64_t k = 0; k < n; k++)
        if (table[k] != k / times)
            return false;
    return n % times == 0;
}

/* Offset of plane `row` of output rows in the input; -1 if it is outside. */
static int64_t plane_offset(const grt_tensor *out, int64_t *const *tables, int64_t row)
{
    int64_t offset = 0;
    for (int32_t k = out->rank - 3; k >= 0; k--) {
        int64_t at = tables[k][row % out->dims[k]];
        if (at < 0)
            return -1;
        offset += at;
        row /= out->dims[k];
    }
    return offset;
}

static void run_nearest(const grt_run *run, const grt_resize_axis *plans)
{
    const grt_resize *s = run->state;
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int64_t strides[GRT_MAX_RANK], *tables[GRT_MAX_RANK], *next = run->workspace,
                                                          total = grt_tensor_elements(out);
    size_t bytes = grt_dtype_size(in->dtype);
    uint64_t outside[2] = {0};
    if (grt_dtype_in(in->dtype, GRT_SET_NUMBERS))
        grt_element_store(in->dtype, outside, 0, s->outside);
    grt_dims_strides(in->dims, in->rank, strides);
    for (int32_t k = 0; k < in->rank; k++) {
        tables[k] = next;
        for (int64_t i = 0; i < plans[k].out; i++) {
            double x = (double)i;
            bool inside = !plans[k].active || grt_resize_source(s->coordinates, &plans[k], i, &x);
            *next++ = inside ? grt_resize_nearest(s->rounding, x, plans[k].in) * strides[k] : -1;
        }
    }
    int64_t n = out->dims[out->rank - 1], rows = total / n, parts = total < CPU_GRAIN ? 1 : 4 * run->threads;
    parts = parts > rows ? rows : parts;
    const int64_t lines = out->rank > 1 ? out->dims[out->rank - 2] : 1;
    bool twice = bytes == 4 && repeats(tables[out->rank - 1], n, 2),
         plain = repeats(tables[out->rank - 1], n, 1);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (parts > 1)
    for (int64_t part = 0; part < parts; part++) {
        const int64_t end = rows * (part + 1) / parts;
        int64_t before = -2, row = rows * part / parts, line = row % lines,
                plane = plane_offset(out, tables, row / lines);
        for (; row < end; row++, line++) {
            if (line == lines) {
                line = 0;
                plane = plane_offset(out, tables, row / lines);
            }
            const int64_t at = out->rank > 1 ? tables[out->rank - 2][line] : 0,
                          offset = plane < 0 || at < 0 ? -1 : plane + at;
            char *dst = cpu_at(out->data, row * n, bytes);
            if (offset == before) /* enlarged: the row above again */
                memcpy(dst, dst - (size_t)n * bytes, (size_t)n * bytes);
            else if (offset < 0)
                cpu_fill(dst, outside, bytes, n, 1);
            else if (plain) /* channels last */
                memcpy(dst, cpu_at_const(in->data, offset, bytes), (size_t)n * bytes);
            else if (twice) {
                const bool again = row + 1 < end && line + 1 < lines && tables[out->rank - 2][line + 1] == at;
                double_words(dst, again ? dst + (size_t)n * bytes : NULL,
                             cpu_at_const(in->data, offset, bytes), n);
                row += again;
                line += again;
            } else
                CPU_BY_SIZE(bytes, pick_, dst, cpu_at_const(in->data, offset, bytes), outside,
                            tables[out->rank - 1], n);
            before = offset;
        }
    }
}

/* What makes one output position of an axis: `n` neighbours from `first` on, or nothing if it is outside.
 */
typedef struct blend {
    int64_t first;
    int32_t n; /* 0: outside */
    double *weights;
} blend;

/* Maximum number of neighbours of a position; neighbours beyond the border count as the border's element. */
static int64_t most_taps(const grt_resize *s, int64_t in, int64_t out)
{
    if (!s->antialias)
        return in < 5 ? in : 5;
    if (s->coordinates == GRT_RESIZE_CROP || s->aspect != GRT_RESIZE_STRETCH)
        return in;
    double reach = grt_resize_radius(s, (double)out / (double)in), taps = 2 * reach + 2;
    return taps < (double)in ? (int64_t)taps : in;
}

static void weigh(const grt_resize *s, const grt_resize_axis *p, int64_t i, blend *b)
{
    grt_resize_reach a;
    double sum = 0;
    b->first = b->n = 0;
    if (!grt_resize_reach_of(s, p, i, &a))
        return;
    b->first = grt_resize_clamp((double)a.low, p->in);
    b->n = (int32_t)(grt_resize_clamp((double)a.high, p->in) - b->first + 1);
    memset(b->weights, 0, (size_t)b->n * sizeof *b->weights);
    for (int64_t k = a.low; k <= a.high; k++) {
        const double w = grt_resize_weight(s, &a, k, p->in);
        b->weights[grt_resize_clamp((double)k, p->in) - b->first] += w;
        sum += w;
    }
    if (grt_resize_rescales(s) && sum != 0)
        for (int32_t k = 0; k < b->n; k++)
            b->weights[k] /= sum;
}

/* dst[inner] = sum of weighted rows of src. */
#define DEFINE_BLEND(T)                                                                              \
    static void blend_##T(const blend *b, void *dst, const void *src, int64_t inner, double outside) \
    {                                                                                                \
        T *restrict to = dst;                                                                        \
        const T *restrict from = (const T *)src + b->first * inner;                                  \
        int32_t done = b->n < 2 ? b->n : 2;                                                          \
        const T w0 = done > 0 ? (T)b->weights[0] : 0, w1 = done > 1 ? (T)b->weights[1] : 0;          \
        if (done == 0)                                                                               \
            for (int64_t i = 0; i < inner; i++)                                                      \
                to[i] = (T)outside;                                                                  \
        else if (done == 1)                                                                          \
            _Pragma("omp simd") for (int64_t i = 0; i < inner; i++) to[i] = w0 * from[i];            \
        else                                                                                         \
            _Pragma("omp simd") for (int64_t i = 0; i < inner; i++) to[i] =                          \
                w0 * from[i] + w1 * from[inner + i];                                                 \
        for (int32_t k = done; k < b->n; k++) {                                                      \
            const T w = (T)b->weights[k], *restrict row = from + k * inner;                          \
            _Pragma("omp simd") for (int64_t i = 0; i < inner; i++) to[i] += w * row[i];             \
        }                                                                                            \
    }                                                                                                \
    /* The last axis: a row of n outputs from one row of the input. */                               \
    static void blend_row_##T(const blend *b, int64_t n, void *dst, const void *src, double outside) \
    {                                                                                                \
        T *restrict to = dst;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                            \
            const T *restrict from = (const T *)src + b[i].first;                                    \
            const double *restrict w = b[i].weights;                                                 \
            T sum = b[i].n ? (T)w[0] * from[0] : (T)outside;                                         \
            for (int32_t k = 1; k < b[i].n; k++)                                                     \
                sum += (T)w[k] * from[k];                                                            \
            to[i] = sum;                                                                             \
        }                                                                                            \
    }
DEFINE_BLEND(float)
DEFINE_BLEND(double)

static bool in_float(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT || dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16;
}

/* Order of axes: the one that shrinks most first. */
static void order_axes(const grt_tensor *in, const grt_tensor *out, int32_t *order)
{
    for (int32_t k = 0; k < in->rank; k++) {
        int32_t i = k;
        for (; i > 0 && (double)out->dims[k] * (double)in->dims[order[i - 1]] <
                            (double)out->dims[order[i - 1]] * (double)in->dims[k];
             i--)
            order[i] = order[i - 1];
        order[i] = k;
    }
}

typedef struct layout {
    int32_t order[GRT_MAX_RANK];
    size_t table_bytes;  /* blends and weights of the longest axis */
    size_t buffer_bytes; /* of each of two buffers for the tensor between two axes */
} layout;

static grt_status plan_layout(const grt_op_desc *desc, const grt_resize *s, const grt_tensor *in,
                              const grt_tensor *out, layout *l)
{
    int64_t dims[GRT_MAX_RANK], most = grt_tensor_elements(in);
    order_axes(in, out, l->order);
    memcpy(dims, in->dims, sizeof dims);
    l->table_bytes = 0;
    for (int32_t i = 0; i < in->rank; i++) {
        int32_t k = l->order[i];
        dims[k] = out->dims[k];
        int64_t n = grt_dims_product(dims, 0, in->rank);
        if (n < 0)
            return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT, "the resized tensor is too large");
        most = n > most ? n : most;
        int64_t taps = out->dims[k] ? most_taps(s, in->dims[k], out->dims[k]) : 0;
        size_t bytes = (size_t)out->dims[k] * (sizeof(blend) + (size_t)taps * sizeof(double));
        l->table_bytes = bytes > l->table_bytes ? bytes : l->table_bytes;
    }
    l->table_bytes = grt_align_up(l->table_bytes, 64);
    l->buffer_bytes = grt_align_up((size_t)most * (in_float(in->dtype) ? sizeof(float) : sizeof(double)), 64);
    return GRT_OK;
}

static grt_status reshape_resize(grt_reshape *reshape)
{
    const grt_resize *s = reshape->state;
    const grt_tensor *in = reshape->in[0], *out = reshape->out[0];
    if (s->mode == GRT_RESIZE_NEAREST) {
        size_t entries = 0;
        for (int32_t k = 0; k < out->rank; k++)
            entries += (size_t)out->dims[k];
        reshape->workspace_bytes = entries * sizeof(int64_t);
        return GRT_OK;
    }
    layout l;
    GRT_TRY(plan_layout(reshape->desc, s, in, out, &l));
    reshape->workspace_bytes = l.table_bytes + 2 * l.buffer_bytes;
    return GRT_OK;
}

/* Resize one axis: from dims to dims with dims[axis] = p->out. */
static void blend_axis(const grt_run *run, const grt_resize_axis *p, const int64_t *dims, int32_t axis,
                       bool narrow, void *dst, const void *src)
{
    const grt_resize *s = run->state;
    int64_t outer = grt_dims_product(dims, 0, axis),
            inner = grt_dims_product(dims, axis + 1, run->in[0]->rank);
    int64_t taps = most_taps(s, p->in, p->out), rows = outer * p->out;
    size_t size = narrow ? sizeof(float) : sizeof(double);
    blend *blends = run->workspace;
    double *weights = (double *)(blends + p->out);
    for (int64_t i = 0; i < p->out; i++) {
        blends[i].weights = weights + i * taps;
        weigh(s, p, i, &blends[i]);
    }
    if (inner == 1) {
#pragma omp parallel for num_threads(run->threads) schedule(static) if (rows > CPU_GRAIN)
        for (int64_t row = 0; row < outer; row++) {
            void *to = cpu_at(dst, row * p->out, size);
            const void *from = cpu_at_const(src, row * p->in, size);
            (narrow ? blend_row_float : blend_row_double)(blends, p->out, to, from, s->outside);
        }
        return;
    }
#pragma omp parallel for num_threads(run->threads) schedule(static) if (rows * inner > CPU_GRAIN)
    for (int64_t row = 0; row < rows; row++) {
        const blend *b = &blends[row % p->out];
        void *to = cpu_at(dst, row * inner, size);
        const void *from = cpu_at_const(src, row / p->out * p->in * inner, size);
        if (narrow)
            blend_float(b, to, from, inner, s->outside);
        else
            blend_double(b, to, from, inner, s->outside);
    }
}

/* Between the tensor's type and the one that is computed in. */
static void resize_widen(void *dst, const grt_tensor *src, bool narrow, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (narrow)
            ((float *)dst)[i] = (float)grt_element_get(src, i);
        else
            ((double *)dst)[i] = grt_element_get(src, i);
}

static void resize_store(grt_tensor *dst, const void *src, bool narrow, int64_t n)
{
    bool whole = grt_dtype_in(dst->dtype, GRT_SET_INTS);
    for (int64_t i = 0; i < n; i++) {
        double v = narrow ? (double)((const float *)src)[i] : ((const double *)src)[i];
        grt_element_put(dst, i, whole ? rint(v) : v);
    }
}

static grt_status run_resize(const grt_run *run)
{
    const grt_resize *s = run->state;
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    grt_resize_axis plans[GRT_MAX_RANK];
    layout l;
    if (grt_tensor_elements(out) == 0)
        return GRT_OK;
    GRT_TRY(grt_resize_plan(s, run->desc, run->in, run->n_in, out, plans));
    if (in->rank == 0) {
        memcpy(out->data, in->data, grt_dtype_size(in->dtype));
        return GRT_OK;
    }
    if (s->mode == GRT_RESIZE_NEAREST) {
        run_nearest(run, plans);
        return GRT_OK;
    }
    GRT_TRY(plan_layout(run->desc, s, in, out, &l));
    bool narrow = in_float(in->dtype), direct = in->dtype == GRT_DTYPE_FLOAT || in->dtype == GRT_DTYPE_DOUBLE;
    char *buffers[2] = {(char *)run->workspace + l.table_bytes,
                        (char *)run->workspace + l.table_bytes + l.buffer_bytes};
    const void *now = in->data;
    int32_t left = 0, which = 0;
    if (!direct) {
        resize_widen(buffers[0], in, narrow, grt_tensor_elements(in));
        now = buffers[0];
        which = 1;
    }
    for (int32_t k = 0; k < in->rank; k++)
        left += plans[k].active;
    int64_t dims[GRT_MAX_RANK];
    memcpy(dims, in->dims, sizeof dims);
    for (int32_t i = 0; i < in->rank; i++) {
        int32_t k = l.order[i];
        if (!plans[k].active)
            continue;
        void *to = --left == 0 && direct ? out->data : buffers[which];
        blend_axis(run, &plans[k], dims, k, narrow, to, now);
        dims[k] = plans[k].out;
        now = to;
        which ^= 1;
    }
    if (!direct)
        resize_store(out, now, narrow, grt_tensor_elements(out));
    else if (now == in->data)
        cpu_copy(out->data, in->data, grt_tensor_bytes(in), run->threads);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Resize",
     .domain = "",
     .types = {CPU_MOVABLE, GRT_SET_FLOATS, GRT_SET_FLOATS, CPU_INDEX},
     .supports = grt_resize_supports,
     .create = create_resize,
     .destroy = free,
     .reshape = reshape_resize,
     .run = run_resize},
};
CPU_KERNELS(resize, rows);
