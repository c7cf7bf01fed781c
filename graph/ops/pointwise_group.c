/* graphrt::Pointwise: a program of pointwise functions, evaluated element by element. See pointwise.h. */
#include "graph/ops/pointwise.h"

#include "graph/ops/pointwise_rules.h"

/* Operand `k` of an instruction with `limit` operands known so far. */
static grt_status check_operand(const infer *inf, size_t at, int k, int64_t operand, int64_t limit)
{
    if (operand < 0 || operand >= limit)
        return infer_fail(inf, "instruction %zu: operand %d is %lld, but only 0..%lld exist", at, k, (long long)operand,
                          (long long)limit - 1);
    return GRT_OK;
}

static grt_status infer_group(infer *inf)
{
    size_t n, n_constants;
    const int64_t *program = grt_attr_ints(inf->desc, "program", &n);
    (void)grt_attr_floats(inf->desc, "constants", &n_constants);
    if (n == 0 || n % 4)
        return infer_fail(inf, "attribute program has %zu numbers; it must have 4 per instruction, and at least one", n);
    int64_t first_result = inf->n_in + (int64_t)n_constants;
    for (size_t at = 0; at < n / 4; at++) {
        const int64_t *in = program + 4 * at;
        if (in[0] < 0 || in[0] >= PW_COUNT || !pw_info_at((int32_t)in[0])->fusible)
            return infer_fail(inf, "instruction %zu: %lld is no function", at, (long long)in[0]);
        const pw_info *info = pw_info_at((int32_t)in[0]);
        for (int k = 0; k < info->arity; k++)
            GRT_TRY(check_operand(inf, at, k, in[1 + k], first_result + (int64_t)at));
        for (int k = info->arity; k < info->arity + info->n_params; k++)
            if (in[1 + k] < inf->n_in || in[1 + k] >= first_result)
                return infer_fail(inf, "instruction %zu: operand %d of %s must be a constant", at, k, info->name);
    }
    grt_dtype dtype = GRT_DTYPE_NONE;
    for (int32_t i = 0; i < inf->n_in; i++) {
        if (!infer_has(inf, i))
            return infer_fail(inf, "input %d is missing", i);
        GRT_TRY(pw_infer_dtype(inf, i, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16) | GRT_BIT(BOOL)));
        grt_dtype found = inf->in[i]->dtype;
        if (found == GRT_DTYPE_BOOL || !found)
            continue;
        if (dtype && found != dtype)
            return infer_fail(inf, "input %d is %s, but an input before it is %s", i, grt_dtype_name(found),
                              grt_dtype_name(dtype));
        dtype = found;
    }
    if (pw_info_at((int32_t)program[n - 4])->truth)
        dtype = GRT_DTYPE_BOOL;
    int32_t rank;
    const grt_dim *dims;
    GRT_TRY(infer_broadcast(inf, 0, inf->n_in, &rank, &dims));
    infer_set(inf, 0, dtype ? dtype : GRT_DTYPE_FLOAT, rank, dims);
    return GRT_OK;
}

static const op_attr group_attrs[] = {{"program", GRT_ATTR_INTS, true}, {"constants", GRT_ATTR_FLOATS, false}, {0}};

static const op_row rows[] = {
    {.domain = "graphrt", .name = "Pointwise", .since = 1, .min_in = 1, .max_in = OP_VARIADIC, .min_out = 1,
     .max_out = 1, .attrs = group_attrs, .flags = OP_POINTWISE, .infer = infer_group},
};
OP_TABLE(pointwise_group, rows);
