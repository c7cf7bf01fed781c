/* SPDX-License-Identifier: Apache-2.0 */
/* Hardmax, LpNormalization, MeanVarianceNormalization, DFT, Einsum, NonZero, Compress, Shape, Size. */
#include "backends/cuda/order.cuh"
#include "src/base/einsum.h"

namespace
{

/* ---- along one axis: Hardmax, LpNormalization ---- */

struct axis_state {
    int64_t axis, p;
};

grt_status create_axis(const grt_kernel_node *node, void **out_state)
{
    axis_state *s;
    GRT_TRY(cuda_state(&s));
    s->axis = grt_attr_int(node->desc, "axis", -1);
    s->p = grt_attr_int(node->desc, "p", 2);
    *out_state = s;
    return GRT_OK;
}

bool supports_norm(const grt_kernel_node *node, grt_text *why)
{
    int64_t p = grt_attr_int(node->desc, "p", 2);
    if (p == 1 || p == 2)
        return true;
    if (why)
        grt_text_add(why, "attribute p is %lld; norms 1 and 2 are supported", (long long)p);
    return false;
}

/* Lines of n elements, `inner` apart. */
struct line {
    int64_t rows, n, inner;

    __device__ int64_t base(int64_t row) const
    {
        return row / inner * n * inner + row % inner;
    }
};

line line_of(const grt_run *r)
{
    const grt_tensor *in = r->in[0];
    int32_t axis = (int32_t)grt_axis(((const axis_state *)r->state)->axis, in->rank);
    int64_t inner = grt_dims_product(in->dims, axis + 1, in->rank), n = in->dims[axis];
    return {n ? grt_dims_product(in->dims, 0, axis) * inner : 0, n, inner};
}

grt_status run_hardmax(const grt_run *r)
{
    const line l = line_of(r);
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    return cuda_each(r, l.rows, [=] __device__(int64_t row) {
        int64_t base = l.base(row), at = 0;
        double best = in.get(base);
        for (int64_t i = 1; i < l.n; i++) { /* NaN counts as greatest */
            double v = in.get(base + i * l.inner);
            if (best == best && (v > best || v != v)) {
                best = v;
                at = i;
            }
        }
        for (int64_t i = 0; i < l.n; i++)
            out.put(base + i * l.inner, i == at);
    });
}

grt_status run_norm(const grt_run *r)
{
    const line l = line_of(r);
    const int64_t p = ((const axis_state *)r->state)->p;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    return cuda_each(r, l.rows, [=] __device__(int64_t row) {
        int64_t base = l.base(row);
        double sum = 0;
        for (int64_t i = 0; i < l.n; i++) {
            double v = in.get(base + i * l.inner);
            sum += p == 1 ? fabs(v) : v * v;
        }
        double norm = p == 1 ? sum : sqrt(sum);
        for (int64_t i = 0; i < l.n; i++)
            out.put(base + i * l.inner, norm == 0 ? 0 : in.get(base + i * l.inner) / norm);
    });
}

/* ---- MeanVarianceNormalization: a block per kept index ---- */

struct walk {
    cuda_dims dims, strides;
    int64_t total;

