/* SPDX-License-Identifier: Apache-2.0 */
/* Row programs: their check, and when and where each result is computed. */
#include "src/base/rows.h"

#include <stdlib.h>
#include <string.h>

const char *grt_rows_fold_name(rows_fold fold)
{
    static const char *const names[ROWS_FOLDS] = {"Sum", "Max", "Min", "Product"};
    return names[fold];
}

static grt_status rows_check_instruction(const grt_op_desc *desc, const int64_t *in, size_t at,
                                         int64_t first_constant, int64_t first_result)
{
    const bool folds = rows_is_fold(in[0]);
    if (in[0] < -(int64_t)ROWS_FOLDS || in[0] >= PW_COUNT ||
        (!folds && !grt_pointwise_info((int32_t)in[0])->fusible))
        return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL, "instruction %zu: %lld is no function and no fold",
                           at, (long long)in[0]);
    const int32_t arity = folds ? 1 : grt_pointwise_info((int32_t)in[0])->arity,
                  n_params = folds ? 0 : grt_pointwise_info((int32_t)in[0])->n_params;
    for (int32_t k = 0; k < arity + n_params; k++) {
        const bool parameter = k >= arity;
        const int64_t low = parameter ? first_constant : 0,
                      high = parameter ? first_result : first_result + (int64_t)at;
        if (in[1 + k] < low || in[1 + k] >= high)
            return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL,
                               "instruction %zu: %s %d of %s is %lld; it must lie in [%lld, %lld)", at,
                               parameter ? "parameter" : "operand", (int)k,
                               folds ? grt_rows_fold_name(rows_fold_of(in[0]))
                                     : grt_pointwise_info((int32_t)in[0])->name,
                               (long long)in[1 + k], (long long)low, (long long)high);
    }
    return GRT_OK;
}

grt_status grt_rows_check(const grt_op_desc *desc, int32_t n_in)
{
    size_t n, n_constants;
    bool any_fold = false;
    const int64_t *program = grt_attr_ints(desc, "program", &n);
    (void)grt_attr_floats(desc, "constants", &n_constants);
    if (n_in < 1 || n_in > ROWS_MAX_INPUTS || n_constants > ROWS_MAX_CONSTANTS)
        return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL,
                           "%d inputs and %zu constants; there are 1 to %d and at most %d", (int)n_in,
                           n_constants, (int)ROWS_MAX_INPUTS, (int)ROWS_MAX_CONSTANTS);
    if (n == 0 || n % 4 || n / 4 > ROWS_MAX_INSTRUCTIONS)
        return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL,
                           "attribute program has %zu numbers; it must have 4 for each of 1 to %d "
                           "instructions",
                           n, (int)ROWS_MAX_INSTRUCTIONS);
    for (size_t at = 0; at < n / 4; at++) {
        GRT_TRY(rows_check_instruction(desc, program + 4 * at, at, n_in, n_in + (int64_t)n_constants));
        any_fold |= rows_is_fold(program[4 * at]);
    }
    return any_fold
               ? GRT_OK
               : grt_fail_op(desc, GRT_STATUS_INVALID_MODEL, "attribute program has no fold over the row");
}

bool grt_rows_gives_number(const grt_op_desc *desc, int32_t n_in)
{
    size_t n, n_constants;
    const int64_t *code = grt_attr_ints(desc, "program", &n);
    (void)grt_attr_floats(desc, "constants", &n_constants);
    const int64_t first_result = n_in + (int64_t)n_constants;
    bool by_row[ROWS_MAX_INSTRUCTIONS];
    for (size_t i = 0; i < n / 4; i++) {
        const bool folds = rows_is_fold(code[4 * i]);
        const int32_t arity = folds ? 0 : grt_pointwise_info((int32_t)code[4 * i])->arity;
        by_row[i] = true;
        for (int32_t k = 0; k < arity; k++) {
            const int64_t operand = code[4 * i + 1 + (size_t)k];
            by_row[i] &= operand >= first_result ? by_row[operand - first_result] : operand >= n_in;
        }
    }
    return by_row[n / 4 - 1];
}

/* ---- phases ---- */

/* The instruction that makes operand k of instruction i; -1: none does. */
static int32_t maker(const rows_program *p, const int64_t *code, int32_t i, int32_t k)
{
    const int64_t result = code[4 * i + 1 + k] - p->n_in - p->n_constants;
    return k < p->code[i].arity && result >= 0 ? (int32_t)result : -1;
}

static void find_rows(rows_program *p, const int64_t *code)
{
    for (int32_t i = 0; i < p->n; i++) {
        rows_instruction *in = &p->code[i];
        in->by_row = true;
        for (int32_t k = 0; k < in->arity; k++) {
            const int32_t from = maker(p, code, i, k);
            in->by_row &= from >= 0 ? p->code[from].by_row : code[4 * i + 1 + k] >= p->n_in;
        }
        in->by_row |= in->folds;
    }
}

/* Folds, and what is by_row, are computed as early as they can be: folds of one phase share their reading.
 * Elements are computed in the first phase that reads them, so that none is kept without need. */
