/* SPDX-License-Identifier: Apache-2.0 */
/* graphc optimize */
#ifndef TOOLS_OPTIMIZE_H
#define TOOLS_OPTIMIZE_H

#include "tools/options.h"

extern const tool_option optimize_options[];
int optimize_command(const tool_command *command, int argc, char **argv);

#endif
