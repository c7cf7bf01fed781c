/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths that are powers of two by Cooley and Tukey's method; others as a convolution of such a length
 * (Bluestein's method), which needs no order: one transform leaves its result with the bits of its places
 * reversed, the next takes it so. Large ones are halved until they fit into a cache. */
#include "backends/cpu/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers exp(-2 pi i k / m): FINE of them as they are, and each FINE-th, so that the table of a long
 * transform is short. */
enum { FINE_BITS = 10, FINE = 1 << FINE_BITS, IN_CACHE = 1 << 13 };

struct cpu_fft {
    int64_t n, m;   /* m: the power of two that is worked with; n itself if it is one */
    double *fine;   /* the first FINE or m / 2 */
    double *coarse; /* each FINE-th of m / 2 */
    double *small;  /* of transforms that fit into the cache: m = 2, 4, 8, ... behind each other */
    double *chirp;  /* n numbers: exp(-pi i k^2 / n); NULL if n is a power of two */
    double *filter; /* m numbers: transform of the chirp's conjugate, over m, in reversed order */
};

#define MAX_LENGTH ((int64_t)1 << 40)

static void fft_multiply(double *x, const double *y)
{
    double re = x[0] * y[0] - x[1] * y[1], im = x[0] * y[1] + x[1] * y[0];
    x[0] = re;
    x[1] = im;
}

static void bit_reverse(double *x, int64_t m)
{
    for (int64_t i = 1, j = 0; i < m; i++) {
        int64_t bit = m >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i >= j)
            continue;
        double pair[2];
        memcpy(pair, x + 2 * i, sizeof pair);
        memcpy(x + 2 * i, x + 2 * j, sizeof pair);
        memcpy(x + 2 * j, pair, sizeof pair);
    }
}

/* The k-th of m twiddles, whose table is that of fft->m. */
static inline void twiddle(const cpu_fft *fft, int64_t k, double *out)
{
    const double *low = fft->fine + 2 * (k & (FINE - 1)), *high = fft->coarse + 2 * (k >> FINE_BITS);
    out[0] = low[0] * high[0] - low[1] * high[1];
    out[1] = low[0] * high[1] + low[1] * high[0];
}

/* a, b = a + b, (a - b) w */
static inline void fft_split(double *a, double *b, const double *w)
{
    const double re = a[0] - b[0], im = a[1] - b[1];
    a[0] += b[0];
    a[1] += b[1];
    b[0] = re * w[0] - im * w[1];
    b[1] = re * w[1] + im * w[0];
}

/* a, b = a + b w, a - b w */
static inline void fft_join(double *a, double *b, const double *w)
{
    const double re = b[0] * w[0] - b[1] * w[1], im = b[0] * w[1] + b[1] * w[0];
    b[0] = a[0] - re;
    b[1] = a[1] - im;
    a[0] += re;
    a[1] += im;
}

/* Places in order; the result's bits are reversed. `stride` is fft->m / m. */
static void scatter(const cpu_fft *fft, double *x, int64_t m, int64_t stride)
{
    const int64_t half = m / 2;
    double w[2];
    if (m <= IN_CACHE) {
        for (int64_t h = half; h >= 1; h /= 2) {
            const double *table = fft->small + 2 * (h - 1);
            for (int64_t start = 0; start < m; start += 2 * h)
                for (int64_t k = 0; k < h; k++)
                    fft_split(x + 2 * (start + k), x + 2 * (start + k + h), table + 2 * k);
        }
        return;
    }
    for (int64_t k = 0; k < half; k++) {
        twiddle(fft, k * stride, w);
        fft_split(x + 2 * k, x + 2 * (k + half), w);
    }
    scatter(fft, x, half, 2 * stride);
    scatter(fft, x + 2 * half, half, 2 * stride);
}

/* Places with their bits reversed; the result in order. */
static void fft_gather(const cpu_fft *fft, double *x, int64_t m, int64_t stride)
{
    const int64_t half = m / 2;
    double w[2];
    if (m <= IN_CACHE) {
        for (int64_t h = 1; h < m; h *= 2) {
            const double *table = fft->small + 2 * (h - 1);
            for (int64_t start = 0; start < m; start += 2 * h)
                for (int64_t k = 0; k < h; k++)
                    fft_join(x + 2 * (start + k), x + 2 * (start + k + h), table + 2 * k);
        }
        return;
    }
    fft_gather(fft, x, half, 2 * stride);
    fft_gather(fft, x + 2 * half, half, 2 * stride);
    for (int64_t k = 0; k < half; k++) {
        twiddle(fft, k * stride, w);
        fft_join(x + 2 * k, x + 2 * (k + half), w);
    }
}

static void conjugate(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[2 * i + 1] = -x[2 * i + 1];
}

/* exp(-pi i k / n) */
static void unit(double *out, int64_t k, int64_t n)
{
    out[0] = cos(M_PI * (double)k / (double)n);
    out[1] = -sin(M_PI * (double)k / (double)n);
}

