/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of graphrt::SpectralConv, once the inputs' are known. */
#ifndef GRT_BACKENDS_SHARED_SPECTRAL_H
#define GRT_BACKENDS_SHARED_SPECTRAL_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lines to be transformed, and filters, which repeat: line i has filter i % filters. */
grt_status grt_spectral_lines(const grt_reshape *r, int64_t *out_lines, int64_t *out_filters);

#ifdef __cplusplus
}
#endif
#endif
