/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands: each in the file of its name. */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "tools/options.h"

extern const tool_option run_options[], check_options[], bench_options[], compare_options[];
int run_command(const tool_command *command, int argc, char **argv);
int check_command(const tool_command *command, int argc, char **argv);
int bench_command(const tool_command *command, int argc, char **argv);
int compare_command(const tool_command *command, int argc, char **argv);

#endif