    __host__ __device__ int64_t at(int64_t i) const
    {
        int64_t offset = 0;
        for (int32_t k = dims.rank - 1; k >= 0; k--) {
            offset += i % dims[k] * strides[k];
            i /= dims[k];
        }
        return offset;
    }
};

void walk_add(walk *w, int64_t dim, int64_t stride)
{
    w->dims[w->dims.rank] = dim;
    w->strides[w->dims.rank++] = stride;
    w->total *= dim;
}

grt_status run_mvn(const grt_run *r)
{
    static const int64_t usual[] = {0, 2, 3};
    const grt_tensor *x = r->in[0];
    size_t n;
    const int64_t *axes = grt_attr_ints(r->desc, "axes", &n);
    if (!axes)
        axes = usual, n = 3;
    walk kept = {}, over = {};
    bool named[GRT_MAX_RANK] = {};
    int64_t strides[GRT_MAX_RANK];
    kept.total = over.total = 1;
    grt_dims_strides(x->dims, x->rank, strides);
    for (size_t k = 0; k < n; k++) {
        int64_t axis = grt_axis(axes[k], x->rank);
        if (axis < 0)
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "axes[%zu] is %lld, the input has rank %d", k, (long long)axes[k], x->rank);
        named[axis] = true;
    }
    for (int32_t k = 0; k < x->rank; k++)
        walk_add(named[k] ? &over : &kept, x->dims[k], strides[k]);
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    return cuda_each_block(r, over.total > 0 ? kept.total : 0,
                           [=] __device__(int64_t row, int thread, int threads) {
                               int64_t base = kept.at(row);
                               double sum = 0, squares = 0;
                               for (int64_t i = thread; i < over.total; i += threads)
                                   sum += in.get(base + over.at(i));
                               double mean = cuda_block_sum(sum) / (double)over.total;
                               for (int64_t i = thread; i < over.total; i += threads) {
                                   double d = in.get(base + over.at(i)) - mean;
                                   squares += d * d;
                               }
                               double deviation = sqrt(cuda_block_sum(squares) / (double)over.total) + 1e-9;
                               for (int64_t i = thread; i < over.total; i += threads) {
                                   int64_t at = base + over.at(i);
                                   out.put(at, (in.get(at) - mean) / deviation);
                               }
                           });
}

/* ---- DFT: each output is the sum that defines it ---- */

struct transform {
    int64_t n, size, inner, components, out_size, out_components;
    bool inverse, mirrored; /* mirrored: half of the spectrum is given */
};

grt_status reshape_dft(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *y = r->out[0];
    const grt_tensor *length = r->n_in > 1 ? r->in[1] : NULL, *axis_input = r->n_in > 2 ? r->in[2] : NULL;
    const bool inverse = grt_attr_int(r->desc, "inverse", 0) != 0,
               onesided = grt_attr_int(r->desc, "onesided", 0) != 0;
    if ((length && !length->data) || (axis_input && !axis_input->data))
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "inputs dft_length and axis must be known before the run");
    int64_t axis = grt_axis(axis_input ? cuda_host_index(axis_input, 0) : -2, x->rank);
    if (x->rank < 2 || axis < 0 || axis == x->rank - 1 || x->dims[x->rank - 1] < 1 ||
        x->dims[x->rank - 1] > 2)
        return grt_fail_op(
            r->desc, GRT_STATUS_INVALID_ARGUMENT,
            "the input must end in an axis of 1 or 2 components, and the transform be along another one");
    transform t = {};
    t.size = x->dims[axis];
    t.n = length ? cuda_host_index(length, 0) : inverse && onesided ? 2 * (t.size - 1) : t.size;
    t.inner = grt_dims_product(x->dims, (int32_t)axis + 1, x->rank - 1);
    t.components = x->dims[x->rank - 1];
    t.out_size = y->dims[axis];
    t.out_components = y->dims[x->rank - 1];
    t.inverse = inverse;
    t.mirrored = inverse && onesided;
    if (t.n < 1 || (onesided && !inverse ? t.n / 2 + 1 : t.n) != t.out_size)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "a transform of length %lld does not fit the output's %lld", (long long)t.n,
                           (long long)t.out_size);
    transform *kept;
    GRT_TRY(cuda_state(&kept));
    *kept = t;
    r->shape = kept;
    return GRT_OK;
}

grt_status run_dft(const grt_run *r)
{
    const transform t = *(const transform *)r->shape;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    return cuda_each(r, grt_tensor_elements(r->out[0]) / t.out_components, [=] __device__(int64_t i) {
        int64_t at = i % t.inner, m = i / t.inner % t.out_size, outer = i / t.inner / t.out_size;
        double real = 0, imaginary = 0;
        for (int64_t k = 0; k < t.n; k++) {
            bool mirror = t.mirrored && k > t.n / 2;
            int64_t from = mirror ? t.n - k : k;
            if (from >= t.size)
                continue;
            int64_t place = ((outer * t.size + from) * t.inner + at) * t.components;
            double a = in.get(place), b = t.components == 2 ? in.get(place + 1) : 0, s, c;
            b = t.mirrored && (from == 0 || 2 * from == t.n) ? 0 : mirror ? -b : b;
            sincospi(2.0 * (double)(k * m % t.n) / (double)t.n, &s, &c);
            s = t.inverse ? s : -s;
            real += a * c - b * s;
            imaginary += a * s + b * c;
        }
        double scale = t.inverse ? 1.0 / (double)t.n : 1.0;
        out.put(i * t.out_components, real * scale);
        if (t.out_components == 2)
            out.put(i * 2 + 1, imaginary * scale);
    });
}

