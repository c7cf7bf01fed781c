/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of quantised layers and models, on some of the samples. */
#ifndef GRT_SRC_QUANTIZE_MEASURE_H
#define GRT_SRC_QUANTIZE_MEASURE_H

#include "src/quantize/rewrite.h"
#include "src/quantize/runner.h"

/* Of the float32 output with the largest relative error; `largest`: of single elements of all. */
typedef struct model_error {
    double relative, largest;
} model_error;

/* Samples that errors are measured with. */
size_t measured_samples(const samples *s);
/* The error of each layer by itself: it gets the float model's values. */
grt_status measure_layers(const rewriting *r, const samples *s);
/* Compares the outputs of two documents. */
grt_status measure_model(document *original, document *quantised, const samples *s, model_error *out);

#endif
