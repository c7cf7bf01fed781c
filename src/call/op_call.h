/* SPDX-License-Identifier: Apache-2.0 */
/* One op called on values whose dims are only known now: shapes by the op's rule, memory from the heap, then
 * the kernel.
 *
 * Used for steps whose shapes depend on data, for bodies of control flow, and for constant folding. */
#ifndef GRT_SRC_CALL_OP_CALL_H
#define GRT_SRC_CALL_OP_CALL_H

#include "backends/kernel.h"
#include "graph/ir/op.h"

/* Scratch for shape rules; one per context. */
typedef struct grt_shape_scratch {
    grt_arena *arena;
    grt_dims *dims;
} grt_shape_scratch;

grt_status grt_shape_scratch_create(grt_shape_scratch *out_scratch);
void grt_shape_scratch_release(grt_shape_scratch *scratch);

/* A kernel of one step with what it prepared for the dims it saw last. Zeroed before first use. */
typedef struct grt_op_call {
    const grt_kernel_row *row;
    const op_row *op; /* for its shape rule */
    grt_run run;      /* desc, state, in, out, n_in, n_out, threads and hooks are set by the caller */
    const grt_tensor *const
        *host_in; /* the inputs with data that the host may read, or NULL data; run.in on host devices */
    bool prepared;
    bool outputs_placed;     /* outputs have their memory already */
    grt_code_when code_when; /* for reshape */
    grt_account *account;    /* the same */
    const struct grt_code
        *code; /* that the kernel waits for, once prepare has said so (src/exec/new_code.h) */
    size_t workspace_bytes;
    uint64_t signature; /* hash of the dims and small integer inputs that `shape` was prepared for */
} grt_op_call;

/* Dims of the outputs by the op's rule, into out[i]->dims and ->rank; rank -1 where only the kernel can tell.
 */
grt_status grt_op_call_infer(grt_op_call *call, grt_shape_scratch *scratch);
/* Checks that the outputs' dims of the plan follow from the inputs' by the op's rule. The plan's
 * expressions hold for inputs that fit each other; whether two symbolic dims do is only known with their
 * values. content: the host has what the inputs hold now. */
grt_status grt_op_call_check(grt_op_call *call, bool content, grt_shape_scratch *scratch);
/* Checks that a view's outputs have as many elements as its input. */
grt_status grt_op_call_check_view(const grt_op_call *call);
/* True if the op's rule takes the inputs as they are. For kernels that find their outputs' sizes themselves.
 */
grt_status grt_op_call_accept(grt_op_call *call, bool content, grt_shape_scratch *scratch);
/* Memory for outputs of known dims by the hooks, reshape unless the dims are those of the last call. Then
 * workspace_bytes is valid. */
grt_status grt_op_call_prepare(grt_op_call *call);
/* Run the kernel as prepared; workspace and data are the caller's to set before. */
grt_status grt_op_call_run(const grt_op_call *call);
/* True if there is nothing to compute: every output is a tensor of known dims without elements. Such a kernel
 * is neither prepared nor run, as its other dims may be of any size and kernels loop over those. */
bool grt_op_call_is_empty(const grt_op_call *call);
void grt_op_call_release(grt_op_call *call);
/* Arguments of the kernel's reshape for this call. */
grt_reshape grt_op_call_reshape(const grt_op_call *call);

/* Hooks for calls on the host whose memory is the heap's; `executor` must be a grt_arena * for string bytes.
 */
extern const grt_run_hooks grt_heap_hooks;

#endif
