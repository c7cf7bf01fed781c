/* SPDX-License-Identifier: Apache-2.0 */
/* Products of panels in shared memory by wgmma (warpgroup.cuh), up to 256 columns wide: of 16-bit numbers,
 * and of float32 ones as TF32, whose panels lie along the sum only. */
#ifndef GRT_BACKENDS_CUDA_GEMM_PANELS_CUH
#define GRT_BACKENDS_CUDA_GEMM_PANELS_CUH

#include "backends/cuda/warpgroup.cuh"

/* Panels of 64 columns by 64 of the sum lie one behind the other if their rows go across the sum. */
enum { ACROSS_PANEL = 64 * PANEL_ROW };

template <bool ACROSS> __device__ __forceinline__ uint64_t gemm_panel_descriptor(uint32_t at)
{
    const uint64_t next_panel = ACROSS ? ACROSS_PANEL >> 4 : 1, stride = PANEL_ALIGNMENT >> 4,
                   swizzle_128 = 1;
    return (at >> 4 & 0x3FFF) | next_panel << 16 | stride << 32 | swizzle_128 << 62;
}

#define GEMM_PANELS_C192(c) WARPGROUP_C128(c), WARPGROUP_C64((c) + 16)
#define GEMM_PANELS_C256(c) WARPGROUP_C128(c), WARPGROUP_C128((c) + 16)
#define GEMM_PANELS_C32(c)  WARPGROUP_C32(c)
#define GEMM_PANELS_C64(c)  WARPGROUP_C64(c)
#define GEMM_PANELS_C128(c) WARPGROUP_C128(c)
#define GEMM_PANELS_R32     WARPGROUP_R32
#define GEMM_PANELS_R64     WARPGROUP_R64
#define GEMM_PANELS_R128    WARPGROUP_R128
#define GEMM_PANELS_R192                                                                           \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"  \
    "%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70," \
    "%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93," \
    "%94,%95}"
#define GEMM_PANELS_R256                                                                             \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"    \
    "%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"   \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,"   \
    "%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,"   \
    "%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113," \
    "%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}"

/* c += a b of 64 x 32 bytes of the sum and as many by N; of an ACROSS b, rows of a panel go across the sum.
 */
template <class T, int N, bool ACROSS> struct gemm_panels;

#define GEMM_PANELS(T, NAME, N, ACROSS, A, B)                                                  \
    template <> struct gemm_panels<T, N, ACROSS != 0> {                                        \
        static __device__ __forceinline__ void multiply(float (*c)[4], uint64_t a, uint64_t b) \
        {                                                                                      \
            asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0;\n"                               \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME       \
                         " " GEMM_PANELS_R##N ", %" A ", %" B ", p, 1, 1, 0, " #ACROSS ";}"    \
                         : GEMM_PANELS_C##N(c)                                                 \
                         : "l"(a), "l"(b));                                                    \
        }                                                                                      \
    }
#define GEMM_PANELS_OF(T, NAME)                 \
    GEMM_PANELS(T, NAME, 32, 0, "16", "17");    \
    GEMM_PANELS(T, NAME, 64, 0, "32", "33");    \
    GEMM_PANELS(T, NAME, 64, 1, "32", "33");    \
    GEMM_PANELS(T, NAME, 128, 0, "64", "65");   \
    GEMM_PANELS(T, NAME, 128, 1, "64", "65");   \
    GEMM_PANELS(T, NAME, 192, 0, "96", "97");   \
    GEMM_PANELS(T, NAME, 192, 1, "96", "97");   \
    GEMM_PANELS(T, NAME, 256, 0, "128", "129"); \
    GEMM_PANELS(T, NAME, 256, 1, "128", "129")

#define GEMM_PANELS_TF32(N, A, B)                                                              \
    template <> struct gemm_panels<float, N, false> {                                          \
        static __device__ __forceinline__ void multiply(float (*c)[4], uint64_t a, uint64_t b) \
        {                                                                                      \
            asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0;\n"                               \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32"             \
                         " " GEMM_PANELS_R##N ", %" A ", %" B ", p, 1, 1;}"                    \
                         : GEMM_PANELS_C##N(c)                                                 \
                         : "l"(a), "l"(b));                                                    \
        }                                                                                      \
    }

GEMM_PANELS_OF(__half, "f16");
GEMM_PANELS_OF(__nv_bfloat16, "bf16");
GEMM_PANELS_TF32(32, "16", "17");
GEMM_PANELS_TF32(64, "32", "33");
GEMM_PANELS_TF32(128, "64", "65");
GEMM_PANELS_TF32(192, "96", "97");
GEMM_PANELS_TF32(256, "128", "129");

#endif
