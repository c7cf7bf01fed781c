/* SPDX-License-Identifier: Apache-2.0 */
/* Heads that are repeated for groups of queries and then rotated (Falcon) are rotated and then repeated:
 * fewer are rotated, and attention reads each of them once. */
#include "graph/passes/rotary_repeats.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/rotary_nodes.h"

/* The Expand whose result the value is, under other dims, if nothing else reads that. */
static ir_node *expand_behind_views(ir_value *value)
{
    enum { MOST_VIEWS = 8 };
    for (int32_t i = 0; i < MOST_VIEWS && rewrite_is_read_once(value); i++) {
        ir_node *node = value->producer;
        if (rewrite_is(node, "Expand"))
            return node;
        if (!node || !rewrite_is_reshape(node))
            return NULL;
        value = ir_in(node, 0);
    }
    return NULL;
}

/* How often the Expand repeats its input along one dim, `inner` elements at once; 0 if it does anything else.
 */
static int64_t repeats_of(const ir_node *expand, grt_dim inner)
{
    grt_dims *dims = expand->graph->module->dims;
    const ir_type *from = &ir_in(expand, 0)->type, *to = &expand->out[0]->type;
    int32_t axis = from->rank - 1;
    grt_dim behind = grt_dim_const(dims, 1);
    int64_t n;
    if (from->rank != to->rank)
        return 0;
    for (; axis >= 0 && from->dims[axis] == to->dims[axis]; axis--)
        behind = grt_dim_mul(dims, behind, from->dims[axis]);
    for (int32_t i = 0; i < axis; i++)
        if (from->dims[i] != to->dims[i])
            return 0;
    return axis >= 0 && behind == inner && grt_dim_equals(dims, from->dims[axis], 1) &&
                   grt_dim_is_const(dims, to->dims[axis], &n) && n > 1
               ? n
               : 0;
}

/* Heads of what the node rotates: how many, and how many elements lie between one and the next. */
static bool read_heads(const ir_node *rotary, int64_t *heads, grt_dim *step)
{
    grt_dims *dims = rotary->graph->module->dims;
    const ir_type *type = &ir_in(rotary, 0)->type;
    int64_t width;
    *heads = grt_attr_int(&rotary->desc, "num_heads", 0);
    if (type->rank == 3) {
        if (*heads < 1 || !grt_dim_is_const(dims, type->dims[2], &width) || width % *heads)
            return false;
        *step = grt_dim_const(dims, width / *heads);
        return true;
    }
    if (type->rank != 4 || !grt_dim_is_const(dims, type->dims[1], heads) || *heads < 1)
        return false;
    *step = grt_dim_mul(dims, type->dims[2], type->dims[3]);
    return true;
}

/* x with so many heads, `step` elements apart, rotated as `rotary` rotates. */
static ir_value *rotated_heads(pass_context *context, ir_node *rotary, ir_value *x, int64_t heads,
                               grt_dim step)
{
    grt_dims *dims = rotary->graph->module->dims;
    const ir_type *type = &ir_in(rotary, 0)->type;
    const bool rows = type->rank == 3;
    const grt_dim to[] = {type->dims[0], rows ? type->dims[1] : grt_dim_const(dims, heads),
                          rows ? grt_dim_mulc(dims, step, heads) : type->dims[2], type->dims[type->rank - 1]};
    ir_value *in[] = {rewrite_reshaped(rotary, x, type->rank, to), ir_in(rotary, 1), ir_in(rotary, 2),
                      ir_in(rotary, 3)};
    ir_node *made = in[0] ? rotary_add_node(rotary, "RotaryEmbedding", in[3] ? 4 : 3, in) : NULL;
    if (!made)
        return NULL;
    ir_attrs_copy(made, rotary);
    if (rows)
        ir_attr_set_int(made, "num_heads", heads);
    return op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL) ? made->out[0] : NULL;
}

bool rotary_before_repeats(pass_context *context, ir_node *rotary)
{
    int64_t heads;
    grt_dim step;
    ir_node *expand = expand_behind_views(ir_in(rotary, 0));
    if (!expand || expand->graph != rotary->graph || !read_heads(rotary, &heads, &step))
        return false;
    const int64_t repeats = repeats_of(expand, step);
    if (!repeats || heads % repeats)
        return false;
    ir_value *x = ir_in(expand, 0);
    const ir_type *out = &rotary->out[0]->type;
    ir_value *y = rotated_heads(context, rotary, x, heads / repeats, step);
    y = y ? rewrite_reshaped(rotary, y, x->type.rank, x->type.dims) : NULL;
    ir_value *in[] = {y, ir_in(expand, 1)};
    ir_node *again = y ? rotary_add_node(rotary, "Expand", 2, in) : NULL;
    if (!again || op_infer_node(again) != GRT_OK)
        return false;
    y = rewrite_reshaped(rotary, again->out[0], out->rank, out->dims);
    if (!y || !rewrite_replace_node(rotary, y))
        return false; /* unused nodes are dead */
    context->changed++;
    return true;
}
