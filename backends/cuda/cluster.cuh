/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of threads that run at the same time and reach each other's shared memory (Hopper and newer). Where
 * there are none, a block is a cluster of its own. */
#ifndef GRT_BACKENDS_CUDA_CLUSTER_CUH
#define GRT_BACKENDS_CUDA_CLUSTER_CUH

#include <stdint.h>

/* What was written before is seen by whoever waits. A thread that has arrived may end without waiting. */
__device__ __forceinline__ void cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
/* The same of barriers that were made (barrier_init_done), and nothing else. */
__device__ __forceinline__ void cluster_arrive_only()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ uint32_t cluster_rank()
{
    uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}
/* What the block of this rank has at shared address `at`. */
__device__ __forceinline__ int4 cluster_load(uint32_t at, uint32_t rank)
{
    int4 v = {};
#if __CUDA_ARCH__ >= 900
    asm volatile("{.reg .u32 there; mapa.shared::cluster.u32 there, %4, %5;\n"
                 "ld.shared::cluster.v4.s32 {%0,%1,%2,%3}, [there];}"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at), "r"(rank)
                 : "memory");
#endif
    return v;
}
/* Two numbers to where `to` is in the first block's shared memory, counted by `barrier` there. No fence is
 * needed, which would wait for all that the thread has under way. */
__device__ __forceinline__ void cluster_send(const float *to, float2 v, const uint64_t *barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{.reg .u32 there, counted; mapa.shared::cluster.u32 there, %0, 0;\n"
                 "mapa.shared::cluster.u32 counted, %1, 0;\n"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [there], {%2,%3}, "
                 "[counted];}" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "r"((uint32_t)__cvta_generic_to_shared(barrier)), "f"(v.x), "f"(v.y)
                 : "memory");
#endif
}
/* The same of four numbers, to the block of this rank. */
__device__ __forceinline__ void cluster_send_four(const void *to, float4 v, const uint64_t *barrier,
                                                  uint32_t rank)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{.reg .u32 there, counted; mapa.shared::cluster.u32 there, %0, %6;\n"
                 "mapa.shared::cluster.u32 counted, %1, %6;\n"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [there], {%2,%3,%4,%5}, "
                 "[counted];}" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "r"((uint32_t)__cvta_generic_to_shared(barrier)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w),
                 "r"(rank)
                 : "memory");
#endif
}
/* All that was announced to the barrier is there. */
__device__ __forceinline__ void cluster_receive(uint64_t *barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{.reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra again;}" ::"r"((uint32_t)__cvta_generic_to_shared(barrier))
                 : "memory");
#endif
}

#endif
