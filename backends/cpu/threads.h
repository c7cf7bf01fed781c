/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread of the team a kernel's loop body runs on, for scratch per thread. */
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

#endif
