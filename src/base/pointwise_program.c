/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes programs of graphrt::Pointwise: operands, parameters and registers. */
#include "src/base/pointwise.h"

#include <stdlib.h>
#include <string.h>

/* Tables of one number for each instruction. */
typedef struct lives {
    int32_t *last_use, *idle; /* idle: a stack of registers */
    bool *kept;
    int32_t n_idle;
} lives;

static void find_lives(const pw_program *p, const int64_t *code, int64_t first_result, bool all_kept,
                       lives *l)
{
    for (int32_t i = 0; i < p->n; i++) {
        l->last_use[i] = i;
        l->kept[i] = all_kept;
        for (int k = 0; k < p->code[i].arity; k++) {
            const int64_t result = code[4 * i + 1 + k] - first_result;
            if (result >= 0) {
                l->last_use[result] = i;
                l->kept[result] = l->kept[result] || result != i - 1;
            }
        }
    }
}

/* A register is free again once the last reader of its value has run; the reader itself may overwrite it. */
static void assign_registers(pw_program *p, const int64_t *code, int64_t first_result, bool all_kept,
                             lives *l)
{
    for (int32_t i = 0; i < p->n; i++) {
        pw_instruction *in = &p->code[i];
        for (int k = 0; k < in->arity; k++) {
            const int64_t operand = code[4 * i + 1 + k], result = operand - first_result;
            in->kind[k] = operand < p->n_in             ? PW_SOURCE_INPUT
                          : operand < first_result      ? PW_SOURCE_CONSTANT
                          : all_kept || result != i - 1 ? PW_SOURCE_REGISTER
                                                        : PW_SOURCE_PREVIOUS;
            in->index[k] = operand < p->n_in        ? (int32_t)operand
                           : operand < first_result ? (int32_t)(operand - p->n_in)
                                                    : p->code[result].target;
            if (result >= 0 && l->last_use[result] == i) {
                if (l->kept[result])
                    l->idle[l->n_idle++] = p->code[result].target;
                l->last_use[result] = INT32_MAX; /* an operand that occurs twice is freed once */
            }
        }
        in->target = !l->kept[i] ? -1 : l->n_idle ? l->idle[--l->n_idle] : p->n_registers++;
        if (l->kept[i] && l->last_use[i] == i) /* never read */
            l->idle[l->n_idle++] = in->target;
    }
}

static pw_program *make_program(const int64_t *code, size_t n, const float *constants, size_t n_constants,
                                int32_t n_in)
{
    pw_program *p = calloc(1, sizeof *p + n * sizeof *p->code + n_constants * sizeof *p->constants);
    if (!p)
        return NULL;
    p->n = (int32_t)n;
    p->n_in = n_in;
    p->n_constants = (int32_t)n_constants;
    p->code = (pw_instruction *)(p + 1);
    p->constants = (float *)(void *)(p->code + n);
    if (n_constants)
        memcpy(p->constants, constants, n_constants * sizeof *constants);
    for (size_t i = 0; i < n; i++) {
        const pw_info *info = grt_pointwise_info((int32_t)code[4 * i]);
        p->code[i].opcode = (int32_t)code[4 * i];
        p->code[i].arity = info->arity;
        for (int k = 0; k < info->n_params; k++)
            p->code[i].p[k] = constants[code[4 * i + 1 + (size_t)info->arity + (size_t)k] - n_in];
    }
    return p;
}

grt_status grt_pointwise_decode(const grt_op_desc *desc, int32_t n_in, bool all_kept,
                                pw_program **out_program)
{
    size_t n, n_constants;
    GRT_TRY(grt_pointwise_check(desc, n_in));
    const int64_t *code = grt_attr_ints(desc, "program", &n);
    const float *constants = grt_attr_floats(desc, "constants", &n_constants);
    n /= 4;
    pw_program *p = make_program(code, n, constants, n_constants, n_in);
    lives l = {calloc(n, sizeof *l.last_use), calloc(n, sizeof *l.idle), calloc(n, sizeof *l.kept), 0};
    const bool ok = p && l.last_use && l.idle && l.kept;
    if (ok) {
        find_lives(p, code, n_in + (int64_t)n_constants, all_kept, &l);
        assign_registers(p, code, n_in + (int64_t)n_constants, all_kept, &l);
        *out_program = p;
    } else {
        free(p);
    }
    free(l.last_use);
    free(l.idle);
    free(l.kept);
    return ok ? GRT_OK : grt_fail_memory(n * sizeof *p->code);
}
