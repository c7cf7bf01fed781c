/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction set level of the process; see isa.h. */
#include "backends/cpu/isa.h"

#include "backends/cpu/amx.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "GRAPHRT_CPU_ISA"

/* clang 14 cannot ask, and builds no copy that needs it. */
#ifdef __clang__
#define HAS_F16C 1
#else
#define HAS_F16C __builtin_cpu_supports("f16c")
#endif

static const char *const names[CPU_ISA_COUNT] = {"base", "avx2", "avx512", "amx"};

/* What the machine is, and GRAPHRT_CPU_ISA at the first call. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static cpu_isa level, machine;
static bool is_capped, is_unknown, halves;
static char found[32];

const char *cpu_isa_name(cpu_isa isa)
{
    return names[isa];
}

static cpu_isa level_of_machine(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        return __builtin_cpu_supports("avx512vnni") && cpu_amx_offered() ? CPU_ISA_AMX : CPU_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HAS_F16C)
        return CPU_ISA_AVX2;
#endif
    return CPU_ISA_BASE;
}

/* AMD's leaf of hints for floating point. Other makers have none, and run AVX-512 in whole vectors. */
static bool machine_halves_avx512(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    enum { LEAF = (int)0x8000001au, FP256 = 1u << 2, FP512 = 1u << 3 };
    unsigned a = 0, b, c, d;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_is("amd") &&
           __get_cpuid((unsigned)LEAF, &a, &b, &c, &d) && (a & FP256) && !(a & FP512);
#else
    return false;
#endif
}

static void read_environment(void)
{
    const char *wanted = getenv(VARIABLE);
    level = machine = level_of_machine();
    halves = machine_halves_avx512();
    if (!wanted || !*wanted)
        return;
    int at = 0;
    while (at < CPU_ISA_COUNT && strcmp(wanted, names[at]) != 0)
        at++;
    is_unknown = at == CPU_ISA_COUNT;
    is_capped = !is_unknown;
    snprintf(found, sizeof found, "%s", wanted);
    if (is_capped && (cpu_isa)at < level)
        level = (cpu_isa)at;
}

cpu_isa cpu_isa_of_machine(void)
{
    pthread_once(&once, read_environment);
    return machine;
}

cpu_isa cpu_isa_best(void)
{
    pthread_once(&once, read_environment);
    return level;
}

bool cpu_isa_may_use_tiles(void)
{
    return cpu_isa_best() >= CPU_ISA_AMX && cpu_amx_permitted();
}

bool cpu_isa_is_capped(void)
{
    pthread_once(&once, read_environment);
    return is_capped;
}

bool cpu_isa_halves_avx512(void)
{
    return cpu_isa_best() >= CPU_ISA_AVX512 && halves;
}

/* A process capped to AVX2 imitates processors of that level that have nothing more. */
bool cpu_isa_has_avx_vnni(void)
{
#ifdef CPU_HAS_AVX2_COPY
    return cpu_isa_best() >= CPU_ISA_AVX2 && !cpu_isa_is_capped() && __builtin_cpu_supports("avxvnni");
#else
    return false;
#endif
}

bool cpu_isa_has_avx512_vnni(void)
{
#ifdef CPU_HAS_AVX512_COPY
    return cpu_isa_best() >= CPU_ISA_AVX512 && __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

bool cpu_isa_has_avx512_bf16(void)
{
#ifdef CPU_HAS_AVX512_COPY
    return cpu_isa_best() >= CPU_ISA_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

bool cpu_isa_has_amx_bf16(void)
{
    return cpu_amx_has_bf16() && cpu_isa_may_use_tiles();
}

grt_status cpu_isa_check(void)
{
    pthread_once(&once, read_environment);
    return is_unknown ? grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                                 "the environment's " VARIABLE
                                 " is '%s'; expected base, avx2, avx512 or amx, or leave "
                                 "it unset for the highest level that this machine has",
                                 found)
                      : GRT_OK;
}
