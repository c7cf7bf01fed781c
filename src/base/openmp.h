/* OpenMP's settings of the calling thread, which belong to the program: who changes them puts them back. A
 * build without OpenMP has teams of one. */
#ifndef GRT_BASE_OPENMP_H
#define GRT_BASE_OPENMP_H

#include <stdint.h>

/* Threads of the next parallel region that does not say how many it wants. */
int32_t grt_team_size(void);
/* Returns the previous size, to put back. */
int32_t grt_team_resize(int32_t threads);

/* To be called where teams may be used. GNU's OpenMP keeps the threads of a team for the next one, and would
 * wait for them forever in a child that fork() made without them: a thread that has called this lets go of
 * its team before it forks. */
void grt_team_used(void);

#endif
