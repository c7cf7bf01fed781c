/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets between a pool and a process: whole messages, which may bring descriptors. */
#ifndef GRT_SRC_PROCESS_LINK_H
#define GRT_SRC_PROCESS_LINK_H

#include "src/base/status.h"

enum { GRT_LINK_MOST_FDS = 200 };

/* Both ends are closed when a program is started. */
grt_status grt_link_create(int out_ends[2]);
/* Never waits long: a peer reads its messages. IO if it is gone. */
grt_status grt_link_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds);
/* Waits for a message of this size and so many descriptors, which are the caller's. IO if the peer is gone,
 * or sends something else. */
grt_status grt_link_receive(int fd, void *data, size_t size, int *fds, size_t n_fds);

typedef enum grt_link_event {
    GRT_LINK_READABLE, /* a message, or the end */
    GRT_LINK_STOPPED,  /* there is something to read from stop_fd */
    GRT_LINK_TIMEOUT,
} grt_link_event;
/* timeout_ms below 0: none; stop_fd -1: nobody stops it. */
grt_link_event grt_link_await(int fd, int stop_fd, double timeout_ms);

#endif
