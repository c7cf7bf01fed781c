/* SPDX-License-Identifier: Apache-2.0 */
/* A backend as the compiler sees it: what it supports, and how to evaluate one op for constant folding. */
#ifndef GRT_SRC_TARGET_TARGET_H
#define GRT_SRC_TARGET_TARGET_H

#include "backends/backend.h"
#include "graph/passes/pass.h"

grt_target grt_target_of(const grt_backend *backend);

#endif
