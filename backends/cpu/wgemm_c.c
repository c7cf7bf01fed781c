/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over weights of few bits without vector instructions of its own. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#include "backends/cpu/wgemm_kernel.h"
#include "backends/cpu/wgemm_loops.inc"

static const grt_wgemm_kernel wgemm_kernel_c = {.few = wgemm_few, .widen = wgemm_widen};

const grt_wgemm_kernel *grt_wgemm_kernel_c(void)
{
    return &wgemm_kernel_c;
}
