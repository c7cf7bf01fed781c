/* SPDX-License-Identifier: Apache-2.0 */
/* What a session of a model will have of memory, in reports. */
#ifndef TOOLS_PREDICTION_H
#define TOOLS_PREDICTION_H

#include "tools/inputs.h"

#include <graphrt/graphrt.h>
#include <jansson.h>

typedef struct prediction {
    char device[32]; /* of the kind that the plan is for; "": there is none here, or nothing can be said */
    grt_memory_info memory;
} prediction;

/* With these shapes of inputs. */
void prediction_make(grt_model *model, const input_specs *shapes, prediction *out);
void prediction_print(const prediction *p); /* a line, or none */
json_t *prediction_json(const prediction *p);

#endif
