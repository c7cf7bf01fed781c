/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_LIST_DEVICES_H
#define TOOLS_LIST_DEVICES_H

#include "tools/options.h"

extern const tool_option devices_options[];
int devices_command(const tool_command *command, int argc, char **argv);

#endif
