/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/dnnl_engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/dnnl_library.h"
#include "backends/cpu/isa.h"

const dnnl_calls *onednn;
static _Atomic(dnnl_engine_t) the_engine;

/* All of AVX-512 that the library's version knows, without AMX. */
#if DNNL_VERSION_MAJOR >= 3
#define ISA_AVX512 dnnl_cpu_isa_avx512_core_fp16
#else
#define ISA_AVX512 dnnl_cpu_isa_avx512_core_bf16
#endif

/* The library takes a cap only before its first use in the process. It computes float32 alone here, for which
 * it has no use of AMX, and would yet ask for tiles (cpu_isa_may_use_tiles): so that level is capped always,
 * unless the library's own variable says what it may use, or the program has used it before. */
static bool cap_isa(void)
{
    static const dnnl_cpu_isa_t levels[CPU_ISA_COUNT] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2, ISA_AVX512,
                                                         ISA_AVX512};
    const bool by_us = cpu_isa_is_capped();
    if (!by_us &&
        (cpu_isa_best() < CPU_ISA_AMX || getenv("DNNL_MAX_CPU_ISA") || getenv("ONEDNN_MAX_CPU_ISA")))
        return true;
    return onednn->set_max_cpu_isa(levels[cpu_isa_best()]) == dnnl_success || !by_us;
}

static grt_status engine_fail(grt_status status, const char *what, char *err, size_t n)
{
    if (err && n)
        snprintf(err, n, "%s", what);
    return status;
}

/* With the lock held. */
static grt_status make_engine(char *err, size_t n)
{
    static bool capped;
    dnnl_engine_t made = atomic_load(&the_engine);
    if (made)
        return GRT_OK;
    const grt_status found = onednn ? GRT_OK : dnnl_library_find(&onednn);
    if (found != GRT_OK)
        return engine_fail(found, grt_last_error(), err, n);
    capped = capped || cap_isa();
    if (!capped)
        return engine_fail(GRT_STATUS_INVALID_ARGUMENT,
                           "oneDNN: GRAPHRT_CPU_ISA came after the process's first use of the library", err,
                           n);
    if (onednn->engine_create(&made, dnnl_cpu, 0) != dnnl_success)
        return engine_fail(GRT_STATUS_OUT_OF_MEMORY, "out of memory while making the CPU engine (oneDNN)",
                           err, n);
    atomic_store_explicit(&the_engine, made, memory_order_release);
    return GRT_OK;
}

grt_status dnnl_engine_need(char *err, size_t n)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (atomic_load_explicit(&the_engine, memory_order_acquire))
        return GRT_OK;
    pthread_mutex_lock(&lock);
    const grt_status status = make_engine(err, n);
    pthread_mutex_unlock(&lock);
    return status;
}

dnnl_engine_t dnnl_engine_get(void)
{
    return atomic_load_explicit(&the_engine, memory_order_relaxed);
}
