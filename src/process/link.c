/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "src/process/link.h"

#include "src/base/clock.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

grt_status grt_link_create(int out_ends[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out_ends) == 0)
        return GRT_OK;
    return grt_fail(GRT_STATUS_IO, "a socket cannot be made: %s", strerror(errno));
}

typedef union link_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(GRT_LINK_MOST_FDS * sizeof(int))];
} link_control;

grt_status grt_link_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds)
{
    struct iovec part = {(void *)data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    link_control control = {0};
    if (n_fds > GRT_LINK_MOST_FDS)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%zu descriptors are too many for a message", n_fds);
    if (n_fds) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(head), fds, n_fds * sizeof(int));
    }
    ssize_t sent;
    while ((sent = sendmsg(fd, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
    }
    return sent == (ssize_t)size ? GRT_OK
                                 : grt_fail(GRT_STATUS_IO, "the other process takes no message: %s",
                                            sent < 0 ? strerror(errno) : "it was cut");
}

static size_t take_fds(struct msghdr *message, int *fds, size_t n_fds)
{
    size_t n = 0;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t found = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < found; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
            if (n < n_fds)
                fds[n++] = fd;
            else
                close(fd);
        }
    }
    return n;
}

grt_status grt_link_receive(int fd, void *data, size_t size, int *fds, size_t n_fds)
{
    struct iovec part = {data, size};
    link_control control = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t found;
    while ((found = recvmsg(fd, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
    }
    const size_t taken = found > 0 ? take_fds(&message, fds, n_fds) : 0;
    if (found == (ssize_t)size && taken == n_fds && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return GRT_OK;
    for (size_t i = 0; i < taken; i++)
        close(fds[i]);
    return grt_fail(GRT_STATUS_IO, "%s",
                    found > 0 ? "the other process sent a message that is none of this release's"
                    : found == 0 || errno == ECONNRESET ? "the other process has ended"
                                                        : strerror(errno));
}

grt_link_event grt_link_await(int fd, int stop_fd, double timeout_ms)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
    const double end = timeout_ms < 0 ? INFINITY : grt_now_ms() + timeout_ms;
    for (;;) {
        const double left = end - grt_now_ms();
        const int wait = isinf(left) ? -1 : left <= 0 ? 0 : left > 1e9 ? (int)1e9 : (int)ceil(left);
        const int n = poll(fds, 2, wait);
        if (n > 0)
            return fds[1].revents ? GRT_LINK_STOPPED : GRT_LINK_READABLE;
        if (n == 0 && grt_now_ms() >= end)
            return GRT_LINK_TIMEOUT;
        if (n < 0 && errno != EINTR)
            return GRT_LINK_READABLE; /* reading says what it is */
    }
}
