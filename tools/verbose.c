/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/verbose.h"

#include "tools/progress.h"
#include "tools/report.h"

#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const levels[] = {"off", "error", "warning", "info", "debug"}; /* as grt_log_level */
static grt_log_level asked;

static void print_message(void *user, const grt_log_message *message)
{
    (void)user;
    progress_clear();
    fprintf(stderr, "%s: %s: %s: %s\n", tool_name, levels[message->level], message->category, message->text);
}

static void verbose_ask(grt_log_level level)
{
    asked = level > asked ? level : asked;
    grt_log_set(asked, print_message, NULL);
}

bool verbose_read_environment(void)
{
    const char *value = getenv("GRAPHRT_LOG");
    if (!value || !*value)
        return true;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcmp(value, levels[i])) {
            verbose_ask((grt_log_level)i);
            return true;
        }
    tool_error("GRAPHRT_LOG is '%s'; it may be off, error, warning, info or debug", value);
    return false;
}

void verbose_switch_on(void)
{
    verbose_ask(GRT_LOG_INFO);
}
