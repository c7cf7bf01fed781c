/* SPDX-License-Identifier: Apache-2.0 */
/* The pointwise functions: numbers, arities, parameters. */
#include "src/base/pointwise.h"

#include <math.h>
#include <string.h>

#define KIND_FLOAT   true, false
#define KIND_SIGNED  true, false
#define KIND_NUMBER  true, false
#define KIND_INT     false, false
#define KIND_COMPARE true, true
#define KIND_EQUAL   true, true
#define KIND_TEST    true, true
#define KIND_LOGIC   true, true
#define KIND_SELECT  true, false

static const struct {
    pw_info info;
    const char *p[PW_MAX_PARAMS];
    float d[PW_MAX_PARAMS];
} functions[PW_COUNT] = {
#define PW(name, since, arity, kind, n_params, p0, d0, p1, d1, expr) \
    [PW_##name] = {{#name, arity, n_params, KIND_##kind}, {p0, p1}, {d0, d1}},
#include "src/base/pointwise.def"
#undef PW
};

const pw_info *grt_pointwise_info(int32_t opcode)
{
    return &functions[opcode].info;
}

int32_t grt_pointwise_function_of(const grt_op_desc *desc)
{
    if (*desc->domain)
        return -1;
    const char *op = desc->op;
    if (!strcmp(op, "Sum"))
        return PW_Add;
    if (!strcmp(op, "BitShift"))
        return strcmp(grt_attr_string(desc, "direction", "LEFT"), "RIGHT") ? PW_ShiftLeft : PW_ShiftRight;
    int32_t i = 0;
    while (i < PW_COUNT && strcmp(functions[i].info.name, op))
        i++;
    if (i == PW_Gelu && !strcmp(grt_attr_string(desc, "approximate", "none"), "tanh"))
        return PW_GeluTanh;
    if (i == PW_Mod && grt_attr_int(desc, "fmod", 0))
        return PW_FMod;
    return i < PW_COUNT ? i : -1;
}

int32_t grt_pointwise_opcode_of(const grt_op_desc *desc, int32_t n_in)
{
    int32_t opcode = grt_pointwise_function_of(desc);
    if (opcode < 0 || !functions[opcode].info.fusible)
        return -1;
    bool fits = n_in == functions[opcode].info.arity || (opcode == PW_Clip && n_in >= 1 && n_in <= 3);
    return fits ? opcode : -1;
}

int32_t grt_pointwise_params(const grt_op_desc *desc, int32_t opcode, float out_params[PW_MAX_PARAMS])
{
    int32_t n = functions[opcode].info.n_params;
    for (int32_t i = 0; i < n; i++) {
        const grt_attr *attr = grt_attr_find(desc, functions[opcode].p[i]);
        out_params[i] = !attr                        ? functions[opcode].d[i]
                        : attr->kind == GRT_ATTR_INT ? (float)attr->i
                                                     : attr->f;
    }
    return n;
}

static grt_status pointwise_check_instruction(const grt_op_desc *desc, const int64_t *in, size_t at,
                                              int64_t first_constant, int64_t first_result)
{
    if (in[0] < 0 || in[0] >= PW_COUNT || !functions[in[0]].info.fusible)
        return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL, "instruction %zu: %lld is no function", at,
                           (long long)in[0]);
    const pw_info *info = &functions[in[0]].info;
    int64_t limit = first_result + (int64_t)at;
    for (int k = 0; k < info->arity + info->n_params; k++) {
        bool parameter = k >= info->arity;
        int64_t low = parameter ? first_constant : 0, high = parameter ? first_result : limit;
        if (in[1 + k] < low || in[1 + k] >= high)
            return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL,
                               "instruction %zu: %s %d of %s is %lld; it must lie in [%lld, %lld)", at,
                               parameter ? "parameter" : "operand", k, info->name, (long long)in[1 + k],
                               (long long)low, (long long)high);
    }
    return GRT_OK;
}

grt_status grt_pointwise_check(const grt_op_desc *desc, int32_t n_in)
{
    size_t n, n_constants;
    const int64_t *program = grt_attr_ints(desc, "program", &n);
    (void)grt_attr_floats(desc, "constants", &n_constants);
    if (n_in < 1 || n == 0 || n % 4 || n > INT32_MAX || n_constants > INT32_MAX)
        return grt_fail_op(
            desc, GRT_STATUS_INVALID_MODEL,
            "attribute program has %zu numbers; it must have 4 per instruction, and at least one", n);
    for (size_t at = 0; at < n / 4; at++)
        GRT_TRY(pointwise_check_instruction(desc, program + 4 * at, at, n_in, n_in + (int64_t)n_constants));
    return GRT_OK;
}
