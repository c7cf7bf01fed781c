/* SPDX-License-Identifier: Apache-2.0 */
/* Which copies of a loop file exist, and which of them this process uses. The package is built for the
 * baseline instruction set; hot loops are compiled again for newer ones in files of their own, and one copy
 * is chosen at run time. */
#ifndef GRT_BACKENDS_CPU_ISA_H
#define GRT_BACKENDS_CPU_ISA_H

#include "src/base/status.h"

#include <stdbool.h>

/* Needs the target pragma, which clang has not. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CPU_HAS_AVX2_COPY   1
#define CPU_HAS_AVX512_COPY 1
#endif

/* Levels of instruction sets, each with all that the level before has. */
typedef enum cpu_isa { CPU_ISA_BASE, CPU_ISA_AVX2, CPU_ISA_AVX512, CPU_ISA_AMX, CPU_ISA_COUNT } cpu_isa;

/* The name of a level, as GRAPHRT_CPU_ISA has it. */
const char *cpu_isa_name(cpu_isa isa);

/* The highest level that this machine has. */
cpu_isa cpu_isa_of_machine(void);

/* The level that kernels use: the machine's, or what GRAPHRT_CPU_ISA says if that is lower. The environment
 * is read once a process. */
cpu_isa cpu_isa_best(void);

/* True if this process may use AMX's tiles. The first call at level AMX asks the system, which from then on
 * refuses the whole process signal stacks (sigaltstack) that have no room for tiles, and refuses tiles if a
 * thread has such a stack. So it is called by who is about to use tiles, and by nobody else. */
bool cpu_isa_may_use_tiles(void);

/* True if GRAPHRT_CPU_ISA names a level; it then holds for libraries as well. */
bool cpu_isa_is_capped(void);

/* Instructions on 8-bit numbers, which machines of one level may have or not; the process's level allows
 * them.
 */
bool cpu_isa_has_avx_vnni(void);
bool cpu_isa_has_avx512_vnni(void);
/* The same of dot products of pairs of bfloat16. */
bool cpu_isa_has_avx512_bf16(void);
/* The same of products of bfloat16 in tiles, where the level is AMX. */
bool cpu_isa_has_amx_bf16(void);

/* True if 512-bit instructions are executed as two of 256 bits, so that AVX2 multiplies as fast and wastes
 * fewer lanes where channels do not fill them. Zen 4 is such a machine. */
bool cpu_isa_halves_avx512(void);

/* An error if GRAPHRT_CPU_ISA is set to an unknown level. */
grt_status cpu_isa_check(void);

#endif
