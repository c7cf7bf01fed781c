/* SPDX-License-Identifier: Apache-2.0 */
/* How long OpenMP's threads spin before they sleep, in graphrun.
 *
 * GNU's OpenMP spins for milliseconds at the end of every parallel region, unless told otherwise by its
 * environment, which it reads when it is loaded. On a machine where another process wants a core, the thread
 * that is waited for then does not get it: ResNet-50 on 2 threads took 10 times as long beside one busy
 * process. 3,000 rounds (about 0.1 ms) cost nothing on a quiet machine and keep a busy one usable
 * (docs/measurements/cpu-math.md). Programs that embed the library decide for themselves.
 *
 * Functions of .preinit_array run before any library's initialisers, too early for setenv() to last: the
 * program starts itself again, which at this point costs half a millisecond. If it cannot, it goes on as it
 * is. */
#include <string.h>
#include <unistd.h>

static char spin[] = "GOMP_SPINCOUNT=3000";

static void set_waiting(int argc, char **argv, char **environment)
{
    (void)argc;
    size_t n = 0;
    for (; environment[n]; n++)
        if (!strncmp(environment[n], "GOMP_SPINCOUNT=", 15) ||
            !strncmp(environment[n], "OMP_WAIT_POLICY=", 16))
            return; /* the user has said, or this is the second start */
    enum { MOST = 4096 };
    char *grown[MOST + 2];
    if (n > MOST)
        return;
    memcpy(grown, environment, n * sizeof *grown);
    grown[n] = spin;
    grown[n + 1] = NULL;
    execve("/proc/self/exe", argv, grown);
}

__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char **,
                                                                            char **) = set_waiting;
