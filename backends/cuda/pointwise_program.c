/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/pointwise_program.h"

#include <stdlib.h>
#include <string.h>

bool cuda_pointwise_program_supports(const grt_kernel_node *node, grt_text *why)
{
    size_t n, n_constants;
    (void)grt_attr_ints(node->desc, "program", &n);
    (void)grt_attr_floats(node->desc, "constants", &n_constants);
    if (n / 4 <= CUDA_POINTWISE_CODE && n_constants <= CUDA_POINTWISE_CONSTANTS &&
        node->n_in - grt_pointwise_joined(node->desc) < CUDA_POINTWISE_INPUTS)
        return true;
    if (why)
        grt_text_add(why, "at most %d instructions, %d constants and %d inputs", CUDA_POINTWISE_CODE,
                     CUDA_POINTWISE_CONSTANTS, CUDA_POINTWISE_INPUTS);
    return false;
}

static void take_instruction(cuda_pointwise_instruction *to, const pw_instruction *from)
{
    to->opcode = (uint8_t)from->opcode;
    to->arity = (uint8_t)from->arity;
    to->keep = from->target >= 0;
    to->target = to->keep ? (uint8_t)from->target : 0;
    for (int k = 0; k < PW_MAX_OPERANDS; k++) {
        to->kind[k] = (uint8_t)from->kind[k];
        to->index[k] = from->kind[k] == PW_SOURCE_PREVIOUS ? 0 : (uint8_t)from->index[k];
    }
    memcpy(to->p, from->p, sizeof to->p);
}

grt_status cuda_pointwise_program_create(const grt_kernel_node *node, void **out_state)
{
    const int32_t joined = grt_pointwise_joined(node->desc);
    pw_program *decoded;
    GRT_TRY(grt_pointwise_check_operands(node->desc, node->n_in));
    GRT_TRY(grt_pointwise_decode(node->desc, node->n_in - joined + 1, false, &decoded));
    cuda_pointwise_program *p = calloc(1, sizeof *p);
    if (!p) {
        free(decoded);
        return grt_fail_memory(sizeof *p);
    }
    p->n = decoded->n;
    p->joined = joined;
    p->n_in = decoded->n_in;
    p->n_registers = decoded->n_registers;
    p->out_dtype = node->out[0].dtype;
    for (int32_t i = 0; i < p->n_in; i++)
        p->in_dtype[i] = node->in[i ? joined + i - 1 : 0].dtype;
    for (int32_t i = 0; i < decoded->n_constants; i++)
        p->constants[i] = decoded->constants[i];
    for (int32_t i = 0; i < p->n; i++)
        take_instruction(&p->code[i], &decoded->code[i]);
    free(decoded);
    *out_state = p;
    return GRT_OK;
}
