/* SPDX-License-Identifier: Apache-2.0 */
/* graphc quantize */
#ifndef TOOLS_QUANTIZE_H
#define TOOLS_QUANTIZE_H

#include "tools/options.h"

extern const tool_option quantize_options[];
int quantize_command(const tool_command *command, int argc, char **argv);

#endif
