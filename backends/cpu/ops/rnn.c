/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN. DynamicQuantizeLSTM is an LSTM whose weights are bytes, [directions, inputs, gates], and
 * whose products round what they get. */
#include "backends/cpu/rnn_bytes.h"
#include "backends/cpu/rnn_layer.h"
#include "backends/cpu/workspace.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHARED_STEP_OPS = 100000,  /* multiply-adds of a step below which waiting for each other costs more */
    SHARED_BYTES_OPS = 400000, /* the same of bytes */
    SHARED_RUN_OPS = 60000,    /* of all steps, below which a second direction's thread costs more */
};

static bool rnn_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_rnn_layer layer;
    return grt_rnn_layer_read(node->desc, &layer, why);
}

/* Inputs beyond the fourth are not covered by a row's types. */
static bool bytes_supports(const grt_kernel_node *node, grt_text *why)
{
    static const grt_dtype_set floats = GRT_BIT(FLOAT), bytes = GRT_BIT(INT8) | GRT_BIT(UINT8);
    const grt_dtype_set want[] = {floats, bytes,  bytes,  floats, GRT_BIT(INT32), floats,
                                  floats, floats, floats, bytes,  floats,         bytes};
    for (int32_t i = 0; i < node->n_in && i < 12; i++)
        if (grt_node_has(node, i) && !grt_dtype_in(node->in[i].dtype, want[i])) {
            if (why)
                grt_text_add(
                    why, "input %d is %s; weights and zero points must be int8 or uint8, the rest float32", i,
                    grt_dtype_name(node->in[i].dtype));
            return false;
        }
    return rnn_supports(node, why);
}

static void rnn_destroy(void *state)
{
    cpu_rnn_release(state);
}

