/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/matmul.h"

static int32_t batch_rank(const grt_tensor *t)
{
    return t->rank > 2 ? t->rank - 2 : 0;
}

grt_matrix grt_matrix_of(const grt_tensor *t, bool is_b)
{
    if (t->rank > 1)
        return (grt_matrix){t->dims[t->rank - 2], t->dims[t->rank - 1]};
    const int64_t n = t->rank ? t->dims[0] : 1;
    return is_b ? (grt_matrix){n, 1} : (grt_matrix){1, n};
}

/* Merges batch dims, last first, into one strided batch as far as both inputs allow. */
static void split_batch(const grt_tensor *a, const grt_tensor *b, const grt_tensor *c, grt_matmul *m)
{
    const int32_t rank = batch_rank(a) > batch_rank(b) ? batch_rank(a) : batch_rank(b);
    int64_t size_a = 1, size_b = 1;
    bool open = true;
    m->batch = m->calls = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        const int32_t ia = i - (rank - batch_rank(a)), ib = i - (rank - batch_rank(b));
        const int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib], d = c->dims[i];
        const int64_t sa = da == 1 ? 0 : size_a, sb = db == 1 ? 0 : size_b;
        size_a *= da;
        size_b *= db;
        if (d == 1)
            continue;
        if (open && m->batch == 1) {
            m->batch = d;
            m->stride_a = sa;
            m->stride_b = sb;
        } else if (open && sa == m->stride_a * m->batch && sb == m->stride_b * m->batch) {
            m->batch *= d;
        } else {
            open = false;
            m->outer[m->outer_rank] = d;
            m->step_a[m->outer_rank] = sa;
            m->step_b[m->outer_rank++] = sb;
            m->calls *= d;
        }
    }
}

static grt_status check_c(const grt_reshape *r, const grt_tensor *c, grt_matmul *m)
{
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    m->c = grt_matrix_of(c, false);
    if (c->rank <= 2 && (m->c.rows == 1 || m->c.rows == m->m) && (m->c.cols == 1 || m->c.cols == m->n))
        return GRT_OK;
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "C is %s, which does not broadcast to the result %s", grt_tensor_text(c, found),
                       grt_tensor_text(r->out[0], wanted));
}

static grt_status matmul_check_bias(const grt_reshape *r, const grt_tensor *bias, const grt_matmul *m)
{
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    grt_tensor rows = *r->out[0];
    if (rows.rank > 1)
        rows.dims[rows.rank - 2] = 1;
    if (m->bias_rows && !grt_dims_equal(bias->dims, bias->rank, rows.dims, rows.rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the bias is %s; expected one row for each matrix of the result, %s",
                           grt_tensor_text(bias, found), grt_tensor_text(r->out[0], wanted));
    if (!m->bias_rows && grt_tensor_elements(bias) != m->n)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the bias is %s; expected %lld elements",
                           grt_tensor_text(bias, found), (long long)m->n);
    return GRT_OK;
}

static grt_status check_residual(const grt_reshape *r)
{
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    const grt_tensor *residual = grt_reshape_in(r, GRT_MATMUL_RESIDUAL), *out = r->out[0];
    if (!residual || grt_dims_equal(residual->dims, residual->rank, out->dims, out->rank))
        return GRT_OK;
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "the residual is %s; expected the result's dims, %s", grt_tensor_text(residual, found),
                       grt_tensor_text(out, wanted));
}

grt_status grt_matmul_fit(const grt_reshape *r, grt_matmul *m)
{
    const grt_tensor *a = r->in[0], *b = r->in[1], *bias = grt_reshape_in(r, GRT_MATMUL_BIAS);
    *m = (grt_matmul){.is_gemm = grt_op_is(r->desc, "", "Gemm"),
                      .trans_a = grt_attr_int(r->desc, "transA", 0) != 0,
                      .trans_b = grt_attr_int(r->desc, "transB", 0) != 0,
                      .a = grt_matrix_of(a, false),
                      .b = grt_matrix_of(b, true),
                      .n_c = grt_tensor_elements(r->out[0])};
    m->m = m->trans_a ? m->a.cols : m->a.rows;
    m->k = m->trans_b ? m->b.cols : m->b.rows;
    m->n = m->trans_b ? m->b.rows : m->b.cols;
    m->bias_rows = !m->is_gemm && bias && bias->rank > 1;
    split_batch(a, b, r->out[0], m);
    if (bias)
        GRT_TRY(m->is_gemm ? check_c(r, bias, m) : matmul_check_bias(r, bias, m));
    /* One B for all A: one tall product. */
    if (!m->bias_rows && !m->trans_a && m->stride_b == 0 && m->stride_a == 1) {
        m->m *= m->batch;
        m->batch = 1;
        m->stride_a = 0;
    }
    m->call_c = m->batch * m->m * m->n;
    return check_residual(r);
}

void grt_matmul_find(const grt_matmul *m, int64_t call, int64_t *out_a, int64_t *out_b)
{
    *out_a = *out_b = 0;
    for (int32_t i = 0; i < m->outer_rank; i++) {
        *out_a += call % m->outer[i] * m->step_a[i];
        *out_b += call % m->outer[i] * m->step_b[i];
        call /= m->outer[i];
    }
}
