/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_WATCHED = sizeof watched / sizeof *watched };

static volatile sig_atomic_t came;

/* The first signal asks, a later one ends the process. timeout(1) and terminals send one to the process and
 * to its group: what comes this soon is the same. */
static void remember_signal(int number)
{
    enum { SAME_MS = 300 };
    static struct timespec first;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!came) {
        first = now;
        came = number;
        return;
    }
    if ((now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000 < SAME_MS)
        return;
    signal(number, SIG_DFL);
    raise(number);
}

void interrupt_watch(void)
{
    struct sigaction action = {.sa_handler = remember_signal, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_WATCHED; i++)
        if (sigaction(watched[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(watched[i], &action, NULL);
}

bool interrupt_asked(void *user)
{
    (void)user;
    return came != 0;
}

void interrupt_end(void)
{
    struct sigaction before;
    for (int i = 0; i < N_WATCHED; i++)
        if (sigaction(watched[i], NULL, &before) == 0 && before.sa_handler == remember_signal)
            signal(watched[i], SIG_DFL);
    if (came)
        raise(came);
}
