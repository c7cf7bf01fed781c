/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an object was made by this process. A child that fork() makes has a copy of the object but none of
 * its threads, and locks that they held stay locked. */
#ifndef GRT_BASE_FORKED_H
#define GRT_BASE_FORKED_H

#include <stdbool.h>

/* Of this process, for objects that it makes. Never the number of its parent. */
unsigned grt_forked_number(void);
/* True if this process is a child of the one that had the number. A load and a comparison. */
bool grt_forked_since(unsigned number);

#endif
