/* SPDX-License-Identifier: Apache-2.0 */
/* DFT, STFT, window functions, MelWeightMatrix. Transforms that fourier.h does not take are sums. */
#include "backends/cuda/each.cuh"
#include "backends/cuda/fourier.h"
#include "backends/shared/cosine_window.h"
#include "backends/shared/mel.h"
#include "backends/shared/spectral.h"

namespace
{

struct transform {
    int64_t n, size, inner, components, out_size, out_components;
    bool inverse, mirrored; /* mirrored: half of the spectrum is given */
    bool is_fast;
    cuda_fourier fast;
};

/* Has the device shared memory for it? */
bool signal_fits_device(const cuda_fourier *f, const grt_device *device)
{
    return cuda_fourier_bytes(f) <= ((const cuda_device *)device)->prop.sharedMemPerBlockOptin;
}

bool plan_dft(transform *t, const grt_tensor *x, int64_t outer, const grt_device *device)
{
    t->fast = {t->n,
               outer * t->inner,
               t->inner,
               {t->size * t->inner, 1, t->inner, t->size, (int32_t)t->components},
               {t->out_size * t->inner, 1, t->inner, t->out_size, (int32_t)t->out_components},
               t->inverse,
               t->mirrored};
    return cuda_fourier_plan(&t->fast, x->dtype) && signal_fits_device(&t->fast, device);
}

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
    t.is_fast = plan_dft(&t, x, grt_dims_product(x->dims, 0, (int32_t)axis), r->device);
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
    if (t.is_fast)
        return cuda_fourier_run(&t.fast, in.dtype, in.data, NULL, out.data, cuda_stream(r));
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

struct frames {
    int64_t n, step, length, components, count, bins;
    bool is_fast;
    cuda_fourier fast;
};

bool plan_stft(frames *f, const grt_tensor *x, const grt_tensor *window, const grt_device *device)
{
    f->fast = {f->n,
               x->dims[0] * f->count,
               f->count,
               {f->length, f->step, 1, f->n, (int32_t)f->components},
               {f->count * f->bins, f->bins, 1, f->bins, 2}};
    return (!window || window->dtype == x->dtype) && cuda_fourier_plan(&f->fast, x->dtype) &&
           signal_fits_device(&f->fast, device);
}

grt_status reshape_stft(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *y = r->out[0], *window = r->n_in > 2 ? r->in[2] : NULL,
                     *length = r->n_in > 3 ? r->in[3] : NULL;
    const bool shaped = (x->rank == 2 || (x->rank == 3 && (x->dims[2] == 1 || x->dims[2] == 2))) &&
                        (!window || window->rank == 1);
    if (!r->in[1]->data || (length && !length->data))
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "inputs frame_step and frame_length must be known before the run");
    const int64_t step = cuda_host_index(r->in[1], 0);
    const int64_t n = !shaped  ? 0
                      : length ? cuda_host_index(length, 0)
                      : window ? window->dims[0]
                               : x->dims[1];
    const int64_t bins = grt_attr_int(r->desc, "onesided", 1) ? n / 2 + 1 : n;
    if (!shaped || step < 1 || n < 1 || n > x->dims[1] || (window && window->dims[0] != n) ||
        y->dims[1] != (x->dims[1] - n) / step + 1 || y->dims[2] != bins)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "frames of length %lld, %lld apart, do not fit the signal (batch x length x 1 or "
                           "2) or the window",
                           (long long)n, (long long)step);
    frames *f;
    GRT_TRY(cuda_state(&f));
    *f = {n, step, x->dims[1], x->rank == 3 ? x->dims[2] : 1, y->dims[1], bins};
    f->is_fast = plan_stft(f, x, window, r->device);
    r->workspace_bytes = f->is_fast ? 0 : 2 * (size_t)n * sizeof(double);
    r->shape = f;
    return GRT_OK;
}

grt_status run_stft(const grt_run *r)
{
    const frames f = *(const frames *)r->shape;
    const cuda_any in = cuda_any_in(r, 0), window = cuda_any_in(r, 2), out = cuda_any_out(r, 0);
    if (f.is_fast)
        return cuda_fourier_run(&f.fast, in.dtype, in.data, window.data, out.data, cuda_stream(r));
    double *turns = (double *)r->workspace;
    GRT_TRY(cuda_each(r, f.n, [=] __device__(int64_t k) {
        sincospi(-2.0 * (double)k / (double)f.n, turns + 2 * k + 1, turns + 2 * k);
    }));
    return cuda_each(r, r->in[0]->dims[0] * f.count * f.bins, [=] __device__(int64_t i) {
        const int64_t bin = i % f.bins, frame = i / f.bins % f.count, row = i / f.bins / f.count;
        const int64_t from = row * f.length + frame * f.step;
        double real = 0, imaginary = 0;
        for (int64_t k = 0, turn = 0; k < f.n; k++) {
            const double weight = window ? window.get(k) : 1, c = turns[2 * turn], s = turns[2 * turn + 1];
            const double a = weight * in.get((from + k) * f.components);
            const double b = f.components == 2 ? weight * in.get((from + k) * 2 + 1) : 0;
            real += a * c - b * s;
            imaginary += a * s + b * c;
            turn += bin;
            turn -= turn >= f.n ? f.n : 0;
        }
        out.put(2 * i, real);
        out.put(2 * i + 1, imaginary);
    });
}

