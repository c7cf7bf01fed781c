/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transforms of any length in O(n log n), in double. */
#ifndef GRT_BACKENDS_CPU_FFT_H
#define GRT_BACKENDS_CPU_FFT_H

#include "src/base/account.h"

typedef struct cpu_fft cpu_fft;

/* A plan for n >= 1 complex numbers; may be shared by threads once it is filled. It has its memory and costs
 * no time yet: whoever needs more memory for the transform takes that before filling the plan, as n may be a
 * number that no machine can work with. The account may be NULL. */
grt_status cpu_fft_create(int64_t n, grt_account *account, cpu_fft **out_fft);
void cpu_fft_fill(cpu_fft *fft);    /* once, before the first run */
void cpu_fft_release(cpu_fft *fft); /* NULL-safe */
/* Doubles of scratch that one transform in flight needs. */
int64_t cpu_fft_scratch(const cpu_fft *fft);
/* x: n pairs of real and imaginary part, transformed in place. The inverse divides by n. */
void cpu_fft_run(const cpu_fft *fft, double *x, bool inverse, double *scratch);

#endif
