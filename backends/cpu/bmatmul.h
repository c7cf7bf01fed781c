/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, Gemm and graphrt::MatMul by constant weights in bfloat16: of bfloat16 tensors, and of float32 where
 * the attribute math says so. Weights keep 16 bits, in plans as well. */
#ifndef GRT_BACKENDS_CPU_BMATMUL_H
#define GRT_BACKENDS_CPU_BMATMUL_H

#include "backends/kernel.h"

#include <stdlib.h>

/* The functions of its rows; kernel.h says what each must do. Shapes are of malloc. */
bool cpu_bmatmul_supports(const grt_kernel_node *node, grt_text *why);
grt_status cpu_bmatmul_pack(const grt_kernel_node *node, int32_t i, grt_packing *out_packing,
                            void **out_data);
grt_status cpu_bmatmul_create(const grt_kernel_node *node, void **out_state);
void cpu_bmatmul_destroy(void *state);
grt_status cpu_bmatmul_reshape(grt_reshape *r);
grt_status cpu_bmatmul_run(const grt_run *r);

#define CPU_BMATMUL_TYPES (GRT_BIT(FLOAT) | GRT_BIT(BFLOAT16))
#define CPU_BMATMUL                                                                           \
    .types = {CPU_BMATMUL_TYPES, CPU_BMATMUL_TYPES, CPU_BMATMUL_TYPES, CPU_BMATMUL_TYPES},    \
    .supports = cpu_bmatmul_supports, .pack = cpu_bmatmul_pack, .create = cpu_bmatmul_create, \
    .destroy = cpu_bmatmul_destroy, .reshape = cpu_bmatmul_reshape, .release_shape = free,    \
    .run = cpu_bmatmul_run

#endif
