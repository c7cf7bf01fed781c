/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/rows_code.h"

#include <math.h>
#include <string.h>

/* ---- reductions ---- */

/* What is done to each element, the fold, and what is done to its result. */
typedef enum rows_before { BEFORE_NOTHING, BEFORE_ABS, BEFORE_SQUARE, BEFORE_EXP } rows_before;
typedef enum rows_after { AFTER_NOTHING, AFTER_MEAN, AFTER_SQRT, AFTER_LOG } rows_after;

static const struct {
    const char *op;
    rows_before before;
    rows_fold fold;
    rows_after after;
} reductions[] = {
    {"ReduceSum", BEFORE_NOTHING, ROWS_SUM, AFTER_NOTHING},
    {"ReduceMean", BEFORE_NOTHING, ROWS_SUM, AFTER_MEAN},
    {"ReduceMax", BEFORE_NOTHING, ROWS_MAX, AFTER_NOTHING},
    {"ReduceMin", BEFORE_NOTHING, ROWS_MIN, AFTER_NOTHING},
    {"ReduceProd", BEFORE_NOTHING, ROWS_PRODUCT, AFTER_NOTHING},
    {"ReduceL1", BEFORE_ABS, ROWS_SUM, AFTER_NOTHING},
    {"ReduceL2", BEFORE_SQUARE, ROWS_SUM, AFTER_SQRT},
    {"ReduceSumSquare", BEFORE_SQUARE, ROWS_SUM, AFTER_NOTHING},
    {"ReduceLogSum", BEFORE_NOTHING, ROWS_SUM, AFTER_LOG},
    {"ReduceLogSumExp", BEFORE_EXP, ROWS_SUM, AFTER_LOG},
};
enum { N_REDUCTIONS = sizeof reductions / sizeof *reductions };

static int32_t reduction_kind(const ir_node *node)
{
    for (int32_t i = 0; i < N_REDUCTIONS; i++)
        if (!strcmp(node->desc.op, reductions[i].op) &&
            (!*node->desc.domain || !strcmp(node->desc.domain, "graphrt")))
            return i;
    return -1;
}

/* Which of the input's dims are folded; false if that is not known. */
static bool folded_dims(const ir_node *node, int32_t rank, bool *folded)
{
    const ir_value *axes = ir_in(node, 1);
    const grt_tensor *data = axes ? axes->type.data : NULL;
    if (axes && (!data || data->dtype != GRT_DTYPE_INT64))
        return false;
    const int64_t n = data ? grt_tensor_elements(data) : 0;
    for (int32_t k = 0; k < rank; k++)
        folded[k] = n == 0 && !grt_attr_int(&node->desc, "noop_with_empty_axes", 0);
    for (int64_t i = 0; i < n; i++) {
        const int64_t axis = ((const int64_t *)data->data)[i];
        if (axis < -rank || axis >= rank)
            return false;
        folded[axis < 0 ? axis + rank : axis] = true;
    }
    return true;
}

bool rows_reduction_of(const ir_node *node, rows_reduction *out)
{
    bool folded[GRT_MAX_RANK];
    if (reduction_kind(node) < 0 || node->n_out != 1 || !node->out[0] || !ir_in(node, 0))
        return false;
    *out = (rows_reduction){.in = &ir_in(node, 0)->type,
                            .out = &node->out[0]->type,
                            .length = 1,
                            .keeps_dims = grt_attr_int(&node->desc, "keepdims", 1) != 0};
    const int32_t rank = out->in->rank;
    if (rank < 1 || out->out->rank < 0 || !grt_dtype_in(out->in->dtype, POINTWISE_FLOATS) ||
        !grt_dtype_in(out->out->dtype, POINTWISE_FLOATS) || !folded_dims(node, rank, folded))
        return false;
    for (int32_t k = rank; k > 0 && folded[k - 1]; k--) {
        int64_t dim;
        if (!grt_dim_is_const(node->graph->module->dims, out->in->dims[k - 1], &dim) || dim < 1 ||
            dim > ROWS_MAX_LENGTH)
            return false;
        out->length *= dim;
        out->row_dims++;
        if (out->length > ROWS_MAX_LENGTH)
            return false;
    }
    for (int32_t k = 0; k < rank - out->row_dims; k++)
        if (folded[k])
            return false;
    return out->row_dims > 0;
}

/* ---- instructions ---- */

/* Operands are numbered [inputs, constants, results]; until all constants are known, the latter two count
 * from these. */
enum { CONSTANTS_FROM = 1000, RESULTS_FROM = 2000 };

static int64_t rows_constant(rows_code *c, float value)
{
    for (int32_t i = 0; i < c->n_constants; i++)
        if (!memcmp(&c->constants[i], &value, sizeof value))
            return CONSTANTS_FROM + i;
    if (c->n_constants == ROWS_MAX_CONSTANTS) {
        c->full = true;
        return CONSTANTS_FROM;
    }
    c->constants[c->n_constants] = value;
    return CONSTANTS_FROM + c->n_constants++;
}

