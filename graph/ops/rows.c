/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Rows: a program of pointwise functions and folds over rows. See rows.h. */
#include "graph/ops/rows.h"

#include "graph/ops/pointwise_rules.h"

#define FLOATS (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16))

static grt_status infer_rows_dtype(infer *inf, grt_dtype *out_dtype)
{
    size_t n;
    grt_dtype to, dtype = GRT_DTYPE_NONE;
    GRT_TRY(infer_dtype_attr(inf, "to", FLOATS | GRT_BIT(BOOL), GRT_DTYPE_NONE, &to));
    const int64_t *program = grt_attr_ints(inf->desc, "program", &n);
    for (int32_t i = 0; i < inf->n_in; i++) {
        if (!infer_has(inf, i))
            return infer_fail(inf, "input %d is missing", i);
        GRT_TRY(pw_infer_dtype(inf, i, FLOATS | GRT_BIT(BOOL)));
        const grt_dtype found = inf->in[i]->dtype;
        if (found == GRT_DTYPE_BOOL || !found)
            continue;
        if (dtype && found != dtype && !to)
            return infer_fail(inf, "input %d is %s, but an input before it is %s", i, grt_dtype_name(found),
                              grt_dtype_name(dtype));
        dtype = found;
    }
    const int64_t last = program[n - 4];
    if (to)
        dtype = to;
    else if (!rows_is_fold(last) && grt_pointwise_info((int32_t)last)->truth)
        dtype = GRT_DTYPE_BOOL;
    *out_dtype = dtype ? dtype : GRT_DTYPE_FLOAT;
    return GRT_OK;
}

/* All of the row's dims, or 1 in place of each, as far as they are known: before a run all are. */
static grt_status check_row_of(const infer *inf, int32_t i, int32_t rank, const grt_dim *dims,
                               int32_t row_dims)
{
    bool has_one = false, has_other = false;
    const ir_type *in = inf->in[i];
    for (int32_t k = rank - row_dims; k < rank; k++) {
        const int32_t at = k - (rank - in->rank);
        int64_t whole, found = 1;
        if (!infer_const(inf, dims[k], &whole) || (at >= 0 && !infer_const(inf, in->dims[at], &found)) ||
            whole == 1)
            continue;
        has_one |= found != whole;
        has_other |= found == whole;
    }
    return has_one && has_other
               ? infer_fail(inf, "input %d has some of the row's %d dims; it must have all or none", i,
                            row_dims)
               : GRT_OK;
}

static grt_status infer_rows(infer *inf)
{
    grt_dtype dtype;
    int32_t rank;
    const grt_dim *dims;
    const int64_t row_dims = grt_attr_int(inf->desc, "row_dims", 0);
    GRT_TRY(grt_rows_check(inf->desc, inf->n_in));
    GRT_TRY(infer_rows_dtype(inf, &dtype));
    GRT_TRY(infer_broadcast(inf, 0, inf->n_in, &rank, &dims));
    if (rank < 0) {
        infer_set_unknown(inf, 0, dtype);
        return GRT_OK;
    }
    if (row_dims < 1 || row_dims > rank)
        return infer_fail(inf, "row_dims is %lld; the inputs have %d dims", (long long)row_dims, rank);
    for (int32_t i = 0; i < inf->n_in; i++)
        GRT_TRY(check_row_of(inf, i, rank, dims, (int32_t)row_dims));
    int64_t length;
    if (infer_const(inf, infer_product(inf, dims, rank - (int32_t)row_dims, rank), &length) &&
        (length < 1 || length > ROWS_MAX_LENGTH))
        return infer_fail(inf, "a row must have 1 to %d elements", (int)ROWS_MAX_LENGTH);
    grt_dim *own = infer_dims(inf, rank);
    const bool number = grt_rows_gives_number(inf->desc, inf->n_in);
    for (int32_t k = 0; own && k < rank; k++)
        own[k] = number && k >= rank - row_dims ? grt_dim_const(inf->dims, 1) : dims[k];
    infer_set(inf, 0, dtype, rank, own);
    return GRT_OK;
}

static const op_attr rows_attrs[] = {{"program", GRT_ATTR_INTS, true},
                                     {"constants", GRT_ATTR_FLOATS, false},
                                     {"row_dims", GRT_ATTR_INT, true},
                                     {"to", GRT_ATTR_INT, false},
                                     {0}};

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "Rows",
     .since = 1,
     .min_in = 1,
     .max_in = ROWS_MAX_INPUTS,
     .min_out = 1,
     .max_out = 1,
     .attrs = rows_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .infer = infer_rows},
};
OP_TABLE(rows, rows);