static void fill_twiddles(cpu_fft *fft)
{
    const int64_t small = fft->m < IN_CACHE ? fft->m : IN_CACHE;
    for (int64_t k = 0; k < FINE; k++)
        unit(fft->fine + 2 * k, 2 * k, fft->m);
    for (int64_t k = 0; k <= fft->m / 2 / FINE; k++)
        unit(fft->coarse + 2 * k, 2 * k * FINE, fft->m);
    for (int64_t h = 1; h < small; h *= 2)
        for (int64_t k = 0; k < h; k++)
            unit(fft->small + 2 * (h - 1 + k), k, h);
}

static void fill_chirp(cpu_fft *fft)
{
    int64_t n = fft->n, square = 0; /* k^2 modulo 2n, which keeps the angle exact */
    memset(fft->filter, 0, 2 * (size_t)fft->m * sizeof *fft->filter);
    for (int64_t k = 0; k < n; k++) {
        unit(fft->chirp + 2 * k, square, n);
        square = (square + 2 * k + 1) % (2 * n);
    }
    for (int64_t k = 0; k < n; k++) {
        double *a = fft->filter + 2 * k, *b = fft->filter + 2 * ((fft->m - k) % fft->m);
        a[0] = b[0] = fft->chirp[2 * k] / (double)fft->m;
        a[1] = b[1] = -fft->chirp[2 * k + 1] / (double)fft->m;
    }
    scatter(fft, fft->filter, fft->m, 1);
}

static grt_status alloc_pairs(grt_account *account, int64_t n, double **out)
{
    return grt_account_alloc(account, GRT_ACCOUNT_KERNELS, 2 * (size_t)n * sizeof **out, (void **)out);
}

static grt_status fft_alloc_tables(cpu_fft *fft, grt_account *account, bool direct)
{
    GRT_TRY(alloc_pairs(account, FINE, &fft->fine));
    GRT_TRY(alloc_pairs(account, fft->m / 2 / FINE + 1, &fft->coarse));
    GRT_TRY(alloc_pairs(account, fft->m < IN_CACHE ? fft->m : IN_CACHE, &fft->small));
    if (direct)
        return GRT_OK;
    GRT_TRY(alloc_pairs(account, fft->n, &fft->chirp));
    return alloc_pairs(account, fft->m, &fft->filter);
}

grt_status cpu_fft_create(int64_t n, grt_account *account, cpu_fft **out_fft)
{
    if (n < 1 || n > MAX_LENGTH)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "a Fourier transform of length %lld cannot be made",
                        (long long)n);
    cpu_fft *fft = calloc(1, sizeof *fft);
    if (!fft)
        return grt_fail_memory(sizeof *fft);
    bool direct = (n & (n - 1)) == 0;
    fft->n = n;
    for (fft->m = 1; fft->m < (direct ? n : 2 * n - 1);)
        fft->m *= 2;
    const grt_status status = fft_alloc_tables(fft, account, direct);
    if (status != GRT_OK) {
        cpu_fft_release(fft);
        return status;
    }
    *out_fft = fft;
    return GRT_OK;
}

void cpu_fft_fill(cpu_fft *fft)
{
    fill_twiddles(fft);
    if (fft->chirp)
        fill_chirp(fft);
}

void cpu_fft_release(cpu_fft *fft)
{
    if (!fft)
        return;
    grt_account_free(fft->fine);
    grt_account_free(fft->coarse);
    grt_account_free(fft->small);
    grt_account_free(fft->chirp);
    grt_account_free(fft->filter);
    free(fft);
}

int64_t cpu_fft_scratch(const cpu_fft *fft)
{
    return fft->chirp ? 2 * fft->m : 0;
}

static void fft_convolve(const cpu_fft *fft, double *x, double *scratch)
{
    memset(scratch, 0, 2 * (size_t)fft->m * sizeof *scratch);
    for (int64_t k = 0; k < fft->n; k++) {
        memcpy(scratch + 2 * k, x + 2 * k, 2 * sizeof *x);
        fft_multiply(scratch + 2 * k, fft->chirp + 2 * k);
    }
    scatter(fft, scratch, fft->m, 1);
    for (int64_t k = 0; k < fft->m; k++) {
        fft_multiply(scratch + 2 * k, fft->filter + 2 * k);
        scratch[2 * k + 1] =
            -scratch[2 * k + 1]; /* back by conjugates: the filter has divided by m already */
    }
    fft_gather(fft, scratch, fft->m, 1);
    for (int64_t k = 0; k < fft->n; k++) {
        x[2 * k] = scratch[2 * k];
        x[2 * k + 1] = -scratch[2 * k + 1];
        fft_multiply(x + 2 * k, fft->chirp + 2 * k);
    }
}

void cpu_fft_run(const cpu_fft *fft, double *x, bool inverse, double *scratch)
{
    if (inverse)
        conjugate(x, fft->n);
    if (fft->chirp) {
        fft_convolve(fft, x, scratch);
    } else {
        bit_reverse(x, fft->m);
        fft_gather(fft, x, fft->m, 1);
    }
    for (int64_t k = 0; inverse && k < fft->n; k++) {
        x[2 * k] /= (double)fft->n;
        x[2 * k + 1] /= -(double)fft->n;
    }
}
