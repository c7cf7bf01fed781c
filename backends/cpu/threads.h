/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread of the team a kernel's loop body runs on, for scratch and shares per thread. */
#ifndef GRT_BACKENDS_CPU_THREADS_H
#define GRT_BACKENDS_CPU_THREADS_H

#ifdef _OPENMP
#include <omp.h>
#endif

static inline int cpu_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/* How many threads run that loop body's region. */
static inline int cpu_team(void)
{
#ifdef _OPENMP
    return omp_get_num_threads();
#else
    return 1;
#endif
}

#endif
