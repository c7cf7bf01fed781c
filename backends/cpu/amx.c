/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/amx.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define MAY_HAVE_AMX
#include <cpuid.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

cpu_amx_shapes cpu_amx_shapes_of(int rows)
{
    enum { BYTES = CPU_AMX_ROW_BYTES, ROWS = CPU_AMX_TILE_ROWS };
    const uint8_t upper = (uint8_t)(rows < ROWS ? rows : ROWS), lower = (uint8_t)(rows - upper),
                  below = lower ? BYTES : 0;
    return (cpu_amx_shapes){.palette = 1,
                            .row_bytes = {BYTES, BYTES, below, below, BYTES, below, BYTES, BYTES},
                            .rows = {upper, upper, lower, lower, upper, lower, ROWS, ROWS}};
}

#ifdef MAY_HAVE_AMX

/* ---- this thread's tiles ---- */

/* For how many rows they have their shapes; 0: they are released. */
static _Thread_local int shaped_rows;

void cpu_amx_shape(int rows)
{
    if (rows == shaped_rows)
        return;
    const cpu_amx_shapes shapes = cpu_amx_shapes_of(rows);
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
    shaped_rows = rows;
}

void cpu_amx_release(void)
{
    if (shaped_rows)
        __asm__ volatile("tilerelease" :::);
    shaped_rows = 0;
}

/* ---- what this process has ---- */

static bool is_offered, is_permitted, has_bf16;

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

static void amx_look(void)
{
    enum { BF16 = 1u << 22, TILE = 1u << 24, INT8 = 1u << 25 }; /* of leaf 7 */
    unsigned a, b, c, d = 0;
    is_offered = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & TILE) && (d & INT8) &&
                 system_saves_tiles() && system_offers_tiles();
    has_bf16 = is_offered && (d & BF16);
}

static void amx_ask(void)
{
    is_permitted = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

bool cpu_amx_offered(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, amx_look);
    return is_offered;
}

bool cpu_amx_has_bf16(void)
{
    return cpu_amx_offered() && has_bf16;
}

bool cpu_amx_permitted(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!cpu_amx_offered())
        return false;
    pthread_once(&once, amx_ask);
    return is_permitted;
}

#else

void cpu_amx_shape(int rows)
{
    (void)rows;
}

void cpu_amx_release(void)
{
}

bool cpu_amx_offered(void)
{
    return false;
}

bool cpu_amx_has_bf16(void)
{
    return false;
}

bool cpu_amx_permitted(void)
{
    return false;
}

#endif