/* Lengths and types that fourier.h takes, and that the device, where it is known, has shared memory for. */
bool spectral_supports(const grt_kernel_node *node, grt_text *why)
{
    const grt_dtype dtype = node->in[0].dtype, w_dtype = node->in[1].dtype;
    cuda_spectral s = {1, 1, 1, {grt_attr_int(node->desc, "length", 0)}};
    const bool fit = (w_dtype == dtype || w_dtype == GRT_DTYPE_FLOAT) && cuda_spectral_plan(&s, dtype);
    const bool has_room = fit && (!node->device || signal_fits_device(&s.pairs, node->device));
    if (!fit && why)
        grt_text_add(why,
                     "lines of %s, spectra of %s and a length of %lld; supported are float32 and narrower, "
                     "spectra of the same type or float32, and lengths of 32 to 8,192 with small factors",
                     grt_dtype_name(dtype), grt_dtype_name(w_dtype), (long long)s.pairs.n);
    else if (!has_room && why)
        grt_text_add(
            why,
            "transforms of length %lld take %zu bytes of shared memory, and this GPU has %zu; compile "
            "the model with --disable-pass spectra",
            (long long)s.pairs.n, cuda_fourier_bytes(&s.pairs),
            ((const cuda_device *)node->device)->prop.sharedMemPerBlockOptin);
    return has_room;
}

grt_status reshape_spectral(grt_reshape *r)
{
    const grt_tensor *x = r->in[0];
    int64_t lines, filters;
    GRT_TRY(grt_spectral_lines(r, &lines, &filters));
    cuda_spectral *s;
    GRT_TRY(cuda_state(&s));
    *s = {x->dims[x->rank - 2], lines, filters, {grt_attr_int(r->desc, "length", 0)}};
    s->multiprocessors = ((const cuda_device *)r->device)->prop.multiProcessorCount;
    const bool fit = lines == 0 || cuda_spectral_plan(s, x->dtype);
    r->shape = s;
    char found[GRT_TYPE_TEXT_SIZE];
    return fit ? GRT_OK
               : grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                             "the lines are %s; the CUDA backend supports fewer than 2^31 of them",
                             grt_tensor_text(x, found));
}

grt_status run_spectral(const grt_run *r)
{
    const cuda_spectral *s = (const cuda_spectral *)r->shape;
    return s->lines == 0 ? GRT_OK
                         : cuda_spectral_run(s, r->in[0]->dtype, r->in[1]->dtype, r->in[0]->data,
                                             r->in[1]->data, r->out[0]->data, cuda_stream(r));
}

grt_status run_window(const grt_run *r)
{
    const grt_cosine_window w = *(const grt_cosine_window *)r->state;
    const cuda_any out = cuda_any_out(r, 0);
    const int64_t size = r->out[0]->dims[0], n = w.periodic ? size : size - 1;
    return cuda_each(r, size, [=] __device__(int64_t k) {
        const double turn = n ? 2 * (double)k / (double)n : 1; /* a window of one element is 1 */
        out.put(k, w.a[0] - w.a[1] * cospi(turn) + w.a[2] * cospi(2 * turn));
    });
}

grt_status reshape_mel(grt_reshape *r)
{
    for (int32_t i = 1; i < 5; i++)
        if (!r->in[i]->data)
            return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "input %d must be known before the run", i);
    grt_mel mel, *s;
    GRT_TRY(grt_mel_read(r->desc, r->in, r->out[0]->dims[1], &mel));
    GRT_TRY(cuda_state(&s));
    *s = mel;
    r->shape = s;
    return GRT_OK;
}

/* A thread per triangle, from its low edge over its peak to its high edge. */
grt_status run_mel(const grt_run *r)
{
    const grt_mel mel = *(const grt_mel *)r->shape;
    const cuda_any out = cuda_any_out(r, 0);
    const int64_t rows = r->out[0]->dims[0], columns = r->out[0]->dims[1];
    return cuda_each(r, columns, [=] __device__(int64_t column) {
        int64_t bins[3];
        grt_mel_bins(&mel, column, rows, bins);
        for (int64_t row = 0; row < rows; row++) {
            double value = 0;
            if (row >= bins[0] && row < bins[1])
                value = (double)(row - bins[0]) / (double)(bins[1] - bins[0]);
            else if (row == bins[1])
                value = 1;
            else if (row > bins[1] && row < bins[2])
                value = (double)(bins[2] - row) / (double)(bins[2] - bins[1]);
            out.put(row * columns + column, value);
        }
    });
}

#define WINDOW(name)                                                                         \
    {                                                                                        \
        .domain = "", .op = name, .types = {CUDA_INDEX}, .create = grt_cosine_window_create, \
        .destroy = free, .run = run_window                                                   \
    }

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "DFT",
     .types = {GRT_SET_FLOATS, CUDA_INDEX, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(2),
     .reshape = reshape_dft,
     .release_shape = free,
     .run = run_dft},
    {.domain = "",
     .op = "STFT",
     .types = {GRT_SET_FLOATS, CUDA_INDEX, GRT_SET_FLOATS, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(3),
     .reshape = reshape_stft,
     .release_shape = free,
     .run = run_stft},
    {.domain = "graphrt",
     .op = "SpectralConv",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS},
     .supports = spectral_supports,
     .reshape = reshape_spectral,
     .release_shape = free,
     .run = run_spectral},
    WINDOW("BlackmanWindow"),
    WINDOW("HammingWindow"),
    WINDOW("HannWindow"),
    {.domain = "",
     .op = "MelWeightMatrix",
     .types = {CUDA_INDEX, CUDA_INDEX, CUDA_INDEX, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(2) | GRT_KERNEL_READS(3) | GRT_KERNEL_READS(4),
     .reshape = reshape_mel,
     .release_shape = free,
     .run = run_mel},
};

} // namespace
CUDA_KERNELS(signal, rows);
