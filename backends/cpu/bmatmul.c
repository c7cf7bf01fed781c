/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, Gemm and graphrt::MatMul by constant weights in bfloat16: of bfloat16 tensors, and of float32 where
 * the attribute math says so. Weights keep 16 bits, in plans as well. */
#include "backends/cpu/bmatmul.h"

#include "backends/cpu/act.h"
#include "backends/cpu/bgemm.h"
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/packing.h"
#include "backends/cpu/workspace.h"
#include "backends/shared/matmul.h"

#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

typedef struct bmatmul_state {
    bool is_gemm, trans_b;
    int64_t k, n;
    float alpha;
    grt_act act;
    const uint16_t *packed;
    uint16_t *own; /* `packed` where it was packed here, not in the plan */
} bmatmul_state;

typedef struct bmatmul_shape {
    grt_bgemm g;
    size_t scratch, wide_bias; /* workspace offsets */
} bmatmul_shape;

static bool transposes_b(const grt_op_desc *desc)
{
    return grt_attr_int(desc, "transB", 0) != 0;
}

/* C is a row for all rows of the result, or has its dims; alpha scales the product alone. */
static bool c_fits(const grt_kernel_node *node, int64_t n)
{
    const grt_tensor *c = &node->in[GRT_MATMUL_BIAS];
    if (!grt_node_has(node, GRT_MATMUL_BIAS))
        return true;
    return c->rank >= 1 && c->dims[c->rank - 1] == n && grt_attr_float(node->desc, "beta", 1.0f) == 1.0f &&
           (c->rank == 1 || (c->rank == 2 && c->dims[0] == 1));
}

bool cpu_bmatmul_supports(const grt_kernel_node *node, grt_text *why)
{
    const grt_tensor *b = &node->in[1];
    const bool is_gemm = grt_op_is(node->desc, "", "Gemm"),
               asked = node->in[0].dtype == GRT_DTYPE_BFLOAT16 ||
                       !strcmp(grt_attr_string(node->desc, "math", ""), "bf16");
    bool fits = asked && b->data && b->rank == 2 && b->dims[0] > 0 && b->dims[1] > 0 &&
                node->in[0].rank != 0 && !grt_attr_int(node->desc, "transA", 0);
    const int64_t n = fits ? b->dims[transposes_b(node->desc) ? 0 : 1] : 0;
    for (int32_t i = 0; i < node->n_in; i++)
        fits = fits && (!grt_node_has(node, i) || node->in[i].dtype == node->in[0].dtype);
    if (fits && is_gemm)
        fits = c_fits(node, n);
    if (fits && grt_op_is(node->desc, "graphrt", "MatMul"))
        fits = grt_act_read(node->desc, &(grt_act){0}, why) &&
               (!grt_node_has(node, GRT_MATMUL_BIAS) || node->in[GRT_MATMUL_BIAS].rank == 1);
    if (!fits && why && asked)
        grt_text_add(why, "bfloat16 products take a constant matrix B and a bias of one row");
    return fits;
}

static void bmatmul_pack_b(const grt_tensor *b, bool trans_b, uint16_t *packed)
{
    const int64_t k = b->dims[trans_b ? 1 : 0], n = b->dims[trans_b ? 0 : 1];
    grt_bgemm_pack(k, n, b->dtype, b->data, b->dims[1], trans_b, packed);
}

grt_status cpu_bmatmul_pack(const grt_kernel_node *node, int32_t i, grt_packing *out_packing, void **out_data)
{
    const grt_tensor *b = &node->in[1];
    const bool trans_b = transposes_b(node->desc);
    size_t bytes;
    if (i != 1 || !grt_bgemm_packed_bytes(b->dims[trans_b], b->dims[!trans_b], &bytes) ||
        !grt_packing_is_worth(grt_tensor_bytes(b), bytes))
        return GRT_OK;
    *out_data = aligned_alloc(64, grt_align_up(bytes, 64));
    if (!*out_data)
        return grt_fail_memory(bytes);
    bmatmul_pack_b(b, trans_b, *out_data);
    out_packing->bytes = bytes;
    strcpy(out_packing->format, cpu_packing_narrow_matrix(trans_b));
    return GRT_OK;
}

void cpu_bmatmul_destroy(void *data)
{
    bmatmul_state *state = data;
    if (state)
        grt_account_free(state->own);
    free(state);
}

