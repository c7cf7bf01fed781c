/* SPDX-License-Identifier: Apache-2.0 */
/* graphc quantize --data: directories of .npy or .pb files as samples. */
#ifndef TOOLS_CALIBRATION_DATA_H
#define TOOLS_CALIBRATION_DATA_H

#include "tools/input_lists.h"

typedef struct calibration_data {
    const char **sources; /* of --data: DIR, or NAME=DIR */
    size_t n_sources;
    /* calibration_data_open: */
    char **texts; /* NAME=DIR of each input */
    size_t n_texts;
    input_specs specs;
    input_lists lists;
    grt_runtime *runtime;
    grt_model *model;
    char *id;
    size_t n; /* samples */
} calibration_data;

/* False after printing an error. */
bool calibration_data_add(calibration_data *d, const char *source);
/* Finds a directory for each input of the model; `limit` 0: all of their files. False after printing an
 * error.
 */
bool calibration_data_open(calibration_data *d, const char *model, bool allow_symlinks, size_t limit);
/* For grt_quantize_options.sample; `data` is a calibration_data. */
bool calibration_data_sample(calibration_data *d, size_t index, grt_value **values);
void calibration_data_release(calibration_data *d);

#endif
