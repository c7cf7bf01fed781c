/* SPDX-License-Identifier: Apache-2.0 */
/* The formats in which the CPU backend's kernels read constants, and the way back from them. */
#ifndef GRT_BACKENDS_CPU_PACKING_H
#define GRT_BACKENDS_CPU_PACKING_H

#include "backends/cpu/dnnl.h"
#include "src/base/packing.h"
#include "src/base/text.h"

/* Matrices as panels of 16 columns (gemm.h), of B as it is or, with trans_b, of B stored transposed. */
const char *cpu_packing_matrix(bool trans_b);

/* Matrices as bfloat16 in pairs (bgemm.h). */
const char *cpu_packing_narrow_matrix(bool trans_b);

/* Convolution weights in a layout of oneDNN's. False: the name is too long. */
bool cpu_packing_conv(const char *layout, int64_t groups, bool transposed, grt_packing *out);
/* The layout in a format that cpu_packing_conv made for such weights; NULL: it is another. */
const char *cpu_packing_layout(const grt_packing *packing, int64_t groups, bool transposed);

grt_status cpu_packing_unpack(const grt_tensor *packed, const grt_packing *packing, void *out_data);

#endif
