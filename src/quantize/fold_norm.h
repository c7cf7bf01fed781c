/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation goes into the convolution before it: a quantised convolution has no other place for it.
 */
#ifndef GRT_SRC_QUANTIZE_FOLD_NORM_H
#define GRT_SRC_QUANTIZE_FOLD_NORM_H

#include "src/quantize/document.h"

/* *out_folded: how many. */
grt_status document_fold_norms(document *d, size_t *out_folded);

#endif
