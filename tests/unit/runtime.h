/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of tests that want a runtime: one for each test, with a cache of algorithms in memory. */
#ifndef GRT_TESTS_UNIT_RUNTIME_H
#define GRT_TESTS_UNIT_RUNTIME_H

#include <graphrt/graphrt.h>

extern grt_runtime *runtime;

void runtime_open(void);
void runtime_close(void);

#endif
