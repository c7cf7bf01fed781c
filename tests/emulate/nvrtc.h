/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler that generated kernels get where a plan is made: a host's compiler takes more than NVRTC does.
 */
#ifndef GRT_TESTS_EMULATE_NVRTC_H
#define GRT_TESTS_EMULATE_NVRTC_H

#include <stdbool.h>

/* Opens NVRTC where the loader or the toolkit has it; false: it is not on this machine. */
bool emulate_nvrtc_open(void);
/* NULL if NVRTC makes code of the source for sm_80, else its words, which stay until the next call. */
const char *emulate_nvrtc_refuses(const char *source);

#endif