static grt_status bmatmul_bind(const grt_kernel_node *node, bmatmul_state *state)
{
    const grt_packing *packing = grt_node_packing(node, 1);
    const grt_tensor *b = &node->in[1];
    const char *format = cpu_packing_narrow_matrix(state->trans_b);
    size_t bytes = 0;
    if (!packing) {
        if (!grt_bgemm_packed_bytes(state->k, state->n, &bytes))
            return grt_fail_memory(SIZE_MAX);
        GRT_TRY(grt_kernel_alloc(node, bytes, (void **)&state->own));
        bmatmul_pack_b(b, state->trans_b, state->own);
        state->packed = state->own;
        return GRT_OK;
    }
    if (!strcmp(packing->format, format) && grt_bgemm_packed_bytes(state->k, state->n, &bytes) &&
        packing->bytes == bytes) {
        state->packed = b->data;
        return GRT_OK;
    }
    return grt_fail_op(node->desc, GRT_STATUS_INVALID_PLAN,
                       "B is packed as '%s' in %zu bytes; expected '%s' in %zu; make the plan again with "
                       "graphc optimize",
                       packing->format, packing->bytes, format, bytes);
}

grt_status cpu_bmatmul_create(const grt_kernel_node *node, void **out_state)
{
    bmatmul_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const grt_op_desc *desc = node->desc;
    state->is_gemm = grt_op_is(desc, "", "Gemm");
    state->trans_b = transposes_b(desc);
    state->k = node->in[1].dims[state->trans_b ? 1 : 0];
    state->n = node->in[1].dims[state->trans_b ? 0 : 1];
    state->alpha = grt_attr_float(desc, state->is_gemm ? "alpha" : "scale", 1.0f);
    if (!state->is_gemm)
        grt_act_read(desc, &state->act, NULL);
    const grt_status status = bmatmul_bind(node, state);
    if (status != GRT_OK) {
        cpu_bmatmul_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static grt_status bmatmul_lay_out(const grt_reshape *r, const bmatmul_state *state, bmatmul_shape *s,
                                  size_t *out_bytes)
{
    cpu_layout layout = {0};
    size_t bytes = 0;
    layout.overflow = !grt_bgemm_scratch_bytes(&s->g, r->threads, &bytes) || bytes > INT64_MAX;
    s->scratch = cpu_layout_add(&layout, layout.overflow ? 0 : (int64_t)bytes, 1);
    s->wide_bias = cpu_layout_add(&layout, state->n, sizeof(float));
    *out_bytes = layout.bytes;
    return layout.overflow ? grt_fail_memory(SIZE_MAX) : GRT_OK;
}

/* Dims that do not fit are found by the rule that all products share. */
grt_status cpu_bmatmul_reshape(grt_reshape *r)
{
    const bmatmul_state *state = r->state;
    const grt_dtype dtype = r->in[0]->dtype;
    grt_matmul fit = {0};
    bmatmul_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    grt_status status = grt_matmul_fit(r, &fit);
    if (status == GRT_OK) {
        s->g = (grt_bgemm){.m = grt_tensor_elements(r->in[0]) / state->k,
                           .n = state->n,
                           .k = state->k,
                           .a_dtype = dtype,
                           .c_dtype = dtype,
                           .lda = state->k,
                           .ldc = state->n,
                           .ldr = state->n,
                           .alpha = state->alpha,
                           .act = state->act};
        status = bmatmul_lay_out(r, state, s, &r->workspace_bytes);
    }
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

grt_status cpu_bmatmul_run(const grt_run *r)
{
    const bmatmul_state *state = r->state;
    const bmatmul_shape *s = r->shape;
    const grt_tensor *bias = grt_run_in(r, GRT_MATMUL_BIAS);
    grt_bgemm g = s->g;
    if (bias && bias->dtype == GRT_DTYPE_BFLOAT16) {
        float *wide = cpu_workspace_at(r->workspace, s->wide_bias);
        cpu_widen(bias->dtype, bias->data, 0, state->n, wide);
        g.bias = wide;
    } else if (bias) {
        g.bias = bias->data;
    }
    g.residual = grt_run_data(r, GRT_MATMUL_RESIDUAL);
    grt_bgemm_run(&g, r->in[0]->data, state->packed, r->out[0]->data,
                  cpu_workspace_at(r->workspace, s->scratch), r->threads);
    return GRT_OK;
}
