/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, opened on first use: libgraphrt itself needs none of their libraries. Backends are modules, the
 * image decoders, and oneDNN (backends/cpu/dnnl_library.h). */
#ifndef GRT_BACKENDS_MODULE_H
#define GRT_BACKENDS_MODULE_H

#include "backends/backend.h"

/* *out: what `symbol` names in libgraphrt-NAME.so. Looks for it in the directories of GRAPHRT_BACKEND_PATH
 * (colon-separated), else in graphrt/ beside libgraphrt, beside libgraphrt, in a build tree where make puts
 * it, and in the module directory that was configured. Failures, DEVICE or OUT_OF_MEMORY, name every place
 * that was tried and why it would not do; *out_there, unless NULL: in one of them was such a file. Never
 * closed. A module that is linked to libgraphrt has to be linked to this one; another tells its release by
 * what `symbol` names. */
grt_status grt_module_find(const char *name, const char *symbol, bool *out_there, const void **out);
/* The backend of module NAME, its symbol grt_backend_NAME; NULL with a message. */
const grt_backend *grt_backend_module(const char *name, bool *out_there);

#endif
