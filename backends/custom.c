/* SPDX-License-Identifier: Apache-2.0 */
/* See custom.h. One row for the host and one for CUDA serve all operators: the state knows which it is. */
#include "backends/custom.h"

#include "src/base/custom.h"

#include <stdlib.h>

typedef struct custom_state {
    const grt_custom_op *op;
    void *state; /* from its create */
} custom_state;

static grt_status create_custom(const grt_kernel_node *node, void **out_state)
{
    custom_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->op = &grt_custom_find(node->desc->domain, node->desc->op)->op;
    grt_custom_view view = {.desc = node->desc};
    const grt_custom_node shown = grt_custom_show(&view, node->n_in, node->n_out);
    const grt_status status =
        state->op->create
            ? grt_custom_status(&view, state->op->create(state->op->user, &shown, &state->state))
            : GRT_OK;
    if (status != GRT_OK)
        free(state);
    else
        *out_state = state;
    return status;
}

static void destroy_custom(void *kept)
{
    custom_state *state = kept;
    if (state->op->release && state->op->create)
        state->op->release(state->op->user, state->state);
    free(state);
}

static grt_status run_custom(const grt_run *run, bool cuda)
{
    const custom_state *state = run->state;
    grt_custom_view view = {.desc = run->desc};
    const grt_custom_node node = grt_custom_show(&view, run->n_in, run->n_out);
    const grt_custom_run shown = {.struct_size = sizeof shown,
                                  .node = &node,
                                  .inputs = run->in,
                                  .outputs = run->out,
                                  .threads = run->threads,
                                  .stream = run->stream};
    return grt_custom_status(
        &view, (cuda ? state->op->run_cuda : state->op->run)(state->op->user, state->state, &shown));
}

static grt_status custom_run_on_host(const grt_run *run)
{
    return run_custom(run, false);
}

static grt_status run_on_cuda(const grt_run *run)
{
    return run_custom(run, true);
}

static const grt_kernel_row host_row = {.domain = "",
                                        .op = "custom",
                                        .create = create_custom,
                                        .destroy = destroy_custom,
                                        .run = custom_run_on_host};
static const grt_kernel_row cuda_row = {
    .domain = "", .op = "custom", .create = create_custom, .destroy = destroy_custom, .run = run_on_cuda};

static bool takes_dtypes(const grt_custom_op *op, const grt_kernel_node *node, grt_text *why)
{
    for (int32_t i = 0; op->n_input_dtypes && i < node->n_in; i++) {
        const size_t at = (size_t)i < op->n_input_dtypes ? (size_t)i : op->n_input_dtypes - 1;
        const grt_dtype dtype = node->in[i].dtype;
        if (dtype == GRT_DTYPE_NONE || !op->input_dtypes[at] || op->input_dtypes[at] >> dtype & 1)
            continue;
        if (why)
            grt_text_add(why, "input %d is %s, which this custom operator does not take", i,
                         grt_dtype_name(dtype));
        return false;
    }
    return true;
}

bool grt_custom_kernel(const grt_kernel_node *node, bool cuda, grt_text *why, const grt_kernel_row **out_row)
{
    const grt_custom_entry *entry = grt_custom_find(node->desc->domain, node->desc->op);
    *out_row = NULL;
    if (!entry)
        return false;
    const grt_custom_op *op = &entry->op;
    if (!(cuda ? op->run_cuda : op->run)) {
        if (why)
            grt_text_add(why, "this custom operator has no function for %s", cuda ? "CUDA" : "the CPU");
    } else if (takes_dtypes(op, node, why)) {
        *out_row = cuda ? &cuda_row : &host_row;
    }
    return true;
}