/* ---- Einsum: labels of the output come first, then those that are summed over ---- */

enum { MAX_OPERANDS = 4 };

struct product {
    int32_t n_in, n_out, n_labels;
    int64_t n_results, n_terms;
    int64_t dims[GRT_EINSUM_LABELS];
    int32_t strides[MAX_OPERANDS][GRT_EINSUM_LABELS]; /* 0 where it lacks the label or stretches */
};

struct operands {
    cuda_any t[MAX_OPERANDS];
};

bool supports_einsum(const grt_kernel_node *node, grt_text *why)
{
    if (node->n_in <= MAX_OPERANDS)
        return true;
    if (why)
        grt_text_add(why, "%d operands; up to %d are supported", node->n_in, MAX_OPERANDS);
    return false;
}

grt_status plan_einsum(const grt_reshape *r, product *p)
{
    int64_t sizes[GRT_EINSUM_LABELS];
    int8_t labels[MAX_OPERANDS][GRT_MAX_RANK], out[GRT_MAX_RANK];
    int32_t wide, ellipsis = 0, place[GRT_EINSUM_LABELS];
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        sizes[k] = place[k] = -1;
    for (int32_t i = 0; i < r->n_in; i++) {
        const grt_tensor *in = r->in[i];
        GRT_TRY(grt_einsum_input(r->desc, i, r->n_in, in->rank, labels[i], &wide));
        ellipsis = wide > ellipsis ? wide : ellipsis;
        if (grt_tensor_elements(in) > INT32_MAX)
            return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "operand %d has more than 2^31 elements", i);
        for (int32_t k = 0; k < in->rank; k++) {
            int64_t *size = &sizes[labels[i][k]];
            if (*size >= 0 && *size != 1 && in->dims[k] != 1 && *size != in->dims[k])
                return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                                   "dim %d of input %d is %lld where the same letter had %lld", k, i,
                                   (long long)in->dims[k], (long long)*size);
            *size = *size < 0 || *size == 1 ? in->dims[k] : *size;
        }
    }
    GRT_TRY(grt_einsum_output(r->desc, ellipsis, out, &p->n_out));
    p->n_in = r->n_in;
    p->n_results = p->n_terms = 1;
    for (int32_t k = 0; k < p->n_out; k++)
        place[out[k]] = p->n_labels++;
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        if (sizes[k] >= 0 && place[k] < 0)
            place[k] = p->n_labels++;
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        if (place[k] >= 0) {
            p->dims[place[k]] = sizes[k] < 0 ? 1 : sizes[k];
            *(place[k] < p->n_out ? &p->n_results : &p->n_terms) *= p->dims[place[k]];
        }
    for (int32_t i = 0; i < r->n_in; i++) {
        int64_t strides[GRT_MAX_RANK];
        grt_dims_strides(r->in[i]->dims, r->in[i]->rank, strides);
        for (int32_t k = 0; k < r->in[i]->rank; k++)
            if (r->in[i]->dims[k] != 1)
                p->strides[i][place[labels[i][k]]] += (int32_t)strides[k];
    }
    return GRT_OK;
}

grt_status reshape_einsum(grt_reshape *r)
{
    product *p;
    GRT_TRY(cuda_state(&p));
    grt_status status = plan_einsum(r, p);
    if (status != GRT_OK) {
        free(p);
        return status;
    }
    r->shape = p;
    return GRT_OK;
}

