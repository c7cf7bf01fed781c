/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration: the float model runs with every sample, and statistics of the values to quantise are kept. */
#ifndef GRT_SRC_QUANTIZE_OBSERVE_H
#define GRT_SRC_QUANTIZE_OBSERVE_H

#include "src/quantize/layers.h"
#include "src/quantize/runner.h"
#include "src/quantize/statistics.h"

/* At most this much of values is kept at once; more take another run of all samples. */
enum { OBSERVED_BYTES = 1 << 29 };

typedef struct observed {
    statistics *list; /* by the slots of values; free() it */
    size_t n, resumed;
} observed;

/* Of the values that have slots. Release in any case. */
grt_status observe_values(quant_layers *l, const samples *s, size_t most_bytes, observed *out);
void observed_release(observed *o);

#endif
