/* SPDX-License-Identifier: Apache-2.0 */
/* How many processor cores this process may use. */
#ifndef GRT_BASE_CORES_H
#define GRT_BASE_CORES_H

#include <stddef.h>
#include <stdint.h>

/* Physical cores of the calling thread's affinity mask, at most the CPU quota of the process's cgroup,
 * rounded up; at least 1. Reads a few files of /sys and /proc: not for the run path. */
int32_t grt_cores_available(void);

/* The same for the n processors in `cpus`, which ascend, with files below `root` ("": the machine's). What is
 * not there limits nothing, and a processor of which nothing is known is a core of its own. */
int32_t grt_cores_of(const char *root, const int32_t *cpus, size_t n);

#endif
