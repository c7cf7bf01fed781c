/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that live in modules of their own, opened on first use: libgraphrt itself needs none of their
 * libraries. */
#ifndef GRT_BACKENDS_MODULE_H
#define GRT_BACKENDS_MODULE_H

#include "backends/backend.h"

/* Look for libgraphrt-NAME.so in the directories of GRAPHRT_BACKEND_PATH (colon-separated), else in graphrt/
 * beside libgraphrt, beside libgraphrt, in a build tree where make puts it, and in the module directory that
 * was configured. NULL with a message that names every place that was tried and why it would not do;
 * *out_there: in one of them was such a file. Never closed. */
const grt_backend *grt_backend_module(const char *name, bool *out_there);

#endif
