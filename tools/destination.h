/* SPDX-License-Identifier: Apache-2.0 */
/* Where results go, looked at before there are any: a path that cannot be written is found before minutes of
 * work and not after them. What changes meanwhile is still found when it is written. */
#ifndef TOOLS_DESTINATION_H
#define TOOLS_DESTINATION_H

#include <stdbool.h>

/* A file can be made there or replaced. False after printing why not. option: what the message begins with.
 */
bool destination_file(const char *option, const char *path);
/* The same of a directory, which may be there or be made in one that is. */
bool destination_directory(const char *option, const char *path);

#endif
