/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* asprintf */
#include "tools/streamed.h"

#include "tools/interrupt.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void remove_made(streamed *s)
{
    if (s->path)
        unlink(s->path);
    if (s->directory)
        rmdir(s->directory);
    free(s->path);
    free(s->directory);
    s->path = s->directory = NULL;
}

bool streamed_begin(streamed *s)
{
    const char *temporary = getenv("TMPDIR");
    *s = (streamed){0};
    if (isatty(STDOUT_FILENO)) {
        tool_error("-o -: a plan is nothing for a terminal; redirect standard output, or name a file");
        return false;
    }
    if (asprintf(&s->directory, "%s/graphrt-XXXXXX", temporary && *temporary ? temporary : "/tmp") < 0)
        s->directory = NULL;
    if (!s->directory || !mkdtemp(s->directory)) {
        tool_error("-o -: %s: %s", s->directory ? s->directory : "no name", strerror(errno));
        free(s->directory);
        s->directory = NULL;
        return false;
    }
    if (asprintf(&s->path, "%s/plan.grt", s->directory) < 0) {
        s->path = NULL;
        tool_error("out of memory");
    }
    return s->path != NULL;
}

bool streamed_send(streamed *s)
{
    enum { STEP = 1 << 16 };
    char *buffer = malloc(STEP);
    const int from = open(s->path, O_RDONLY | O_CLOEXEC);
    ssize_t n = buffer && from >= 0 ? 1 : -1;
    remove_made(s);  /* who reads may go away, which ends this process too */
    interrupt_end(); /* who does not read must not keep a signal waiting */
    while (n > 0) {
        n = read(from, buffer, STEP);
        if (n > 0 && fwrite(buffer, 1, (size_t)n, stdout) != (size_t)n)
            n = -1;
    }
    if (n == 0 && fflush(stdout) != 0)
        n = -1;
    if (n < 0)
        tool_error("standard output: %s", strerror(errno));
    if (from >= 0)
        close(from);
    free(buffer);
    return n == 0;
}

void streamed_release(streamed *s)
{
    remove_made(s);
}
