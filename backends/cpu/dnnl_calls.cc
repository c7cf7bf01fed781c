/* SPDX-License-Identifier: Apache-2.0 */
/* See dnnl_calls.h. The only C++ here: nothing else can catch. A module of its own, libgraphrt-onednn.so,
 * which needs nothing of libgraphrt. */
#include "backends/cpu/dnnl_calls.h"

#include <future>
#include <new>
#include <stdexcept>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace
{

/* Shared: threads that are making an operation. Exclusive: the one that empties oneDNN's cache. */
pthread_rwlock_t cache = PTHREAD_RWLOCK_INITIALIZER;
/* Initial-exec: in the block that each thread has from its start. Blocks that are allocated later, for a
 * module that is opened while threads run, are what LeakSanitizer of GCC 12 finds by guessing, and crashes if
 * it guesses wrong. */
__attribute__((tls_model("initial-exec"))) thread_local bool making;

void empty_cache() noexcept
{
    try {
        int capacity = 0;
        if (dnnl_get_primitive_cache_capacity(&capacity) == dnnl_success) {
            dnnl_set_primitive_cache_capacity(0);
            dnnl_set_primitive_cache_capacity(capacity);
        }
    } catch (...) {
    }
}

/* A creation that throws while it inserts into the cache leaves oneDNN's lock of the cache with this thread,
 * and others that are making something wait for it. To ask for the capacity gives it back: the lock is not
 * taken again by the thread that has it, but unlocked. */
void release_cache_lock() noexcept
{
    try {
        int ignored = 0;
        dnnl_get_primitive_cache_capacity(&ignored);
    } catch (...) {
    }
}

/* A primitive whose creation was cut short stays in oneDNN's cache, under a key that points into the
 * descriptor that its creator is about to free, with a result that never comes. So the cache is emptied at
 * once, while that descriptor is alive, and when no other thread is between a descriptor and its primitive
 * (making_begin). Not getting it empty would be oneDNN's failure to allocate nothing. */
void forget_unfinished() noexcept
{
    release_cache_lock();
    if (making)
        pthread_rwlock_unlock(&cache);
    pthread_rwlock_wrlock(&cache);
    empty_cache();
    pthread_rwlock_unlock(&cache);
    if (making)
        pthread_rwlock_rdlock(&cache);
}

/* Two things end in a crash that nobody can catch (2.6 and 3.x): oneDNN's classes have an operator new that
 * returns NULL, and constructors that write there; and its generators of code write into buffers that they
 * did not get. All of one call together is a few MiB; so a call that makes something has to find more address
 * space than that first, as it is address space that runs out under a limit. Under other limits the kernel
 * ends the process by itself. */
constexpr size_t ROOM = 16 << 20;

__attribute__((tls_model("initial-exec"))) thread_local bool found; /* since making_begin */

/* Without such a limit one look for each thing made will do: thousands take milliseconds of a start. */
bool is_there_room() noexcept
{
    rlimit limit;
    const bool limited = getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
    if (found && !limited)
        return true;
    void *room = mmap(nullptr, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool there = room != MAP_FAILED && munmap(room, ROOM) == 0;
    found = there && making;
    return there;
}

/* CALL without exceptions; makes: it makes something. */
template <typename Call, Call call, bool makes> struct guarded;
template <typename... Arguments, dnnl_status_t (*call)(Arguments...), bool makes>
struct guarded<dnnl_status_t (*)(Arguments...), call, makes> {
    static dnnl_status_t run(Arguments... arguments) noexcept
    {
        if (makes && !is_there_room())
            return dnnl_out_of_memory;
        dnnl_status_t status = dnnl_runtime_error;
        try {
            return call(arguments...);
        } catch (const std::bad_alloc &) {
            status = dnnl_out_of_memory;
        } catch (const std::length_error &) { /* a vector of more elements than there are addresses */
            status = dnnl_out_of_memory;
        } catch (
            const std::future_error &) { /* another thread's creation of the same primitive was cut short */
            status = dnnl_out_of_memory;
        } catch (...) {
        }
        forget_unfinished();
        return status;
    }
};

void making_begin() noexcept
{
    pthread_rwlock_rdlock(&cache);
    making = true;
    found = false;
}

void making_end() noexcept
{
    making = found = false;
    pthread_rwlock_unlock(&cache);
}

} // namespace

/* In the order of the struct. */
extern "C" const dnnl_calls grt_dnnl_calls = {DNNL_CALLS_BUILD, making_begin, making_end,
#define X(name) guarded<decltype(&dnnl_##name), &dnnl_##name, false>::run,
                                              DNNL_RUN_CALLS(X)
#undef X
#define X(name) guarded<decltype(&dnnl_##name), &dnnl_##name, true>::run,
                                                  DNNL_MAKE_CALLS(X)
#undef X
#define X(name) dnnl_##name,
                                                      DNNL_PLAIN_CALLS(X)
#undef X
};
