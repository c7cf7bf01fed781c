/* What graphc inspect shows. */
#ifndef TOOLS_INSPECT_H
#define TOOLS_INSPECT_H

#include "tools/inputs.h"

/* Summary, ops, memory; `shapes` (may be empty) are combinations of input dims to plan memory for. False
 * after an error. */
bool inspect_text(const char *path, const grt_model *model, const input_specs *shapes);
bool inspect_json(const char *path, const grt_model *model, const input_specs *shapes);
/* The steps as a Graphviz graph. False after an error. */
bool inspect_dot(const grt_model *model);

#endif
