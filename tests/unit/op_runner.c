/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/op_runner.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

void op_begin(op_runner *r, const char *domain, const char *op)
{
    memset(r, 0, sizeof *r);
    r->desc = (grt_op_desc){domain, op, "tested", r->attrs, 0};
    r->threads = 2;
    r->arena = grt_arena_create();
    ck_assert_ptr_nonnull(r->arena);
}

void op_end(op_runner *r)
{
    for (int32_t i = 0; i < OP_RUNNER_MAX; i++) {
        grt_value_clear(&r->in[i]);
        grt_value_clear(&r->out[i]);
    }
    for (int32_t i = 0; i < OP_RUNNER_MAX; i++)
        free(r->packed[i]);
    grt_arena_release(r->arena);
}

static grt_attr *new_attr(op_runner *r, const char *name, grt_attr_kind kind)
{
    grt_attr *attr = &r->attrs[r->desc.n_attrs++];
    *attr = (grt_attr){.name = name, .kind = kind};
    return attr;
}

void op_int(op_runner *r, const char *name, int64_t value)
{
    new_attr(r, name, GRT_ATTR_INT)->i = value;
}

void op_float(op_runner *r, const char *name, float value)
{
    new_attr(r, name, GRT_ATTR_FLOAT)->f = value;
}

void op_string(op_runner *r, const char *name, const char *value)
{
    new_attr(r, name, GRT_ATTR_STRING)->s = (grt_string){value, strlen(value)};
}

void op_ints(op_runner *r, const char *name, const int64_t *values, size_t n)
{
    grt_attr *attr = new_attr(r, name, GRT_ATTR_INTS);
    attr->ints.v = values;
    attr->ints.n = n;
}

void op_floats(op_runner *r, const char *name, const float *values, size_t n)
{
    grt_attr *attr = new_attr(r, name, GRT_ATTR_FLOATS);
    attr->floats.v = values;
    attr->floats.n = n;
}

void op_strings(op_runner *r, const char *name, const grt_string *values, size_t n)
{
    grt_attr *attr = new_attr(r, name, GRT_ATTR_STRINGS);
    attr->strings.v = values;
    attr->strings.n = n;
}

void op_tensor(op_runner *r, const char *name, const grt_tensor *value)
{
    new_attr(r, name, GRT_ATTR_TENSOR)->t = value;
}

void op_add(op_runner *r, grt_dtype dtype, int32_t rank, const int64_t *dims, const void *data)
{
    grt_tensor *t = &r->in[r->n_in].t;
    *t = (grt_tensor){.dtype = dtype, .rank = rank, .data = (void *)(uintptr_t)data};
    if (rank)
        memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    r->in_views[r->n_in++] = t;
}

void op_add_value(op_runner *r, const grt_value *value)
{
    ck_assert_int_eq(grt_value_share(&r->in[r->n_in], value), GRT_OK);
    r->in_views[r->n_in] = &r->in[r->n_in].t;
    r->n_in++;
}

void op_omit(op_runner *r)
{
    r->in_views[r->n_in++] = NULL;
}

static grt_status infer_all(op_runner *r, const op_row *row, grt_dims *dims, bool concrete, ir_type *out)
{
    ir_type types[OP_RUNNER_MAX] = {0};
    const ir_type *in[OP_RUNNER_MAX] = {0};
    for (int32_t i = 0; i < r->n_in; i++) {
        const grt_value *value = &r->in[i];
        if (!r->in_views[i])
            continue;
        grt_dim *handles = GRT_ARENA_ARRAY(r->arena, grt_dim, value->t.rank);
        for (int32_t k = 0; k < value->t.rank; k++)
            handles[k] = concrete ? grt_dim_const(dims, value->t.dims[k]) : grt_dim_fresh(dims);
        types[i] =
            (ir_type){.kind = value->kind, .dtype = value->t.dtype, .rank = value->t.rank, .dims = handles};
        types[i].data = concrete && value->kind == GRT_KIND_TENSOR ? &value->t : NULL;
        if (value->kind == GRT_KIND_OPTIONAL && value->n)
            types[i].element_kind = value->items[0].kind;
        in[i] = &types[i];
    }
    memset(out, 0, (size_t)r->n_out * sizeof *out);
    infer inf = {&r->desc, dims, r->arena, r->n_in, r->n_out, in, out};
    return op_infer_types(row, &inf);
}

static grt_status alloc_output(const grt_run *run, int32_t i, int32_t rank, const int64_t *dims)
{
    grt_value *value = (grt_value *)(void *)run->out[i];
    return grt_value_alloc(value, value->t.dtype, rank, dims);
}

static char *alloc_bytes(const grt_run *run, size_t bytes)
{
    const op_runner *r = run->hooks->executor;
    return grt_arena_alloc(r->arena, bytes);
}

static grt_tensor output_of(const ir_type *type, const grt_dims *dims)
{
    grt_tensor t = {.dtype = type->dtype, .rank = type->rank};
    for (int32_t k = 0; k < t.rank; k++)
        if (!grt_dim_is_const(dims, type->dims[k], &t.dims[k]))
            t.dims[k] = -1;
    return t;
}

static grt_status prepare_outputs(op_runner *r, const ir_type *types, const grt_dims *dims, uint32_t flags)
{
    for (int32_t i = 0; i < r->n_out; i++) {
        const grt_tensor t = r->out[i].t = output_of(&types[i], dims);
        if (flags & GRT_KERNEL_VALUES)
            r->out[i] = (grt_value){0};
        else if (!(flags & GRT_KERNEL_DYNAMIC))
            GRT_TRY(grt_value_alloc(&r->out[i], t.dtype, t.rank, t.dims));
    }
    return GRT_OK;
}

