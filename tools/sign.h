/* SPDX-License-Identifier: Apache-2.0 */
/* graphc keygen, graphc sign. */
#ifndef TOOLS_SIGN_H
#define TOOLS_SIGN_H

#include "tools/options.h"

extern const tool_option keygen_options[], sign_options[];
int keygen_command(const tool_command *command, int argc, char **argv);
int sign_command(const tool_command *command, int argc, char **argv);

#endif
