/* SPDX-License-Identifier: Apache-2.0 */
/* Which of oneDNN's instruction sets suits a convolution. */
#ifndef GRT_BACKENDS_CPU_DNNL_ISA_H
#define GRT_BACKENDS_CPU_DNNL_ISA_H

#include "backends/cpu/dnnl_conv.h"

/* True if a kernel for AVX2 is expected to be faster than one for AVX-512 on a machine that has both. halved:
 * cpu_isa_halves_avx512. */
bool dnnl_isa_prefers_avx2(const grt_dnnl_conv *conv, bool halved);

#endif
