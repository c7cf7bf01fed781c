/* SPDX-License-Identifier: Apache-2.0 */
/* A backend as the compiler sees it. */
#include "src/target/target.h"

#include "src/call/op_call.h"

#include <stdlib.h>

static const grt_backend *target_backend_of(const grt_target *target)
{
    return target->user;
}

static bool target_supports(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                            int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why)
{
    grt_kernel_node node = {.desc = desc, .n_in = n_in, .n_out = n_out, .in = in, .out = out, .threads = 1};
    return target_backend_of(target)->find_kernel(&node, why) != NULL;
}

/* Sessions may run on the CPU what their device lacks. */
static bool runs(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in, int32_t n_in,
                 const grt_tensor *out, int32_t n_out, grt_text *why)
{
    grt_kernel_node node = {.desc = desc, .n_in = n_in, .n_out = n_out, .in = in, .out = out, .threads = 1};
    return grt_backend_cpu.find_kernel(&node, NULL) ||
           target_supports(target, desc, in, n_in, out, n_out, why);
}

typedef struct evaluation {
    grt_op_call call;
    grt_shape_scratch scratch;
    grt_arena *strings;
    grt_run_hooks hooks;
    const grt_tensor **in;
    grt_tensor **out;
    grt_value *in_values;
    grt_tensor *described; /* in, then out */
    void *workspace;
} evaluation;

static void target_release(evaluation *e)
{
    grt_op_call_release(&e->call);
    if (e->call.row && e->call.row->destroy && e->call.run.state)
        e->call.row->destroy(e->call.run.state);
    grt_shape_scratch_release(&e->scratch);
    grt_arena_release(e->strings);
    free(e->in);
    free(e->out);
    free(e->in_values);
    free(e->described);
    free(e->workspace);
}

static grt_status target_init(evaluation *e, const grt_op_desc *desc, const grt_tensor *const *in,
                              int32_t n_in, grt_value *out, int32_t n_out)
{
    e->in = calloc((size_t)n_in + 1, sizeof *e->in);
    e->out = calloc((size_t)n_out + 1, sizeof *e->out);
    e->in_values = calloc((size_t)n_in + 1, sizeof *e->in_values);
    e->described = calloc((size_t)(n_in + n_out) + 1, sizeof *e->described);
    e->strings = grt_arena_create();
    if (!e->in || !e->out || !e->in_values || !e->described || !e->strings)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < n_in; i++) {
        e->described[i].rank = -1;
        if (!in[i])
            continue;
        e->in_values[i].t = e->described[i] = *in[i];
        if (!in[i]->data)
            e->in_values[i].t.data = grt_nothing;
        e->in[i] = &e->in_values[i].t;
    }
    for (int32_t i = 0; i < n_out; i++) {
        e->described[n_in + i].rank = -1;
        e->out[i] = &out[i].t;
    }
    e->hooks = grt_heap_hooks;
    e->hooks.executor = e->strings;
    e->call.op = op_find(desc->domain, desc->op);
    e->call.run = (grt_run){.desc = desc,
                            .in = e->in,
                            .out = e->out,
                            .n_in = n_in,
                            .n_out = n_out,
                            .threads = 1,
                            .hooks = &e->hooks};
    e->call.host_in = e->in;
    return grt_shape_scratch_create(&e->scratch);
}

static grt_status find_and_create(evaluation *e, const grt_target *target)
{
    grt_run *run = &e->call.run;
    /* The rule has given outputs dtypes, and dims where it can. */
    for (int32_t i = 0; i < run->n_out; i++)
        e->described[run->n_in + i] = *run->out[i];
    grt_kernel_node node = {.desc = run->desc,
                            .n_in = run->n_in,
                            .n_out = run->n_out,
                            .in = e->described,
                            .out = e->described + run->n_in,
                            .threads = 1};
    (void)target; /* constants are folded in host memory, whatever the plan is for */
    grt_text why = {0};
    const grt_kernel_row *row = grt_backend_cpu.find_kernel(&node, &why);
    grt_status status =
        row ? GRT_OK : grt_fail_op(run->desc, GRT_STATUS_UNSUPPORTED, "%s", grt_text_get(&why));
    grt_text_release(&why);
    if (status == GRT_OK && row->create)
        status = row->create(&node, &run->state);
    if (status == GRT_OK)
        e->call.row = row;
    return status;
}

static grt_status target_run(evaluation *e, size_t most_workspace)
{
    GRT_TRY(grt_op_call_prepare(&e->call));
    if (e->call.workspace_bytes > most_workspace)
        return grt_fail_op(e->call.run.desc, GRT_STATUS_UNSUPPORTED,
                           "its kernel needs %zu bytes of workspace", e->call.workspace_bytes);
    if (e->call.workspace_bytes) {
        e->workspace = aligned_alloc(64, (e->call.workspace_bytes + 63) & ~(size_t)63);
        if (!e->workspace)
            return grt_fail_memory(e->call.workspace_bytes);
    }
    e->call.run.workspace = e->workspace ? e->workspace : grt_nothing;
    return grt_op_call_run(&e->call);
}

static grt_status target_evaluate(const grt_target *target, const grt_op_desc *desc,
                                  const grt_tensor *const *in, int32_t n_in, grt_value *out, int32_t n_out,
                                  size_t most_workspace)
{
    evaluation e = {0};
    grt_status status = target_init(&e, desc, in, n_in, out, n_out);
    bool described = true;
    for (int32_t i = 0; i < n_out; i++)
        described = described && out[i].t.dtype != GRT_DTYPE_NONE;
    if (status == GRT_OK && !described)
        status = grt_op_call_infer(&e.call, &e.scratch);
    if (status == GRT_OK)
        status = find_and_create(&e, target);
    if (status == GRT_OK)
        status = target_run(&e, most_workspace);
    /* String bytes lie in an arena that ends here. */
    for (int32_t i = 0; status == GRT_OK && i < n_out; i++)
        if (out[i].kind == GRT_KIND_TENSOR && out[i].t.dtype == GRT_DTYPE_STRING)
            status = grt_value_copy_tensor(&out[i], &out[i].t);
    for (int32_t i = 0; status != GRT_OK && i < n_out; i++)
        grt_value_clear(&out[i]);
    target_release(&e);
    return status;
}

grt_target grt_target_of(const grt_backend *backend)
{
    return (grt_target){.name = backend->name,
                        .supports = target_supports,
                        .runs = runs,
                        .traits = &backend->traits,
                        .evaluate = target_evaluate,
                        .user = (void *)backend};
}
