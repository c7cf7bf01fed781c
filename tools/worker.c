/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/worker.h"

#include "tools/report.h"
#include "tools/verbose.h"

#include <graphrt/processes.h>

#include <stdlib.h>
#include <string.h>

bool worker_is_meant(int argc, char **argv)
{
    return argc == 3 && !strcmp(argv[1], "worker");
}

/* The pool is told what goes wrong, and says it to its user; only what comes from no pool is said here. */
int worker_serve(char **argv)
{
    char *end;
    const long fd = strtol(argv[2], &end, 10);
    if (end == argv[2] || *end || fd < 3 || fd > 1 << 20) {
        tool_error(
            "worker wants the number of a descriptor from 3 on, found '%s'; pools start it, not people",
            argv[2]);
        return EXIT_BAD;
    }
    if (!verbose_read_environment())
        return EXIT_BAD;
    const grt_status status = grt_process_serve((int)fd);
    if (status == GRT_STATUS_IO)
        tool_fail();
    return status == GRT_OK ? 0 : EXIT_BAD;
}
