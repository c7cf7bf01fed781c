/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of a model: printed, reported, saved. */
#ifndef TOOLS_OUTPUTS_H
#define TOOLS_OUTPUTS_H

#include <graphrt/graphrt.h>
#include <jansson.h>

/* One line: name, type, range and first elements. */
void outputs_print(const char *name, const grt_value *value);
/* {name, kind, dtype, shape, values: the first 16 as text or numbers}. */
json_t *outputs_json(const char *name, const grt_value *value);
/* Into directory/NAME.npy, or NAME.pb for what .npy cannot hold. '/' and other unusual bytes of names become
 * '_'. *out_path (malloc'ed) is where. False after printing an error. */
bool outputs_save(const char *directory, const char *name, const grt_value *value, char **out_path);

#endif
