/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that end soon after they made a session and release nothing: exit() runs the destructors of the
 * vendor's libraries, in which threads of the backend may still be at work. */
#include "tests/device/device.h"
#include "tests/differential/model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* STEP_US: each child lives so much longer than the one before it. */
enum { SIDE = 64, AT_A_TIME = 4, TURNS = 3, STEP_US = 8000 };

/* In float32, so that cuBLASLt is asked for its algorithms while the session is made. */
static node product(void)
{
    static float weights[SIDE * SIDE];
    node n = {.op = "MatMul", .n_in = 2, .out = GRT_DTYPE_FLOAT};
    n.in[0] = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {-1, SIDE}};
    n.in[1] = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {SIDE, SIDE}, .data = weights};
    n.constant[1] = true;
    return n;
}

/* A kernel of its own, which NVRTC compiles in the background. Constants differ, so that no file has it. */
static node generated(int number)
{
    static float factor[1];
    node n = {.op = "Mul", .then = "Sigmoid", .n_in = 2, .out = GRT_DTYPE_FLOAT};
    factor[0] = 1 + (float)number / 64;
    n.in[0] = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {8, SIDE}};
    n.in[1] = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {1}, .data = factor};
    n.constant[1] = true;
    return n;
}

static bool begin_run(subject *s)
{
    static float x[8 * SIDE];
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {8, SIDE}, .data = x};
    DONE(grt_context_set_input(s->context, 0, &in));
    DONE(grt_context_run(s->context));
    return true;
}

static _Noreturn void live_briefly(int number)
{
    subject s;
    const bool compiles = number % 2;
    const node n = compiles ? generated(number) : product();
    alarm(60);
    if (!subject_model(&s, &n) || (compiles && !begin_run(&s)))
        _exit(1);
    usleep((useconds_t)(number / 2 * STEP_US));
    exit(0);
}

static bool ended_well(pid_t child, int number)
{
    int status = -1;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child, "no child");
    EXPECT(!WIFSIGNALED(status), "child %d was ended by signal %d (%s)", number, WTERMSIG(status),
           strsignal(WTERMSIG(status)));
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %d ended with status %#x", number,
           (unsigned)status);
    return true;
}

/* This process has no driver yet: its children open one each. */
bool programs_that_end_at_once(const char *path)
{
    bool all = true;
    (void)path;
    for (int turn = 0; turn < TURNS; turn++) {
        pid_t children[AT_A_TIME];
        fflush(stdout);
        for (int i = 0; i < AT_A_TIME; i++)
            if ((children[i] = fork()) == 0)
                live_briefly(turn * AT_A_TIME + i);
        for (int i = 0; i < AT_A_TIME; i++)
            all &= ended_well(children[i], turn * AT_A_TIME + i);
    }
    return all;
}
