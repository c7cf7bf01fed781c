/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QRoundedAttention: attention of bytes that is rounded behind each of its nodes. */
#include "backends/cuda/rounded_attention.h"

#include "backends/cuda/libraries.h"
#include "backends/cuda/walk.h"
#include "src/base/rounded_attention.h"
#include "src/base/tensor.h"

#include <cmath>

namespace
{

enum { HEADS_AT = 1, TOKENS_AT, SIZE_AT, FOUR_DIMS };

struct rounded_state {
    void *tables;                 /* on the device; NULL: it is only described */
    cuda_rounded_attention plain; /* what constants decide */
};

bool is_signed_input(const grt_kernel_node *node, int32_t i)
{
    return grt_node_has(node, i) && node->in[i].dtype == GRT_DTYPE_INT8;
}

float rounded_number_of(const grt_kernel_node *node, int32_t i)
{
    return grt_node_has(node, i) ? *(const float *)node->in[i].data : 1.0f;
}

/* A zero point of unsigned levels. */
int32_t rounded_zero_of(const grt_kernel_node *node, int32_t i, bool of_signed)
{
    const int32_t flipped = of_signed ? 128 : 0;
    if (!grt_node_has(node, i))
        return flipped;
    return (of_signed ? *(const int8_t *)node->in[i].data : *(const uint8_t *)node->in[i].data) + flipped;
}

void fill_tables(const grt_kernel_node *node, cuda_rounded_tables *tables)
{
    const float scale =
        rounded_number_of(node, grt_node_has(node, QR_SUM_SCALE) ? QR_SUM_SCALE : QR_SCORE_SCALE);
    const uint8_t *table = grt_node_has(node, QR_TABLE) ? (const uint8_t *)node->in[QR_TABLE].data : NULL;
    const uint8_t flip = is_signed_input(node, QR_TABLE) ? 0x80 : 0;
    for (int i = 0; i < ROUNDED_LEVELS; i++) {
        const double value = exp(-(double)i * (double)scale), units_of_one = 16777216.0;
        tables->of[i] = (float)value;
        tables->units[i] = (int32_t)lrint(value * units_of_one);
        tables->share[i] = (uint8_t)(table ? table[i] ^ flip : i);
    }
}

void fill_plain(const grt_kernel_node *node, cuda_rounded_attention *a)
{
    const bool q_signed = is_signed_input(node, QR_Q), k_signed = is_signed_input(node, QR_K),
               v_signed = is_signed_input(node, QR_V), mask_signed = is_signed_input(node, QR_MASK),
               y_signed = is_signed_input(node, QR_Y_ZERO);
    const uint32_t flip = 0x80808080u;
    a->has_table = grt_node_has(node, QR_TABLE);
    a->flip_q = q_signed ? flip : 0;
    a->flip_k = k_signed ? 0 : flip;
    a->flip_v = v_signed ? 0 : flip;
    a->flip_mask = mask_signed ? flip : 0;
    a->flip_y = y_signed ? flip : 0;
    a->q_zero = rounded_zero_of(node, QR_Q_ZERO, q_signed);
    a->k_zero = rounded_zero_of(node, QR_K_ZERO, k_signed) - 128;
    a->v_zero = rounded_zero_of(node, QR_V_ZERO, v_signed) - 128;
    a->score_zero = rounded_zero_of(node, QR_SCORE_ZERO, is_signed_input(node, QR_SCORE_ZERO));
    a->mask_zero = rounded_zero_of(node, QR_MASK_ZERO, mask_signed);
    a->sum_zero = rounded_zero_of(node, QR_SUM_ZERO, is_signed_input(node, QR_SUM_ZERO));
    a->share_zero = rounded_zero_of(node, QR_SHARE_ZERO, is_signed_input(node, QR_SHARE_ZERO));
    a->read_zero =
        rounded_zero_of(node, QR_READ_ZERO, is_signed_input(node, a->has_table ? QR_TABLE : QR_SHARE_ZERO));
    a->y_zero = rounded_zero_of(node, QR_Y_ZERO, y_signed);
    a->score_scale = rounded_number_of(node, QR_Q_SCALE) * rounded_number_of(node, QR_K_SCALE) /
                     rounded_number_of(node, QR_SCORE_SCALE);
    a->sum_score = rounded_number_of(node, QR_SCORE_SCALE) / rounded_number_of(node, QR_SUM_SCALE);
    a->sum_mask = rounded_number_of(node, QR_MASK_SCALE) / rounded_number_of(node, QR_SUM_SCALE);
    a->share_scale = rounded_number_of(node, QR_SHARE_SCALE);
    a->y_scale = rounded_number_of(node, QR_READ_SCALE) * rounded_number_of(node, QR_V_SCALE) /
                 rounded_number_of(node, QR_Y_SCALE);
}

grt_status create_rounded(const grt_kernel_node *node, void **out_state)
{
    rounded_state *state;
    cuda_rounded_tables tables;
    GRT_TRY(cuda_state(&state));
    fill_plain(node, &state->plain);
    fill_tables(node, &tables);
    const grt_status status =
        cuda_is_described(node->device) ? GRT_OK : cuda_keep(node, &tables, sizeof tables, &state->tables);
    if (status != GRT_OK) {
        free(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

void destroy_rounded(void *data)
{
    rounded_state *state = (rounded_state *)data;
    if (state)
        cudaFree(state->tables);
    free(state);
}

/* Dims in the order of batch, heads, tokens and size, and the strides of a tensor whose heads may lie behind
 * its tokens. */
struct rounded_layout {
    int64_t dims[FOUR_DIMS];
    cuda_rounded_strides strides;

    rounded_layout(const grt_tensor *t, const grt_op_desc *desc, const char *tokens)
    {
        const bool behind = grt_attr_int(desc, tokens, 0) != 0;
        for (int i = 0; i < FOUR_DIMS; i++)
            dims[i] = t->dims[behind && (i == HEADS_AT || i == TOKENS_AT) ? HEADS_AT + TOKENS_AT - i : i];
        const int64_t size = dims[SIZE_AT];
        strides.batch = dims[HEADS_AT] * dims[TOKENS_AT] * size;
        strides.head = behind ? size : dims[TOKENS_AT] * size;
        strides.token = behind ? dims[HEADS_AT] * size : size;
    }
};

grt_status fail_rounded(const grt_reshape *r, const char *expected)
{
    char q[GRT_TYPE_TEXT_SIZE], k[GRT_TYPE_TEXT_SIZE], v[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "queries %s, keys %s and values %s do not fit: %s", grt_tensor_text(r->in[QR_Q], q),
                       grt_tensor_text(r->in[QR_K], k), grt_tensor_text(r->in[QR_V], v), expected);
}

/* The mask's strides: 0 along dims that it repeats. */
grt_status fit_rounded_mask(const grt_reshape *r, cuda_rounded_attention *a)
{
    const grt_tensor *mask = grt_reshape_in(r, QR_MASK);
    const int64_t dims[FOUR_DIMS] = {a->batch, a->heads, a->queries, a->keys};
    int64_t strides[FOUR_DIMS];
    if (!mask)
        return GRT_OK;
    for (int32_t i = 0; i < mask->rank; i++) {
        const int32_t at = i + FOUR_DIMS - mask->rank;
        if (at < 0 || (mask->dims[i] != 1 && mask->dims[i] != dims[at]))
            return fail_rounded(r, "the mask must broadcast to batch x heads x queries x keys");
    }
    grt_broadcast_strides(mask->dims, mask->rank, FOUR_DIMS, strides);
    a->of_mask = {strides[0], strides[HEADS_AT], strides[TOKENS_AT]};
    a->mask_key = strides[SIZE_AT];
    a->mask_pairs = a->mask_key == 1 && a->keys % 2 == 0 &&
                    (a->of_mask.batch | a->of_mask.head | a->of_mask.token) % 2 == 0;
    return GRT_OK;
}

grt_status fit_rounded(const grt_reshape *r, cuda_rounded_attention *a)
{
    const grt_op_desc *desc = r->desc;
    for (int32_t i = QR_Q; i <= QR_V; i += i == QR_Q ? QR_K - QR_Q : QR_V - QR_K)
        if (r->in[i]->rank != FOUR_DIMS)
            return fail_rounded(r, "they must have four dims");
    const rounded_layout q(r->in[QR_Q], desc, "q_tokens"), k(r->in[QR_K], desc, "k_tokens"),
        v(r->in[QR_V], desc, "v_tokens"), y(r->out[0], desc, "y_tokens");
    const int64_t blocks = (q.dims[TOKENS_AT] + 63) / 64;
    for (int i = 0; i <= HEADS_AT; i++)
        if (q.dims[i] != k.dims[i] || q.dims[i] != v.dims[i])
            return fail_rounded(r, "batches and heads must be equal");
    if (k.dims[TOKENS_AT] != v.dims[TOKENS_AT] || q.dims[SIZE_AT] != k.dims[SIZE_AT] ||
        q.dims[SIZE_AT] != v.dims[SIZE_AT])
        return fail_rounded(r, "keys and values must be as many, and all heads of one size");
    if (grt_tensor_elements(r->out[0]) > 0 &&
        (!cuda_rounded_attention_fits(q.dims[SIZE_AT], k.dims[TOKENS_AT]) || q.dims[0] > INT32_MAX ||
         q.dims[HEADS_AT] > INT32_MAX || q.dims[TOKENS_AT] > INT32_MAX / 2 ||
         blocks * q.dims[HEADS_AT] > INT32_MAX / q.dims[0]))
        return fail_rounded(r, "heads must have 32, 64 or 128 numbers, and not more than 512 keys");
    a->of_q = q.strides;
    a->of_k = k.strides;
    a->of_v = v.strides;
    a->of_y = y.strides;
    a->batch = (int32_t)q.dims[0];
    a->heads = (int32_t)q.dims[HEADS_AT];
    a->queries = (int32_t)q.dims[TOKENS_AT];
    a->keys = (int32_t)k.dims[TOKENS_AT];
    a->size = (int32_t)q.dims[SIZE_AT];
    return fit_rounded_mask(r, a);
}

grt_status reshape_rounded(grt_reshape *r)
{
    const rounded_state *state = (const rounded_state *)r->state;
    cuda_rounded_attention *shape;
    GRT_TRY(cuda_state(&shape));
    *shape = state->plain;
    shape->tables = (const cuda_rounded_tables *)state->tables;
    const grt_status status = fit_rounded(r, shape);
    if (status != GRT_OK) {
        free(shape);
        return status;
    }
    r->shape = shape;
    return GRT_OK;
}

grt_status rounded_attention_run(const grt_run *r)
{
    enum { ALIGNMENT = 16 };
    cuda_rounded_attention a = *(const cuda_rounded_attention *)r->shape;
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    a.q = (const uint8_t *)r->in[QR_Q]->data;
    a.k = (const uint8_t *)r->in[QR_K]->data;
    a.v = (const uint8_t *)r->in[QR_V]->data;
    a.mask = (const uint8_t *)grt_run_data(r, QR_MASK);
    a.y = (uint8_t *)r->out[0]->data;
    a.mask_pairs = a.mask_pairs && cuda_aligned(a.mask, 2);
    a.y_eights = cuda_aligned(a.y, 8);
    if (!cuda_aligned(a.q, ALIGNMENT) || !cuda_aligned(a.k, ALIGNMENT) || !cuda_aligned(a.v, ALIGNMENT))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "queries, keys and values lie at %p, %p and %p; expected addresses that are "
                           "multiples of %d bytes",
                           (const void *)a.q, (const void *)a.k, (const void *)a.v, ALIGNMENT);
    return cuda_rounded_attention_enqueue(&a, ((const cuda_device *)r->device)->prop.major >= 9,
                                          cuda_stream(r));
}

bool is_constant_number(const grt_kernel_node *node, int32_t i, grt_dtype_set types)
{
    const grt_tensor *t = &node->in[i];
    return grt_node_has(node, i) && t->data && grt_dtype_in(t->dtype, types) && grt_tensor_elements(t) == 1;
}

/* Scales greater than zero, and zero points; those of q, k and v may be left out. */
bool has_constant_levels(const grt_kernel_node *node)
{
    static const int32_t scales[] = {QR_Q_SCALE,    QR_K_SCALE,   QR_SCORE_SCALE,
                                     QR_MASK_SCALE, QR_SUM_SCALE, QR_SHARE_SCALE,
                                     QR_READ_SCALE, QR_V_SCALE,   QR_Y_SCALE},
                         zeros[] = {QR_Q_ZERO,     QR_K_ZERO,    QR_SCORE_ZERO, QR_MASK_ZERO, QR_SUM_ZERO,
                                    QR_SHARE_ZERO, QR_READ_ZERO, QR_V_ZERO,     QR_Y_ZERO};
    const bool masked = grt_node_has(node, QR_MASK);
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        const bool of_mask = scales[i] == QR_MASK_SCALE || scales[i] == QR_SUM_SCALE,
                   may_miss = zeros[i] == QR_Q_ZERO || zeros[i] == QR_K_ZERO || zeros[i] == QR_V_ZERO ||
                              zeros[i] == QR_READ_ZERO || zeros[i] == QR_MASK_ZERO;
        if (of_mask && !masked)
            continue;
        if (!is_constant_number(node, scales[i], GRT_BIT(FLOAT)) ||
            !(rounded_number_of(node, scales[i]) > 0) || !std::isfinite(rounded_number_of(node, scales[i])))
            return false;
        if (!(may_miss && !grt_node_has(node, zeros[i])) &&
            !is_constant_number(node, zeros[i], GRT_SET_BYTES))
            return false;
    }
    return true;
}

/* A zero point has the type of the levels that it is of. */
bool has_levels_types(const grt_kernel_node *node)
{
    static const int32_t tensors[] = {QR_Q, QR_K, QR_V, QR_MASK},
                         zeros[] = {QR_Q_ZERO, QR_K_ZERO, QR_V_ZERO, QR_MASK_ZERO};
    const int32_t shares = grt_node_has(node, QR_TABLE) ? QR_TABLE : QR_SHARE_ZERO;
    for (int i = 0; i < 4; i++) {
        if (tensors[i] == QR_MASK && !grt_node_has(node, QR_MASK))
            continue;
        if (!grt_node_has(node, tensors[i]) || !grt_dtype_in(node->in[tensors[i]].dtype, GRT_SET_BYTES) ||
            (grt_node_has(node, zeros[i]) && node->in[zeros[i]].dtype != node->in[tensors[i]].dtype))
            return false;
    }
    return !grt_node_has(node, QR_READ_ZERO) || node->in[QR_READ_ZERO].dtype == node->in[shares].dtype;
}

bool supports_rounded(const grt_kernel_node *node, grt_text *why)
{
    const grt_tensor *q = &node->in[QR_Q], *k = &node->in[QR_K], *table = &node->in[QR_TABLE];
    bool fits = node->n_in == QR_INPUTS && has_levels_types(node) && has_constant_levels(node) &&
                q->rank == FOUR_DIMS && k->rank == FOUR_DIMS && node->in[QR_V].rank == FOUR_DIMS &&
                (!grt_node_has(node, QR_TABLE) || (table->data && grt_dtype_in(table->dtype, GRT_SET_BYTES) &&
                                                   grt_tensor_elements(table) == ROUNDED_LEVELS));
    if (fits) {
        const rounded_layout of_q(q, node->desc, "q_tokens"), of_k(k, node->desc, "k_tokens");
        fits = cuda_rounded_attention_fits(of_q.dims[SIZE_AT], of_k.dims[TOKENS_AT]) &&
               of_k.dims[SIZE_AT] == of_q.dims[SIZE_AT];
    }
    if (!fits && why)
        grt_text_add(why, "8-bit tensors of four dims with constant scales and zero points are needed, heads "
                          "of 32, 64 or 128 numbers, and not more than 512 keys, whose number is known");
    return fits;
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QRoundedAttention",
     .supports = supports_rounded,
     .create = create_rounded,
     .destroy = destroy_rounded,
     .reshape = reshape_rounded,
     .release_shape = free,
     .run = rounded_attention_run},
};

} // namespace
CUDA_KERNELS(rounded_attention, rows);
