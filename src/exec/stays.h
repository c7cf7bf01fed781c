/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that move nothing at the dims of a program: a Transpose that a single token leaves in order, a Split
 * of one row, a Slice of all there is. Plans for symbolic dims have kernels for them; where the dims are
 * known, results lie where the input lies, and a run has nothing to do. */
#ifndef GRT_SRC_EXEC_STAYS_H
#define GRT_SRC_EXEC_STAYS_H

#include "src/exec/draft.h"

/* Of a prepared step of the main body with a kernel: true if its outputs are ranges of input 0, in order. */
bool grt_draft_stays(const grt_draft *draft, int32_t step);

#endif
