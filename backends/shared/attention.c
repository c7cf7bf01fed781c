/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/attention.h"

#include <math.h>
#include <string.h>

#define WINDOW_MAX ((int64_t)1 << 40) /* keeps position arithmetic far from overflow */

static int64_t window(const grt_op_desc *desc, const char *name)
{
    const int64_t size = grt_attr_int(desc, name, -1);
    return size > WINDOW_MAX ? WINDOW_MAX : size;
}

void grt_attention_read(const grt_op_desc *desc, grt_attention *attention)
{
    *attention = (grt_attention){
        .joined = grt_op_is(desc, "graphrt", "Attention") ||
                  (grt_op_is(desc, "graphrt", "QAttention") && grt_attr_int(desc, "joined", 0) != 0),
        .causal = grt_attr_int(desc, "is_causal", 0) != 0,
        .left = window(desc, "left_window_size"),
        .right = window(desc, "right_window_size"),
        .q_heads = grt_attr_int(desc, "q_num_heads", 0),
        .kv_heads = grt_attr_int(desc, "kv_num_heads", 0),
        .scale = (double)grt_attr_float(desc, "scale", 0),
        .softcap = (double)grt_attr_float(desc, "softcap", 0),
        .mode = (int)grt_attr_int(desc, "qk_matmul_output_mode", 0),
    };
}

static const grt_tensor *shared_attention_input(const grt_reshape *reshape, int32_t i)
{
    return i < reshape->n_in ? reshape->in[i] : NULL;
}

/* Dims as [batch, heads, sequence, size]; false if a packed size does not divide. */
static bool attention_split(const grt_tensor *t, int64_t n_heads, int64_t out[4])
{
    if (t->rank == 4) {
        memcpy(out, t->dims, 4 * sizeof *out);
        return true;
    }
    if (t->rank != 3 || n_heads <= 0 || t->dims[2] % n_heads)
        return false;
    out[0] = t->dims[0];
    out[1] = n_heads;
    out[2] = t->dims[1];
    out[3] = t->dims[2] / n_heads;
    return true;
}

static grt_status attention_misfit(const grt_reshape *reshape, int32_t i)
{
    char text[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "input %d, %s, does not fit the other inputs", i,
                       grt_tensor_text(reshape->in[i], text));
}

static grt_status fit_past(const grt_reshape *reshape, grt_attention_dims *dims)
{
    const grt_tensor *key = shared_attention_input(reshape, ATTENTION_PAST_KEY);
    const grt_tensor *value = shared_attention_input(reshape, ATTENTION_PAST_VALUE);
    if (!key != !value)
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT, "there is a past %s but no past %s",
                           key ? "key" : "value", key ? "value" : "key");
    if (key) {
        dims->past = key->rank == 4 ? key->dims[2] : 0;
        const int64_t keys[] = {dims->batch, dims->kv_heads, dims->past, dims->size};
        const int64_t values[] = {dims->batch, dims->kv_heads, dims->past, dims->v_size};
        if (!grt_dims_equal(key->dims, key->rank, keys, 4))
            return attention_misfit(reshape, ATTENTION_PAST_KEY);
        if (!grt_dims_equal(value->dims, value->rank, values, 4))
            return attention_misfit(reshape, ATTENTION_PAST_VALUE);
    }
    dims->total = dims->past + dims->kv_len;
    return GRT_OK;
}

static grt_status fit_mask(const grt_reshape *reshape, grt_attention_dims *dims)
{
    const grt_tensor *mask = shared_attention_input(reshape, ATTENTION_MASK);
    const grt_tensor *nonpad = shared_attention_input(reshape, ATTENTION_NONPAD);
    if (nonpad && (nonpad->rank != 1 || nonpad->dims[0] != dims->batch))
        return attention_misfit(reshape, ATTENTION_NONPAD);
    dims->mask_len = dims->total;
    if (!mask)
        return GRT_OK;
    const int64_t want[4] = {dims->batch, dims->q_heads, dims->q_len, dims->total};
    if (mask->rank < 1 || mask->rank > 4)
        return attention_misfit(reshape, ATTENTION_MASK);
    for (int32_t k = 0; k < mask->rank - 1; k++)
        if (mask->dims[k] != 1 && mask->dims[k] != want[4 - mask->rank + k])
            return attention_misfit(reshape, ATTENTION_MASK);
    dims->mask_len = mask->dims[mask->rank - 1];
    if (dims->mask_len > dims->total)
        return attention_misfit(reshape, ATTENTION_MASK);
    grt_broadcast_strides(mask->dims, mask->rank, 4, dims->mask_strides);
    return GRT_OK;
}

static grt_status fit_joined(const grt_attention *attention, const grt_reshape *reshape,
                             grt_attention_dims *dims)
{
    int64_t x[4];
    if (attention->kv_heads <= 0 || attention->q_heads % attention->kv_heads ||
        !attention_split(shared_attention_input(reshape, ATTENTION_Q),
                         attention->q_heads + 2 * attention->kv_heads, x))
        return attention_misfit(reshape, ATTENTION_Q);
    dims->batch = x[0];
    dims->q_heads = attention->q_heads;
    dims->kv_heads = attention->kv_heads;
    dims->q_len = dims->kv_len = x[2];
    dims->size = dims->v_size = x[3];
    return fit_past(reshape, dims);
}

static grt_status fit_apart(const grt_attention *attention, const grt_reshape *reshape,
                            grt_attention_dims *dims)
{
    const grt_tensor *query = shared_attention_input(reshape, ATTENTION_Q),
                     *key = shared_attention_input(reshape, ATTENTION_K),
                     *value = shared_attention_input(reshape, ATTENTION_V);
    int64_t q[4], k[4], v[4];
    if (!attention_split(query, attention->q_heads, q))
        return attention_misfit(reshape, ATTENTION_Q);
    if (!attention_split(key, attention->kv_heads, k) || k[0] != q[0] || k[3] != q[3] ||
        (k[1] ? q[1] % k[1] != 0 : q[1] != 0) || key->rank != query->rank)
        return attention_misfit(reshape, ATTENTION_K);
    if (!attention_split(value, attention->kv_heads, v) || v[0] != q[0] || v[1] != k[1] || v[2] != k[2] ||
        value->rank != query->rank)
        return attention_misfit(reshape, ATTENTION_V);
    dims->batch = q[0];
    dims->q_heads = q[1];
    dims->kv_heads = k[1];
    dims->q_len = q[2];
    dims->kv_len = k[2];
    dims->size = q[3];
    dims->v_size = v[3];
    return fit_past(reshape, dims);
}

grt_status grt_attention_fit(const grt_attention *attention, const grt_reshape *reshape,
                             grt_attention_dims *dims)
{
    *dims = (grt_attention_dims){
        .left = attention->left,
        .right = attention->right,
        .softcap = attention->softcap,
        .mode = attention->mode,
        .joined = attention->joined,
        .causal = attention->causal,
    };
    GRT_TRY(attention->joined ? fit_joined(attention, reshape, dims) : fit_apart(attention, reshape, dims));
    dims->scale = attention->scale != 0 ? attention->scale : 1 / sqrt((double)dims->size);
    return fit_mask(reshape, dims);
}
