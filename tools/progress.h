/* SPDX-License-Identifier: Apache-2.0 */
/* A bar on stderr for work that takes long; nothing at all unless stderr is a terminal. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

/* Draw, at most ten times a second: fraction in [0, 1], and what is being done. */
void progress_show(double fraction, const char *what);
/* Wipe the bar; call before other output and at the end. */
void progress_clear(void);

#endif
