/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction set level of the process; see isa.h. */
#include "backends/cpu/isa.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(CPU_HAS_AVX512_COPY) && defined(__linux__)
#define MAY_HAVE_AMX
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define VARIABLE "GRAPHRT_CPU_ISA"

/* clang 14 cannot ask, and builds no copy that needs it. */
#ifdef __clang__
#define HAS_F16C 1
#else
#define HAS_F16C __builtin_cpu_supports("f16c")
#endif

static const char *const names[CPU_ISA_COUNT] = {"base", "avx2", "avx512", "amx"};

/* GRAPHRT_CPU_ISA at the first call. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static cpu_isa level, machine;
static bool is_capped, is_unknown;
static char found[32];

const char *cpu_isa_name(cpu_isa isa)
{
    return names[isa];
}

#ifdef MAY_HAVE_AMX

/* Tiles and products of bytes: leaf 7 of CPUID. */
static bool processor_has_tiles(void)
{
    enum { TILE = 1u << 24, INT8 = 1u << 25 };
    unsigned a, b, c, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & TILE) && (d & INT8);
}

/* XCR0 says which registers the system saves: bits 17 and 18 are those of tiles. */
static bool system_saves_tiles(void)
{
    enum { OSXSAVE = 1u << 27, TILES = 3u << 17 };
    unsigned a, b, c = 0, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & TILES) == TILES;
}

enum { GET_SUPPORTED = 0x1021, REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* of arch_prctl */

/* True if Linux gives a process room for tiles when it asks for it. */
static bool system_offers_tiles(void)
{
    uint64_t features = 0;
    return syscall(SYS_arch_prctl, GET_SUPPORTED, &features) == 0 && (features >> TILE_DATA & 1);
}

static bool has_amx(void)
{
    return __builtin_cpu_supports("avx512vnni") && processor_has_tiles() && system_saves_tiles() &&
           system_offers_tiles();
}

static bool system_permits_tiles(void)
{
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

#elif defined(__x86_64__) && defined(__GNUC__)

static bool has_amx(void)
{
    return false;
}

#endif

#ifndef MAY_HAVE_AMX
static bool system_permits_tiles(void)
{
    return false;
}
#endif

static cpu_isa level_of_machine(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        return has_amx() ? CPU_ISA_AMX : CPU_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HAS_F16C)
        return CPU_ISA_AVX2;
#endif
    return CPU_ISA_BASE;
}

static void read_environment(void)
{
    const char *wanted = getenv(VARIABLE);
    level = machine = level_of_machine();
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

static pthread_once_t asked_once = PTHREAD_ONCE_INIT;
static bool permitted;

static void ask_for_tiles(void)
{
    permitted = system_permits_tiles();
}

bool cpu_isa_may_use_tiles(void)
{
    if (cpu_isa_best() < CPU_ISA_AMX)
        return false;
    pthread_once(&asked_once, ask_for_tiles);
    return permitted;
}

bool cpu_isa_is_capped(void)
{
    pthread_once(&once, read_environment);
    return is_capped;
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
