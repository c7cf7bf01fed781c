/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the attention kernels: shapes, operands, range of keys of a row. */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_CUH

#include "backends/shared/attention.h"
#include "backends/cuda/number.cuh"
#include "backends/cuda/tensor_map.h"

#include <math_constants.h>

/* Elements of [batch, heads, rows, size] with rows dense and the rest strided. */
typedef struct attention_view {
    int64_t batch, head, row;
} attention_view;

typedef enum attention_kernel {
    ATTENTION_PLAIN,     /* attention_plain.cuh: everything */
    ATTENTION_FLASH,     /* attention_flash.cu: 16-bit floats, and float32 as TF32, on tensor cores */
    ATTENTION_FLOAT,     /* attention_float.cu: float32 as it is */
    ATTENTION_WARPGROUP, /* attention_warpgroup.cu: 16-bit floats on Hopper, many rows */
    ATTENTION_TF32,      /* attention_warpgroup_tf32.cu: float32 as TF32 on Hopper */
    ATTENTION_KEYS,      /* attention_keys.cu: 16-bit floats, few rows that share keys */
} attention_kernel;

/* calloc'ed, and an argument of kernels: keep it a plain struct. */
struct attention_shape : grt_attention_dims {
    attention_kernel kernel;
    bool few;       /* few rows; the kernels on tensor cores have code of their own for that */
    bool limited;   /* some keys are masked by position; nonpad may mask more */
    bool padded;    /* nonpad is given: padded keys may be NaN and are not read */
    bool paired;    /* WARPGROUP: a block may have two tasks at a time */
    int splits;     /* tasks that share the keys of one row */
    bool clustered; /* KEYS: they join their sums themselves */
    int warps;      /* KEYS, WARPGROUP: of a task */
    int columns;    /* of tiles in shared memory: the sizes of heads, filled up with zeros */
    int piece; /* bytes that heads, rows and pointers are multiples of, up to 16: what is fetched at a time */
    int64_t fold;  /* query heads of one key head that a block takes together, as rows; 1: none */
    int64_t heads; /* of folded heads */
    int64_t group; /* query heads of one key head */
    int mask_dtype, qk_dtype;
    attention_view q, k, v, y; /* joined: K and V are parts of Q's tensor */
    size_t shared_bytes;
    cuda_tensor_map_encoder encode; /* WARPGROUP */
};

/* True if heads fill the tiles' columns, and are fetched by whole vectors. */
static inline bool attention_is_whole(const attention_shape *s)
{
    return s->piece == 16 && s->size == s->columns && s->v_size == s->columns;
}

/* What a run binds. */
typedef struct attention_data {
    const void *q, *k, *v, *past_key, *past_value, *mask;
    const int64_t *nonpad;
    void *y, *qk;
    float *partial; /* partial results of splits; see attention_split.cu */
} attention_data;

/* Row j of the keys or values of a head: the past's come first. */
template <class T>
__device__ __forceinline__ const T *key_row(const attention_shape &s, const void *now, const void *past,
                                            const attention_view &view, int64_t size, int64_t batch,
                                            int64_t head, int64_t j)
{
    if (j < s.past)
        return (const T *)past + ((batch * s.kv_heads + head) * s.past + j) * size;
    return (const T *)now + batch * view.batch + head * view.head + (j - s.past) * view.row;
}

template <class W>
__device__ __forceinline__ W masked(const attention_shape &s, const void *mask, int64_t at, W score)
{
    if (!mask)
        return score;
    if (s.mask_dtype == GRT_DTYPE_BOOL)
        return ((const uint8_t *)mask)[at] ? score : (W)-CUDART_INF_F;
    return score + cuda_load<W>(mask, s.mask_dtype, at);
}

/* True if the tiled kernels can use these pointers and outputs; the plain kernel takes all. */
bool attention_tiles_aligned(const attention_shape *s, const attention_data *d);

/* attention_flash.cu. `prepare`, once per shape and device, raises the kernels' limit of shared memory. */
cudaError_t attention_flash_prepare(const attention_shape *s, grt_dtype dtype);
bool attention_flash_few(const attention_shape *s, grt_dtype dtype, const struct cudaDeviceProp *device);
cudaError_t attention_flash(const attention_shape *s, const attention_data *d, grt_dtype dtype, bool overlaps,
                            cudaStream_t stream);

/* attention_warpgroup.cu, likewise */
void attention_warpgroup_choose(attention_shape *s, int multiprocessors);
cudaError_t attention_warpgroup_prepare(const attention_shape *s, grt_dtype dtype);
bool attention_warpgroup_takes(const attention_shape *s, grt_dtype dtype,
                               const struct cudaDeviceProp *device);
cudaError_t attention_warpgroup(const attention_shape *s, const attention_data *d, grt_dtype dtype,
                                int multiprocessors, cudaStream_t stream);

/* attention_warpgroup_tf32.cu, likewise */
bool attention_tf32_takes(const attention_shape *s, grt_dtype dtype, const struct cudaDeviceProp *device);
cudaError_t attention_tf32_prepare(const attention_shape *s);
cudaError_t attention_tf32(const attention_shape *s, const attention_data *d, int multiprocessors,
                           cudaStream_t stream);

/* attention_keys.cu, likewise; `spread` says how many splits. */
bool attention_keys_takes(const attention_shape *s, grt_dtype dtype);
/* True if several blocks take a head's rows sooner than attention_flash.cu does: all run at once, and have
 * few keys. */
bool attention_keys_takes_many(const attention_shape *s, grt_dtype dtype,
                               const struct cudaDeviceProp *device);
void attention_keys_spread(attention_shape *s, const struct cudaDeviceProp *device);
cudaError_t attention_keys_prepare(const attention_shape *s, grt_dtype dtype);
cudaError_t attention_keys(const attention_shape *s, const attention_data *d, grt_dtype dtype, bool overlaps,
                           cudaStream_t stream);

/* attention_float.cu */
cudaError_t attention_float_prepare(const attention_shape *s);
void attention_float(const attention_shape *s, const attention_data *d, int multiprocessors,
                     cudaStream_t stream);

/* attention_choice.cu */
void attention_choose(attention_shape *s, grt_dtype dtype, bool tf32, const struct cudaDeviceProp *device);

/* attention_split.cu: how many splits and what they want; and their results as one. */
/* Sets splits, for a kernel with few rows, where that pays. */
void attention_split_keys(attention_shape *s, int multiprocessors);
size_t attention_partial_bytes(const attention_shape *s);
cudaError_t attention_merge(const attention_shape *s, const attention_data *d, grt_dtype dtype, bool overlaps,
                            cudaStream_t stream);

#endif
