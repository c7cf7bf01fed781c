/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over weights of few bits without vector instructions of its own. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#include "backends/cpu/wgemm_kernel.h"
enum { LANES = 4 };

typedef int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t))));

static inline __attribute__((always_inline)) void wgemm_c_widen(const uint8_t *from, ints *out)
{
    for (int i = 0; i < LANES; i++)
        (*out)[i] = from[i];
}

#define WIDEN_BYTES wgemm_c_widen
#define MOST_ROWS   8
#define TWO_PARTS   4
#include "backends/cpu/wgemm_loops.inc"

static const grt_wgemm_kernel wgemm_kernel_c = {.few_rows = 4, .few = wgemm_few, .widen = wgemm_widen};

const grt_wgemm_kernel *grt_wgemm_kernel_c(void)
{
    return &wgemm_kernel_c;
}
