/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/rotary.h"

#include <stdlib.h>

grt_status grt_rotary_create(const grt_kernel_node *node, void **out_state)
{
    grt_rotary *rotary = calloc(1, sizeof *rotary);
    if (!rotary)
        return grt_fail_memory(sizeof *rotary);
    rotary->n = grt_op_is(node->desc, "graphrt", "RotaryEmbeddings") ? 2 : 1;
    rotary->heads[0] = grt_attr_int(node->desc, rotary->n == 2 ? "q_num_heads" : "num_heads", 0);
    rotary->heads[1] = grt_attr_int(node->desc, "kv_num_heads", 0);
    rotary->first = grt_attr_int(node->desc, "rotated_heads", 0);
    rotary->rotated = grt_attr_int(node->desc, "rotary_embedding_dim", 0);
    rotary->interleaved = grt_attr_int(node->desc, "interleaved", 0) != 0;
    *out_state = rotary;
    return GRT_OK;
}

static bool rotary_fit(const grt_reshape *reshape, int32_t result, grt_rotary_dims *dims)
{
    const grt_rotary *rotary = (const grt_rotary *)reshape->state;
    const grt_tensor *x = reshape->in[grt_rotary_input(result)],
                     *ids = reshape->n_in > 3 ? reshape->in[3] : NULL;
    const int64_t heads = rotary->heads[result];
    dims->packed = x->rank == 3;
    if (x->rank != 4 && (x->rank != 3 || heads <= 0 || x->dims[2] % heads))
        return false;
    dims->batch = x->dims[0];
    dims->heads = dims->packed ? heads : x->dims[1];
    dims->all_heads = dims->heads;
    if (rotary->first)
        dims->heads = rotary->first;
    if (dims->heads < 0 || dims->heads > dims->all_heads || (rotary->first && !dims->packed))
        return false;
    dims->length = x->dims[dims->packed ? 1 : 2];
    dims->size = dims->packed ? x->dims[2] / dims->all_heads : x->dims[3];
    int64_t rotated = rotary->rotated ? rotary->rotated : dims->size;
    dims->half = rotated / 2;
    if (rotated < 0 || rotated > dims->size || rotated % 2)
        return false;
    int64_t rows[2] = {dims->batch, dims->length};
    if (ids && !grt_dims_equal(ids->dims, ids->rank, rows, 2))
        return false;
    for (int32_t i = 1; i <= 2; i++) {
        const grt_tensor *cache = reshape->in[i];
        if (cache->rank != (ids ? 2 : 3) || cache->dims[cache->rank - 1] != dims->half)
            return false;
        if (!ids && (cache->dims[0] != dims->batch || cache->dims[1] != dims->length))
            return false;
    }
    dims->positions = ids ? reshape->in[1]->dims[0] : 0;
    const bool some = dims->positions > 0 || dims->batch * dims->length == 0;
    return !ids || (reshape->in[2]->dims[0] == dims->positions && some);
}

grt_status grt_rotary_reshape(grt_reshape *reshape)
{
    const int32_t n = ((const grt_rotary *)reshape->state)->n;
    grt_rotary_dims *dims = calloc((size_t)n, sizeof *dims);
    if (!dims)
        return grt_fail_memory((size_t)n * sizeof *dims);
    for (int32_t i = 0; i < n; i++) {
        if (rotary_fit(reshape, i, &dims[i]))
            continue;
        char x[GRT_TYPE_TEXT_SIZE], cache[GRT_TYPE_TEXT_SIZE];
        free(dims);
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input %s does not fit caches of %s: they need half the rotated size as last dim, "
                           "and a row for each position",
                           grt_tensor_text(reshape->in[grt_rotary_input(i)], x),
                           grt_tensor_text(reshape->in[1], cache));
    }
    reshape->shape = dims;
    return GRT_OK;
}
