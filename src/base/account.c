/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "src/base/account.h"

#include "src/base/checked.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct grt_account {
    atomic_int refs;
    uint64_t limit;
    atomic_uint_fast64_t used, peak, of[GRT_ACCOUNT_KINDS];
};

/* In front of memory that is counted. */
typedef struct counted {
    _Alignas(64) grt_account *account;
    grt_account_kind kind;
    size_t bytes; /* with this */
} counted;

/* Blocks from this size on are mappings of their own, so that nothing of them stays with the process when
 * they are freed, and that a process has as much as was counted. Sanitizers know the heap only. */
#ifdef __SANITIZE_ADDRESS__
#define LEAST_MAPPING SIZE_MAX
#else
#define LEAST_MAPPING ((size_t)128 << 10)
#endif

/* From LARGE on, blocks begin at a huge page and ask for huge pages: packed weights are written once, at a
 * fault a page, before the first result. */
enum { HUGE_PAGE = 2 << 20, LARGE = 2 * HUGE_PAGE };

static _Thread_local grt_account *current;

grt_account *grt_account_create(uint64_t limit)
{
    grt_account *account = calloc(1, sizeof *account);
    if (!account)
        return NULL;
    atomic_init(&account->refs, 1);
    account->limit = limit ? limit : UINT64_MAX;
    return account;
}

grt_account *grt_account_retain(grt_account *account)
{
    if (account)
        atomic_fetch_add_explicit(&account->refs, 1, memory_order_relaxed);
    return account;
}

void grt_account_release(grt_account *account)
{
    if (account && atomic_fetch_sub_explicit(&account->refs, 1, memory_order_acq_rel) == 1)
        free(account);
}

static void raise_peak(grt_account *account, uint64_t used)
{
    uint_fast64_t peak = atomic_load_explicit(&account->peak, memory_order_relaxed);
    while (used > peak && !atomic_compare_exchange_weak_explicit(
                              &account->peak, &peak, used, memory_order_relaxed, memory_order_relaxed)) {
    }
}

grt_status grt_account_take(grt_account *account, grt_account_kind kind, size_t bytes)
{
    static const char *const names[GRT_ACCOUNT_KINDS] = {"weights", "kernels", "activations", "workspaces",
                                                         "inputs",  "results", "state"};
    if (!account || !bytes)
        return GRT_OK;
    uint_fast64_t used = atomic_load_explicit(&account->used, memory_order_relaxed);
    do
        if (bytes > account->limit || used > account->limit - bytes)
            return grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                            "the session's memory_limit is %" PRIu64 " bytes, %" PRIu64
                            " of them are in use, and %zu more are wanted for %s",
                            account->limit, (uint64_t)used, bytes, names[kind]);
    while (!atomic_compare_exchange_weak_explicit(&account->used, &used, used + bytes, memory_order_relaxed,
                                                  memory_order_relaxed));
    atomic_fetch_add_explicit(&account->of[kind], bytes, memory_order_relaxed);
    raise_peak(account, used + bytes);
    return GRT_OK;
}

void grt_account_give(grt_account *account, grt_account_kind kind, size_t bytes)
{
    if (!account)
        return;
    atomic_fetch_sub_explicit(&account->of[kind], bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&account->used, bytes, memory_order_relaxed);
}

/* With the header, as the system gives it. */
static size_t block_bytes(size_t bytes)
{
    const size_t all = grt_align_up(bytes, sizeof(counted)) + sizeof(counted);
    return all < LEAST_MAPPING ? all : grt_align_up(all, (size_t)sysconf(_SC_PAGESIZE));
}

static void *map_pages(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

/* What lies before and behind the block goes back. Pages that make no whole huge page stay small, so that no
 * more becomes resident than was counted. */
static void *map_huge_pages(size_t bytes)
{
    char *const map = map_pages(bytes + HUGE_PAGE);
    if (!map)
        return map_pages(bytes);
    char *const block = (char *)grt_align_up((uintptr_t)map, HUGE_PAGE);
    if (block > map)
        munmap(map, (size_t)(block - map));
    if (block < map + HUGE_PAGE)
        munmap(block + bytes, (size_t)(map + HUGE_PAGE - block));
    madvise(block, bytes & ~((size_t)HUGE_PAGE - 1), MADV_HUGEPAGE); /* a wish */
    return block;
}

static void *alloc_block(size_t bytes)
{
    if (bytes < LEAST_MAPPING)
        return aligned_alloc(sizeof(counted), bytes);
    return bytes < LARGE ? map_pages(bytes) : map_huge_pages(bytes);
}

static void free_block(void *block, size_t bytes)
{
    if (bytes < LEAST_MAPPING)
        free(block);
    else
        munmap(block, bytes);
}

grt_status grt_account_alloc(grt_account *account, grt_account_kind kind, size_t bytes, void **out_data)
{
    if (bytes > SIZE_MAX / 2)
        return grt_fail_memory(bytes);
    const size_t all = block_bytes(bytes);
    GRT_TRY(grt_account_take(account, kind, all));
    counted *block = alloc_block(all);
    if (!block) {
        grt_account_give(account, kind, all);
        return grt_fail_memory(all);
    }
    *block = (counted){.account = grt_account_retain(account), .kind = kind, .bytes = all};
    *out_data = block + 1;
    return GRT_OK;
}

void grt_account_free(void *data)
{
    if (!data)
        return;
    counted *block = (counted *)data - 1;
    grt_account_give(block->account, block->kind, block->bytes);
    grt_account_release(block->account);
    free_block(block, block->bytes);
}

uint64_t grt_account_limit(const grt_account *account)
{
    return account->limit == UINT64_MAX ? 0 : account->limit;
}

uint64_t grt_account_get(const grt_account *account, grt_account_kind kind)
{
    return atomic_load_explicit(&account->of[kind], memory_order_relaxed);
}

uint64_t grt_account_peak(const grt_account *account)
{
    return atomic_load_explicit(&account->peak, memory_order_relaxed);
}

grt_account *grt_account_enter(grt_account *account)
{
    grt_account *before = current;
    current = account;
    return before;
}

grt_account *grt_account_current(void)
{
    return current;
}
