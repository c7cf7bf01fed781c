/* SPDX-License-Identifier: Apache-2.0 */
/* How far two tensors are from each other, also where one of the two has its channels last. */
#ifndef TOOLS_DIFFERENCE_H
#define TOOLS_DIFFERENCE_H

#include <graphrt/graphrt.h>

typedef struct difference {
    double error;   /* root of the sum of squared differences over that of squares */
    double largest; /* of single elements */
} difference;

/* Of numeric tensors of any dtypes, relative to `a`. False, with nothing written, if their dims allow no
 * comparison. */
bool difference_measure(const grt_tensor *a, const grt_tensor *b, difference *out);

#endif
