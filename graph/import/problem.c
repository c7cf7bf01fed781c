/* SPDX-License-Identifier: Apache-2.0 */
/* Reporting problems of a model: the first one, or all. */
#include "graph/import/import.h"
#include "graph/import/importer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static grt_status problem_report(importer *imp, const culprit *who, grt_status status, const char *message)
{
    static const culprit nobody = {"", "", 0};
    who = who ? who : &nobody;
    imp->n_problems++;
    if (imp->each) {
        grt_finding finding = {.struct_size = sizeof finding,
                               .status = status,
                               .node = who->node,
                               .op = who->op,
                               .opset = who->opset,
                               .message = message};
        imp->each(imp->user, &finding);
        return GRT_OK;
    }
    if (*who->op && who->opset)
        return grt_fail(status, "%s node '%s' (opset %" PRId64 "): %s", who->op, who->node, who->opset,
                        message);
    if (*who->op)
        return grt_fail(status, "%s node '%s': %s", who->op, who->node, message);
    return grt_fail(status, "%s", message);
}

grt_status problem(importer *imp, const culprit *who, const char *format, ...)
{
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return problem_report(imp, who, GRT_STATUS_INVALID_MODEL, message);
}

grt_status warning(importer *imp, const culprit *who, const char *format, ...)
{
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (imp->source->strict)
        return problem_report(imp, who, GRT_STATUS_INVALID_MODEL, message);
    ir_warnings_tell(&imp->module->warnings, who ? who->node : "", who ? who->op : "", who ? who->opset : 0,
                     message);
    return GRT_OK;
}

grt_status problem_from(importer *imp, const culprit *who, grt_status status)
{
    if (status == GRT_OK || status == GRT_STATUS_OUT_OF_MEMORY || status == GRT_STATUS_INTERNAL)
        return status;
    char message[2048];
    snprintf(message, sizeof message, "%s", grt_last_error());
    return problem_report(imp, who, status, message);
}

const char *domain_of(const char *domain)
{
    return !domain || !strcmp(domain, "ai.onnx") ? "" : domain;
}
