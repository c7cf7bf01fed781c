/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes by wgmma whose first operand is in registers. */
#ifndef GRT_BACKENDS_CUDA_REGISTERS_PRODUCT_CUH
#define GRT_BACKENDS_CUDA_REGISTERS_PRODUCT_CUH

#include "backends/cuda/qgemm_panels.cuh"

namespace
{

#define QGEMM_REGISTERS_64(TYPE)                                                         \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %37, 0;\n"                               \
                 "wgmma.mma_async.sync.aligned.m64n64k32.s32." TYPE ".s8 " WARPGROUP_R64 \
                 ", {%32, %33, %34, %35}, %36, p;}"                                      \
                 : QGEMM_C16(c, 0), QGEMM_C16(c, 4)                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds))

/* c (+)= 64 x 32, in registers, by 32 x 64. */
template <bool SIGNED>
__device__ __forceinline__ void multiply_registers(int32_t (&c)[8][4], const uint32_t (&a)[4], uint64_t b,
                                                   int adds)
{
    if constexpr (SIGNED)
        QGEMM_REGISTERS_64("s8");
    else
        QGEMM_REGISTERS_64("u8");
}

/* Products in flight read them. */
template <int STEPS> __device__ __forceinline__ void hold_registers(uint32_t (&a)[STEPS][4])
{
#pragma unroll
    for (int s = 0; s < STEPS; s++)
        asm volatile("" : QGEMM_C4(a, s)::"memory");
}

} // namespace

#endif