static grt_status run_kernel(op_runner *r, const grt_kernel_row *kernel, void *state)
{
    const grt_tensor *out_views[OP_RUNNER_MAX];
    grt_tensor *out[OP_RUNNER_MAX];
    for (int32_t i = 0; i < r->n_out; i++)
        out_views[i] = out[i] = &r->out[i].t;
    grt_reshape reshape = {.desc = &r->desc,
                           .state = state,
                           .in = r->in_views,
                           .out = out_views,
                           .n_in = r->n_in,
                           .n_out = r->n_out,
                           .threads = r->threads};
    if (kernel->reshape)
        GRT_TRY(kernel->reshape(&reshape));
    void *workspace = aligned_alloc(64, (reshape.workspace_bytes + 127) / 64 * 64);
    ck_assert_ptr_nonnull(workspace);
    grt_run_hooks hooks = {.alloc_output = alloc_output, .alloc_bytes = alloc_bytes, .executor = r};
    grt_run run = {.desc = &r->desc,
                   .state = state,
                   .shape = reshape.shape,
                   .workspace = workspace,
                   .in = r->in_views,
                   .out = out,
                   .n_in = r->n_in,
                   .n_out = r->n_out,
                   .threads = r->threads,
                   .hooks = &hooks};
    grt_status status = kernel->run(&run);
    free(workspace);
    if (kernel->release_shape)
        kernel->release_shape(reshape.shape);
    return status;
}

/* Packs the constants that the kernel packs for plans, and sees that they come back whole. */
static void pack_constants(op_runner *r, const grt_kernel_row *kernel, grt_kernel_node *node, grt_tensor *in,
                           grt_packing *packings)
{
    for (int32_t i = 0; kernel->pack && i < r->n_in; i++) {
        void *data = NULL;
        if (!in[i].data)
            continue;
        ck_assert_int_eq(kernel->pack(node, i, &packings[i], &data), GRT_OK);
        if (!grt_is_packed(&packings[i]))
            continue;
        const size_t bytes = grt_tensor_bytes(&in[i]);
        void *plain = malloc(bytes + 1);
        const void *before = in[i].data;
        ck_assert_ptr_nonnull(plain);
        in[i].data = data;
        ck_assert_int_eq(grt_backend_cpu.unpack(&in[i], &packings[i], plain), GRT_OK);
        ck_assert_mem_eq(plain, before, bytes);
        grt_packing shorter = packings[i];
        shorter.bytes /= 2;
        ck_assert_int_eq(grt_backend_cpu.unpack(&in[i], &shorter, plain), GRT_STATUS_INVALID_PLAN);
        free(plain);
        r->packed[i] = data;
        r->in[i].t.data = data;
    }
    node->packing = packings;
}

static grt_status find_and_run(op_runner *r, const ir_type *types, const grt_dims *dims)
{
    grt_tensor in[OP_RUNNER_MAX] = {0}, out[OP_RUNNER_MAX] = {0};
    for (int32_t i = 0; i < r->n_in; i++)
        if (r->in_views[i]) {
            in[i] = *r->in_views[i];
            if (!(r->constants >> i & 1u))
                in[i].data = NULL;
        }
    for (int32_t i = 0; r->known && i < r->n_out; i++)
        out[i] = output_of(&types[i], dims);
    grt_kernel_node node = {
        .desc = &r->desc, .n_in = r->n_in, .n_out = r->n_out, .in = in, .out = out, .threads = r->threads};
    grt_text why = {0};
    const grt_kernel_row *kernel = grt_backend_cpu.find_kernel(&node, &why);
    grt_status status = kernel ? GRT_OK : grt_fail(GRT_STATUS_UNSUPPORTED, "%s", grt_text_get(&why));
    grt_text_release(&why);
    void *state = NULL;
    grt_packing packings[OP_RUNNER_MAX] = {0};
    if (status == GRT_OK && r->pack)
        pack_constants(r, kernel, &node, in, packings);
    if (status == GRT_OK)
        status = prepare_outputs(r, types, dims, kernel->flags);
    if (status == GRT_OK && kernel->create)
        status = kernel->create(&node, &state);
    if (status != GRT_OK)
        return status;
    status = run_kernel(r, kernel, state);
    if (kernel->destroy)
        kernel->destroy(state);
    return status;
}

grt_status op_run(op_runner *r, int32_t n_out)
{
    const op_row *row = op_find(r->desc.domain, r->desc.op);
    ir_type types[OP_RUNNER_MAX];
    ck_assert_ptr_nonnull(row);
    grt_dims *dims = grt_dims_create();
    ck_assert_ptr_nonnull(dims);
    r->n_out = n_out;
    grt_status status = op_check_ranges(row, &r->desc);
    if (status == GRT_OK)
        status = infer_all(r, row, dims, false, types);
    if (status == GRT_OK)
        status = infer_all(r, row, dims, true, types);
    if (status == GRT_OK)
        status = find_and_run(r, types, dims);
    grt_dims_release(dims);
    return status;
}

void op_run_ok(op_runner *r, int32_t n_out)
{
    ck_assert_msg(op_run(r, n_out) == GRT_OK, "%s", grt_last_error());
}

void fill_floats(float *out, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)(seed >> 8) * 0x1p-23f - 1;
    }
}
