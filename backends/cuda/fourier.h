/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transforms of many lines by fast transforms in shared memory: lengths of 32 to 8,192 whose
 * prime factors are small. */
#ifndef GRT_BACKENDS_CUDA_FOURIER_H
#define GRT_BACKENDS_CUDA_FOURIER_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_FOURIER_FACTORS = 16 };

/* Line l begins at element l / each * outer + l % each * inner, and its numbers are `step` apart; a number
 * has one or two components, the real and the imaginary part. */
typedef struct cuda_fourier_lines {
    int64_t outer, inner, step, size; /* size: numbers of a line that there are */
    int32_t components;
} cuda_fourier_lines;

typedef struct cuda_fourier {
    int64_t n, lines, each; /* n: the length of the transform; missing inputs are zeros */
    cuda_fourier_lines in, out;
    bool inverse;  /* divided by n */
    bool mirrored; /* half of a spectrum is given, that of real numbers */
    /* Set by cuda_fourier_plan. */
    int32_t factors[CUDA_FOURIER_FACTORS], n_factors, together; /* lines of a block */
} cuda_fourier;

/* False: such transforms are not for this kernel. FLOAT, FLOAT16, BFLOAT16; sums are float32. */
bool cuda_fourier_plan(cuda_fourier *f, grt_dtype dtype);
/* Of shared memory, that a block takes: up to 192 KiB, more than some devices have. */
size_t cuda_fourier_bytes(const cuda_fourier *f);
/* window: n numbers of the same type that inputs are multiplied with, or NULL. */
grt_status cuda_fourier_run(const cuda_fourier *f, grt_dtype dtype, const void *x, const void *window,
                            void *y, cudaStream_t stream);

/* Lines of real numbers, [lines, size], multiplied by spectra of real filters, [filters, n / 2 + 1, 2], and
 * transformed back: line l by filter l % filters. */
typedef struct cuda_spectral {
    int64_t size, lines, filters;
    cuda_fourier
        pairs; /* two lines of one filter at a time; n is given, the rest set by cuda_spectral_plan */
    int32_t multiprocessors;
} cuda_spectral;

bool cuda_spectral_plan(cuda_spectral *s, grt_dtype dtype);
/* w_dtype: of the spectra, FLOAT or dtype. y: [lines, n]. */
grt_status cuda_spectral_run(const cuda_spectral *s, grt_dtype dtype, grt_dtype w_dtype, const void *x,
                             const void *w, void *y, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