/* The result's operand. */
static int64_t emit(rows_code *c, int64_t opcode, int64_t x, int64_t y, int64_t z)
{
    if (c->n == ROWS_MAX_INSTRUCTIONS) {
        c->full = true;
        return RESULTS_FROM;
    }
    memcpy(&c->code[4 * c->n], (const int64_t[]){opcode, x, y, z}, 4 * sizeof *c->code);
    return RESULTS_FROM + c->n++;
}

static int32_t input_index(const rows_code *c, const ir_value *value)
{
    for (int32_t i = 0; i < c->n_inputs; i++)
        if (c->inputs[i] == value)
            return i;
    return -1;
}

static bool has_instruction(const ir_node *node)
{
    return reduction_kind(node) >= 0 || pointwise_node_opcode(node) >= 0;
}

static int64_t rows_operand_of(rows_code *c, const ir_value *value)
{
    double v;
    while (input_index(c, value) < 0 && !pointwise_node_is_immediate(value, &v) &&
           !has_instruction(value->producer))
        value = ir_in(value->producer, 0);
    if (pointwise_node_is_immediate(value, &v))
        return rows_constant(c, (float)v);
    const int32_t input = input_index(c, value);
    return input >= 0 ? input : RESULTS_FROM + value->producer->mark;
}

/* log(sum(exp(x))) with the row's maximum subtracted first, as the Reduce kernels do; 0 in its place where
 * that is infinite. */
static int64_t rows_code_log_sum_exp(rows_code *c, int64_t x)
{
    const int64_t one = rows_constant(c, 1), most = emit(c, rows_opcode_of(ROWS_MAX), x, -1, -1),
                  infinite = emit(c, PW_IsInf, most, one, one),
                  shift = emit(c, PW_Where, infinite, rows_constant(c, 0), most),
                  terms = emit(c, PW_Exp, emit(c, PW_Sub, x, shift, -1), -1, -1),
                  sum = emit(c, rows_opcode_of(ROWS_SUM), terms, -1, -1);
    return emit(c, PW_Add, emit(c, PW_Log, sum, -1, -1), shift, -1);
}

static int64_t add_reduction(rows_code *c, const ir_node *node, int32_t kind)
{
    rows_reduction r;
    (void)rows_reduction_of(node, &r);
    int64_t x = rows_operand_of(c, ir_in(node, 0));
    if (reductions[kind].before == BEFORE_EXP)
        return rows_code_log_sum_exp(c, x);
    if (reductions[kind].before == BEFORE_ABS)
        x = emit(c, PW_Abs, x, -1, -1);
    if (reductions[kind].before == BEFORE_SQUARE)
        x = emit(c, PW_Mul, x, x, -1);
    x = emit(c, rows_opcode_of(reductions[kind].fold), x, -1, -1);
    if (reductions[kind].after == AFTER_MEAN)
        x = emit(c, PW_Div, x, rows_constant(c, (float)r.length), -1);
    if (reductions[kind].after == AFTER_SQRT)
        x = emit(c, PW_Sqrt, x, -1, -1);
    if (reductions[kind].after == AFTER_LOG)
        x = emit(c, PW_Log, x, -1, -1);
    return x;
}

static int64_t rows_code_function(rows_code *c, const ir_node *node, int32_t opcode)
{
    const pw_info *info = grt_pointwise_info(opcode);
    int64_t operands[3] = {-1, -1, -1};
    float params[PW_MAX_PARAMS];
    const int32_t n_params = grt_pointwise_params(&node->desc, opcode, params);
    for (int32_t k = 0; k < 3; k++)
        if (k < info->arity && ir_in(node, k))
            operands[k] = rows_operand_of(c, ir_in(node, k));
        else if (k < info->arity) /* Clip without a bound */
            operands[k] = rows_constant(c, k == 1 ? -INFINITY : INFINITY);
        else if (k - info->arity < n_params)
            operands[k] = rows_constant(c, params[k - info->arity]);
    return emit(c, opcode, operands[0], operands[1], operands[2]);
}

void rows_code_add(rows_code *c, ir_node *node)
{
    const int32_t kind = reduction_kind(node), opcode = kind < 0 ? pointwise_node_opcode(node) : -1;
    if (kind >= 0)
        node->mark = add_reduction(c, node, kind) - RESULTS_FROM;
    else if (opcode >= 0)
        node->mark = rows_code_function(c, node, opcode) - RESULTS_FROM;
}

void rows_code_end(rows_code *c)
{
    const int64_t constants = c->n_inputs, results = constants + c->n_constants;
    for (int32_t i = 0; i < 4 * c->n; i++) {
        if (i % 4 == 0)
            continue;
        if (c->code[i] >= RESULTS_FROM)
            c->code[i] += results - RESULTS_FROM;
        else if (c->code[i] >= CONSTANTS_FROM)
            c->code[i] += constants - CONSTANTS_FROM;
    }
}
