/* SPDX-License-Identifier: Apache-2.0 */
/* Content of tensors, and critical numbers. Drawn from tests/differential/draw.h. */
#ifndef GRT_TESTS_MUTATE_CONTENT_H
#define GRT_TESTS_MUTATE_CONTENT_H

#include <graphrt/graphrt.h>

/* Zero, one, the ends of types, what overflows when doubled. */
int64_t telling_int(void);
/* NaN, infinities, ends, zeros of both signs. */
float telling_float(void);

/* Small numbers, valid for the dtype; `wild`: at times telling ones, and bytes that are no bool. Not for
 * STRING. */
void fill(grt_dtype dtype, int64_t elements, void *data, bool wild);

#endif
