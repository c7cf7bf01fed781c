/* SPDX-License-Identifier: Apache-2.0 */
/* One test case run: its inputs read and bound, its outputs compared. */
#ifndef TOOLS_CASE_RUN_H
#define TOOLS_CASE_RUN_H

#include "tools/cases.h"
#include "tools/loaded.h"

/* All data sets of the case. False: `why` says which one failed, and how. */
bool case_run(loaded *loaded, const test_case *c, char *why, size_t size);

#endif
