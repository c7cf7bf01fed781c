/* SPDX-License-Identifier: Apache-2.0 */
/* graphc tune MODEL. */
#ifndef TOOLS_TUNE_H
#define TOOLS_TUNE_H

#include "tools/options.h"

extern const tool_option tune_options[];
int tune_command(const tool_command *command, int argc, char **argv);

#endif
