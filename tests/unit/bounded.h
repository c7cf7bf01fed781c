/* SPDX-License-Identifier: Apache-2.0 */
/* Runs part of a test in a child process with limits, and measures it. */
#ifndef GRT_TESTS_BOUNDED_H
#define GRT_TESTS_BOUNDED_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bounded_use {
    int status; /* what the body returned; -1 if a signal ended it */
    int signal; /* 0: none. SIGXCPU or SIGKILL: the time was over */
    double cpu_seconds;
    size_t peak_bytes; /* resident */
} bounded_use;

/* body's result must be 0 to 100. Memory is limited only where nothing needs address space of its own, as
 * sanitizers do; 0: no limit. Fails the test if there is no process. */
bounded_use bounded_run(int (*body)(void *user), void *user, unsigned cpu_seconds, size_t address_space);
/* True if peak_bytes and cpu_seconds say something about the library in this build. */
bool bounded_measures(void);

#endif
