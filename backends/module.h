/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, opened on first use: libgraphrt itself needs none of their libraries. Backends are modules, and
 * the image decoders. */
#ifndef GRT_BACKENDS_MODULE_H
#define GRT_BACKENDS_MODULE_H

#include "backends/backend.h"

/* What `symbol` names in libgraphrt-NAME.so. Look for it in the directories of GRAPHRT_BACKEND_PATH
 * (colon-separated), else in graphrt/ beside libgraphrt, beside libgraphrt, in a build tree where make puts
 * it, and in the module directory that was configured. NULL with a message that names every place that was
 * tried and why it would not do; *out_there: in one of them was such a file. Never closed. */
const void *grt_module_find(const char *name, const char *symbol, bool *out_there);
/* The backend of module NAME, its symbol grt_backend_NAME. */
const grt_backend *grt_backend_module(const char *name, bool *out_there);

#endif
