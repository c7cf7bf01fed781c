/* SPDX-License-Identifier: Apache-2.0 */
/* Models that come through a pipe. */
#ifndef TOOLS_PIPED_H
#define TOOLS_PIPED_H

#include <stdbool.h>

/* *path is "-", which stands for standard input, or leads to a pipe (/dev/stdin, <(...)): all that comes is
 * read into memory, and *path becomes a file's name for it, which is good until the process ends. Other paths
 * stay as they are. False after printing an error. */
bool piped_take(const char **path);
/* True if this is the name of one. It says nothing of where a plan could be written to. */
bool piped_is(const char *path);

#endif
