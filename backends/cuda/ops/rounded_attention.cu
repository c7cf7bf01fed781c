/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QRoundedAttention: attention of bytes that is rounded behind each of its nodes. */
#include "backends/cuda/rounded_attention.h"

#include "backends/cuda/libraries.h"
#include "backends/cuda/walk.h"
#include "backends/shared/softmax_units.h"
#include "src/base/checked.h"
#include "src/base/rounded_attention.h"
#include "src/base/tensor.h"

#include <cmath>

namespace
{

enum { HEADS_AT = 1, TOKENS_AT, SIZE_AT, FOUR_DIMS, FIVE_DIMS };

struct rounded_shape {
    cuda_rounded_attention a;
    int64_t q_at, k_at, v_at; /* where parts begin */
};

struct rounded_state {
    void *tables;                 /* on the device; NULL: it is only described */
    cuda_rounded_attention plain; /* what constants decide */
};

bool is_signed_input(const grt_kernel_node *node, int32_t i)
{
    return grt_node_has(node, i) && node->in[i].dtype == GRT_DTYPE_INT8;
}

/* What products read: a tensor's levels, or those that its table has for them. */
int32_t rounded_levels_of(const grt_kernel_node *node, int32_t tensor)
{
    const int32_t table = tensor == QR_Q            ? QR_Q_TABLE
                          : tensor == QR_K          ? QR_K_TABLE
                          : tensor == QR_SHARE_ZERO ? QR_TABLE
                                                    : tensor;
    return grt_node_has(node, table) ? table : tensor;
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

/* Unsigned levels, or signed ones, by unsigned ones. */
void rounded_fill_table(const grt_kernel_node *node, int32_t i, uint8_t *to, uint8_t to_signed)
{
    const uint8_t *table = grt_node_has(node, i) ? (const uint8_t *)node->in[i].data : NULL;
    const uint8_t flip = (is_signed_input(node, i) ? 0x80 : 0) ^ to_signed;
    for (int level = 0; level < ROUNDED_LEVELS; level++)
        to[level] = (uint8_t)((table ? table[level] : level) ^ flip);
}

void fill_tables(const grt_kernel_node *node, cuda_rounded_tables *tables)
{
    const float scale =
        rounded_number_of(node, grt_node_has(node, QR_SUM_SCALE) ? QR_SUM_SCALE : QR_SCORE_SCALE);
    for (int i = 0; i < ROUNDED_LEVELS; i++) {
        const float units = (float)(GRT_SOFTMAX_UNITS + grt_softmax_units(i, scale));
        memcpy(&tables->exponential[i], &units, sizeof units);
    }
    rounded_fill_table(node, QR_TABLE, tables->levels.share, 0);
    rounded_fill_table(node, QR_Q_TABLE, tables->levels.q, 0);
    rounded_fill_table(node, QR_K_TABLE, tables->levels.k, 0x80);
}

void fill_plain(const grt_kernel_node *node, cuda_rounded_attention *a)
{
    const bool q_signed = is_signed_input(node, rounded_levels_of(node, QR_Q)),
               k_signed = is_signed_input(node, rounded_levels_of(node, QR_K)),
               v_signed = is_signed_input(node, QR_V), mask_signed = is_signed_input(node, QR_MASK),
               y_signed = is_signed_input(node, QR_Y_ZERO);
    const uint32_t flip = 0x80808080u;
    a->has_table = grt_node_has(node, QR_TABLE);
    a->has_q_table = grt_node_has(node, QR_Q_TABLE);
    a->has_k_table = grt_node_has(node, QR_K_TABLE);
    a->flip_q = is_signed_input(node, QR_Q) ? flip : 0;
    a->flip_k = is_signed_input(node, QR_K) == a->has_k_table ? flip : 0;
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
        rounded_zero_of(node, QR_READ_ZERO, is_signed_input(node, rounded_levels_of(node, QR_SHARE_ZERO)));
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
 * its tokens, or which is a part of one that has several of each token. */
/* Of dims that are unknown, or more than there can be, strides are what nobody uses: no kernel takes them. */
struct rounded_layout {
    int64_t dims[FOUR_DIMS], offset;
    cuda_rounded_strides strides;

    rounded_layout(const grt_tensor *t, const grt_op_desc *desc, const char *tokens, const char *part)
        : offset(0)
    {
        enum { PARTS_AT = 2 };
        const bool of_parts = t->rank == FIVE_DIMS, behind = of_parts || grt_attr_int(desc, tokens, 0) != 0;
        dims[0] = t->dims[0];
        dims[HEADS_AT] = t->dims[of_parts ? PARTS_AT + 1 : behind ? TOKENS_AT : HEADS_AT];
        dims[TOKENS_AT] = t->dims[behind ? HEADS_AT : TOKENS_AT];
        dims[SIZE_AT] = t->dims[t->rank - 1];
        const int64_t size = dims[SIZE_AT], parts = of_parts ? t->dims[PARTS_AT] : 1;
        const int64_t row = grt_mul_saturated(dims[HEADS_AT], size),
                      plane = grt_mul_saturated(dims[TOKENS_AT], size);
        if (of_parts)
            offset = grt_mul_saturated(grt_attr_int(desc, part, 0), row);
        strides.batch = grt_mul_saturated(grt_mul_saturated(row, dims[TOKENS_AT]), parts);
        strides.head = behind ? size : plane;
        strides.token = behind ? grt_mul_saturated(row, parts) : size;
    }
};

/* True if the tensor has four dims, or the part that is read is one of its five dims' parts. */
bool has_rounded_dims(const grt_tensor *t, const grt_op_desc *desc, const char *part)
{
    enum { PARTS_AT = 2 };
    const int64_t at = grt_attr_int(desc, part, 0);
    return t->rank == FOUR_DIMS ||
           (t->rank == FIVE_DIMS && at >= 0 && (t->dims[PARTS_AT] < 0 || at < t->dims[PARTS_AT]));
}

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

grt_status fit_rounded(const grt_reshape *r, rounded_shape *shape)
{
    const grt_op_desc *desc = r->desc;
    cuda_rounded_attention *a = &shape->a;
    if (!has_rounded_dims(r->in[QR_Q], desc, "q_part") || !has_rounded_dims(r->in[QR_K], desc, "k_part") ||
        !has_rounded_dims(r->in[QR_V], desc, "v_part"))
        return fail_rounded(r, "they must have four dims, or five with the part that is read");
    const rounded_layout q(r->in[QR_Q], desc, "q_tokens", "q_part"),
        k(r->in[QR_K], desc, "k_tokens", "k_part"), v(r->in[QR_V], desc, "v_tokens", "v_part"),
        y(r->out[0], desc, "y_tokens", "");
    const int64_t blocks = (q.dims[TOKENS_AT] + 63) / 64;
    for (int i = 0; i <= HEADS_AT; i++)
        if (q.dims[i] != k.dims[i] || q.dims[i] != v.dims[i])
            return fail_rounded(r, "batches and heads must be equal");
    if (k.dims[TOKENS_AT] != v.dims[TOKENS_AT] || q.dims[SIZE_AT] != k.dims[SIZE_AT] ||
        q.dims[SIZE_AT] != v.dims[SIZE_AT])
        return fail_rounded(r, "keys and values must be as many, and all heads of one size");
    if (r->out[0]->rank != FOUR_DIMS || memcmp(y.dims, q.dims, sizeof y.dims) != 0)
        return fail_rounded(r, "the result must have the queries' dims");
    if (grt_tensor_elements(r->out[0]) > 0 &&
        (!cuda_rounded_attention_fits(q.dims[SIZE_AT], k.dims[TOKENS_AT]) ||
         !cuda_rounded_attention_is_bounded(a, q.dims[SIZE_AT], k.dims[TOKENS_AT]) || q.dims[0] > INT32_MAX ||
         q.dims[HEADS_AT] > INT32_MAX || q.dims[TOKENS_AT] > INT32_MAX / 2 ||
         blocks * q.dims[HEADS_AT] > INT32_MAX / q.dims[0]))
        return fail_rounded(r, "heads must have 32, 64 or 128 numbers, and not more than 512 keys");
    shape->q_at = q.offset;
    shape->k_at = k.offset;
    shape->v_at = v.offset;
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
    rounded_shape *shape;
    GRT_TRY(cuda_state(&shape));
    shape->a = state->plain;
    shape->a.tables = (const cuda_rounded_tables *)state->tables;
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
    const rounded_shape *shape = (const rounded_shape *)r->shape;
    cuda_rounded_attention a = shape->a;
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    a.q = (const uint8_t *)r->in[QR_Q]->data + shape->q_at;
    a.k = (const uint8_t *)r->in[QR_K]->data + shape->k_at;
    a.v = (const uint8_t *)r->in[QR_V]->data + shape->v_at;
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
    const int32_t shares = rounded_levels_of(node, QR_SHARE_ZERO);
    for (int i = 0; i < 4; i++) {
        if (tensors[i] == QR_MASK && !grt_node_has(node, QR_MASK))
            continue;
        if (!grt_node_has(node, tensors[i]) || !grt_dtype_in(node->in[tensors[i]].dtype, GRT_SET_BYTES) ||
            (grt_node_has(node, zeros[i]) &&
             node->in[zeros[i]].dtype != node->in[rounded_levels_of(node, tensors[i])].dtype))
            return false;
    }
    return !grt_node_has(node, QR_READ_ZERO) || node->in[QR_READ_ZERO].dtype == node->in[shares].dtype;
}

bool has_tables(const grt_kernel_node *node)
{
    for (const int32_t i : {QR_TABLE, QR_Q_TABLE, QR_K_TABLE}) {
        const grt_tensor *table = &node->in[i];
        if (grt_node_has(node, i) && (!table->data || !grt_dtype_in(table->dtype, GRT_SET_BYTES) ||
                                      grt_tensor_elements(table) != ROUNDED_LEVELS))
            return false;
    }
    return true;
}

/* Sizes that are known are right, and so are scales. */
bool has_rounded_sizes(const grt_kernel_node *node)
{
    const grt_tensor *q = &node->in[QR_Q], *k = &node->in[QR_K], *v = &node->in[QR_V];
    if (!has_rounded_dims(q, node->desc, "q_part") || !has_rounded_dims(k, node->desc, "k_part") ||
        !has_rounded_dims(v, node->desc, "v_part"))
        return false;
    const rounded_layout of_q(q, node->desc, "q_tokens", "q_part"), of_k(k, node->desc, "k_tokens", "k_part");
    const int64_t size = of_q.dims[SIZE_AT], keys = of_k.dims[TOKENS_AT];
    cuda_rounded_attention a = {};
    fill_plain(node, &a);
    return cuda_rounded_attention_fits(size, keys) && of_k.dims[SIZE_AT] == size &&
           cuda_rounded_attention_is_bounded(&a, size, keys);
}

bool supports_rounded(const grt_kernel_node *node, grt_text *why)
{
    const bool fits = node->n_in > QR_Y_ZERO && has_levels_types(node) && has_constant_levels(node) &&
                      has_tables(node) && has_rounded_sizes(node);
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
