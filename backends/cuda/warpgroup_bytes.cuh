/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes by wgmma: 64 x 32 by 32 x N. */
#ifndef GRT_BACKENDS_CUDA_WARPGROUP_BYTES_CUH
#define GRT_BACKENDS_CUDA_WARPGROUP_BYTES_CUH

#include "backends/cuda/warpgroup.cuh"

#include <stdint.h>

/* The registers of a result of 64 x N, c[N / 8][4]; R: how they are named to the assembler. */
#define BYTES_C8(R, c, i) R((c)[i][0]), R((c)[i][1]), R((c)[i][2]), R((c)[i][3])
#define BYTES_C32(R, c, i) \
    BYTES_C8(R, c, i), BYTES_C8(R, c, (i) + 1), BYTES_C8(R, c, (i) + 2), BYTES_C8(R, c, (i) + 3)
#define BYTES_C64(R, c)  BYTES_C32(R, c, 0), BYTES_C32(R, c, 4)
#define BYTES_C96(R, c)  BYTES_C64(R, c), BYTES_C32(R, c, 8)
#define BYTES_C128(R, c) BYTES_C96(R, c), BYTES_C32(R, c, 12)
#define BYTES_C192(R, c) BYTES_C128(R, c), BYTES_C32(R, c, 16), BYTES_C32(R, c, 20)
#define BYTES_FROM_0     "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define BYTES_FROM_16    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define BYTES_FROM_32    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define BYTES_FROM_48    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define BYTES_FROM_64    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define BYTES_FROM_80    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define BYTES_R64        "{" BYTES_FROM_0 "," BYTES_FROM_16 "}"
#define BYTES_R96        "{" BYTES_FROM_0 "," BYTES_FROM_16 "," BYTES_FROM_32 "}"
#define BYTES_R128       "{" BYTES_FROM_0 "," BYTES_FROM_16 "," BYTES_FROM_32 "," BYTES_FROM_48 "}"
#define BYTES_R192                                                                           \
    "{" BYTES_FROM_0 "," BYTES_FROM_16 "," BYTES_FROM_32 "," BYTES_FROM_48 "," BYTES_FROM_64 \
    "," BYTES_FROM_80 "}"

struct float8_e4m3;

/* T: of the first operand, int8_t or uint8_t; the second one is int8. Or of both, float8_e4m3. c (+)= a b;
 * without `adds`, c is only written. */
template <class T, int N> struct bytes_product;

#define BYTES_PRODUCT(T, SUM, R, TYPES, SCALES, N, A, B, ADDS)                                      \
    template <> struct bytes_product<T, N> {                                                        \
        static __device__ __forceinline__ void multiply(SUM (&c)[N / 8][4], uint64_t a, uint64_t b, \
                                                        int adds)                                   \
        {                                                                                           \
            asm volatile("{.reg .pred p; setp.ne.b32 p, %" ADDS ", 0;\n"                            \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k32." TYPES " " BYTES_R##N         \
                         ", %" A ", %" B ", p" SCALES ";}"                                          \
                         : BYTES_C##N(R, c)                                                         \
                         : "l"(a), "l"(b), "r"(adds));                                              \
        }                                                                                           \
        /* The compiler does not know of products in flight. */                                     \
        static __device__ __forceinline__ void hold(SUM (&c)[N / 8][4])                             \
        {                                                                                           \
            asm volatile("" : BYTES_C##N(R, c)::"memory");                                          \
        }                                                                                           \
    }
#define BYTES_PRODUCTS(N, A, B, ADDS)                                      \
    BYTES_PRODUCT(int8_t, int32_t, "+r", "s32.s8.s8", "", N, A, B, ADDS);  \
    BYTES_PRODUCT(uint8_t, int32_t, "+r", "s32.u8.s8", "", N, A, B, ADDS); \
    BYTES_PRODUCT(float8_e4m3, float, "+f", "f32.e4m3.e4m3", ", 1, 1", N, A, B, ADDS)

BYTES_PRODUCTS(64, "32", "33", "34");
BYTES_PRODUCTS(96, "48", "49", "50");
BYTES_PRODUCTS(128, "64", "65", "66");
BYTES_PRODUCTS(192, "96", "97", "98");

#endif
