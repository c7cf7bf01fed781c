/* SPDX-License-Identifier: Apache-2.0 */
/* Passes: rewrites of a module, run in the order of the table in graph/passes/passes.c. */
#ifndef GRT_GRAPH_PASSES_PASS_H
#define GRT_GRAPH_PASSES_PASS_H

#include "graph/ir/ir.h"
#include "src/base/value.h"

/* What the compiler asks of the target that the plan is made for; filled in by the runtime from a backend's
 * rows. */
typedef struct grt_target {
    const char *name; /* "cpu" */
    /* Is there a kernel? in/out: dtype always set; rank -1, dims -1 where unknown; data where constant; dtype
     * NONE: omitted. On false, `why` (may be NULL) says what is missing and the nearest supported form. */
    bool (*supports)(const struct grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                     int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why);
    /* The same, or would a session fall back to the host? Every node of a plan must pass
     * this. NULL: as supports. */
    bool (*runs)(const struct grt_target *target, const grt_op_desc *desc, const grt_tensor *in, int32_t n_in,
                 const grt_tensor *out, int32_t n_out, grt_text *why);
    /* Are convolution-like regions better laid out channels-last (NHWC)? */
    bool channels_last;
    /* Is one product of one row faster than several that have its input and its columns together? */
    bool joins_products;
    /* Multiply-adds from which on a product runs as well by itself as in a batch of its like; 0: none does.
     */
    int64_t lone_product;
    /* Execute one op on host tensors, for constant folding. out: cleared values; or all of them with the
     * dtype and dims that they will have, and no data: the op's rule is not asked then. A kernel that wants
     * more than most_workspace bytes for itself is not run: UNSUPPORTED. */
    grt_status (*evaluate)(const struct grt_target *target, const grt_op_desc *desc,
                           const grt_tensor *const *in, int32_t n_in, grt_value *out, int32_t n_out,
                           size_t most_workspace);
    void *user;
} grt_target;

/* What the arithmetic of a float32 model may be. */
typedef enum grt_precision {
    GRT_PRECISION_MODEL = 0, /* the model's own: float32 is float32 */
    GRT_PRECISION_TF32,      /* products may round their inputs to TF32 */
    GRT_PRECISION_FLOAT16,
    GRT_PRECISION_BFLOAT16,
} grt_precision;

typedef struct pass_context {
    ir_module *module;
    const grt_target *target;
    const char *disabled; /* comma-separated names */
    int32_t level;
    grt_precision precision;
    void (*progress)(void *user, const char *phase, double fraction);
    void *user;
    int64_t changed; /* a pass adds the number of rewrites it made */
} pass_context;

typedef struct pass_row {
    const char *name;
    const char *summary;
    int32_t level; /* runs at this optimisation level and above */
    grt_status (*run)(pass_context *context);
} pass_row;

const pass_row *pass_at(size_t index); /* NULL past the end */
/* Call `each` for every node that there is no kernel for. alone: the target's kernels alone count, not those
 * that the host has for what the target lacks. */
grt_status pass_report_unsupported(const pass_context *context, bool alone,
                                   void (*each)(void *user, const grt_finding *finding), void *user);
/* Run all enabled passes; verifies the IR after each in debug builds. */
grt_status pass_run_enabled(pass_context *context);
/* UNSUPPORTED, listing every node that there is no kernel for, the host's included. */
grt_status pass_check_supported(const pass_context *context);
/* One after the other. */
grt_status pass_run_all(pass_context *context);

#endif
