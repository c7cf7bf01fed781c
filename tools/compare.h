/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a value equals a reference as the official ONNX test runner sees it. */
#ifndef TOOLS_COMPARE_H
#define TOOLS_COMPARE_H

#include <graphrt/graphrt.h>

typedef struct tolerance {
    double rtol, atol; /* |found - expected| <= atol + rtol * |expected| */
    bool types_only;   /* types, shapes and lengths are compared, elements are not */
} tolerance;

/* dtype and shape exact, strings exact, NaN equals NaN, infinities by sign; sequences and optionals item by
 * item. bfloat16 has an rtol of at least 2^-6, two units in its last place, as in the official runner. On
 * false, `why` says where and how. */
bool compare_values(const grt_value *found, const grt_value *expected, tolerance tolerance, char *why,
                    size_t size);

#endif
