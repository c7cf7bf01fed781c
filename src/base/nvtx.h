/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges for profilers that know NVTX, such as Nsight Systems. They load a library into the process, which
 * NVTX_INJECTION64_PATH names; without it nothing here does anything. A build without NVTX's headers has
 * none. */
#ifndef GRT_BASE_NVTX_H
#define GRT_BASE_NVTX_H

#include <graphrt/trace.h>

/* Once, before the others. */
void grt_nvtx_look(void);
bool grt_nvtx_is_on(void);

/* A range of this thread: push and pop go in pairs. */
void grt_nvtx_push(const grt_span *span);
void grt_nvtx_pop(void);
/* A range of the process, for a request. */
uint64_t grt_nvtx_start(uint64_t number, size_t lane);
void grt_nvtx_end(uint64_t range);

#endif
