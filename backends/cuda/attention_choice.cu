/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel an attention gets (attention.cuh), by its sizes, its types and the device. */
#include "backends/cuda/attention_tile.cuh"

#include "src/base/checked.h"

/* With few rows and many keys, warps share the keys instead of a warpgroup. */
enum { FOLD_QUERIES = 16, WARPGROUP_KEYS = 512 };

static bool divides(const attention_view &view, int64_t by)
{
    return view.batch % by == 0 && view.head % by == 0 && view.row % by == 0;
}

/* The columns of tiles that hold a head's queries and values; 0: there are no such tiles. */
static int columns_for(const attention_shape *s)
{
    static const int sizes[] = {32, 64, 96, 128, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (s->size <= sizes[i] && s->v_size <= sizes[i])
            return sizes[i];
    return 0;
}

static bool fits_columns(const attention_shape *s, grt_dtype dtype)
{
    return dtype != GRT_DTYPE_DOUBLE && s->size > 0 && s->v_size > 0 && s->columns > 0;
}

static bool has_whole_vectors(const attention_shape *s, grt_dtype dtype)
{
    const int64_t vector = 16 / (int64_t)grt_dtype_size(dtype);
    return s->size % vector == 0 && s->v_size % vector == 0 && divides(s->q, vector) &&
           divides(s->k, vector) && divides(s->v, vector) && divides(s->y, vector);
}

/* Heads that are no whole vectors of 16 bytes: attention_flash.cu fetches them in pieces of 8 or 4 bytes. 0:
 * it does not, as results are stored two at a time. */
static int piece_for(const attention_shape *s, grt_dtype dtype)
{
    const int64_t size = (int64_t)grt_dtype_size(dtype);
    for (int bytes = 8; bytes >= 2 * size; bytes /= 2) {
        const int64_t n = bytes / size;
        if (s->size % n == 0 && s->v_size % n == 0 && divides(s->q, n) && divides(s->k, n) &&
            divides(s->v, n) && divides(s->y, n))
            return bytes;
    }
    return 0;
}

/* attention_float.cu has whole tiles alone, and a row of results in registers. */
static bool fits_float(const attention_shape *s)
{
    return attention_is_whole(s) && s->columns <= 128;
}

bool attention_tiles_aligned(const attention_shape *s, const attention_data *d)
{
    const uintptr_t all = (uintptr_t)d->q | (uintptr_t)d->k | (uintptr_t)d->v | (uintptr_t)d->past_key |
                          (uintptr_t)d->past_value | (uintptr_t)d->y;
    return !d->qk && all % (uintptr_t)s->piece == 0;
}

/* What attention_warpgroup.cu takes, it computes sooner, but for more than some keys with a mask of bool. */
static bool attention_by_keys_is_sooner(const attention_shape *s, grt_dtype dtype,
                                        const struct cudaDeviceProp *device)
{
    enum { MASKED_KEYS = 128 };
    return attention_keys_takes_many(s, dtype, device) &&
           (!attention_warpgroup_takes(s, dtype, device) ||
            (s->mask_dtype == GRT_DTYPE_BOOL && s->total > MASKED_KEYS));
}

/* False: some count does not fit the kernels that have tiles. */
static bool counts_fit(const attention_shape *s)
{
    int64_t rows;
    return s->q_heads > 0 && s->q_len > 0 && s->batch > 0 && grt_mul_i64(s->batch, s->q_heads, &rows) &&
           grt_mul_i64(rows, s->q_len, &rows) && rows <= INT32_MAX && s->total <= INT32_MAX;
}

/* Tensor cores: by warps, or on Hopper by warpgroups. */
static void choose_on_tensor_cores(attention_shape *s, grt_dtype dtype, const struct cudaDeviceProp *device)
{
    s->kernel = ATTENTION_FLASH;
    s->few = attention_flash_few(s, dtype, device);
    if (s->piece != 16 || (s->few && s->total > WARPGROUP_KEYS))
        return;
    if (attention_warpgroup_takes(s, dtype, device) && (s->encode = cuda_tensor_map_find())) {
        s->kernel = ATTENTION_WARPGROUP;
        attention_warpgroup_choose(s, device->multiProcessorCount);
    } else if (attention_tf32_takes(s, dtype, device)) {
        s->kernel = ATTENTION_TF32;
    }
}

void attention_choose(attention_shape *s, grt_dtype dtype, bool tf32, const struct cudaDeviceProp *device)
{
    const bool strict = dtype == GRT_DTYPE_FLOAT && !tf32;
    s->kernel = ATTENTION_PLAIN;
    s->splits = 1;
    s->fold = 1;
    s->columns = columns_for(s);
    s->piece = 0;
    if (!fits_columns(s, dtype) || !counts_fit(s))
        return;
    s->piece = has_whole_vectors(s, dtype) ? 16 : strict ? 0 : piece_for(s, dtype);
    if (!s->piece)
        return;
    s->limited = s->causal || s->left >= 0 || s->right >= 0 || s->mask_len < s->total;
    s->group = s->q_heads / s->kv_heads;
    if (s->q_len <= FOLD_QUERIES)
        s->fold = s->group;
    s->heads = s->q_heads / s->fold;
    const bool whole_vectors = s->piece == 16;
    if (whole_vectors && (attention_keys_takes(s, dtype) || attention_by_keys_is_sooner(s, dtype, device))) {
        s->kernel = ATTENTION_KEYS;
        s->fold = s->group;
        s->heads = s->kv_heads;
        attention_keys_spread(s, device);
        return;
    }
    if (!attention_is_whole(s) && s->columns <= 128 && s->q_len <= FOLD_QUERIES && s->total <= WARPGROUP_KEYS)
        return; /* tiles would be mostly empty, and the plain kernel rounds less, but does not share keys */
    if (strict && !fits_float(s))
        return;
    if (strict)
        s->kernel = ATTENTION_FLOAT;
    else
        choose_on_tensor_cores(s, dtype, device);
    if (s->kernel == ATTENTION_FLOAT || (s->kernel == ATTENTION_FLASH && s->few))
        attention_split_keys(s, device->multiProcessorCount);
}
