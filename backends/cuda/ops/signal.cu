/* SPDX-License-Identifier: Apache-2.0 */
/* STFT, window functions, MelWeightMatrix, Det. */
#include "backends/cuda/each.cuh"

namespace
{

/* ---- STFT: each bin is the sum that defines it, over a table of the turns ---- */

struct frames {
    int64_t n, step, length, components, count, bins;
};

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
    r->workspace_bytes = 2 * (size_t)n * sizeof(double);
    r->shape = f;
    return GRT_OK;
}

grt_status run_stft(const grt_run *r)
{
    const frames f = *(const frames *)r->shape;
    const cuda_any in = cuda_any_in(r, 0), window = cuda_any_in(r, 2), out = cuda_any_out(r, 0);
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

/* ---- windows: a[0] - a[1] cos(2 pi k / n) + a[2] cos(4 pi k / n) ---- */

struct window_state {
    double a[3];
    bool periodic;
};

grt_status create_window(const grt_kernel_node *node, void **out_state)
{
    window_state *state;
    GRT_TRY(cuda_state(&state));
    const bool blackman = grt_op_is(node->desc, "", "BlackmanWindow"),
               hamming = grt_op_is(node->desc, "", "HammingWindow");
    state->a[0] = blackman ? 0.42 : hamming ? 25.0 / 46 : 0.5;
    state->a[1] = blackman ? 0.5 : hamming ? 21.0 / 46 : 0.5;
    state->a[2] = blackman ? 0.08 : 0;
    state->periodic = grt_attr_int(node->desc, "periodic", 1) != 0;
    *out_state = state;
    return GRT_OK;
}

grt_status run_window(const grt_run *r)
{
    const window_state w = *(const window_state *)r->state;
    const cuda_any out = cuda_any_out(r, 0);
    const int64_t size = r->out[0]->dims[0], n = w.periodic ? size : size - 1;
    return cuda_each(r, size, [=] __device__(int64_t k) {
        const double turn = n ? 2 * (double)k / (double)n : 1; /* a single number is the window's top */
        out.put(k, w.a[0] - w.a[1] * cospi(turn) + w.a[2] * cospi(2 * turn));
    });
}

/* ---- MelWeightMatrix ---- */

struct mel_shape {
    int64_t length, rate;
    double low, step;
};

double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

grt_status reshape_mel(grt_reshape *r)
{
    for (int32_t i = 1; i < 5; i++)
        if (!r->in[i]->data)
            return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "input %d must be known before the run", i);
    const int64_t rate = cuda_host_index(r->in[2], 0);
    const double low = mel_of(grt_element_get(r->in[3], 0)), high = mel_of(grt_element_get(r->in[4], 0));
    const double step = (high - low) / (double)(r->out[0]->dims[1] + 2);
    if (rate < 1 || !(step >= 0) || isinf(step))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the sample rate must be positive, and the upper edge not below the lower one");
    mel_shape *s;
    GRT_TRY(cuda_state(&s));
    *s = {cuda_host_index(r->in[1], 0), rate, low, step};
    r->shape = s;
    return GRT_OK;
}

/* A thread per triangle, from its low edge over its peak to its high edge. */
grt_status run_mel(const grt_run *r)
{
    const mel_shape s = *(const mel_shape *)r->shape;
    const cuda_any out = cuda_any_out(r, 0);
    const int64_t rows = r->out[0]->dims[0], columns = r->out[0]->dims[1];
    return cuda_each(r, columns, [=] __device__(int64_t column) {
        int64_t bins[3];
        for (int k = 0; k < 3; k++) {
            const double hertz = 700 * (pow(10.0, (s.low + (double)(column + k) * s.step) / 2595) - 1);
            const double bin = floor((double)(s.length + 1) * hertz / (double)s.rate);
            bins[k] = bin < 0 ? 0 : bin > (double)rows ? rows : (int64_t)bin; /* beyond the spectrum */
        }
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

/* ---- Det: a block per matrix, elimination with row exchange ---- */

grt_status reshape_det(grt_reshape *r)
{
    const grt_tensor *in = r->in[0];
    if (in->dims[in->rank - 2] != in->dims[in->rank - 1])
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "matrices must be square, found %lld x %lld",
                           (long long)in->dims[in->rank - 2], (long long)in->dims[in->rank - 1]);
    r->workspace_bytes = (size_t)grt_tensor_elements(in) * sizeof(double);
    return GRT_OK;
}

/* The row from k on with the greatest element in column k, the first of equal ones. For all threads of the
 * block. */
__device__ int64_t pivot_row(const double *a, int64_t n, int64_t k, int thread, int threads)
{
    __shared__ double most[CUDA_BLOCK];
    __shared__ int64_t rows[CUDA_BLOCK];
    double best = -1;
    int64_t row = k;
    for (int64_t i = k + thread; i < n; i += threads) {
        double v = fabs(a[i * n + k]);
        if (v > best) {
            best = v;
            row = i;
        }
    }
    most[thread] = best;
    rows[thread] = row;
    __syncthreads();
    for (int half = threads / 2; half; half /= 2) {
        if (thread < half) {
            double other = most[thread + half];
            if (other > most[thread] || (other == most[thread] && rows[thread + half] < rows[thread])) {
                most[thread] = other;
                rows[thread] = rows[thread + half];
            }
        }
        __syncthreads();
    }
    row = rows[0];
    __syncthreads();
    return row;
}

__device__ double determinant(double *a, int64_t n, int thread, int threads)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        const int64_t pivot = pivot_row(a, n, k, thread, threads);
        const double top = a[pivot * n + k];
        __syncthreads();
        if (top == 0)
            return 0;
        for (int64_t j = k + thread; j < n && pivot != k; j += threads) {
            double other = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = other;
        }
        __syncthreads();
        det *= pivot == k ? top : -top;
        const int64_t left = n - k - 1;
        for (int64_t e = thread; e < left * left; e += threads) {
            const int64_t i = k + 1 + e / left, j = k + 1 + e % left;
            a[i * n + j] -= a[i * n + k] / top * a[k * n + j];
        }
        __syncthreads();
    }
    return det;
}

grt_status run_det(const grt_run *r)
{
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const int64_t n = r->in[0]->dims[r->in[0]->rank - 1];
    double *room = (double *)r->workspace;
    return cuda_each_block(r, grt_tensor_elements(r->out[0]),
                           [=] __device__(int64_t m, int thread, int threads) {
                               double *a = room + m * n * n;
                               for (int64_t i = thread; i < n * n; i += threads)
                                   a[i] = in.get(m * n * n + i);
                               __syncthreads();
                               const double det = determinant(a, n, thread, threads);
                               if (thread == 0)
                                   out.put(m, det);
                           });
}

#define WINDOW(name)                                                                               \
    {                                                                                              \
        .domain = "", .op = name, .types = {CUDA_INDEX}, .create = create_window, .destroy = free, \
        .run = run_window                                                                          \
    }
const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "STFT",
     .types = {GRT_SET_FLOATS, CUDA_INDEX, GRT_SET_FLOATS, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(3),
     .reshape = reshape_stft,
     .release_shape = free,
     .run = run_stft},
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
    {.domain = "", .op = "Det", .types = {GRT_SET_FLOATS}, .reshape = reshape_det, .run = run_det},
};

} // namespace
CUDA_KERNELS(signal, rows);
