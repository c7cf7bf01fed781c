/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bfloat16 without vector instructions of their own; what the others are tested against. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif

#define LANES       4
#define ROWS        2
#define BOTH_PANELS 1
#include "backends/cpu/bgemm_loops.inc"

static BGEMM_FINISH(bgemm_finish)

    const grt_bgemm_kernel grt_bgemm_kernel_c = {"c", ROWS, true, bgemm_block, bgemm_finish, NULL};
