/* SPDX-License-Identifier: Apache-2.0 */
/* Calling one op on values whose dims are only known now. */
#include "src/call/op_call.h"

#include "src/base/checked.h"

#include <string.h>
#include <xxhash.h>

grt_status grt_shape_scratch_create(grt_shape_scratch *out_scratch)
{
    *out_scratch = (grt_shape_scratch){grt_arena_create(), grt_dims_create()};
    if (out_scratch->arena && out_scratch->dims)
        return GRT_OK;
    grt_shape_scratch_release(out_scratch);
    return grt_fail_memory(0);
}

void grt_shape_scratch_release(grt_shape_scratch *scratch)
{
    grt_arena_release(scratch->arena);
    grt_dims_release(scratch->dims);
    *scratch = (grt_shape_scratch){0};
}

static const ir_type *type_of(const grt_tensor *tensor, bool content, grt_shape_scratch *scratch)
{
    const grt_value *value = (const grt_value *)tensor;
    ir_type *type = GRT_ARENA_NEW(scratch->arena, ir_type);
    grt_dim *dims = GRT_ARENA_ARRAY(scratch->arena, grt_dim, tensor->rank > 0 ? tensor->rank : 0);
    if (!type || !dims)
        return NULL;
    *type = (ir_type){.kind = value->kind, .dtype = tensor->dtype, .rank = -1};
    if (value->kind != GRT_KIND_TENSOR) {
        if (value->n && (value->kind == GRT_KIND_OPTIONAL || value->items[0].kind == GRT_KIND_MAP))
            type->element_kind = value->items[0].kind;
        if (value->kind == GRT_KIND_MAP)
            type->keys = value->items[0].t.dtype;
        return type;
    }
    for (int32_t i = 0; i < tensor->rank; i++)
        dims[i] = grt_dim_const(scratch->dims, tensor->dims[i]);
    type->rank = tensor->rank;
    type->dims = dims;
    type->data = content ? tensor : NULL;
    return type;
}

/* True if the rule left nothing open. */
static bool op_call_take_dims(grt_tensor *out, const ir_type *type, const grt_dims *dims)
{
    out->rank = -1;
    if (type->rank < 0 || type->rank > GRT_MAX_RANK)
        return false;
    for (int32_t i = 0; i < type->rank; i++)
        if (!grt_dim_is_const(dims, type->dims[i], &out->dims[i]))
            return false;
    out->rank = type->rank;
    return true;
}

/* The op's rule on what the inputs are now, or on their dims alone; out: types in the scratch arena. */
static grt_status apply_rule(grt_op_call *call, bool content, grt_shape_scratch *scratch, ir_type **out_types)
{
    const grt_run *run = &call->run;
    grt_arena_reset(scratch->arena);
    grt_dims_clear(scratch->dims);
    const ir_type **in = GRT_ARENA_ARRAY(scratch->arena, const ir_type *, run->n_in);
    ir_type *out = GRT_ARENA_ARRAY(scratch->arena, ir_type, run->n_out);
    if (!in || !out)
        return grt_fail_memory(0);
    for (int32_t i = 0; i < run->n_in; i++)
        if (run->in[i] && !(in[i] = type_of(call->host_in[i], content, scratch)))
            return grt_fail_memory(0);
    infer inf = {run->desc, scratch->dims, scratch->arena, run->n_in, run->n_out, in, out};
    *out_types = out;
    /* The model was valid when it was compiled, so the bound data is at fault. */
    const grt_status status = op_infer_types(call->op, &inf);
    if (status == GRT_OK || status == GRT_STATUS_OUT_OF_MEMORY)
        return status;
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s", grt_last_error());
}

grt_status grt_op_call_infer(grt_op_call *call, grt_shape_scratch *scratch)
{
    const grt_run *run = &call->run;
    ir_type *out;
    for (int32_t i = 0; i < run->n_out; i++)
        if (run->out[i])
            run->out[i]->rank = -1;
    if (!call->op || !call->op->infer)
        return GRT_OK;
    GRT_TRY(apply_rule(call, true, scratch, &out));
    for (int32_t i = 0; i < run->n_out; i++) {
        if (!run->out[i])
            continue;
        op_call_take_dims(run->out[i], &out[i], scratch->dims);
        if (out[i].dtype)
            run->out[i]->dtype = out[i].dtype;
    }
    return GRT_OK;
}

