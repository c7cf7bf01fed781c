/* SPDX-License-Identifier: Apache-2.0 */
/* LpNormalization: lines along one axis, divided by their norms. */
#include "graph/ops/moves.h"

static const op_attr norm_attrs[] = {{"axis", GRT_ATTR_INT, false}, {"p", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "LpNormalization",
     .since = 22,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = norm_attrs,
     .precision = OP_FOLLOWS,
     .infer = moves_along_axis},
};
OP_TABLE(lp_norm, rows);
