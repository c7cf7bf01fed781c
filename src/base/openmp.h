/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP's settings of the calling thread, which belong to the program: who changes them puts them back. A
 * build without OpenMP has teams of one.
 *
 * GNU's OpenMP ends the process when it cannot make a thread of a team: where processes or address space are
 * limited, the library asks first, by making as many threads itself. */
#ifndef GRT_BASE_OPENMP_H
#define GRT_BASE_OPENMP_H

#include <stdbool.h>
#include <stdint.h>

enum { GRT_MOST_THREADS = 1024 };

/* Default threads of an operator: grt_cores_available, at most OpenMP's limit (OMP_NUM_THREADS,
 * OMP_THREAD_LIMIT, omp_set_num_threads). */
int32_t grt_team_default(void);

/* `wanted` threads, or as many fewer as the calling thread's team can have now: 1 to GRT_MOST_THREADS. To be
 * asked before a parallel region that says how many it takes. It costs the making of threads the first time
 * that this thread asks for so many. */
int32_t grt_team_possible(int32_t wanted);

/* What the calling thread's settings were before. */
typedef struct grt_team {
    int32_t threads, levels;
} grt_team;

/* From here to grt_team_leave, parallel regions of the calling thread have up to `threads` threads; if not so
 * many are possible, or the thread is to be `alone`, they all have one: kernels are made for a number of
 * threads or for one. */
grt_team grt_team_enter(int32_t threads, bool alone);
void grt_team_leave(grt_team before);

/* Threads of the next parallel region that does not say how many it wants. Returns the previous number, to
 * put back. For libraries that look there, within grt_team_enter. */
int32_t grt_team_resize(int32_t threads);

/* To be called where teams may be used. GNU's OpenMP keeps the threads of a team for the next one, and would
 * wait for them forever in a child that fork() made without them: a thread that has called this lets go of
 * its team before it forks. */
void grt_team_used(void);

#endif
