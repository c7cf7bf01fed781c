/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { CACHE_LINE = 64 };

/* Of one thread until it ends, then of another: they are never fewer until the library is closed. */
struct grt_reader {
    _Alignas(CACHE_LINE) atomic_uint inside;
    atomic_bool taken;
    grt_reader *next;
};

static _Atomic(grt_reader *) readers;
static grt_reader common; /* of threads for which there is no memory: `inside` counts them */
static _Thread_local grt_reader *own;
static pthread_key_t readers_key;
static bool readers_have_key;
static pthread_once_t readers_begun = PTHREAD_ONCE_INIT, readers_asked = PTHREAD_ONCE_INIT;
/* The system can order the accesses of all threads of this process: then they need not do it themselves. */
static atomic_bool is_ordered_by_writer;

static void end_reader(void *reader)
{
    own = NULL;
    atomic_store_explicit(&((grt_reader *)reader)->taken, false, memory_order_release);
}

static void make_readers_key(void)
{
    readers_have_key = pthread_key_create(&readers_key, end_reader) == 0;
}

/* Threads may outlive the library. */
__attribute__((destructor)) static void close_readers(void)
{
    if (readers_have_key)
        pthread_key_delete(readers_key);
    for (grt_reader *r = atomic_load(&readers), *next; r; r = next) {
        next = r->next;
        free(r);
    }
}

static grt_reader *take_reader(void)
{
    for (grt_reader *r = atomic_load(&readers); r; r = r->next) {
        bool taken = false;
        if (atomic_compare_exchange_strong(&r->taken, &taken, true))
            return r;
    }
    grt_reader *r = aligned_alloc(CACHE_LINE, sizeof *r);
    if (!r)
        return NULL;
    atomic_init(&r->inside, 0);
    atomic_init(&r->taken, true);
    r->next = atomic_load(&readers);
    while (!atomic_compare_exchange_weak(&readers, &r->next, r)) {
    }
    return r;
}

static grt_reader *make_own(void)
{
    (void)pthread_once(&readers_begun, make_readers_key);
    grt_reader *r = readers_have_key ? take_reader() : NULL;
    if (r && pthread_setspecific(readers_key, r) != 0) {
        atomic_store(&r->taken, false);
        r = NULL;
    }
    return own = r ? r : &common;
}

grt_reader *grt_reader_enter(void)
{
    grt_reader *r = own ? own : make_own();
    if (r == &common) {
        atomic_fetch_add(&r->inside, 1);
    } else if (atomic_load_explicit(&is_ordered_by_writer, memory_order_relaxed)) {
        atomic_store_explicit(&r->inside, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
    } else {
        atomic_store(&r->inside, 1);
    }
    return r;
}

void grt_reader_leave(grt_reader *r)
{
    if (r == &common)
        atomic_fetch_sub(&r->inside, 1);
    else
        atomic_store_explicit(&r->inside, 0, memory_order_release);
}

static void ask_for_order(void)
{
#if defined(__linux__) && defined(SYS_membarrier)
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0)
        atomic_store(&is_ordered_by_writer, true);
#endif
}

/* What other threads did before is seen afterwards, and what this thread did is seen by what they do later.
 */
static void order_all(void)
{
    (void)pthread_once(&readers_asked, ask_for_order);
#if defined(__linux__) && defined(SYS_membarrier)
    if (atomic_load(&is_ordered_by_writer))
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
#endif
}

static void wait_for_reader(const grt_reader *r)
{
    const struct timespec pause = {.tv_nsec = 20000};
    while (atomic_load(&r->inside))
        nanosleep(&pause, NULL);
}

void grt_readers_wait(void)
{
    order_all();
    wait_for_reader(&common);
    for (const grt_reader *r = atomic_load(&readers); r; r = r->next)
        wait_for_reader(r);
}
