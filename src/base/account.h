/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of memory: what a session and its contexts have of the memory of its device, and how much they may
 * have. Counted with references, as buffers outlive sessions. Any number of threads may use one. */
#ifndef GRT_BASE_ACCOUNT_H
#define GRT_BASE_ACCOUNT_H

#include "src/base/status.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_account_kind {
    GRT_ACCOUNT_WEIGHTS,
    GRT_ACCOUNT_KERNELS,
    GRT_ACCOUNT_ACTIVATIONS,
    GRT_ACCOUNT_WORKSPACES,
    GRT_ACCOUNT_INPUTS,
    GRT_ACCOUNT_VALUES,
    GRT_ACCOUNT_STATE,
    GRT_ACCOUNT_KINDS
} grt_account_kind;

typedef struct grt_account grt_account;

grt_account *grt_account_create(uint64_t limit); /* 0: none. NULL: out of memory */
grt_account *grt_account_retain(grt_account *account);
void grt_account_release(grt_account *account); /* NULL-safe */

/* Before an allocation. OUT_OF_MEMORY, with the figures, if it would go beyond the limit. The account may be
 * NULL: nobody counts. */
grt_status grt_account_take(grt_account *account, grt_account_kind kind, size_t bytes);
void grt_account_give(grt_account *account, grt_account_kind kind, size_t bytes);

/* Memory of the host that is counted for as long as it is there: taken from the account before it is
 * allocated. 64-byte aligned, not zeroed; what is counted is the block with its header. When a large one is
 * freed, nothing of it stays with the process, which is why what is large and not kept comes from here, too,
 * uncounted. */
grt_status grt_account_alloc(grt_account *account, grt_account_kind kind, size_t bytes, void **out_data);
void grt_account_free(void *data); /* NULL-safe */

uint64_t grt_account_limit(const grt_account *account);
uint64_t grt_account_get(const grt_account *account, grt_account_kind kind);
uint64_t grt_account_peak(const grt_account *account); /* of all kinds together */

/* Buffers of values (value.h) that the calling thread makes are counted there, as VALUES, until the account
 * that was before is put back. Returns that. */
grt_account *grt_account_enter(grt_account *account);
grt_account *grt_account_current(void);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
