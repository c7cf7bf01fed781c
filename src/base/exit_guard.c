/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dl_iterate_phdr, dladdr */
#include "src/base/exit_guard.h"

#include "src/base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

/* What a section waits for may be held by the thread that called exit(): then waiting has an end, too. */
static const double promised_ms = 1000, most_ms = 10000;

static atomic_long sections, promises;
static atomic_bool ending, stops, has_given_up;
static atomic_ullong loads;        /* of libraries, when the handler was registered last */
static _Thread_local long entered; /* sections of this thread */
static _Thread_local int outside;  /* callbacks that it is in */

/* ---- the end ---- */

static bool is_quiet(bool with_promises)
{
    return atomic_load(&sections) <= entered && (!with_promises || atomic_load(&promises) <= 0);
}

/* The threads that are waited for may need any lock: looking from time to time needs none. */
static bool wait_for_quiet(bool with_promises, double until_ms)
{
    const struct timespec moment = {.tv_nsec = 100000};
    while (!is_quiet(with_promises)) {
        if (grt_now_ms() >= until_ms)
            return false;
        nanosleep(&moment, NULL);
    }
    return true;
}

/* Called several times. In a section or a callback, other requests may wait for this thread. */
static void end_sections(void)
{
    if (atomic_load(&has_given_up))
        return;
    const double begin = grt_now_ms();
    atomic_store(&ending, true);
    if (entered == 0 && outside == 0 && wait_for_quiet(true, begin + promised_ms))
        return;
    atomic_store(&stops, true);
    if (!wait_for_quiet(false, begin + most_ms))
        atomic_store(&has_given_up, true);
}

/* ---- before exit handlers ---- */

/* exit() begins with the destructors of its thread's own variables, and calls exit handlers then. Libraries
 * register some of theirs in the midst of their work, behind any of ours: NVRTC does. */
extern int at_thread_end(void (*function)(void *data), void *data,
                         void *library) __asm__("__cxa_thread_atexit_impl") __attribute__((weak));
extern void *this_library __asm__("__dso_handle") __attribute__((visibility("hidden")));

/* They run at the thread's own end, too. */
static bool is_in_exit(void)
{
#ifdef __GLIBC__
    enum { DEEPEST = 64 };
    void *frames[DEEPEST];
    const int n = backtrace(frames, DEEPEST);
    for (int i = 0; i < n; i++) {
        Dl_info info;
        if (dladdr((char *)frames[i] - 1, &info) && info.dli_sname && !strcmp(info.dli_sname, "exit"))
            return true;
    }
#endif
    return false;
}

static void end_sections_in_exit(void *unused)
{
    (void)unused;
    if (!is_quiet(true) && is_in_exit())
        end_sections();
}

static void watch_thread(void)
{
    static _Thread_local bool watched;
    if (watched || !at_thread_end)
        return;
    watched = true;
    (void)at_thread_end(end_sections_in_exit, NULL, &this_library); /* if that fails, handlers are left */
}

/* ---- registration ---- */

static int read_loads(struct dl_phdr_info *info, size_t size, void *out_loads)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds)
        *(unsigned long long *)out_loads = info->dlpi_adds;
    return 1; /* all entries have the same number */
}

/* A child made by fork() has none of the other threads that were in sections. */
static void forget_parent(void)
{
    atomic_store(&sections, entered);
    atomic_store(&promises, 0);
}

static void watch_children(void)
{
    (void)pthread_atfork(NULL, NULL, forget_parent); /* if that fails, a child's exit() takes longer */
}

void grt_exit_guard_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned long long now = 1;
    (void)pthread_once(&once, watch_children);
    watch_thread();
    /* Exit handlers are called in the reverse order of their registration. */
    (void)dl_iterate_phdr(read_loads, &now);
    if (atomic_exchange(&loads, now) != now)
        (void)atexit(end_sections); /* if that fails, the process ends as without */
}

/* ---- sections ---- */

typedef struct guarded {
    void *(*run)(void *data);
    void *data;
} guarded;

static void *run_guarded(void *arg)
{
    const guarded g = *(guarded *)arg;
    free(arg);
    entered = 1;
    void *result = g.run(g.data);
    grt_exit_guard_leave();
    return result;
}

int grt_exit_guard_start(pthread_t *out_thread, void *(*run)(void *data), void *data)
{
    guarded *g = malloc(sizeof *g);
    if (!g)
        return ENOMEM;
    *g = (guarded){run, data};
    grt_exit_guard_register();
    atomic_fetch_add(&sections, 1);
    const int failed = pthread_create(out_thread, NULL, run_guarded, g);
    if (failed) {
        atomic_fetch_sub(&sections, 1);
        free(g);
    }
    return failed;
}

void grt_exit_guard_enter(void)
{
    entered++;
    atomic_fetch_add(&sections, 1);
}

void grt_exit_guard_leave(void)
{
    entered--;
    atomic_fetch_sub(&sections, 1);
}

long grt_exit_guard_step_out(void)
{
    const long before = entered;
    atomic_fetch_sub(&sections, before);
    entered = 0;
    outside++;
    return before;
}

void grt_exit_guard_step_in(long before)
{
    outside--;
    entered = before;
    atomic_fetch_add(&sections, before);
}

void grt_exit_guard_promise(long more)
{
    atomic_fetch_add_explicit(&promises, more, memory_order_relaxed);
}

bool grt_exit_guard_ends(void)
{
    return atomic_load(&ending);
}

bool grt_exit_guard_stops(void)
{
    return atomic_load_explicit(&stops, memory_order_relaxed);
}
