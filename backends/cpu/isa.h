/* Which copies of a loop file exist, and which of them this machine can run. The package is built for the
 * baseline instruction set; hot loops are compiled again for newer ones in files of their own, and one copy
 * is chosen at run time. */
#ifndef GRT_BACKENDS_CPU_ISA_H
#define GRT_BACKENDS_CPU_ISA_H

/* Needs the target pragma, which clang has not. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CPU_HAS_AVX2_COPY   1
#define CPU_HAS_AVX512_COPY 1
#endif

typedef enum cpu_isa { CPU_ISA_BASE, CPU_ISA_AVX2, CPU_ISA_AVX512 } cpu_isa;

/* Best instruction set for which there are copies. Cheap: reads what the C runtime found at start. */
static inline cpu_isa cpu_isa_best(void)
{
#ifdef CPU_HAS_AVX512_COPY
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        return CPU_ISA_AVX512;
#endif
#ifdef CPU_HAS_AVX2_COPY
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
        return CPU_ISA_AVX2;
#endif
    return CPU_ISA_BASE;
}

#endif
