/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for standard output: writing needs seeking, so the plan is made in a temporary file. */
#ifndef TOOLS_STREAMED_H
#define TOOLS_STREAMED_H

#include <stdbool.h>

typedef struct streamed {
    char *directory, *path; /* where the plan is to be made */
} streamed;

/* Between interrupt_watch and interrupt_end, so that a signal lets the writer and streamed_release remove
 * what they made. False after printing an error; a terminal is one. Release in any case. */
bool streamed_begin(streamed *s);
/* Remove the file, end watching for interrupts, and copy the file to standard output. False after printing an
 * error. */
bool streamed_send(streamed *s);
/* Nothing stays behind. */
void streamed_release(streamed *s);

#endif
