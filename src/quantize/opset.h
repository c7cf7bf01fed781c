/* SPDX-License-Identifier: Apache-2.0 */
/* Raising a model's opset, as far as quantisation needs it: 13 for a scale per channel, 21 for blocks. */
#ifndef GRT_SRC_QUANTIZE_OPSET_H
#define GRT_SRC_QUANTIZE_OPSET_H

#include "src/quantize/document.h"

/* Rewrites nodes whose form changed between the model's version and `version`. UNSUPPORTED names a node that
 * cannot be rewritten. A model that is there already stays as it is. */
grt_status document_raise_opset(document *d, int64_t version);

#endif
