/* SPDX-License-Identifier: Apache-2.0 */
/* See refuse.h. Two kinds are not refused, as nothing could handle that (docs/decisions/failures.md):
 * what libgomp asks for, which would end the process, and small objects of oneDNN's classes, for which there
 * is room by the rule of backends/cpu/dnnl_calls.cc. */
#define _GNU_SOURCE
#pragma GCC visibility push(default) /* for all libraries to find */
#include "tests/starve/refuse.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

enum { FRAMES = 48 };
static atomic_long wanted_at, count, refused, live;
static atomic_bool all_after;
typedef struct code {
    const char *name, *path;
    uintptr_t begin, end;
} code;
static code gomp = {.name = "libgomp"}, dnnl = {.name = "libdnnl"};
static void *frames[FRAMES];
static int n_frames;
static _Thread_local bool inside; /* of ours */

static int find(struct dl_phdr_info *info, size_t size, void *user)
{
    code *c = user;
    (void)size;
    if (!strstr(info->dlpi_name, c->name))
        return 0;
    c->path = info->dlpi_name;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            c->begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            c->end = c->begin + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static bool is_in(const code *c, const void *caller)
{
    return (uintptr_t)caller >= c->begin && (uintptr_t)caller < c->end;
}

void refuse_at(long at, bool for_good)
{
    inside = true;
    if (!gomp.begin)
        dl_iterate_phdr(find, &gomp);
    if (!dnnl.begin)
        dl_iterate_phdr(find, &dnnl); /* opened by the first convolution */
    if (!n_frames)
        backtrace(frames, FRAMES); /* the first call loads a library */
    inside = false;
    n_frames = 0;
    atomic_store(&count, 0);
    atomic_store(&refused, 0);
    atomic_store(&all_after, for_good);
    atomic_store(&wanted_at, at);
}

void refuse_stop(void)
{
    atomic_store(&wanted_at, 0);
}

long refuse_count(void)
{
    return atomic_load(&count);
}

long refuse_refused(void)
{
    return atomic_load(&refused);
}

long refuse_live(void)
{
    return atomic_load(&live);
}

bool refuse_was_in_dnnl(void)
{
    for (int i = 0; i < n_frames; i++)
        if (is_in(&dnnl, frames[i]))
            return true;
    return false;
}

void refuse_show(void)
{
    backtrace_symbols_fd(frames, n_frames, 2);
}

static bool refuses(const void *caller)
{
    const long at = atomic_load_explicit(&wanted_at, memory_order_relaxed);
    if (!at || inside || is_in(&gomp, caller))
        return false;
    const long n = atomic_fetch_add(&count, 1) + 1;
    if (n != at && !(n > at && atomic_load(&all_after)))
        return false;
    if (!atomic_fetch_add(&refused, 1)) {
        inside = true;
        n_frames = backtrace(frames, FRAMES);
        inside = false;
    }
    errno = ENOMEM;
    return true;
}

#define REFUSES refuses(__builtin_return_address(0))

static void *counted(void *block)
{
    if (block)
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return block;
}

void *malloc(size_t size)
{
    return REFUSES ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return REFUSES ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *old, size_t size)
{
    if (REFUSES)
        return NULL;
    void *block = __libc_realloc(old, size);
    return old ? block : counted(block);
}

void *memalign(size_t alignment, size_t size)
{
    return REFUSES ? NULL : counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return REFUSES ? NULL : counted(__libc_memalign(alignment, size));
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    enum { SMALL = 65536 }; /* the largest that was seen: 16 KiB */
    const bool safe = size <= SMALL && is_in(&dnnl, __builtin_return_address(0));
    void *block = !safe && REFUSES ? NULL : counted(__libc_memalign(alignment, size));
    if (!block)
        return ENOMEM;
    *out = block;
    return 0;
}

void free(void *block)
{
    if (block)
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    __libc_free(block);
}

/* Mappings of files have failures of their own kind. */
void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real) {
        inside = true;
        *(void **)&real = dlsym(RTLD_NEXT, "mmap");
        inside = false;
    }
    return flags & MAP_ANONYMOUS && REFUSES ? MAP_FAILED
                                            : real(address, size, protection, flags, file, offset);
}

extern int dnnl_primitive_create(void *out, const void *pd);
extern int dnnl_get_primitive_cache_capacity(int *out);
extern int dnnl_set_primitive_cache_capacity(int capacity);

static atomic_int making; /* threads inside dnnl_primitive_create */
static atomic_long disturbed;
static _Thread_local bool is_making;

/* An exception leaves dnnl_primitive_create without a word; the library then asks for the capacity. */
static void stop_making(void)
{
    if (is_making)
        atomic_fetch_sub(&making, 1);
    is_making = false;
}

/* A library that a module brought is not among the next ones of the program. */
static void *dnnl_function(const char *name)
{
    inside = true;
    if (!dnnl.path)
        dl_iterate_phdr(find, &dnnl);
    void *library = dlopen(dnnl.path, RTLD_LAZY | RTLD_NOLOAD), *found = dlsym(library, name);
    dlclose(library);
    inside = false;
    return found;
}

int dnnl_primitive_create(void *out, const void *pd)
{
    int (*real)(void *, const void *);
    *(void **)&real = dnnl_function("dnnl_primitive_create");
    is_making = true;
    atomic_fetch_add(&making, 1);
    if (atomic_load(&wanted_at))
        nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL); /* for others to fail meanwhile */
    const int status = real(out, pd);
    stop_making();
    return status;
}

int dnnl_get_primitive_cache_capacity(int *out)
{
    int (*real)(int *);
    *(void **)&real = dnnl_function("dnnl_get_primitive_cache_capacity");
    stop_making();
    return real(out);
}

int dnnl_set_primitive_cache_capacity(int capacity)
{
    int (*real)(int);
    *(void **)&real = dnnl_function("dnnl_set_primitive_cache_capacity");
    if (!capacity && atomic_load(&making))
        atomic_fetch_add(&disturbed, 1);
    return real(capacity);
}

long refuse_disturbed(void)
{
    return atomic_load(&disturbed);
}
