/* Lengths that are powers of two by Cooley and Tukey's method; others as a convolution of such a length
 * (Bluestein's method). */
#include "backends/cpu/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cpu_fft {
    int64_t n, m;     /* m: the power of two that is worked with; n itself if it is one */
    double *twiddles; /* m / 2 numbers: exp(-2 pi i k / m) */
    double *chirp;    /* n numbers: exp(-pi i k^2 / n); NULL if n is a power of two */
    double *filter;   /* m numbers: transform of the chirp's conjugate, over m */
};

#define MAX_LENGTH ((int64_t)1 << 40)

static void multiply(double *x, const double *y)
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

static void power_of_two(const double *twiddles, double *x, int64_t m)
{
    bit_reverse(x, m);
    for (int64_t half = 1; half < m; half *= 2)
        for (int64_t start = 0; start < m; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                double *a = x + 2 * (start + k), *b = a + 2 * half;
                multiply(b, twiddles + 2 * (k * (m / (2 * half))));
                double re = a[0] - b[0], im = a[1] - b[1];
                a[0] += b[0];
                a[1] += b[1];
                b[0] = re;
                b[1] = im;
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

static void fill_chirp(cpu_fft *fft)
{
    int64_t n = fft->n, square = 0; /* k^2 modulo 2n, which keeps the angle exact */
    for (int64_t k = 0; k < n; k++) {
        unit(fft->chirp + 2 * k, square, n);
        square = (square + 2 * k + 1) % (2 * n);
    }
    for (int64_t k = 0; k < n; k++) {
        double *a = fft->filter + 2 * k, *b = fft->filter + 2 * ((fft->m - k) % fft->m);
        a[0] = b[0] = fft->chirp[2 * k] / (double)fft->m;
        a[1] = b[1] = -fft->chirp[2 * k + 1] / (double)fft->m;
    }
    power_of_two(fft->twiddles, fft->filter, fft->m);
}

grt_status cpu_fft_create(int64_t n, cpu_fft **out_fft)
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
    fft->twiddles = calloc((size_t)fft->m + 2, sizeof *fft->twiddles);
    fft->chirp = direct ? NULL : calloc(2 * (size_t)n, sizeof *fft->chirp);
    fft->filter = direct ? NULL : calloc(2 * (size_t)fft->m, sizeof *fft->filter);
    if (!fft->twiddles || (!direct && (!fft->chirp || !fft->filter))) {
        cpu_fft_release(fft);
        return grt_fail_memory((size_t)n * sizeof *fft->twiddles);
    }
    for (int64_t k = 0; k < fft->m / 2; k++)
        unit(fft->twiddles + 2 * k, 2 * k, fft->m);
    if (!direct)
        fill_chirp(fft);
    *out_fft = fft;
    return GRT_OK;
}

void cpu_fft_release(cpu_fft *fft)
{
    if (!fft)
        return;
    free(fft->twiddles);
    free(fft->chirp);
    free(fft->filter);
    free(fft);
}

int64_t cpu_fft_scratch(const cpu_fft *fft)
{
    return fft->chirp ? 2 * fft->m : 0;
}

static void convolve(const cpu_fft *fft, double *x, double *scratch)
{
    memset(scratch, 0, 2 * (size_t)fft->m * sizeof *scratch);
    for (int64_t k = 0; k < fft->n; k++) {
        memcpy(scratch + 2 * k, x + 2 * k, 2 * sizeof *x);
        multiply(scratch + 2 * k, fft->chirp + 2 * k);
    }
    power_of_two(fft->twiddles, scratch, fft->m);
    for (int64_t k = 0; k < fft->m; k++)
        multiply(scratch + 2 * k, fft->filter + 2 * k);
    conjugate(scratch, fft->m); /* back: the filter has divided by m already */
    power_of_two(fft->twiddles, scratch, fft->m);
    conjugate(scratch, fft->m);
    for (int64_t k = 0; k < fft->n; k++) {
        memcpy(x + 2 * k, scratch + 2 * k, 2 * sizeof *x);
        multiply(x + 2 * k, fft->chirp + 2 * k);
    }
}

void cpu_fft_run(const cpu_fft *fft, double *x, bool inverse, double *scratch)
{
    if (inverse)
        conjugate(x, fft->n);
    if (fft->chirp)
        convolve(fft, x, scratch);
    else
        power_of_two(fft->twiddles, x, fft->m);
    for (int64_t k = 0; inverse && k < fft->n; k++) {
        x[2 * k] /= (double)fft->n;
        x[2 * k + 1] /= -(double)fft->n;
    }
}
