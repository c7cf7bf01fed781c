/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics in a file, so that a calibration that was stopped goes on where it was. */
#ifndef GRT_SRC_QUANTIZE_STATE_H
#define GRT_SRC_QUANTIZE_STATE_H

#include "src/quantize/statistics.h"

#include <stddef.h>

/* What the statistics are of, as a number: anything else in the file is another calibration's. */
typedef struct calibration_state {
    uint64_t key;
    statistics *list;
    size_t n;
    size_t group, sample; /* the next to see */
} calibration_state;

/* Leaves the state as it is where there is no such file, and where it is of another calibration, truncated or
 * damaged: then it is seen anew. */
void state_read(calibration_state *s, const char *path);
/* Whole or not at all. */
grt_status state_write(const calibration_state *s, const char *path);

#endif
