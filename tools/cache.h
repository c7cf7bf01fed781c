/* SPDX-License-Identifier: Apache-2.0 */
/* graphc cache ls|why|prune|export|import. */
#ifndef TOOLS_CACHE_H
#define TOOLS_CACHE_H

#include "tools/options.h"

extern const tool_option cache_options[];
int cache_command(const tool_command *command, int argc, char **argv);

#endif
