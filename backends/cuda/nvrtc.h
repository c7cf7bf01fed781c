/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC, opened when code is to be generated: CUDA C++ to machine code, on machines without a GPU too. */
#ifndef GRT_BACKENDS_CUDA_NVRTC_H
#define GRT_BACKENDS_CUDA_NVRTC_H

#include "src/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_NVRTC_OPTIONS "--std=c++17 --disable-warnings" /* beside the architecture */

/* The cubin of `source` for an architecture (90: sm_90): *out_code is malloc'ed. name: of what it is, for
 * messages. Errors: DEVICE if there is no NVRTC, UNSUPPORTED if it does not know the architecture, INTERNAL
 * with the compiler's words if it refuses the source. Any thread. */
grt_status cuda_nvrtc_compile(const char *name, const char *source, int sm, void **out_code,
                              size_t *out_size);
/* Adds "nvrtc=13.0;" to a key, once something was compiled. */
void cuda_nvrtc_version(grt_text *key);

#ifdef __cplusplus
}
#endif

#endif
