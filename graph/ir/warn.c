/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ir/warn.h"

#include "graphrt/graphrt.h"

enum { MOST = 100 };

void ir_warnings_tell(ir_warnings *warnings, const char *node, const char *op, int64_t opset,
                      const char *message)
{
    const grt_finding more = {.struct_size = sizeof more,
                              .node = "",
                              .op = "",
                              .message = "there are more warnings than are shown"};
    const grt_finding finding = {
        .struct_size = sizeof finding, .node = node, .op = op, .opset = opset, .message = message};
    if (warnings->n < MOST)
        warnings->n++;
    else
        return;
    if (warnings->tell)
        warnings->tell(warnings->user, warnings->n == MOST ? &more : &finding);
}