static void find_phases(rows_program *p, const int64_t *code)
{
    int32_t last = 0;
    for (int32_t i = 0; i < p->n; i++) {
        rows_instruction *in = &p->code[i];
        for (int32_t k = 0; k < in->arity; k++) {
            const int32_t from = maker(p, code, i, k);
            const int32_t ready = from < 0 ? 0 : p->code[from].phase + p->code[from].folds;
            in->phase = in->phase > ready ? in->phase : ready;
        }
        /* A fold in front of the last phase is not the last phase; what it gives is read behind it. */
        const int32_t end = in->phase + (in->folds && i + 1 == p->n);
        last = last > end ? last : end;
    }
    p->n_phases = last + 1;
    int32_t needed[ROWS_MAX_INSTRUCTIONS];
    for (int32_t i = 0; i < p->n; i++)
        needed[i] = last;
    for (int32_t i = p->n; i-- > 0;) {
        rows_instruction *in = &p->code[i];
        if (!in->by_row)
            in->phase = needed[i];
        for (int32_t k = 0; k < in->arity; k++) {
            const int32_t from = maker(p, code, i, k);
            if (from >= 0 && needed[from] > in->phase)
                needed[from] = in->phase;
        }
    }
}

static void put_in_order(rows_program *p)
{
    int32_t n = 0;
    for (int32_t phase = 0; phase < p->n_phases; phase++)
        for (int32_t elements = 0; elements < 2; elements++)
            for (int32_t i = 0; i < p->n; i++)
                if (p->code[i].phase == phase && (!p->code[i].by_row || p->code[i].folds) == (elements == 1))
                    p->order[n++] = i;
}

/* ---- places ---- */

/* last_use: the last place in the order that reads a result, which then gives its buffer back. */
static void assign_buffers(rows_program *p, const int64_t *code)
{
    int32_t last_use[ROWS_MAX_INSTRUCTIONS], idle[ROWS_MAX_INSTRUCTIONS], n_idle = 0;
    bool kept[ROWS_MAX_INSTRUCTIONS] = {false};
    for (int32_t o = 0; o < p->n; o++) {
        const int32_t i = p->order[o];
        last_use[i] = o;
        for (int32_t k = 0; k < p->code[i].arity; k++) {
            const int32_t from = maker(p, code, i, k);
            if (from < 0)
                continue;
            last_use[from] = o;
            kept[from] |= p->code[from].phase != p->code[i].phase;
        }
    }
    for (int32_t o = 0; o < p->n; o++) {
        const int32_t i = p->order[o];
        rows_instruction *in = &p->code[i];
        for (int32_t k = 0; k < in->arity; k++) {
            const int32_t from = maker(p, code, i, k);
            const int64_t operand = code[4 * i + 1 + k];
            in->operand[k] = from >= 0           ? p->code[from].target
                             : operand < p->n_in ? (rows_operand){ROWS_INPUT, (int32_t)operand}
                                                 : (rows_operand){ROWS_CONSTANT, (int32_t)operand - p->n_in};
            if (from >= 0 && last_use[from] == o && p->code[from].target.home == ROWS_BLOCK) {
                idle[n_idle++] = p->code[from].target.index;
                last_use[from] = -1; /* an operand that occurs twice is given back once */
            }
        }
        if (in->by_row)
            in->target = (rows_operand){ROWS_NUMBER, i};
        else if (kept[i])
            in->target = (rows_operand){ROWS_KEPT, p->n_kept++};
        else
            in->target = (rows_operand){ROWS_BLOCK, n_idle ? idle[--n_idle] : p->n_blocks++};
        if (in->target.home == ROWS_BLOCK && last_use[i] == o && i + 1 < p->n) /* never read */
            idle[n_idle++] = in->target.index;
    }
}

grt_status grt_rows_decode(const grt_op_desc *desc, int32_t n_in, rows_program **out_program)
{
    size_t n, n_constants;
    GRT_TRY(grt_rows_check(desc, n_in));
    const int64_t *code = grt_attr_ints(desc, "program", &n);
    const float *constants = grt_attr_floats(desc, "constants", &n_constants);
    rows_program *p = calloc(1, sizeof *p);
    if (!p)
        return grt_fail_memory(sizeof *p);
    p->n = (int32_t)(n / 4);
    p->n_in = n_in;
    p->n_constants = (int32_t)n_constants;
    if (n_constants)
        memcpy(p->constants, constants, n_constants * sizeof *constants);
    for (int32_t i = 0; i < p->n; i++) {
        rows_instruction *in = &p->code[i];
        in->opcode = (int32_t)code[4 * i];
        in->folds = rows_is_fold(in->opcode);
        in->arity = in->folds ? 1 : grt_pointwise_info(in->opcode)->arity;
        for (int32_t k = 0; !in->folds && k < grt_pointwise_info(in->opcode)->n_params; k++)
            in->p[k] = constants[code[4 * i + 1 + in->arity + k] - n_in];
    }
    find_rows(p, code);
    find_phases(p, code);
    put_in_order(p);
    assign_buffers(p, code);
    *out_program = p;
    return GRT_OK;
}
