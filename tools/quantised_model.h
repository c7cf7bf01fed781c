/* SPDX-License-Identifier: Apache-2.0 */
/* The model with 8-bit layers, in a directory of its own, as a candidate of --precision auto. */
#ifndef TOOLS_QUANTISED_MODEL_H
#define TOOLS_QUANTISED_MODEL_H

#include "tools/calibration_data.h"

typedef struct quantised_model {
    char *directory, *path; /* path NULL: there is none */
    int64_t layers, quantised;
} quantised_model;

/* As many layers of `model` in 8 bits as max_error allows; activations: UINT8, or FLOAT8E4M3FN. Where none is
 * possible path is NULL and grt_last_error says why. False after printing an error. Release in any case. */
bool quantised_model_make(quantised_model *q, const char *model, const grt_compile_options *options,
                          calibration_data *data, grt_dtype activations, double max_error);
/* Removes the files. */
void quantised_model_release(quantised_model *q);

#endif
