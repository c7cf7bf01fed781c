/* SPDX-License-Identifier: Apache-2.0 */
/* MelWeightMatrix: where its triangles are. */
#ifndef GRT_BACKENDS_SHARED_MEL_H
#define GRT_BACKENDS_SHARED_MEL_H

#include "src/base/float.h"
#include "src/base/op_desc.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_mel {
    int64_t length, rate;
    double low, step; /* of the lower edges, in mel */
} grt_mel;

/* Reads inputs 1 to 4, which are in host memory, for so many triangles. Errors: INVALID_ARGUMENT. */
grt_status grt_mel_read(const grt_op_desc *desc, const grt_tensor *const *in, int64_t triangles,
                        grt_mel *out);

/* The low edge, the peak and the high edge of a triangle, as rows of the matrix; `rows`: beyond the spectrum.
 */
GRT_INLINE void grt_mel_bins(const grt_mel *mel, int64_t triangle, int64_t rows, int64_t bins[3])
{
    for (int k = 0; k < 3; k++) {
        const double hertz = 700 * (pow(10.0, (mel->low + (double)(triangle + k) * mel->step) / 2595) - 1),
                     bin = floor((double)(mel->length + 1) * hertz / (double)mel->rate);
        bins[k] = bin < 0 ? 0 : bin > (double)rows ? rows : (int64_t)bin;
    }
}

#ifdef __cplusplus
}
#endif
#endif
