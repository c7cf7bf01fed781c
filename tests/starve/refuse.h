/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that refuses once, or from some point on: the process's malloc and its relations, in whatever
 * library they are called, and anonymous mappings. For glibc. */
#ifndef GRT_TESTS_STARVE_REFUSE_H
#define GRT_TESTS_STARVE_REFUSE_H

#include <stdbool.h>

/* Refuse the at-th allocation from now on, counted from 1; with `for_good` all that follow, too. */
void refuse_at(long at, bool for_good);
/* Refuse nothing any more. */
void refuse_stop(void);
/* Allocations since refuse_at, and how many of them were refused. */
long refuse_count(void);
long refuse_refused(void);
/* Blocks that were allocated and not freed yet. */
long refuse_live(void);
/* True if the first refused allocation was oneDNN's. It loses what it was making when it throws. */
bool refuse_was_in_dnnl(void);
/* How often oneDNN's cache was emptied while another thread was making a primitive: it may then come out
 * wrong, or crash, where the processor has AVX-512 (docs/decisions/failures.md). */
long refuse_disturbed(void);
/* Where the first refused allocation was asked for, to standard error. Allocates nothing. */
void refuse_show(void);

#endif
