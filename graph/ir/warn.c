/* See warn.h. */
#include "graph/ir/warn.h"

#include "graph/ir/ir.h"

#include <stdio.h>

enum { MOST = 100 };

void ir_warnings_tell(ir_warnings *warnings, const char *node, const char *op, int64_t opset,
                      const char *message)
{
    const grt_finding more = {GRT_STATUS_OK, "", "", 0, "there are more warnings than are shown"};
    const grt_finding finding = {GRT_STATUS_OK, node, op, opset, message};
    if (warnings->n < MOST)
        warnings->n++;
    else
        return;
    if (warnings->tell)
        warnings->tell(warnings->user, warnings->n == MOST ? &more : &finding);
}

grt_status ir_warn(ir_module *module, const ir_node *node, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (module->warnings.strict)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "%s", message);
    ir_warnings_tell(&module->warnings, node->desc.name, node->desc.op, node->opset, message);
    return GRT_OK;
}
