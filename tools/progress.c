/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/progress.h"

#include "tools/report.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool drawn;
static double last_ms;

static bool is_terminal(void)
{
    static int known = -1;
    if (known < 0) {
        const char *term = getenv("TERM");
        known = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    }
    return known;
}

void progress_show(double fraction, const char *what)
{
    enum { WIDTH = 30 };
    double now = now_ms();
    if (!is_terminal() || (drawn && now - last_ms < 100 && fraction < 1))
        return;
    int filled = (int)((fraction < 0 ? 0 : fraction > 1 ? 1 : fraction) * WIDTH);
    char shown[44];
    grt_printable(what, strlen(what), shown, sizeof shown);
    fprintf(stderr, "\r\033[K[%.*s%*s] %3.0f%% %s", filled, "##############################", WIDTH - filled,
            "", (fraction > 1 ? 1 : fraction) * 100, shown);
    fflush(stderr);
    drawn = true;
    last_ms = now;
}

void progress_clear(void)
{
    if (!drawn)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    drawn = false;
}
