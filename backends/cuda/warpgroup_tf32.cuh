/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float32 numbers as TF32 by wgmma (warpgroup.cuh). Tensor cores drop the bits that TF32 has
 * not: whoever writes operands rounds them. Both lie along the sum. */
#ifndef GRT_BACKENDS_CUDA_WARPGROUP_TF32_CUH
#define GRT_BACKENDS_CUDA_WARPGROUP_TF32_CUH

#include "backends/cuda/warpgroup.cuh"

/* c (+)= a b of 64 x 8 and 8 x N; without `adds`, c is only written. a: a panel, or registers as mma.sync has
 * them. */
template <int N> struct warpgroup_tf32;

#define WARPGROUP_TF32_PRODUCTS(N, C, R, A0, A1, A2, A3, A4, A5)                                          \
    template <> struct warpgroup_tf32<N> {                                                                \
        static __device__ __forceinline__ void multiply(float (*c)[4], uint64_t a, uint64_t b, int adds)  \
        {                                                                                                 \
            asm volatile("{.reg .pred p; setp.ne.b32 p, %" A2 ", 0;\n"                                    \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32 {" R "}, %" A0 ", %" A1 \
                         ", p, 1, 1;}"                                                                    \
                         : C                                                                              \
                         : "l"(a), "l"(b), "r"(adds));                                                    \
        }                                                                                                 \
        static __device__ __forceinline__ void multiply(float (*c)[4], const uint32_t *a, uint64_t b,     \
                                                        int adds)                                         \
        {                                                                                                 \
            asm volatile("{.reg .pred p; setp.ne.b32 p, %" A5 ", 0;\n"                                    \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32 {" R "}, {%" A0 ",%" A1 \
                         ",%" A2 ",%" A3 "}, %" A4 ", p, 1, 1;}"                                          \
                         : C                                                                              \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));                \
        }                                                                                                 \
    }

#define WARPGROUP_TF32_R8  "%0,%1,%2,%3,%4,%5,%6,%7"
#define WARPGROUP_TF32_R16 WARPGROUP_TF32_R8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define WARPGROUP_TF32_R32 \
    WARPGROUP_TF32_R16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define WARPGROUP_TF32_R40 WARPGROUP_TF32_R32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define WARPGROUP_TF32_R48 WARPGROUP_TF32_R40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define WARPGROUP_TF32_R64 \
    WARPGROUP_TF32_R48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define WARPGROUP_TF32_C80 WARPGROUP_C64(c), WARPGROUP_C16(c + 8)
#define WARPGROUP_TF32_C96 WARPGROUP_C64(c), WARPGROUP_C32(c + 8)

WARPGROUP_TF32_PRODUCTS(16, WARPGROUP_C16(c), WARPGROUP_TF32_R8, "8", "9", "10", "11", "12", "13");
WARPGROUP_TF32_PRODUCTS(32, WARPGROUP_C32(c), WARPGROUP_TF32_R16, "16", "17", "18", "19", "20", "21");
WARPGROUP_TF32_PRODUCTS(64, WARPGROUP_C64(c), WARPGROUP_TF32_R32, "32", "33", "34", "35", "36", "37");
WARPGROUP_TF32_PRODUCTS(80, WARPGROUP_TF32_C80, WARPGROUP_TF32_R40, "40", "41", "42", "43", "44", "45");
WARPGROUP_TF32_PRODUCTS(96, WARPGROUP_TF32_C96, WARPGROUP_TF32_R48, "48", "49", "50", "51", "52", "53");
WARPGROUP_TF32_PRODUCTS(128, WARPGROUP_C128(c), WARPGROUP_TF32_R64, "64", "65", "66", "67", "68", "69");

#endif
