/* SPDX-License-Identifier: Apache-2.0 */
/* The bulk copy engine's boxes of matrices and images, to shared memory and from it. */
#ifndef GRT_BACKENDS_CUDA_BULK_ROWS_CUH
#define GRT_BACKENDS_CUDA_BULK_ROWS_CUH

#include "backends/cuda/bulk_copy.cuh"

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void bulk_fetch_rows(void *to, const CUtensorMap *map, int c0, int c1,
                                                       uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%3,%4}], [%2];" ::"r"(shared_address(to)),
                 "l"(map), "r"(shared_address(barrier)), "r"(c0), "r"(c1)
                 : "memory");
}

static __device__ __forceinline__ void bulk_fetch_windows(void *to, const CUtensorMap *map, int channel,
                                                          int column, int row, int image, int right, int down,
                                                          uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3,%4,%5,%6}], [%2], {%7,%8};" ::"r"(shared_address(to)),
                 "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(column), "r"(row), "r"(image),
                 "h"((uint16_t)right), "h"((uint16_t)down)
                 : "memory");
}

static __device__ __forceinline__ void bulk_fetch_filters(void *to, const CUtensorMap *map, int at, int group,
                                                          uint64_t *barrier)
{
    const int zero = 0;
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%3,%4,%4,%4,%5}], [%2];" ::"r"(shared_address(to)),
                 "l"(map), "r"(shared_address(barrier)), "r"(at), "r"(zero), "r"(group)
                 : "memory");
}
static __device__ __forceinline__ void bulk_store_rows(const CUtensorMap *map, const void *from, int c0,
                                                       int c1)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2,%3}], [%1];" ::"l"(map),
                 "r"(shared_address(from)), "r"(c0), "r"(c1)
                 : "memory");
}
static __device__ __forceinline__ void bulk_store_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
static __device__ __forceinline__ void bulk_store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
#endif
