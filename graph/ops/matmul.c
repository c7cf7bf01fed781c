/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul and Gemm. */
#include "graph/ir/flops.h"
#include "graph/ir/ir.h"

static grt_status inner_mismatch(const infer *inf, int64_t a, int64_t b)
{
    return infer_fail(inf, "the inner dims differ: A has %lld columns and B %lld rows", (long long)a,
                      (long long)b);
}

static grt_status check_inner(const infer *inf, grt_dim a, grt_dim b)
{
    int64_t x, y;
    return infer_const(inf, a, &x) && infer_const(inf, b, &y) && x != y ? inner_mismatch(inf, x, y) : GRT_OK;
}

/* Numpy's rules: vectors get a dim of 1 for the product and lose it afterwards; dims before the last two
 * broadcast. */
static grt_status infer_matmul(infer *inf)
{
    const ir_type *a = inf->in[0], *b = inf->in[1];
    GRT_TRY(infer_same_dtype(inf, 0, 1));
    if (a->rank == 0 || b->rank == 0)
        return infer_fail(inf, "input %d is a scalar; a matrix product needs rank 1 or more",
                          a->rank == 0 ? 0 : 1);
    if (a->rank < 0 || b->rank < 0) {
        infer_set_unknown(inf, 0, a->dtype);
        return GRT_OK;
    }
    const int32_t batch_a = a->rank > 2 ? a->rank - 2 : 0, batch_b = b->rank > 2 ? b->rank - 2 : 0;
    const int32_t batch = batch_a > batch_b ? batch_a : batch_b;
    GRT_TRY(check_inner(inf, a->dims[a->rank - 1], b->dims[b->rank > 1 ? b->rank - 2 : 0]));
    grt_dim *dims = infer_dims(inf, batch + 2);
    if (!dims)
        return GRT_OK;
    int32_t n = 0;
    for (int32_t i = 0; i < batch; i++) {
        const int32_t ia = i - (batch - batch_a), ib = i - (batch - batch_b);
        grt_dim da = ia < 0 ? grt_dim_const(inf->dims, 1) : a->dims[ia];
        grt_dim db = ib < 0 ? grt_dim_const(inf->dims, 1) : b->dims[ib];
        int64_t x, y;
        if (infer_const(inf, da, &x) && infer_const(inf, db, &y) && x != y && x != 1 && y != 1)
            return infer_fail(inf, "the inputs cannot be broadcast: batch dim %d is %lld in A and %lld in B",
                              i, (long long)x, (long long)y);
        dims[n++] = grt_dim_make(inf->dims, GRT_DIM_BROADCAST, da, db);
    }
    if (a->rank > 1)
        dims[n++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[n++] = b->dims[b->rank - 1];
    infer_set(inf, 0, a->dtype, n, dims);
    return GRT_OK;
}

static grt_status infer_gemm(infer *inf)
{
    const ir_type *a = inf->in[0], *b = inf->in[1];
    const bool trans_a = grt_attr_int(inf->desc, "transA", 0) != 0,
               trans_b = grt_attr_int(inf->desc, "transB", 0) != 0;
    GRT_TRY(infer_same_dtype(inf, 0, 1));
    GRT_TRY(infer_same_dtype(inf, 0, 2));
    if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2))
        return infer_fail(inf, "the inputs have ranks %d and %d; both must be matrices", a->rank, b->rank);
    if (a->rank < 0 || b->rank < 0) {
        infer_set_fresh(inf, 0, a->dtype, 2);
        return GRT_OK;
    }
    GRT_TRY(check_inner(inf, a->dims[!trans_a], b->dims[trans_b]));
    grt_dim *dims = infer_dims(inf, 2);
    if (!dims)
        return GRT_OK;
    dims[0] = a->dims[trans_a];
    dims[1] = b->dims[!trans_b];
    const ir_type *c = infer_has(inf, 2) ? inf->in[2] : NULL;
    if (c && c->rank > 2)
        return infer_fail(inf, "C has rank %d; it must broadcast to the result's rank 2", c->rank);
    for (int32_t i = 0; c && i < c->rank; i++) {
        int64_t have, want;
        if (infer_const(inf, c->dims[i], &have) && infer_const(inf, dims[2 - c->rank + i], &want) &&
            have != want && have != 1)
            return infer_fail(inf, "dim %d of C is %lld; it must be 1 or %lld to broadcast to the result", i,
                              (long long)have, (long long)want);
    }
    infer_set(inf, 0, a->dtype, 2, dims);
    return GRT_OK;
}

/* Until version 6 an attribute said whether C broadcasts; it always may now. */
static grt_status upgrade_gemm(ir_node *node, int32_t opset)
{
    if (opset < 7)
        ir_attr_remove(node, "broadcast");
    return GRT_OK;
}

static const op_attr gemm_attrs[] = {{"alpha", GRT_ATTR_FLOAT, false},
                                     {"beta", GRT_ATTR_FLOAT, false},
                                     {"transA", GRT_ATTR_INT, false},
                                     {"transB", GRT_ATTR_INT, false},
                                     {NULL, 0, false}};

/* Of com.microsoft's MatMulNBits, for the product by packed weights that it becomes; other products do not
 * round. */
static const op_attr matmul_attrs[] = {{"accuracy_level", GRT_ATTR_INT, false}, {NULL, 0, false}};

static const op_row rows[] = {
    {.domain = "",
     .name = "MatMul",
     .since = 13,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = matmul_attrs,
     .precision = OP_NARROW,
     .flags = OP_TF32 | OP_ONE_FLOAT_TYPE | OP_TAKES_EPILOGUE,
     .batch = OP_BATCH_MATMUL,
     .flops = flops_matmul,
     .infer = infer_matmul},
    {.domain = "",
     .name = "Gemm",
     .since = 13,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = gemm_attrs,
     .precision = OP_NARROW,
     .flags = OP_TF32 | OP_TAKES_EPILOGUE,
     .batch = OP_BATCH_GEMM,
     .flops = flops_matmul,
     .infer = infer_gemm,
     .upgrade = upgrade_gemm},
};
OP_TABLE(matmul, rows);
