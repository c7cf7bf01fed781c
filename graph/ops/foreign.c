/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ops/foreign.h"

#include <stdio.h>
#include <string.h>

ir_value *put(ir_node *at, const char *op, int32_t n_in, ir_value *const *in)
{
    return ir_node_out(ir_node_create(at->graph, at, "", op, at->desc.name, n_in, in, 1));
}

ir_value *put1(ir_node *at, const char *op, ir_value *a)
{
    return put(at, op, 1, &a);
}

ir_value *put2(ir_node *at, const char *op, ir_value *a, ir_value *b)
{
    return put(at, op, 2, (ir_value *[]){a, b});
}

ir_value *put3(ir_node *at, const char *op, ir_value *a, ir_value *b, ir_value *c)
{
    return put(at, op, 3, (ir_value *[]){a, b, c});
}

ir_value *with_int(ir_value *value, const char *name, int64_t number)
{
    if (value)
        ir_attr_set_int(value->producer, name, number);
    return value;
}

ir_value *with_float(ir_value *value, const char *name, double number)
{
    if (value)
        ir_attr_set_float(value->producer, name, (float)number);
    return value;
}

ir_value *with_ints(ir_value *value, const char *name, const int64_t *numbers, size_t n)
{
    if (value)
        ir_attr_set_ints(value->producer, name, numbers, n);
    return value;
}

ir_value *with_attr_of(ir_value *value, const ir_node *from, const char *name)
{
    const grt_attr *attr = grt_attr_find(&from->desc, name);
    if (value && attr)
        ir_attr_set(value->producer, *attr);
    return value;
}

ir_value *put_cast(ir_node *at, ir_value *x, grt_dtype to)
{
    return x && x->type.dtype == to ? x : with_int(put1(at, "Cast", x), "to", to);
}

ir_value *put_scalar(ir_node *at, grt_dtype dtype, double number)
{
    return ir_constant_scalar(at->graph, at->desc.name, dtype, number);
}

ir_value *put_int(ir_node *at, int64_t number)
{
    return ir_constant_int(at->graph, at->desc.name, number);
}

ir_value *put_ints(ir_node *at, const int64_t *numbers, int64_t n)
{
    return ir_constant_ints(at->graph, at->desc.name, numbers, n);
}

ir_value *put_add(ir_node *at, ir_value *x, ir_value *b)
{
    return b ? put2(at, "Add", x, b) : x;
}

ir_value *put_reshape(ir_node *at, ir_value *x, const int64_t *dims, int64_t n)
{
    return put2(at, "Reshape", x, put_ints(at, dims, n));
}

ir_value *put_transpose(ir_node *at, ir_value *x, const int64_t *perm, size_t n)
{
    return with_ints(put1(at, "Transpose", x), "perm", perm, n);
}

ir_value *put_slice(ir_node *at, ir_value *x, int64_t axis, ir_value *from, ir_value *to)
{
    return put(at, "Slice", 4, (ir_value *[]){x, from, to, put_ints(at, &axis, 1)});
}

ir_value *put_part(ir_node *at, ir_value *x, int64_t axis, int64_t from, int64_t to)
{
    return put_slice(at, x, axis, put_ints(at, &from, 1), put_ints(at, &to, 1));
}

ir_value *put_item(ir_node *at, ir_value *x, int64_t axis, int64_t index)
{
    return with_int(put2(at, "Gather", x, put_int(at, index)), "axis", axis);
}

ir_value *put_concat(ir_node *at, int64_t axis, int32_t n, ir_value *const *in)
{
    return with_int(put(at, "Concat", n, in), "axis", axis);
}

ir_value *put_unsqueeze(ir_node *at, ir_value *x, const int64_t *axes, int64_t n)
{
    return put2(at, "Unsqueeze", x, put_ints(at, axes, n));
}

ir_value *put_squeeze(ir_node *at, ir_value *x, const int64_t *axes, int64_t n)
{
    return put2(at, "Squeeze", x, put_ints(at, axes, n));
}

ir_value *put_dim(ir_node *at, ir_value *x, int64_t axis)
{
    ir_value *dim = with_int(put1(at, "Shape", x), "start", axis);
    return axis == -1 ? dim : with_int(dim, "end", axis + 1);
}

ir_value *put_range(ir_node *at, ir_value *limit)
{
    return put3(at, "Range", put_int(at, 0), limit, put_int(at, 1));
}

ir_value *put_reduce(ir_node *at, const char *op, ir_value *x, const int64_t *axes, int64_t n)
{
    return with_int(put2(at, op, x, put_ints(at, axes, n)), "keepdims", 1);
}

grt_status put_activation(ir_node *at, const char *op, const float *params, size_t n, grt_dtype dtype,
                          ir_value **x)
{
    static const struct {
        const char *op, *params[2];
    } known[] = {
        {"Relu", {NULL}},
        {"Sigmoid", {NULL}},
        {"Tanh", {NULL}},
        {"Softplus", {NULL}},
        {"Softsign", {NULL}},
        {"LeakyRelu", {"alpha"}},
        {"Elu", {"alpha"}},
        {"Celu", {"alpha"}},
        {"ThresholdedRelu", {"alpha"}},
        {"HardSigmoid", {"alpha", "beta"}},
        {"Selu", {"alpha", "gamma"}},
    };
    if (!op || !*op)
        return GRT_OK;
    if (!strcmp(op, "Clip")) {
        if (n && !dtype)
            return foreign_unsupported(at, "the dtype of input 0 must be known to the compiler");
        ir_value *least = n > 0 ? put_scalar(at, dtype, (double)params[0]) : NULL;
        ir_value *most = n > 1 ? put_scalar(at, dtype, (double)params[1]) : NULL;
        *x = put3(at, "Clip", *x, least, most);
        return GRT_OK;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(op, known[i].op) != 0)
            continue;
        *x = put1(at, op, *x);
        for (size_t k = 0; k < n && k < 2 && known[i].params[k]; k++)
            with_float(*x, known[i].params[k], (double)params[k]);
        return GRT_OK;
    }
    return foreign_unsupported(at, "attribute activation is '%s', which is not known here", op);
}

