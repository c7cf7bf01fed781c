/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of host tensors of any numeric dtype, widened to double: for comparing and printing. */
#ifndef TOOLS_ELEMENT_H
#define TOOLS_ELEMENT_H

#include <graphrt/graphrt.h>

/* Element i of a numeric tensor; the real part of complex ones. */
double element_get(const grt_tensor *tensor, int64_t i);
/* 0 unless the dtype is complex. */
double element_imaginary(const grt_tensor *tensor, int64_t i);
/* Store a number, which the dtype must be able to hold: 0 and 1 in all; fractions in floats of 16 bits and
 * more, where those of 16 bits are cut, not rounded. */
void element_set(grt_tensor *tensor, int64_t i, double value);
bool dtype_is_float(grt_dtype dtype);   /* float16, bfloat16, float32, float64 */
bool dtype_is_integer(grt_dtype dtype); /* of whole bytes, without bool */

#endif
