/* SPDX-License-Identifier: Apache-2.0 */
/* Is the model supported? One answer for those who compile it and for those who only ask: the nodes that are
 * left without a kernel when the passes have run. */
#ifndef GRT_GRAPH_PASSES_SUPPORTED_H
#define GRT_GRAPH_PASSES_SUPPORTED_H

#include "graph/passes/pass.h"

/* Call `each` for every node that there is no kernel for. alone: the target's kernels alone count, not those
 * that the host has for what the target lacks. */
grt_status pass_report_unsupported(const pass_context *context, bool alone,
                                   void (*each)(void *user, const grt_finding *finding), void *user);
/* UNSUPPORTED, listing every node that there is no kernel for, the host's included. */
grt_status pass_check_supported(const pass_context *context);

#endif
