/* SPDX-License-Identifier: Apache-2.0 */
/* uthash, with tables that survive a lack of memory: left to itself it ends the process. */
#ifndef GRT_BASE_HASH_H
#define GRT_BASE_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Behind each HASH_ADD: is the element in the table? If not, there was no memory, and it is the caller's
 * still. */
#define GRT_HASH_HAS(element) ((element)->hh.tbl != NULL)

#endif
