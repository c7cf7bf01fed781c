/* SPDX-License-Identifier: Apache-2.0 */
/* Whether other work wants the processors that a team of threads runs on.
 *
 * Threads of GNU's OpenMP spin for milliseconds while they wait for each other. That is fastest on processors
 * of their own; beside busy neighbours the one that is waited for does not get to run, and runs take many
 * times as long. libgomp shortens its waits while there are more OpenMP threads than processors
 * ("GOMP_SPINCOUNT" in its manual). So while the processors are oversubscribed, some threads of OpenMP's are
 * made and put to sleep. Nothing is done where the environment says how to wait (GOMP_SPINCOUNT,
 * OMP_WAIT_POLICY), or where the process's address space is limited (RLIMIT_AS).
 */
#ifndef GRT_BASE_OVERSUBSCRIPTION_H
#define GRT_BASE_OVERSUBSCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

/* What a thread has had so far. */
typedef struct grt_oversubscription_sample {
    int64_t ran_ns, waited_ns; /* on a processor; for one */
} grt_oversubscription_sample;

/* True if they are oversubscribed now, when they were `oversubscribed` until *start? Once enough time has
 * passed, *start becomes `now`.
 */
bool grt_oversubscription_judge(bool oversubscribed, grt_oversubscription_sample *start,
                                grt_oversubscription_sample now);

/* To be called at the end of work that a team of `threads` has done; cheap. Any thread may call it. */
void grt_oversubscription_look(int32_t threads);

/* What grt_oversubscription_look does when that changes: OpenMP's waits get short, as far as up to 64
 * sleeping threads make them so, or as they were. */
void grt_oversubscription_shorten_waits(bool wanted, int32_t threads);

/* End the threads that were put to sleep: before a fork, and with the library. */
void grt_oversubscription_end(void);

#endif
