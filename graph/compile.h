/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler's door: ONNX bytes in, plan out. */
#ifndef GRT_GRAPH_COMPILE_H
#define GRT_GRAPH_COMPILE_H

#include "graph/import/import.h"
#include "graph/passes/pass.h"
#include "src/plan/plan.h"

/* The caller's options, as far as its struct goes, over the defaults; NULL: those. `optimization` is a level
 * then, never DEFAULT. */
grt_status compile_options_take(grt_compile_options *out, const grt_compile_options *options);
/* What they say of import. */
void compile_source_take(compile_source *source, const grt_compile_options *options);
/* How they cancel. */
grt_cancel compile_cancel(const grt_compile_options *options);

/* All of it: import, infer, passes, lower. */
grt_status grt_compile_plan(const compile_source *source, const grt_compile_options *options,
                            const grt_target *target, grt_plan **out_plan);

/* Import and compile the model with default options and drop the result; `each` gets every problem,
 * INVALID_MODEL or UNSUPPORTED. The first that a pass finds ends its search. Fails for other reasons only, as
 * compiling would. */
grt_status grt_compile_check(const compile_source *source, const grt_target *target,
                             void (*each)(void *user, const grt_finding *finding), void *user);

#endif
