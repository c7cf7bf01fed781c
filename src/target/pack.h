/* SPDX-License-Identifier: Apache-2.0 */
/* Laying constants out as the target's kernels read them, so that sessions find them ready. */
#ifndef GRT_SRC_TARGET_PACK_H
#define GRT_SRC_TARGET_PACK_H

#include "backends/backend.h"
#include "src/base/cancel.h"
#include "src/plan/plan.h"

/* Constants that are read by steps of `backend` alone, all of which want the same form, are replaced by that
 * form, as long as padding makes them no more than 16 MiB larger, or twice as large, all together. Asks
 * `cancel` (may be NULL) between steps. */
grt_status grt_plan_pack(grt_plan *plan, const grt_backend *backend, const grt_cancel *cancel);

/* The plain tensors of a plan for a session that is not on the plan's target: `weights` gets one entry per
 * weight, packed ones unpacked into memory that *out_block owns (free). */
grt_status grt_plan_unpack(const grt_plan *plan, grt_tensor *weights, void **out_block);

#endif
