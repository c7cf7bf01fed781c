/* SPDX-License-Identifier: Apache-2.0 */
/* Which pointwise ops a backend with loops for src/base/pointwise.def has, and of which dtypes. */
#ifndef GRT_BACKENDS_SHARED_POINTWISE_ROWS_H
#define GRT_BACKENDS_SHARED_POINTWISE_ROWS_H

#include "src/base/tensor.h"

/* By kind of function. */
#define TYPES_FLOAT   GRT_SET_FLOATS
#define TYPES_SIGNED  (GRT_SET_FLOATS | GRT_SET_SIGNED)
#define TYPES_NUMBER  GRT_SET_NUMBERS
#define TYPES_INT     GRT_SET_INTS
#define TYPES_COMPARE GRT_SET_NUMBERS
#define TYPES_LOGIC   GRT_BIT(BOOL)

/* Those with rows of their own in graph/ops/, which pointwise.def leaves out: ROW(op, dtypes) of each. */
#define POINTWISE_ROWS(ROW)                       \
    ROW("Max", GRT_SET_NUMBERS)                   \
    ROW("Min", GRT_SET_NUMBERS)                   \
    ROW("Sum", GRT_SET_NUMBERS)                   \
    ROW("Mean", GRT_SET_FLOATS)                   \
    ROW("Mod", GRT_SET_NUMBERS)                   \
    ROW("Gelu", GRT_SET_FLOATS)                   \
    ROW("PRelu", GRT_SET_NUMBERS)                 \
    ROW("Clip", GRT_SET_NUMBERS)                  \
    ROW("BitShift", GRT_SET_INTS)                 \
    ROW("Equal", GRT_SET_NUMBERS | GRT_BIT(BOOL)) \
    ROW("IsNaN", GRT_SET_FLOATS)                  \
    ROW("IsInf", GRT_SET_FLOATS)

#endif
