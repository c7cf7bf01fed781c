/* SPDX-License-Identifier: Apache-2.0 */
/* One loop body, compiled for several instruction sets, chosen when called.
 *
 * CPU_DISPATCH(name, (parameters), (arguments)) defines the static function `name` from `name_body`, which
 * must be CPU_BODY and whose hot loops should be marked `omp simd`. */
#ifndef GRT_BACKENDS_CPU_DISPATCH_H
#define GRT_BACKENDS_CPU_DISPATCH_H

#include "backends/cpu/isa.h"

#define CPU_BODY static inline __attribute__((always_inline)) void

#if defined(__x86_64__) && defined(__GNUC__)
#define CPU_DISPATCH(name, parameters, arguments)                                                    \
    __attribute__((                                                                                  \
        target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma"))) static void name##_avx512 parameters \
    {                                                                                                \
        name##_body arguments;                                                                       \
    }                                                                                                \
    __attribute__((target("avx2,fma"))) static void name##_avx2 parameters                           \
    {                                                                                                \
        name##_body arguments;                                                                       \
    }                                                                                                \
    static void name parameters                                                                      \
    {                                                                                                \
        const cpu_isa isa = cpu_isa_best();                                                          \
        if (isa >= CPU_ISA_AVX512)                                                                   \
            name##_avx512 arguments;                                                                 \
        else if (isa == CPU_ISA_AVX2)                                                                \
            name##_avx2 arguments;                                                                   \
        else                                                                                         \
            name##_body arguments;                                                                   \
    }
#else
#define CPU_DISPATCH(name, parameters, arguments) \
    static void name parameters                   \
    {                                             \
        name##_body arguments;                    \
    }
#endif

#endif
