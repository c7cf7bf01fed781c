/* SPDX-License-Identifier: Apache-2.0 */
/* See interrupt.h. */
#include "tools/interrupt.h"

#include <signal.h>
#include <stddef.h>

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_WATCHED = sizeof watched / sizeof *watched };

static volatile sig_atomic_t came;

static void remember_signal(int number)
{
    came = number;
}

void interrupt_watch(void)
{
    struct sigaction action = {.sa_handler = remember_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART},
                     before;
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
