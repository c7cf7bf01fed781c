/* SPDX-License-Identifier: Apache-2.0 */
/* An activation over many values, by the best instruction set of the machine. */
#ifndef GRT_BACKENDS_CPU_ACT_APPLY_H
#define GRT_BACKENDS_CPU_ACT_APPLY_H

#include "backends/cpu/act.h"

#include <stdbool.h>

/* In place. What the epilogue of a product (gemm.h) gives for the same values, bit for bit. */
void cpu_act_apply(grt_act act, float *v, int64_t n);

/* True if this machine has vector code of our own for an activation that is costly otherwise. */
bool cpu_act_has_vectors(grt_act_kind kind);

#endif
