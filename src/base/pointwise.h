/* SPDX-License-Identifier: Apache-2.0 */
/* The pointwise functions of pointwise.def: their numbers, and which function an op instance is. */
#ifndef GRT_BASE_POINTWISE_H
#define GRT_BASE_POINTWISE_H

#include "src/base/op_desc.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

typedef enum pw_opcode {
#define PW(name, since, arity, kind, n_params, p0, d0, p1, d1, expr) PW_##name,
#include "src/base/pointwise.def"
#undef PW
    PW_COUNT
} pw_opcode;

enum { PW_MAX_OPERANDS = 3, PW_MAX_PARAMS = 2 };

typedef struct pw_info {
    const char *name;
    int8_t arity;    /* tensor operands */
    int8_t n_params; /* constants that follow them */
    bool fusible;    /* has a meaning in float32, so may be in a group */
    bool truth;      /* result is bool */
} pw_info;

/* `opcode` must lie in [0, PW_COUNT). */
const pw_info *grt_pointwise_info(int32_t opcode);
/* Its expression as pointwise.def has it: "ADD(a, b)". */
const char *grt_pointwise_expression(int32_t opcode);
/* The function that an op computes for all its inputs (variants by attributes told apart; Sum is Add), or -1.
 */
int32_t grt_pointwise_function_of(const grt_op_desc *desc);
/* The function that this instance of an op with n_in present inputs is, or -1 if it is none that a group can
 * hold. Sum is Add, and Max, Min and Sum are only answered with two inputs. Clip is answered with one to
 * three inputs: an omitted bound is the constant -/+infinity. dtypes are the caller's affair: all float
 * inputs and outputs of a group are of one dtype, conditions are bool. */
int32_t grt_pointwise_opcode_of(const grt_op_desc *desc, int32_t n_in);
/* The constants p0, p1 of this instance, from its attributes. Returns their number. */
int32_t grt_pointwise_params(const grt_op_desc *desc, int32_t opcode, float out_params[PW_MAX_PARAMS]);

/* INVALID_MODEL if the attributes of a graphrt::Pointwise instance with n_in inputs are no valid program.
 */
grt_status grt_pointwise_check(const grt_op_desc *desc, int32_t n_in);

/* Where an instruction reads an operand. PREVIOUS: the result of the instruction before it. */
typedef enum pw_source_kind {
    PW_SOURCE_INPUT,
    PW_SOURCE_CONSTANT,
    PW_SOURCE_REGISTER,
    PW_SOURCE_PREVIOUS
} pw_source_kind;

typedef struct pw_instruction {
    int32_t opcode, arity;
    int32_t target; /* register of the result; -1: none but the next instruction reads it */
    pw_source_kind kind[PW_MAX_OPERANDS];
    int32_t index[PW_MAX_OPERANDS]; /* input, constant or register */
    float p[PW_MAX_PARAMS];
} pw_instruction;

/* A program as executors want it. */
typedef struct pw_program {
    int32_t n, n_in, n_constants, n_registers;
    pw_instruction *code;
    float *constants;
} pw_program;

/* The program of a graphrt::Pointwise instance with n_in inputs, checked; to free(). all_kept: every result
 * has a register, and no operand is PREVIOUS. */
grt_status grt_pointwise_decode(const grt_op_desc *desc, int32_t n_in, bool all_kept,
                                pw_program **out_program);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
