/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of GPUs that need not be in this machine: files NAME.json that the library's optimiser chooses
 * algorithms by. They are looked for in the directories of GRAPHRT_DEVICE_PATH (colon-separated), then where
 * this tool lies, then where it was installed. */
#ifndef TOOLS_DESCRIPTIONS_H
#define TOOLS_DESCRIPTIONS_H

#include <graphrt/graphrt.h>

typedef struct description {
    char *file, *id; /* "/usr/share/graphrt/devices/h200.json", "h200" */
    char *kind, *name, *source, *properties;
    int32_t sm;
} description;

typedef struct descriptions {
    description *items; /* sorted by id; of two files for one the first that was found counts */
    size_t n;
} descriptions;

/* All there are. False after printing an error with one. */
bool descriptions_load(descriptions *out);
void descriptions_release(descriptions *all);
/* By "h200", or "sm_90": the first with that compute capability. NULL if there is none. */
const description *descriptions_find(const descriptions *all, const char *text);

enum { DESCRIPTION_FORMAT = 1 }; /* of the files */

#endif
