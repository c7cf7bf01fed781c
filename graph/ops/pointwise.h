/* The pointwise family as the passes see it: which op is which function of pointwise.def.
 *
 * A `graphrt::Pointwise` node evaluates a small program for every element. Attributes:
 *   program    ints, 4 per instruction: {opcode, a, b, c}. An operand is an index into the list
 *              [inputs..., constants..., results of the instructions before]; unused operands are -1.
 *              The operands that follow the opcode's `arity` are its parameters p0, p1: they must be constants.
 *              The last instruction's result is the output.
 *   constants  floats (may be absent)
 * Inputs are float32, float16 or bfloat16 (all of one dtype), or bool, and are broadcast together. Everything is computed in
 * float32; truth is 1 and 0. The output is bool if the last opcode's result is, else of the float inputs' dtype. */
#ifndef GRT_GRAPH_OPS_POINTWISE_H
#define GRT_GRAPH_OPS_POINTWISE_H

#include "src/base/op_desc.h"

typedef enum pw_opcode {
#define PW(name, since, arity, kind, n_params, p0, d0, p1, d1, expr) PW_##name,
#include "graph/ops/pointwise.def"
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
const pw_info *pw_info_at(int32_t opcode);
/* The function that this instance of an op with n_in present inputs is, or -1 if it is none that a group can hold.
 * Sum is Add, and Max, Min and Sum are only answered with two inputs. Clip is answered with one to three inputs: an omitted
 * bound is the constant -/+infinity. dtypes are the caller's affair: all float inputs and outputs of a group are of one dtype,
 * conditions are bool. */
int32_t pw_opcode_of(const grt_op_desc *desc, int32_t n_in);
/* The constants p0, p1 of this instance, from its attributes. Returns their number. */
int32_t pw_params(const grt_op_desc *desc, int32_t opcode, float out_params[PW_MAX_PARAMS]);

#endif
