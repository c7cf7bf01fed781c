/* SPDX-License-Identifier: Apache-2.0 */
/* org.example::Fragile, an operator whose kernel copies its input, and stores to no memory where that has
 * FRAGILE_FAULT: the process has no access to that GPU afterwards. */
#ifndef GRT_TESTS_DEVICE_FRAGILE_H
#define GRT_TESTS_DEVICE_FRAGILE_H

#include <graphrt/graphrt.h>

#define FRAGILE_FAULT 666.0f

grt_status fragile_register(void);

#endif
