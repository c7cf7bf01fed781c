/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of graphrt::Rows: pointwise functions, and folds of what they give over the row that an element
 * lies in. graph/ops/rows.h has the form of the attributes.
 *
 * A program runs in phases. A fold reads the elements of a row in one phase, and its number is there from the
 * next one on. What has one number for a row is computed before the elements of its phase. */
#ifndef GRT_BASE_ROWS_H
#define GRT_BASE_ROWS_H

#include "src/base/pointwise.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

/* The opcode of a fold is -1 - fold, so that opcodes of functions stay those of pointwise.def. */
typedef enum rows_fold { ROWS_SUM, ROWS_MAX, ROWS_MIN, ROWS_PRODUCT, ROWS_FOLDS } rows_fold;

/* What a program may have; a row has at most ROWS_MAX_LENGTH elements. Rows that a pass makes lie along at
 * most ROWS_MAX_GROUPS groups of dims, of which each input has all or none. */
enum {
    ROWS_MAX_INSTRUCTIONS = 64,
    ROWS_MAX_INPUTS = 8,
    ROWS_MAX_CONSTANTS = 64,
    ROWS_MAX_LENGTH = 32768,
    ROWS_MAX_GROUPS = 4
};

static inline int64_t rows_opcode_of(rows_fold fold)
{
    return -1 - (int64_t)fold;
}
static inline bool rows_is_fold(int64_t opcode)
{
    return opcode < 0;
}
static inline rows_fold rows_fold_of(int64_t opcode)
{
    return (rows_fold)(-1 - opcode);
}
/* "Sum". */
const char *grt_rows_fold_name(rows_fold fold);

/* INVALID_MODEL if the attributes of a graphrt::Rows instance with n_in inputs are no valid program. */
grt_status grt_rows_check(const grt_op_desc *desc, int32_t n_in);
/* True if the output of such an instance is one number for each row. */
bool grt_rows_gives_number(const grt_op_desc *desc, int32_t n_in);

/* Where an operand is. */
typedef enum rows_home {
    ROWS_INPUT,
    ROWS_CONSTANT,
    ROWS_NUMBER, /* of the row: the result of instruction `index`, which is by_row */
    ROWS_KEPT,   /* a buffer of one row: from one phase to a later one */
    ROWS_BLOCK,  /* a buffer of the elements that are computed at a time */
} rows_home;

typedef struct rows_operand {
    rows_home home;
    int32_t index;
} rows_operand;

typedef struct rows_instruction {
    int32_t opcode, arity, phase;
    bool by_row; /* the result is one number for a row */
    bool folds;
    rows_operand operand[PW_MAX_OPERANDS], target; /* target of what is by_row: ROWS_NUMBER, itself */
    float p[PW_MAX_PARAMS];
} rows_instruction;

/* A program as executors want it. code[order[i]] is what is computed i-th; phases rise along it, and in each
 * phase what is by_row (but folds) comes first. */
typedef struct rows_program {
    int32_t n, n_in, n_constants, n_phases, n_kept, n_blocks;
    rows_instruction code[ROWS_MAX_INSTRUCTIONS];
    int32_t order[ROWS_MAX_INSTRUCTIONS];
    float constants[ROWS_MAX_CONSTANTS];
} rows_program;

/* The program of a graphrt::Rows instance with n_in inputs, checked; to free(). */
grt_status grt_rows_decode(const grt_op_desc *desc, int32_t n_in, rows_program **out_program);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
