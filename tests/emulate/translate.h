/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel sources as C++ for the host (cuda.h). */
#ifndef GRT_TESTS_EMULATE_TRANSLATE_H
#define GRT_TESTS_EMULATE_TRANSLATE_H

#include "src/base/text.h"

/* Adds `source` to `out`: kernels become static functions, and each instruction in an asm statement a call
 * of asm_NAME with its operands. Declarations of shared memory of a size that the launch gives become
 * pointers. False: an asm statement is of a form that this does not know. */
bool emulate_translate(const char *source, grt_text *out);

#endif
