/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the process beside this library's threads. exit() runs the destructors of all libraries while
 * threads go on, and a thread in a library whose destructors have run may crash. So what this library's own
 * threads do in other libraries is a guarded section, and exit() waits until there is none. */
#ifndef GRT_BASE_EXIT_GUARD_H
#define GRT_BASE_EXIT_GUARD_H

#include <pthread.h>
#include <stdbool.h>

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

/* exit() in this thread waits from now on, and in any thread before the destructors of libraries that are
 * loaded now. Called where work in other libraries may begin, and after some may have been loaded; it looks
 * at a counter where there is nothing new. */
void grt_exit_guard_register(void);
/* pthread_create for a thread that is a section from this call until `run` has returned. */
int grt_exit_guard_start(pthread_t *out_thread, void *(*run)(void *data), void *data);
/* True if the process is ending: what nobody waits for should not begin. One atomic read. */
bool grt_exit_guard_ends(void);

/* A section of the calling thread; it may nest. */
void grt_exit_guard_enter(void);
void grt_exit_guard_leave(void);
/* Around what the program does in a callback, which is no section and may take for ever: the thread's
 * sections end, and as many begin again. */
long grt_exit_guard_step_out(void);
void grt_exit_guard_step_in(long sections);
/* `more` requests are promised an answer, or fewer if negative: exit() gives them a second. */
void grt_exit_guard_promise(long more);
/* True when that second is over: what is at work should end, and nothing begin. One atomic read. */
bool grt_exit_guard_stops(void);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
