/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's options of grt_quantize, with defaults set, and refused where they make no sense. */
#ifndef GRT_SRC_QUANTIZE_OPTIONS_H
#define GRT_SRC_QUANTIZE_OPTIONS_H

#include <graphrt/quantize.h>

#include "src/base/status.h"

/* True if activations and weights become float8. */
bool quantize_options_float8(const grt_quantize_options *o);
grt_status quantize_options_take(grt_quantize_options *o, const grt_quantize_options *theirs);

#endif
