/* SPDX-License-Identifier: Apache-2.0 */
/* A `graphrt::Rows` node evaluates a small program for every element of rows: pointwise functions, and folds
 * (sum, maximum, minimum, product) over the row that an element lies in. Attributes:
 *   program    ints, 4 per instruction: {opcode, a, b, c}, as graphrt::Pointwise has them (pointwise.h); the
 *              opcode -1 - fold (src/base/rows.h) folds operand a. The last instruction's result is the
 *              output.
 *   constants  floats (may be absent)
 *   row_dims   how many of the last dims make a row
 *   to         the output's dtype (may be absent)
 *
 * Inputs are float32, float16, bfloat16 or bool, and are broadcast together. An input has all of
 * a row's dims or none: those that it lacks are 1. A row has 1 to ROWS_MAX_LENGTH elements. What depends on
 * folds and constants alone is one number for a row; as the output it has 1 in place of the row's dims.
 *
 * Everything is computed in float32; truth is 1 and 0. The order in which a device adds up a row depends on
 * the row's length alone, not on the number of rows or threads. A maximum or minimum of a row with NaN is
 * NaN. Without `to` the output's dtype is as graphrt::Pointwise has it; a fold is no truth. */
#ifndef GRT_GRAPH_OPS_ROWS_H
#define GRT_GRAPH_OPS_ROWS_H

#include "src/base/rows.h"

#endif
