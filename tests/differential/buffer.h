/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with a guard on both sides. */
#ifndef GRT_TESTS_DIFFERENTIAL_BUFFER_H
#define GRT_TESTS_DIFFERENTIAL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* Between guards; ends the program where there is no memory. */
void *guarded(size_t bytes);
bool guards_hold(const void *data, size_t bytes);
/* What guarded() gave; NULL does nothing. */
void release(void *data);

#endif