/* True if an input is gone that the rule must have. The plan's dims have taken its place then. */
static bool lacks_input(const grt_op_call *call)
{
    for (int32_t i = 0; i < call->op->min_in; i++)
        if (i >= call->run.n_in || !call->run.in[i])
            return true;
    return false;
}

/* Kernels write elements of the dtype that the rule gives. Without the rule, as inputs are gone, that of the
 * first input. */
static grt_status op_call_check_dtypes(const grt_op_call *call, const ir_type *types)
{
    const grt_run *run = &call->run;
    for (int32_t i = 0; i < run->n_out; i++) {
        const grt_dtype wanted = types ? types[i].dtype : run->in[0]->dtype;
        if (run->out[i] && wanted && run->out[i]->dtype != wanted)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_PLAN, "output %d is %s in the plan, expected %s",
                               i, grt_dtype_name(run->out[i]->dtype), grt_dtype_name(wanted));
    }
    return GRT_OK;
}

grt_status grt_op_call_accept(grt_op_call *call, bool content, grt_shape_scratch *scratch)
{
    ir_type *out;
    if (!call->op || !call->op->infer)
        return GRT_OK;
    if (lacks_input(call))
        return op_call_check_dtypes(call, NULL);
    GRT_TRY(apply_rule(call, content, scratch, &out));
    return op_call_check_dtypes(call, out);
}

static bool op_call_fits(const grt_tensor *found, const ir_type *type, const grt_dims *dims)
{
    int64_t dim;
    if (type->rank < 0)
        return true;
    if (type->rank != found->rank)
        return false;
    for (int32_t i = 0; i < type->rank; i++)
        if (grt_dim_is_const(dims, type->dims[i], &dim) && dim != found->dims[i])
            return false;
    return true;
}

/* Elements of all outputs of a view; -1 if that is not known. */
static int64_t view_elements(const grt_op_call *call)
{
    int64_t all = 0;
    for (int32_t i = 0; i < call->run.n_out; i++) {
        const grt_tensor *t = call->run.out[i];
        const int64_t n = !t ? 0 : t->rank < 0 ? -1 : grt_tensor_elements(t);
        if (n < 0 || !grt_add_i64(all, n, &all))
            return -1;
    }
    return all;
}

grt_status grt_op_call_check_view(const grt_op_call *call)
{
    char text[GRT_TYPE_TEXT_SIZE];
    const grt_tensor *in = call->run.in[0];
    const int64_t elements = view_elements(call);
    if (elements == grt_tensor_elements(in))
        return GRT_OK;
    return grt_fail_op(call->run.desc, GRT_STATUS_INVALID_ARGUMENT, "cannot give %s a shape of %lld elements",
                       grt_tensor_text(in, text), (long long)elements);
}

grt_status grt_op_call_check(grt_op_call *call, bool content, grt_shape_scratch *scratch)
{
    const grt_run *run = &call->run;
    char text[GRT_TYPE_TEXT_SIZE];
    ir_type *out;
    if (!call->op || !call->op->infer)
        return GRT_OK;
    if (call->op->flags & OP_VIEW)
        return run->in[0] && run->out[0] ? grt_op_call_check_view(call) : GRT_OK;
    if (lacks_input(call))
        return op_call_check_dtypes(call, NULL);
    GRT_TRY(apply_rule(call, content, scratch, &out));
    GRT_TRY(op_call_check_dtypes(call, out));
    for (int32_t i = 0; i < run->n_out; i++)
        if (run->out[i] && !op_call_fits(run->out[i], &out[i], scratch->dims))
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "the bound input dims give output %d the shape %s, which the op cannot make "
                               "of its inputs",
                               i, grt_tensor_text(run->out[i], text));
    return GRT_OK;
}

/* Integer inputs up to this length may be shapes, axes and the like, which reshape is allowed to look at. */
enum { SMALL = 64 };

