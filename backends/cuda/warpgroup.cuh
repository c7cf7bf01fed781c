/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor cores by wgmma, where four warps work as one: 64 rows, operands in shared memory, which is read once
 * for all four. Hopper only: files that use it are compiled for sm_90a and nothing else. */
#ifndef GRT_BACKENDS_CUDA_WARPGROUP_CUH
#define GRT_BACKENDS_CUDA_WARPGROUP_CUH

#include "backends/cuda/number.cuh"

/* Matrices in shared memory are made of panels, which begin at multiples of 1024 bytes: rows of 128 bytes,
 * whose 16-byte chunks change places by the row so that eight rows' same chunks lie in different banks (the
 * 128-byte swizzle of the PTX ISA, section "Shared memory matrix layout"). */
enum { PANEL_ROW = 128, PANEL_ALIGNMENT = 1024 };

/* Of a panel from shared address `at` on. Eight rows are 1024 bytes from the next eight, in either direction
 * of reading. */
static __device__ __forceinline__ uint64_t panel_descriptor(uint32_t at)
{
    const uint64_t swizzle_128 = 1, stride = PANEL_ALIGNMENT >> 4, unused = 1;
    return (at >> 4 & 0x3FFF) | unused << 16 | stride << 32 | swizzle_128 << 62;
}

/* The same of rows of 64 bytes, with the 64-byte swizzle. */
static __device__ __forceinline__ uint64_t half_panel_descriptor(uint32_t at)
{
    const uint64_t swizzle_64 = 2, stride = PANEL_ALIGNMENT / 2 >> 4, unused = 1;
    return (at >> 4 & 0x3FFF) | unused << 16 | stride << 32 | swizzle_64 << 62;
}

/* Before the first product, and after registers were written that products use. */
static __device__ __forceinline__ void warpgroup_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void warpgroup_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int LEFT> __device__ __forceinline__ void warpgroup_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* What this thread has written to shared memory is seen by wgmma and by the bulk copy engine. */
static __device__ __forceinline__ void publish_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Registers of a thread from here on. The sum over all groups of a block must not exceed the launched total
 * (five groups: 5 x 96, four: 4 x 128), otherwise the kernel hangs. Only with a limit of threads and one
 * block in __launch_bounds__, and for roles that are the two sides of one if. */
template <int N> __device__ __forceinline__ void warpgroup_take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> __device__ __forceinline__ void warpgroup_leave_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

/* The registers of a result of 64 x N: c[N / 8][4]. */
#define WARPGROUP_C4(c, i) "+f"((c)[i][0]), "+f"((c)[i][1]), "+f"((c)[i][2]), "+f"((c)[i][3])
#define WARPGROUP_C16(c)   WARPGROUP_C4(c, 0), WARPGROUP_C4(c, 1)
#define WARPGROUP_C32(c)   WARPGROUP_C16(c), WARPGROUP_C4(c, 2), WARPGROUP_C4(c, 3)
#define WARPGROUP_C64(c) \
    WARPGROUP_C32(c), WARPGROUP_C4(c, 4), WARPGROUP_C4(c, 5), WARPGROUP_C4(c, 6), WARPGROUP_C4(c, 7)
#define WARPGROUP_C128(c) WARPGROUP_C64(c), WARPGROUP_C64((c) + 8)
#define WARPGROUP_R16     "{%0,%1,%2,%3,%4,%5,%6,%7}"
#define WARPGROUP_R32     "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}"
#define WARPGROUP_R64                                                                                      \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%" \
    "27,%28,%29,%30,"                                                                                      \
    "%31}"

#define WARPGROUP_R128                                                                         \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,"          \
    "%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43," \
    "%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"

/* Keeps these registers as they are: the compiler does not know of products in flight. */
template <int N> __device__ __forceinline__ void warpgroup_hold(float (*c)[4])
{
#pragma unroll
    for (int i = 0; i < N / 8; i++)
        asm volatile("" : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])::"memory");
}

/* c (+)= a b of 64 x 16 and 16 x N; without `adds`, c is only written. The rows of a panel go along the sum,
 * or, of an ACROSS b, across it. a: a panel, or registers as mma.sync has them. */
template <class T, int N> struct warpgroup;

#define WARPGROUP_PRODUCTS(T, NAME, N, A0, A1, A2, A3, A4, A5, A6)                                          \
    template <> struct warpgroup<T, N> {                                                                    \
        static __device__ __forceinline__ void multiply(float (*c)[4], uint64_t a, uint64_t b, int adds)    \
        {                                                                                                   \
            asm volatile("{.reg .pred p; setp.ne.b32 p, %" A2 ", 0;\n"                                      \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME " " WARPGROUP_R##N \
                         ", %" A0 ", %" A1 ", p, 1, 1, 0, 0;}"                                              \
                         : WARPGROUP_C##N(c)                                                                \
                         : "l"(a), "l"(b), "r"(adds));                                                      \
        }                                                                                                   \
        template <int ACROSS>                                                                               \
        static __device__ __forceinline__ void multiply(float (*c)[4], const uint32_t *a, uint64_t b,       \
                                                        int adds)                                           \
        {                                                                                                   \
            asm volatile("{.reg .pred p; setp.ne.b32 p, %" A5 ", 0;\n"                                      \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME " " WARPGROUP_R##N \
                         ", {%" A0 ",%" A1 ",%" A2 ",%" A3 "}, %" A4 ", p, 1, 1, %" A6 ";}"                 \
                         : WARPGROUP_C##N(c)                                                                \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds), "n"(ACROSS));     \
        }                                                                                                   \
    }

WARPGROUP_PRODUCTS(__half, "f16", 16, "8", "9", "10", "11", "12", "13", "14");
WARPGROUP_PRODUCTS(__half, "f16", 32, "16", "17", "18", "19", "20", "21", "22");
WARPGROUP_PRODUCTS(__half, "f16", 64, "32", "33", "34", "35", "36", "37", "38");
WARPGROUP_PRODUCTS(__half, "f16", 128, "64", "65", "66", "67", "68", "69", "70");
WARPGROUP_PRODUCTS(__nv_bfloat16, "bf16", 16, "8", "9", "10", "11", "12", "13", "14");
WARPGROUP_PRODUCTS(__nv_bfloat16, "bf16", 32, "16", "17", "18", "19", "20", "21", "22");
WARPGROUP_PRODUCTS(__nv_bfloat16, "bf16", 64, "32", "33", "34", "35", "36", "37", "38");
WARPGROUP_PRODUCTS(__nv_bfloat16, "bf16", 128, "64", "65", "66", "67", "68", "69", "70");

#endif