int32_t foreign_rank(const ir_node *node, int32_t i)
{
    const ir_value *value = ir_in(node, i);
    return value ? value->type.rank : -1;
}

bool foreign_dim(const ir_value *value, int32_t axis, int64_t *out_size)
{
    if (!value || value->type.rank < 0)
        return false;
    axis += axis < 0 ? value->type.rank : 0;
    return axis >= 0 && axis < value->type.rank &&
           grt_dim_is_const(value->graph->module->dims, value->type.dims[axis], out_size);
}

bool foreign_wants(const ir_node *node, int32_t i)
{
    return i < node->n_out && node->out[i] && node->out[i]->n_uses > 0;
}

static grt_status foreign_fail(const ir_node *node, grt_status status, const char *format, va_list args)
{
    char message[1024];
    vsnprintf(message, sizeof message, format, args);
    return grt_fail_op(&node->desc, status, "%s", message);
}

grt_status foreign_invalid(const ir_node *node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    grt_status status = foreign_fail(node, GRT_STATUS_INVALID_MODEL, format, args);
    va_end(args);
    return status;
}

grt_status foreign_unsupported(const ir_node *node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    grt_status status = foreign_fail(node, GRT_STATUS_UNSUPPORTED, format, args);
    va_end(args);
    return status;
}

grt_status foreign_need(const ir_node *node, int32_t i, const char *what)
{
    return ir_in(node, i) ? GRT_OK : foreign_invalid(node, "input %d (%s) is missing", i, what);
}

grt_status foreign_need_rank(const ir_node *node, int32_t i, const char *what)
{
    GRT_TRY(foreign_need(node, i, what));
    if (foreign_rank(node, i) >= 0)
        return GRT_OK;
    return foreign_unsupported(node, "the rank of input %d (%s) must be known to the compiler", i, what);
}

grt_status foreign_refuse_output(const ir_node *node, int32_t i, const char *what)
{
    return foreign_wants(node, i) ? foreign_unsupported(node, "output %d (%s) is not supported", i, what)
                                  : GRT_OK;
}

/* The value that the rest of the model knows stays; `made`'s node makes it from now on, in its place. */
static void foreign_hand_over(ir_node *node, int32_t i, ir_value *made)
{
    ir_value *known = node->out[i];
    ir_node *maker = made->producer;
    if (!maker || made->graph != node->graph || maker == node || made->n_uses || made->type.dtype)
        made = put1(node, "Identity", made); /* of the model, or of use elsewhere */
    if (!made)
        return;
    maker = made->producer;
    maker->out[made->out_index] = known;
    known->producer = maker;
    known->out_index = made->out_index;
    node->out[i] = made;
    made->producer = node;
    made->out_index = i;
}

enum { MOST_OUTPUTS = 8 };

grt_status foreign_done(ir_node *node, int32_t n, ir_value *const *values)
{
    grt_arena *arena = node->graph->module->arena;
    ir_value *made[MOST_OUTPUTS] = {NULL};
    if (n > MOST_OUTPUTS)
        return grt_fail_op(&node->desc, GRT_STATUS_INTERNAL, "its rewrite makes %d outputs", n);
    for (int32_t i = 0; i < n; i++) {
        made[i] = values[i];
        for (int32_t k = 0; k < i && made[i]; k++)
            if (made[k] == made[i]) /* then both are copies */
                made[i] = put1(node, "Identity", made[k]);
    }
    for (int32_t i = 0; i < n && i < node->n_out; i++)
        if (!made[i] && foreign_wants(node, i) && !grt_arena_failed(arena))
            return grt_fail_op(&node->desc, GRT_STATUS_INTERNAL, "its rewrite makes no output %d", i);
    if (grt_arena_failed(arena))
        return grt_fail_memory(0);
    for (int32_t i = 0; i < n && i < node->n_out; i++)
        if (node->out[i] && made[i])
            foreign_hand_over(node, i, made[i]);
    if (grt_arena_failed(arena))
        return grt_fail_memory(0);
    ir_node_remove(node);
    return GRT_OK;
}

grt_status foreign_own(ir_node *node)
{
    ir_value *in[] = {ir_in(node, 0), ir_in(node, 1)};
    if (node->n_in > 2)
        return grt_fail_op(&node->desc, GRT_STATUS_INTERNAL, "has %d inputs", node->n_in);
    ir_node *own =
        ir_node_create(node->graph, node, "graphrt", node->desc.op, node->desc.name, node->n_in, in, 1);
    if (!own)
        return grt_fail_memory(0);
    for (size_t i = 0; i < node->desc.n_attrs; i++)
        ir_attr_set(own, node->desc.attrs[i]);
    return foreign_done1(node, own->out[0]);
}

grt_status foreign_done1(ir_node *node, ir_value *made)
{
    return foreign_done(node, 1, &made);
}