static grt_status rnn_create(const grt_kernel_node *node, void **out_state)
{
    const grt_op_desc *desc = node->desc;
    cpu_rnn_layer *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    grt_rnn_layer_read(desc, &state->layer, NULL);
    state->bytes = !strcmp(desc->op, "DynamicQuantizeLSTM");
    const grt_status status = cpu_rnn_pack(node, state);
    if (status != GRT_OK) {
        cpu_rnn_release(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

/* ---- sizes ---- */

static grt_gemm rnn_product(int64_t m, int64_t n, int64_t k, bool packed)
{
    return (grt_gemm){.batch = 1,
                      .m = m,
                      .n = n,
                      .k = k,
                      .lda = k,
                      .ldb = k,
                      .ldc = n,
                      .trans_b = !packed,
                      .b_packed = packed,
                      .alpha = 1.0f};
}

static bool rnn_scratch_of(const grt_gemm *g, int threads, size_t *largest)
{
    size_t bytes;
    if (!grt_gemm_scratch_bytes(g, threads, &bytes))
        return false;
    *largest = bytes > *largest ? bytes : *largest;
    return true;
}

static bool has_elements(const grt_reshape *r, int32_t i, int64_t n)
{
    const grt_tensor *t = cpu_rnn_given(r->in, r->n_in, i);
    return !t || grt_tensor_elements(t) == n;
}

/* All that is read of a layer whose weights are bytes. */
static grt_status check_bytes(const grt_reshape *r)
{
    const cpu_rnn_layer *state = r->state;
    const grt_tensor *x = r->in[X], *w = r->in[W], *rec = r->in[R];
    const int64_t d = state->layer.directions, h = rec->rank == 3 ? rec->dims[1] : 0;
    if (x->rank == 3 && rec->rank == 3 &&
        cpu_rnn_bytes_fit(w, r->in[W_SCALE], cpu_rnn_given(r->in, r->n_in, W_ZERO), d, x->dims[2], 4 * h) &&
        cpu_rnn_bytes_fit(rec, r->in[R_SCALE], cpu_rnn_given(r->in, r->n_in, R_ZERO), d, h, 4 * h) &&
        has_elements(r, B, d * 8 * h) && has_elements(r, LENGTHS, x->dims[1]) &&
        has_elements(r, INITIAL_H, d * x->dims[1] * h) && has_elements(r, INITIAL_C, d * x->dims[1] * h) &&
        has_elements(r, PEEPHOLES, d * 3 * h))
        return GRT_OK;
    return grt_fail_op(
        r->desc, GRT_STATUS_INVALID_ARGUMENT,
        "shapes do not fit: with %lld directions, I inputs and H hidden values, W must be "
        "directions x I x 4H, R directions x H x 4H, B directions x 8H, P directions x 3H, states "
        "directions x batch x H, and scales and zero points one per direction or column",
        (long long)d);
}

/* Threads for the steps: one a direction at least, if that is worth while, and as many for both. */
static int32_t team_of(const cpu_rnn_layer *state, const cpu_rnn_shape *s, int32_t threads)
{
    /* In floating point: sizes that fit no memory are looked at before they are refused. */
    const double step =
        (double)s->at.batch * (double)state->layer.gates * (double)s->hidden * (double)s->hidden;
    if (threads < state->layer.directions || step * (double)s->at.steps < SHARED_RUN_OPS)
        return 1;
    if (step < (state->bytes ? SHARED_BYTES_OPS : SHARED_STEP_OPS) ||
        (state->bytes && !state->recurrent_bytes[0]))
        return state->layer.directions;
    const int64_t most = (s->hidden + GRT_GEMM_PANEL - 1) / GRT_GEMM_PANEL * state->layer.directions;
    const int32_t each = (int32_t)(threads < most ? threads : most) / state->layer.directions;
    return each * state->layer.directions;
}

/* Room to pack recurrent weights that only a run knows. */
static bool add_packed(const cpu_rnn_layer *state, cpu_rnn_shape *s, cpu_layout *part)
{
    size_t recurrent = 0, hidden_gate = 0;
    if (!state->bytes && !state->recurrent[0] &&
        (!grt_gemm_packed_b_floats(s->hidden, s->recur.n, &recurrent) ||
         !grt_gemm_packed_b_floats(s->hidden, state->layer.kind == GRT_RNN_GRU ? s->hidden : 0,
                                   &hidden_gate) ||
         recurrent > INT64_MAX || hidden_gate > INT64_MAX))
        return false;
    s->recurrent = cpu_layout_add(part, (int64_t)recurrent, sizeof(float));
    s->hidden_gate = cpu_layout_add(part, (int64_t)hidden_gate, sizeof(float));
    return true;
}

static grt_status rnn_reshape(grt_reshape *r)
{
    const cpu_rnn_layer *state = r->state;
    if (state->bytes)
        GRT_TRY(check_bytes(r));
    const grt_tensor *x = r->in[X];
    cpu_rnn_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->at = grt_rnn_places_of(&state->layer, x->dims);
    s->input = x->dims[x->rank - 1];
    s->hidden = r->in[R]->dims[state->bytes ? 1 : 2];
    const int64_t h = s->hidden, stacked = state->layer.gates * h,
                  rows = grt_mul_saturated(s->at.steps, s->at.batch);
    s->project = rnn_product(rows, stacked, s->input, state->input[0] != NULL);
    s->recur = rnn_product(s->at.batch, state->layer.kind == GRT_RNN_GRU ? 2 * h : stacked, h, true);
    s->recur.ldc = stacked;
    s->recur.beta = 1.0f; /* on top of the step's projected input */
    s->recur_hidden = rnn_product(s->at.batch, h, h, true);
    s->recur_hidden.ldc = state->layer.linear_before_reset ? h : stacked;
    s->recur_hidden.beta = state->layer.linear_before_reset ? 0.0f : 1.0f;
    s->team = team_of(state, s, r->threads);
    cpu_layout part = {0};
    size_t scratch = 0, projection = 0;
    if (state->bytes)
        part.overflow = !cpu_rnn_bytes_scratch(s->input > h ? s->input : h, stacked, r->threads, &scratch) ||
                        (state->input_rows && !cpu_rnn_bytes_run_scratch(state->input_rows, rows, s->input,
                                                                         stacked, r->threads, &projection));
    else
        part.overflow = !rnn_scratch_of(&s->project, r->threads, &scratch);
    scratch = scratch > projection ? scratch : projection;
    part.overflow |= scratch > INT64_MAX || !add_packed(state, s, &part);
    s->projected = cpu_layout_add(&part, grt_mul_saturated(rows, stacked), sizeof(float));
    s->gates = cpu_layout_add(&part, grt_mul_saturated(s->at.batch, stacked), sizeof(float));
    s->linear = cpu_layout_add(&part, grt_mul_saturated(s->at.batch, h), sizeof(float));
    s->rh = cpu_layout_add(&part, grt_mul_saturated(s->at.batch, h), sizeof(float));
    s->h = cpu_layout_add(&part, grt_mul_saturated(s->at.batch, h), sizeof(float));
    s->c = cpu_layout_add(&part, grt_mul_saturated(s->at.batch, h), sizeof(float));
    s->bias = cpu_layout_add(&part, stacked, sizeof(float));
    s->scratch = cpu_layout_add(&part, part.overflow ? 0 : (int64_t)scratch, 1);
    s->part = part.bytes;
    if (part.overflow) {
        free(s);
        return grt_fail_memory(SIZE_MAX);
    }
    r->workspace_bytes = s->part * (size_t)state->layer.directions;
    r->shape = s;
    return GRT_OK;
}

#define F GRT_BIT(FLOAT)
#define ROW(of, name)                                                                                \
    {                                                                                                \
        .domain = of, .op = name, .types = {F, F, F, F | GRT_BIT(INT32)}, .supports = rnn_supports,  \
        .create = rnn_create, .destroy = rnn_destroy, .reshape = rnn_reshape, .release_shape = free, \
        .run = cpu_rnn_run                                                                           \
    }

static const grt_kernel_row rows[] = {
    ROW("", "LSTM"),
    ROW("", "GRU"),
    ROW("", "RNN"),
    ROW("graphrt", "LSTM"),
    ROW("graphrt", "GRU"),
    ROW("graphrt", "RNN"),
    {.domain = "com.microsoft",
     .op = "DynamicQuantizeLSTM",
     .supports = bytes_supports,
     .create = rnn_create,
     .destroy = rnn_destroy,
     .reshape = rnn_reshape,
     .release_shape = free,
     .run = cpu_rnn_run},
};
CPU_KERNELS(rnn, rows);
