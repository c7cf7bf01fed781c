/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of a row from several warps, and from the blocks of a cluster (attention_keys.cu). */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_KEYS_JOIN_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_KEYS_JOIN_CUH

#include "backends/cuda/attention_keys_task.cuh"
#include "backends/cuda/bulk_copy.cuh"
#include "backends/cuda/cluster.cuh"

namespace
{

/* Two columns of a row with its largest score and its sum. */
struct keys_sums {
    float2 values, ends;
};

/* Of up to MOST parts that lie `step` floats apart, all read at once. */
template <int MOST>
__device__ __forceinline__ keys_sums keys_join(const float *part, int n, int step, int column, int size)
{
    float2 values[MOST], ends[MOST];
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        ends[k] = make_float2(-CUDART_INF_F, 0);
        values[k] = make_float2(0, 0);
        if (k < n) {
            ends[k] = *(const float2 *)(part + k * step + size);
            values[k] = *(const float2 *)(part + k * step + column);
        }
    }
    keys_sums all = {{0, 0}, {-CUDART_INF_F, 0}};
#pragma unroll
    for (int k = 0; k < MOST; k++)
        all.ends.x = fmaxf(all.ends.x, ends[k].x);
    const float base = all.ends.x == -CUDART_INF_F ? 0.0f : all.ends.x;
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const float weight = power_of_two(ends[k].x - base);
        all.ends.y += weight * ends[k].y;
        all.values.x += weight * values[k].x;
        all.values.y += weight * values[k].y;
    }
    return all;
}

template <class T>
__device__ __forceinline__ void keys_store(const keys_task &task, int batch, const attention_row &of,
                                           int column, const keys_sums &all)
{
    const float inverse = all.ends.y > 0    ? __fdividef(1, all.ends.y)
                          : all.ends.y == 0 ? 0.0f
                                            : all.ends.y; /* NaN stays */
    T *const y = (T *)task.y + batch * task.y_batch + of.head * task.y_head + of.query * task.y_row;
    tensor_core<T>::store(y + column, all.values.x * inverse, all.values.y * inverse);
}

/* A cluster's parts arrive in the first block's shared memory. */
__device__ __forceinline__ void keys_expect_parts(const keys_task &task, int rows, uint64_t *arrived)
{
#if __CUDA_ARCH__ >= 900
    if (!task.clustered)
        return;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        barrier_init(arrived, 1);
        barrier_init_done();
        barrier_expect(arrived, gridDim.x * (unsigned)(rows * (task.v_size + 2)) * sizeof(float));
    }
    __syncwarp();
    cluster_arrive_only();
#endif
}

} // namespace

#endif
