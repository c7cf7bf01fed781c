/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 2 and 4 bits, packed in bytes. */
#ifndef GRT_GRAPH_OPS_CONTRIB_NBITS_H
#define GRT_GRAPH_OPS_CONTRIB_NBITS_H

#include "graph/ops/foreign.h"

/* uint8 [..., n] of packed numbers, the first in the low bits, as uint8 [..., n * 8 / bits]; bits is 2, 4
 * or 8. `lead`: the dims before the last are kept; there are so many. */
ir_value *nbits_unpack(ir_node *node, ir_value *packed, int64_t bits, int32_t lead);

#endif
