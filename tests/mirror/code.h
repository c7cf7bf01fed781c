/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels of the mirror: they compute what the CPU's kernels do, and are counted apart from those
 * that stand for interpreters.
 *
 * With GRAPHRT_MIRROR_CODE=MILLISECONDS in the environment, groups of functions have them, and compiling one
 * takes so long; with GRAPHRT_MIRROR_CODE=none there is no compiler on the machine. */
#ifndef GRT_TESTS_MIRROR_CODE_H
#define GRT_TESTS_MIRROR_CODE_H

#include "backends/kernel.h"

#include <stdatomic.h>

/* Of the process. */
typedef struct mirror_code_counts {
    atomic_int compiled, loaded, unloaded;
    atomic_int generated, interpreted; /* kernels that ran */
} mirror_code_counts;
extern mirror_code_counts mirror_code;

bool mirror_code_is_wanted(void);
/* *out_codes: of the device; NULL where there are none. */
grt_status mirror_code_open(grt_device *device, grt_codes **out_codes);

bool mirror_code_is_for(const grt_op_desc *desc);
grt_status mirror_code_take(grt_codes *codes, grt_reshape *reshape, grt_code **out_code);

#endif
