/* SPDX-License-Identifier: Apache-2.0 */
/* The pointwise family as the passes see it: which op is which function of pointwise.def.
 *
 * A `graphrt::Pointwise` node evaluates a small program for every element. Attributes:
 *   program    ints, 4 per instruction: {opcode, a, b, c}. An operand is an index into the list
 *              [inputs..., constants..., results of the instructions before]; unused operands are -1.
 *              The operands that follow the opcode's `arity` are its parameters p0, p1: they must be
 *              constants. The last instruction's result is the output.
 *   constants  floats (may be absent)
 *   to         the output's dtype, one of the inputs' (may be absent)
 *
 * Inputs are float32, float16, bfloat16 or bool, and are broadcast together. Everything is computed in
 * float32; truth is 1 and 0. Without `to`, floats among the inputs have one dtype, which is the output's,
 * unless the last opcode's result is truth: then it is bool.
 *
 * A `graphrt::PointwiseParts` node is the same with the attribute `parts` (src/base/pointwise_parts.h): which
 * inputs are parts of the tensors that they are read from. Its result never overwrites an input.
 *
 * The first operand of a `graphrt::PointwiseConcat` node is the Concat of its first `joined` inputs along
 * their last axis; operand k is input joined + k - 1. */
#ifndef GRT_GRAPH_OPS_POINTWISE_H
#define GRT_GRAPH_OPS_POINTWISE_H

#include "src/base/pointwise.h"
#include "src/base/pointwise_parts.h"

#endif
