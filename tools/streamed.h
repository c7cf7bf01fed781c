/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that go to standard output: a plan is written with seeking, so it is made in a file that nobody
 * keeps. */
#ifndef TOOLS_STREAMED_H
#define TOOLS_STREAMED_H

#include <stdbool.h>

typedef struct streamed {
    char *directory, *path; /* where the plan is to be made */
} streamed;

/* False after printing what is wrong; a terminal is. Release in any case. */
bool streamed_begin(streamed *s);
/* Copy the file to standard output. False after printing what is wrong. */
bool streamed_send(const streamed *s);
/* Nothing stays behind. */
void streamed_release(streamed *s);

#endif