static uint64_t signature_of(const grt_op_call *call)
{
    const grt_run *run = &call->run;
    XXH64_hash_t h = 0;
    for (int32_t i = 0; i < run->n_in + run->n_out; i++) {
        const grt_tensor *t = i < run->n_in ? call->host_in[i] : run->out[i - run->n_in];
        if (!t) {
            h = XXH3_64bits_withSeed("", 0, h + 1);
            continue;
        }
        h = XXH3_64bits_withSeed(&t->rank, sizeof t->rank, h + (uint64_t)t->dtype);
        if (t->rank > 0)
            h = XXH3_64bits_withSeed(t->dims, (size_t)t->rank * sizeof *t->dims, h);
        int64_t n = i < run->n_in && t->data && t->rank >= 0 ? grt_tensor_elements(t) : -1;
        if (n >= 0 && n <= SMALL && grt_dtype_in(t->dtype, GRT_SET_INTS | GRT_BIT(FLOAT)))
            h = XXH3_64bits_withSeed(t->data, grt_tensor_bytes(t), h);
    }
    return h;
}

static grt_status alloc_outputs(grt_op_call *call)
{
    const grt_run *run = &call->run;
    uint32_t flags = call->row ? call->row->flags : 0;
    for (int32_t i = 0; i < run->n_out; i++) {
        grt_tensor *out = run->out[i];
        if (!out || call->outputs_placed || (flags & (GRT_KERNEL_DYNAMIC | GRT_KERNEL_VALUES)))
            continue;
        if (out->rank < 0)
            return grt_fail_op(
                run->desc, GRT_STATUS_UNSUPPORTED,
                "the shape of output %d cannot be inferred from the inputs: a dim is unknown or too large",
                i);
        grt_tensor wanted = *out; /* the value, and with it its dims, is cleared before it is filled */
        GRT_TRY(run->hooks->alloc_output(run, i, wanted.rank, wanted.dims));
    }
    return GRT_OK;
}

static void drop_shape(grt_op_call *call)
{
    if (call->run.shape && call->row->release_shape)
        call->row->release_shape(call->run.shape);
    call->run.shape = NULL;
    call->prepared = false;
}

grt_reshape grt_op_call_reshape(const grt_op_call *call)
{
    return (grt_reshape){.desc = call->run.desc,
                         .state = call->run.state,
                         .in = call->host_in,
                         .out = (const grt_tensor *const *)call->run.out,
                         .n_in = call->run.n_in,
                         .n_out = call->run.n_out,
                         .threads = call->run.threads,
                         .device = call->run.device,
                         .code_when = call->code_when,
                         .account = call->account};
}

bool grt_op_call_is_empty(const grt_op_call *call)
{
    const grt_run *run = &call->run;
    bool any = false;
    if (!call->row || call->row->flags & (GRT_KERNEL_DYNAMIC | GRT_KERNEL_VALUES))
        return false; /* the kernel itself finds what comes out */
    for (int32_t i = 0; i < run->n_out; i++) {
        if (!run->out[i])
            continue;
        if (run->out[i]->rank < 0 || grt_tensor_elements(run->out[i]) != 0)
            return false;
        any = true;
    }
    return any;
}

grt_status grt_op_call_prepare(grt_op_call *call)
{
    GRT_TRY(alloc_outputs(call));
    if (!call->row->reshape || grt_op_call_is_empty(call))
        return GRT_OK;
    uint64_t signature = signature_of(call);
    if (call->prepared && call->signature == signature)
        return GRT_OK;
    drop_shape(call);
    grt_reshape reshape = grt_op_call_reshape(call);
    GRT_TRY(call->row->reshape(&reshape));
    call->run.shape = reshape.shape;
    call->workspace_bytes = reshape.workspace_bytes;
    call->signature = signature;
    call->prepared = true;
    return GRT_OK;
}

grt_status grt_op_call_run(const grt_op_call *call)
{
    return grt_op_call_is_empty(call) ? GRT_OK : call->row->run(&call->run);
}

void grt_op_call_release(grt_op_call *call)
{
    if (call->row)
        drop_shape(call);
}

static grt_status op_call_alloc_output(const grt_run *run, int32_t i, int32_t rank, const int64_t *dims)
{
    grt_value *value = (grt_value *)run->out[i];
    return grt_value_alloc(value, value->t.dtype, rank, dims);
}

static char *op_call_alloc_bytes(const grt_run *run, size_t bytes)
{
    return grt_arena_alloc(run->hooks->executor, bytes);
}

const grt_run_hooks grt_heap_hooks = {.alloc_output = op_call_alloc_output,
                                      .alloc_bytes = op_call_alloc_bytes};
