/* SPDX-License-Identifier: Apache-2.0 */
/* Where oneDNN comes from, in one of two files: libgraphrt.so opens the module libgraphrt-onednn.so
 * (dnnl_opened.c), so that programs that compute no convolution do not load it; the archive and the tests,
 * which are linked to everything, have it in them (dnnl_linked.c). docs/decisions/onednn.md. */
#ifndef GRT_BACKENDS_CPU_DNNL_LIBRARY_H
#define GRT_BACKENDS_CPU_DNNL_LIBRARY_H

#include "backends/cpu/dnnl_calls.h"
#include "src/base/status.h"

/* For the life of the process. DEVICE, with grt_last_error(): there is no such module, or one of another
 * release; the next call tries again. */
grt_status dnnl_library_find(const dnnl_calls **out);

#endif
