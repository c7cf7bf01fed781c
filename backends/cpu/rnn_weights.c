/* SPDX-License-Identifier: Apache-2.0 */
/* Constant weights of recurrent layers, packed for the products of their steps. */
#include "backends/cpu/rnn_layer.h"

#include "backends/cpu/rnn_bytes.h"
#include "src/base/checked.h"

#include <stdlib.h>

enum { MANY_INPUTS = 8 }; /* rows of bytes from which kernels for many are faster */

void cpu_rnn_release(cpu_rnn_layer *state)
{
    for (int d = 0; state && d < 2; d++) {
        grt_account_free(state->input[d]);
        grt_account_free(state->recurrent[d]);
        grt_account_free(state->hidden_gate[d]);
        grt_account_free(state->input_bytes[d]);
        grt_account_free(state->recurrent_bytes[d]);
    }
    free(state);
}

/* Rows from.. (n of them) of a stored [n, k] matrix, packed as the k x n operand. */
static grt_status rnn_pack_rows(const grt_kernel_node *node, const float *rows, int64_t n, int64_t k,
                                float **out_packed)
{
    size_t floats, bytes;
    if (!grt_gemm_packed_b_floats(k, n, &floats) || !grt_mul_size(floats, sizeof(float), &bytes))
        return grt_fail_memory(SIZE_MAX);
    GRT_TRY(grt_kernel_alloc(node, bytes, (void **)out_packed));
    grt_gemm_pack_b(k, n, rows, k, true, *out_packed);
    return GRT_OK;
}

/* Weights of a plan may not fit its node: those stay, and the op's rule refuses them at the first run. */
static bool rnn_is_packed(const grt_tensor *t, const cpu_rnn_layer *state)
{
    return t->data && t->rank == 3 && t->dims[0] == state->layer.directions;
}

static grt_status rnn_pack_floats(const grt_kernel_node *node, cpu_rnn_layer *state)
{
    const grt_tensor *w = &node->in[W], *r = &node->in[R];
    for (int32_t d = 0; d < state->layer.directions; d++) {
        if (rnn_is_packed(w, state)) {
            const int64_t n = w->dims[1], k = w->dims[2];
            GRT_TRY(rnn_pack_rows(node, (const float *)w->data + d * n * k, n, k, &state->input[d]));
        }
        if (!rnn_is_packed(r, state) || r->dims[1] != grt_mul_saturated(state->layer.gates, r->dims[2]))
            continue;
        const int64_t h = r->dims[2], n = state->layer.kind == GRT_RNN_GRU ? 2 * h : r->dims[1];
        const float *rows = (const float *)r->data + d * r->dims[1] * h;
        GRT_TRY(rnn_pack_rows(node, rows, n, h, &state->recurrent[d]));
        if (state->layer.kind == GRT_RNN_GRU)
            GRT_TRY(rnn_pack_rows(node, rows + n * h, h, h, &state->hidden_gate[d]));
    }
    return GRT_OK;
}

static grt_status rnn_pack_bytes(const grt_kernel_node *node, int32_t i, int32_t directions, int64_t rows,
                                 uint8_t **out)
{
    const grt_tensor *weights = &node->in[i];
    if (!weights->data || weights->rank != 3 || weights->dims[0] != directions)
        return GRT_OK;
    const int64_t k = weights->dims[1], n = weights->dims[2];
    for (int32_t d = 0; d < directions; d++)
        GRT_TRY(cpu_rnn_bytes_pack(node, (const uint8_t *)weights->data + d * k * n, k, n,
                                   weights->dtype == GRT_DTYPE_INT8, rows, &out[d]));
    return GRT_OK;
}

grt_status cpu_rnn_pack(const grt_kernel_node *node, cpu_rnn_layer *state)
{
    if (!state->bytes)
        return rnn_pack_floats(node, state);
    const grt_tensor *x = &node->in[X];
    const bool known = x->rank == 3 && x->dims[0] >= 0 && x->dims[1] >= 0;
    const int64_t rows = known ? grt_mul_saturated(x->dims[0], x->dims[1]) : -1;
    state->input_rows = !known || rows >= MANY_INPUTS ? rows : 0;
    GRT_TRY(rnn_pack_bytes(node, W, state->layer.directions, state->input_rows, state->input_bytes));
    return rnn_pack_bytes(node, R, state->layer.directions, 0, state->recurrent_bytes);
}
