/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of pointwise groups as the interpreting kernels take them: whole, in a kernel's parameters. */
#ifndef GRT_BACKENDS_CUDA_POINTWISE_PROGRAM_H
#define GRT_BACKENDS_CUDA_POINTWISE_PROGRAM_H

#include "backends/cuda/pointwise_source.h"
#include "src/base/pointwise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the compiler's groups keep to, and what fits in the parameters of a kernel. */
enum { CUDA_POINTWISE_CODE = 32, CUDA_POINTWISE_CONSTANTS = 96 };

typedef struct cuda_pointwise_instruction {
    uint8_t opcode, arity;
    uint8_t target;                /* register */
    bool keep;                     /* some later instruction but the next one reads the result */
    uint8_t kind[PW_MAX_OPERANDS]; /* pw_source_kind */
    uint8_t index[PW_MAX_OPERANDS];
    float p[PW_MAX_PARAMS];
} cuda_pointwise_instruction;

typedef struct cuda_pointwise_program {
    int32_t n, n_in, n_registers, joined; /* n_in: operands; joined: inputs that are the first */
    grt_dtype in_dtype[CUDA_POINTWISE_INPUTS], out_dtype;
    float constants[CUDA_POINTWISE_CONSTANTS];
    cuda_pointwise_instruction code[CUDA_POINTWISE_CODE];
} cuda_pointwise_program;

/* For kernel rows: the state is a program, released with free. */
bool cuda_pointwise_program_supports(const grt_kernel_node *node, grt_text *why);
grt_status cuda_pointwise_program_create(const grt_kernel_node *node, void **out_state);

#ifdef __cplusplus
}
#endif
#endif
