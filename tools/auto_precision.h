/* SPDX-License-Identifier: Apache-2.0 */
/* graphc optimize --precision auto: the fastest mix of precisions whose error on samples is within a limit.
 *
 * For the CPU it is 8-bit layers, as many as the error allows (grt_quantize), or float32.
 *
 * For GPUs errors are measured on the CPU, which rounds where a narrowed plan does, against float32. If all
 * that are named as targets have fast products of 8 bits, as many layers as the error allows become int8,
 * where the model is made of large convolutions, or float8, and the rest float16. Else, or if none can,
 * 16-bit floats are tried for all layers first. Where that is not good enough, layers are put back to
 * float32, those with most error for the work that they save first, their number found by doubling and
 * bisection. */
#ifndef TOOLS_AUTO_PRECISION_H
#define TOOLS_AUTO_PRECISION_H

#include "tools/precision_request.h"

/* For grt_compile_options.precision, malloc'ed; NULL after printing an error. Prints what was tried. The
 * caller releases `quantised`. */
char *auto_precision_find(auto_precision *a);

#endif
