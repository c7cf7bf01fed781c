/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/act_apply.h"

#include "backends/cpu/act_avx2.h"
#include "backends/cpu/isa.h"

#ifdef CPU_HAS_AVX512_COPY
#include "backends/cpu/act_avx512.h"
#endif

#ifdef CPU_HAS_ACT_AVX2
__attribute__((target("avx2,fma"))) static void act_apply_avx2(grt_act act, float *v, int64_t n)
{
    act_avx2_apply(act, v, n);
}
#endif

#ifdef CPU_HAS_AVX512_COPY
#define VECTORS(KIND)                                                                               \
    case KIND:                                                                                      \
        for (int64_t i = 0; i < n; i += 16) {                                                       \
            const __mmask16 lanes = act_avx512_lanes(n - i);                                        \
            _mm512_mask_storeu_ps(v + i, lanes,                                                     \
                                  act_avx512_of(KIND, act.a, _mm512_maskz_loadu_ps(lanes, v + i))); \
        }                                                                                           \
        return

__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma"))) static void
act_apply_avx512(grt_act act, float *v, int64_t n)
{
    switch (act.kind) {
        VECTORS(GRT_ACT_SIGMOID);
        VECTORS(GRT_ACT_TANH);
        VECTORS(GRT_ACT_SILU);
        VECTORS(GRT_ACT_GELU_ERF);
        VECTORS(GRT_ACT_GELU_TANH);
    default:
        grt_act_apply(act, v, n);
    }
}
#endif

void cpu_act_apply(grt_act act, float *v, int64_t n)
{
    if (act.kind == GRT_ACT_NONE)
        return;
#ifdef CPU_HAS_AVX512_COPY
    if (cpu_isa_best() >= CPU_ISA_AVX512) {
        act_apply_avx512(act, v, n);
        return;
    }
#endif
#ifdef CPU_HAS_ACT_AVX2
    if (cpu_isa_best() >= CPU_ISA_AVX2) {
        act_apply_avx2(act, v, n);
        return;
    }
#endif
    grt_act_apply(act, v, n);
}

bool cpu_act_has_vectors(grt_act_kind kind)
{
#ifdef CPU_HAS_ACT_AVX2
    return cpu_isa_best() >= CPU_ISA_AVX2 && act_avx2_has(kind);
#else
    (void)kind;
    return false;
#endif
}
