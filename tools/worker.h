/* SPDX-License-Identifier: Apache-2.0 */
/* `graphrun worker FD`: what pools start for sessions in processes of their own (graphrt/processes.h). It is
 * no command for people, so that help does not list it. */
#ifndef TOOLS_WORKER_H
#define TOOLS_WORKER_H

#include <stdbool.h>

bool worker_is_meant(int argc, char **argv);
/* The exit status. */
int worker_serve(char **argv);

#endif
