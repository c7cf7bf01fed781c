/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of --precision auto, and the quantised model that it may find. */
#ifndef TOOLS_PRECISION_REQUEST_H
#define TOOLS_PRECISION_REQUEST_H

#include "tools/quantised_model.h"

typedef struct auto_precision {
    const char *model;
    grt_compile_options options; /* of the plan that is to be made */
    calibration_data data;       /* opened */
    double max_error;            /* of an output: root of the sum of squared errors over the sum of squares */
    bool quiet;
    quantised_model quantised; /* found: takes the model's place if it has a path */
} auto_precision;

#endif
