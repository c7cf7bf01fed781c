/* SPDX-License-Identifier: Apache-2.0 */
/* The quantised form of a document, and of single layers of it. */
#ifndef GRT_SRC_QUANTIZE_REWRITE_H
#define GRT_SRC_QUANTIZE_REWRITE_H

#include <graphrt/quantize.h>

#include "src/quantize/layers.h"
#include "src/quantize/scale.h"

/* What is to be made. */
typedef struct rewriting {
    const grt_quantize_options *options; /* with defaults set */
    quant_layers *layers;
    const scale_zero *scales; /* STATIC: by a value's slot */
} rewriting;

/* All layers that are not kept; their weight_error is set. */
grt_status rewrite_document(const rewriting *r, document *out);
/* The float model, and beside each such layer its quantised form on the same inputs, with two outputs for
 * each layer: the sums of squares of the difference and of the layer's output. */
grt_status rewrite_beside(const rewriting *r, document *out);

#endif