grt_status run_einsum(const grt_run *r)
{
    const product p = *(const product *)r->shape;
    cuda_any in[MAX_OPERANDS] = {}, out = cuda_any_out(r, 0);
    operands all;
    for (int32_t i = 0; i < MAX_OPERANDS; i++)
        all.t[i] = i < r->n_in ? cuda_any_in(r, i) : in[i];
    const bool whole = grt_dtype_in(out.dtype, GRT_SET_INTS);
    return cuda_each(r, p.n_results, [=] __device__(int64_t i) {
        int64_t base[MAX_OPERANDS] = {}, rest = i, exact = 0;
        double sum = 0;
        for (int32_t k = p.n_out - 1; k >= 0; k--) {
            for (int32_t o = 0; o < p.n_in; o++)
                base[o] += rest % p.dims[k] * p.strides[o][k];
            rest /= p.dims[k];
        }
        for (int64_t term = 0; term < p.n_terms; term++) {
            int64_t at[MAX_OPERANDS], left = term, whole_product = 1;
            double value = 1;
            for (int32_t o = 0; o < p.n_in; o++)
                at[o] = base[o];
            for (int32_t k = p.n_labels - 1; k >= p.n_out; k--) {
                for (int32_t o = 0; o < p.n_in; o++)
                    at[o] += left % p.dims[k] * p.strides[o][k];
                left /= p.dims[k];
            }
            for (int32_t o = 0; o < p.n_in; o++)
                if (whole)
                    whole_product = (int64_t)((uint64_t)whole_product * (uint64_t)all.t[o].whole(at[o]));
                else
                    value *= all.t[o].get(at[o]);
            sum += value;
            exact = (int64_t)((uint64_t)exact + (uint64_t)whole_product);
        }
        if (whole && (out.dtype == GRT_DTYPE_INT64 || out.dtype == GRT_DTYPE_UINT64))
            ((int64_t *)out.data)[i] = exact;
        else
            out.put(i, whole ? (double)exact : sum);
    });
}

/* ---- NonZero, Compress: one block counts the selected elements, in order ---- */

grt_status reshape_non_zero(grt_reshape *r)
{
    r->workspace_bytes = ((size_t)grt_tensor_elements(r->in[0]) + 1) * sizeof(int64_t);
    return GRT_OK;
}

grt_status run_non_zero(const grt_run *r)
{
    const cuda_any in = cuda_any_in(r, 0);
    const int64_t total = grt_tensor_elements(r->in[0]);
    int64_t *places = (int64_t *)r->workspace, n = 0;
    GRT_TRY(cuda_number(r, total, places, [=] __device__(int64_t i) { return in.get(i) != 0; }));
    GRT_TRY(cuda_read(r, places + total, &n));
    const cuda_dims dims = cuda_dims_of(r->in[0]);
    const int64_t found[] = {dims.rank, n};
    GRT_TRY(r->hooks->alloc_output(r, 0, 2, found));
    int64_t *out = (int64_t *)r->out[0]->data;
    return cuda_each(r, n > 0 ? total : 0, [=] __device__(int64_t i) {
        int64_t rest = i;
        for (int32_t k = dims.rank - 1; k >= 0 && places[i] >= 0; k--) {
            out[k * n + places[i]] = rest % dims[k];
            rest /= dims[k];
        }
    });
}

struct compress_state {
    bool flat;
    int64_t axis;
};

grt_status create_compress(const grt_kernel_node *node, void **out_state)
{
    compress_state *s;
    GRT_TRY(cuda_state(&s));
    s->flat = !grt_attr_find(node->desc, "axis");
    s->axis = grt_attr_int(node->desc, "axis", 0);
    *out_state = s;
    return GRT_OK;
}

grt_status reshape_compress(grt_reshape *r)
{
    r->workspace_bytes = ((size_t)grt_tensor_elements(r->in[1]) + 1) * sizeof(int64_t);
    return GRT_OK;
}

template <typename T> grt_status pick(const grt_run *r, int64_t outer, int64_t size, int64_t inner, int64_t n)
{
    const int64_t *places = (const int64_t *)r->workspace;
    const T *in = (const T *)r->in[0]->data;
    T *out = (T *)r->out[0]->data;
    const int64_t listed = grt_tensor_elements(r->in[1]), taken = listed < size ? listed : size;
    return cuda_each(r, outer * taken * inner, [=] __device__(int64_t i) {
        int64_t at = i % inner, k = i / inner % taken, o = i / inner / taken;
        if (places[k] >= 0)
            out[(o * n + places[k]) * inner + at] = in[(o * size + k) * inner + at];
    });
}

