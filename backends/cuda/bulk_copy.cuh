/* SPDX-License-Identifier: Apache-2.0 */
/* The bulk copy engine (Hopper and newer) and its barriers in shared memory. */
#ifndef GRT_BACKENDS_CUDA_BULK_COPY_CUH
#define GRT_BACKENDS_CUDA_BULK_COPY_CUH

#include "backends/cuda/tensor_map.h"

/* Phases of a barrier alternate between 0 and 1; a waiter names the phase that must be complete. Each phase
 * wants `arrivals`, and the bytes announced. */
static __device__ __forceinline__ void barrier_init(uint64_t *barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"((uint32_t)__cvta_generic_to_shared(barrier)),
                 "r"(arrivals)
                 : "memory");
}
/* After all barriers, before __syncthreads. */
static __device__ __forceinline__ void barrier_init_done()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"((uint32_t)__cvta_generic_to_shared(barrier))
                 : "memory");
}

static __device__ __forceinline__ void barrier_expect(uint64_t *barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(barrier)),
                 "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint64_t *barrier, uint32_t phase)
{
    asm volatile("{.reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;}" ::"r"((uint32_t)__cvta_generic_to_shared(barrier)),
                 "r"(phase)
                 : "memory");
}

/* The box that begins at these coordinates, first dim first. */
static __device__ __forceinline__ void bulk_fetch(void *to, const CUtensorMap *map, int32_t c0, int32_t c1,
                                                  int32_t c2, int32_t c3, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%3,%4,%5,%6}], [%2];" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(map), "r"((uint32_t)__cvta_generic_to_shared(barrier)), "r"(c0), "r"(c1), "r"(c2),
                 "r"(c3)
                 : "memory");
}

/* A place in a ring of buffers, and the phase of its barriers. */
struct ring {
    int at;
    uint32_t phase;
    __device__ __forceinline__ void next(int size)
    {
        if (++at == size) {
            at = 0;
            phase ^= 1;
        }
    }
};

#endif
