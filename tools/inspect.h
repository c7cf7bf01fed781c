/* SPDX-License-Identifier: Apache-2.0 */
/* What graphc inspect shows. */
#ifndef TOOLS_INSPECT_H
#define TOOLS_INSPECT_H

#include "tools/inputs.h"

#include <jansson.h>

/* Summary, ops, memory; `shapes` (may be empty) are combinations of input dims to plan memory for. False
 * after an error. */
bool inspect_text(const char *path, const grt_model *model, const input_specs *shapes);
/* near_misses: an array of findings. */
bool inspect_json(const char *path, const grt_model *model, const input_specs *shapes, json_t *near_misses);
/* Algorithms that come with the model's plan, counted per GPU: a line each, or an array of {gpu, sm,
 * heuristic, tuned}. */
bool inspect_tuning_text(const grt_model *model);
json_t *inspect_tuning_json(const grt_model *model);
/* A page in file `to` that needs nothing else: each step, what it was made of, FLOPs, bytes. False after an
 * error. */
bool inspect_html(const char *path, const char *to, const grt_model *model, const input_specs *shapes,
                  const json_t *near_misses);
/* The steps as a Graphviz graph. False after an error. */
bool inspect_dot(const grt_model *model);

#endif
