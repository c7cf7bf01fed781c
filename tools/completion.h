/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of commands and options for shells, from the tables of options. */
#ifndef TOOLS_COMPLETION_H
#define TOOLS_COMPLETION_H

#include "tools/option_table.h"

/* Prints what `source <(TOOL completion SHELL)` reads; returns the exit status. shell may be NULL. */
int completion_print(const tool_command *commands, const char *shell);

#endif
