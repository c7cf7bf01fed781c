/* SPDX-License-Identifier: Apache-2.0 */
/* Ending long work in good order when the user interrupts it. */
#ifndef TOOLS_INTERRUPT_H
#define TOOLS_INTERRUPT_H

#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP are remembered; a second one ends the process at once. Signals that
 * the parent has told the process to ignore stay ignored. */
void interrupt_watch(void);
/* True if one has come. For grt_compile_options.cancel, and for those who ask between two pieces of work. */
bool interrupt_asked(void *user);
/* Die of the signal that came, if one did, so that a shell sees what happened; else signals act as before. */
void interrupt_end(void);

#endif
