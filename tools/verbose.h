/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the library on standard error: as GRAPHRT_LOG says, or --verbose. */
#ifndef TOOLS_VERBOSE_H
#define TOOLS_VERBOSE_H

#include <stdbool.h>

/* What the environment asks for. False after printing that its value is none. */
bool verbose_read_environment(void);
/* --verbose: no less than what happens to models and sessions. */
void verbose_switch_on(void);

#endif