grt_status run_compress(const grt_run *r)
{
    const compress_state *s = (const compress_state *)r->state;
    const grt_tensor *in = r->in[0];
    const uint8_t *take = (const uint8_t *)r->in[1]->data;
    int64_t *places = (int64_t *)r->workspace, n = 0, dims[GRT_MAX_RANK];
    int32_t axis = s->flat ? 0 : (int32_t)grt_axis(s->axis, in->rank);
    int64_t size = s->flat ? grt_tensor_elements(in) : in->dims[axis], listed = grt_tensor_elements(r->in[1]);
    /* True values beyond the axis are ignored: the device cannot report them. */
    GRT_TRY(cuda_number(r, listed, places, [=] __device__(int64_t i) { return i < size && take[i] != 0; }));
    GRT_TRY(cuda_read(r, places + listed, &n));
    for (int32_t k = 0; k < in->rank; k++)
        dims[k] = in->dims[k];
    dims[axis] = n;
    GRT_TRY(r->hooks->alloc_output(r, 0, s->flat ? 1 : in->rank, dims));
    int64_t outer = s->flat ? 1 : grt_dims_product(in->dims, 0, axis),
            inner = s->flat ? 1 : grt_dims_product(in->dims, axis + 1, in->rank);
    return CUDA_BY_SIZE(grt_dtype_size(in->dtype), pick, r, outer, size, inner, n);
}

/* ---- Shape, Size ---- */

grt_status run_shape(const grt_run *r)
{
    const cuda_dims dims = cuda_dims_of(r->in[0]);
    int64_t start = grt_attr_int(r->desc, "start", 0);
    start = start < 0 ? start + dims.rank : start;
    const int64_t from = start < 0 ? 0 : start;
    int64_t *out = (int64_t *)r->out[0]->data;
    return cuda_each(r, r->out[0]->dims[0], [=] __device__(int64_t i) {
        out[i] = from + i < dims.rank ? dims[(int32_t)(from + i)] : 0;
    });
}

grt_status run_size(const grt_run *r)
{
    const int64_t n = grt_tensor_elements(r->in[0]);
    int64_t *out = (int64_t *)r->out[0]->data;
    return cuda_each(r, 1, [=] __device__(int64_t) { *out = n; });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Hardmax",
     .types = {GRT_SET_FLOATS},
     .create = create_axis,
     .destroy = free,
     .run = run_hardmax},
    {.domain = "",
     .op = "LpNormalization",
     .types = {GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = supports_norm,
     .create = create_axis,
     .destroy = free,
     .run = run_norm},
    {.domain = "", .op = "MeanVarianceNormalization", .types = {GRT_SET_FLOATS}, .run = run_mvn},
    {.domain = "",
     .op = "DFT",
     .types = {GRT_SET_FLOATS, CUDA_INDEX, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(2),
     .reshape = reshape_dft,
     .release_shape = free,
     .run = run_dft},
    {.domain = "",
     .op = "Einsum",
     .types = {GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS},
     .supports = supports_einsum,
     .reshape = reshape_einsum,
     .release_shape = free,
     .run = run_einsum},
    {.domain = "",
     .op = "NonZero",
     .types = {GRT_SET_NUMBERS | GRT_BIT(BOOL)},
     .flags = GRT_KERNEL_DYNAMIC,
     .reshape = reshape_non_zero,
     .run = run_non_zero},
    {.domain = "",
     .op = "Compress",
     .types = {CUDA_MOVABLE, GRT_BIT(BOOL)},
     .flags = GRT_KERNEL_DYNAMIC,
     .create = create_compress,
     .destroy = free,
     .reshape = reshape_compress,
     .run = run_compress},
    {.domain = "", .op = "Shape", .run = run_shape},
    {.domain = "", .op = "Size", .run = run_size},
};

} // namespace
CUDA_KERNELS(axis, rows);
