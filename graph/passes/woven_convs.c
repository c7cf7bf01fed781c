/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution whose channels are the pixels of blocks, as pass `phases` makes it of a transposed one, and
 * the Concat that weaves them beside further channels (pass `moved_parts`) become one step:
 *
 *   graphrt::Concat(Reshape(graphrt::Conv(x, w)), y)  ->  graphrt::WovenConv(x, w, y)
 *
 * so that kernels store what they sum where it belongs. */
#include "graph/ir/view.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { RANK = 4, WOVEN_RANK = 5, MOST_VIEWS = 4, PARTS = 3, MOST_INPUTS = 64 };

/* Dims of a part: lines of all images, pixels of a line, down, right, channels. */
enum { LINES, PIXELS, DOWN, RIGHT, CHANNELS };

typedef struct weave {
    int32_t part; /* input of the Concat */
    ir_node *conv;
    int64_t block[2];
    grt_dim pixels[RANK - 1]; /* of the result, but its channels */
} weave;

/* Which part changes places so, all others keeping theirs; -1: none, or several. */
static int32_t find_woven(const ir_node *concat)
{
    static const int64_t woven[] = {LINES, DOWN, PIXELS, RIGHT, CHANNELS}, plain[] = {0, 1, 2, 3, 4};
    size_t n = 0;
    int32_t found = -1;
    const int64_t *perms = grt_attr_ints(&concat->desc, "perms", &n);
    if (n != (size_t)concat->n_in * WOVEN_RANK || grt_attr_int(&concat->desc, "axis", 0) != CHANNELS)
        return -1;
    for (int32_t i = 0; i < concat->n_in; i++) {
        const int64_t *perm = perms + (size_t)i * WOVEN_RANK;
        if (!memcmp(perm, plain, sizeof plain))
            continue;
        if (found >= 0 || memcmp(perm, woven, sizeof woven) != 0)
            return -1;
        found = i;
    }
    return found;
}

/* What is read under other dims, by nothing else. */
static ir_value *behind_views(ir_value *value)
{
    for (int32_t i = 0; i < MOST_VIEWS && value->n_uses == 1 && value->producer &&
                        ir_is_view(value->producer) && value->producer->n_out == 1;
         i++)
        value = ir_in(value->producer, 0);
    return value;
}

static ir_node *woven_producer(ir_value *part)
{
    const ir_value *value = behind_views(part);
    ir_node *conv = value->producer;
    const bool fits = conv && value->n_uses == 1 && !rewrite_is_output(value) && conv->graph == part->graph &&
                      grt_op_is(&conv->desc, "graphrt", "Conv") && grt_channels_last(&conv->desc) &&
                      value->type.rank == RANK && !ir_in(conv, PARTS);
    return fits ? conv : NULL;
}

static bool read_weave(const ir_node *concat, weave *out)
{
    grt_dims *dims = concat->graph->module->dims;
    out->part = find_woven(concat);
    out->conv = out->part < 0 ? NULL : woven_producer(ir_in(concat, out->part));
    if (!out->conv)
        return false;
    const grt_dim *of = ir_in(concat, out->part)->type.dims, *y = out->conv->out[0]->type.dims;
    if (!grt_dim_is_const(dims, of[DOWN], &out->block[0]) ||
        !grt_dim_is_const(dims, of[RIGHT], &out->block[1]) || of[PIXELS] != y[2] ||
        of[LINES] != grt_dim_mul(dims, y[0], y[1]))
        return false;
    out->pixels[0] = y[0];
    for (int32_t k = 0; k < 2; k++)
        out->pixels[1 + k] = grt_dim_mulc(dims, y[1 + k], out->block[k]);
    return true;
}

/* A part that is not moved, as channels of the pixels. */
static ir_value *woven_part_pixels(ir_node *before, const weave *w, ir_value *part)
{
    const ir_node *view = part->producer;
    const grt_dim to[RANK] = {w->pixels[0], w->pixels[1], w->pixels[2], part->type.dims[CHANNELS]};
    return rewrite_reshaped(before, view && rewrite_is_reshape(view) ? ir_in(view, 0) : part, RANK, to);
}

static ir_node *make_woven(ir_node *concat, const weave *w)
{
    ir_value *in[MOST_INPUTS];
    int32_t n = PARTS;
    if (concat->n_in + PARTS > MOST_INPUTS)
        return NULL;
    for (int32_t i = 0; i < PARTS; i++)
        in[i] = ir_in(w->conv, i);
    for (int32_t i = 0; i < concat->n_in; i++) {
        if (i == w->part)
            continue;
        in[n] = woven_part_pixels(concat, w, ir_in(concat, i));
        if (!in[n++])
            return NULL;
    }
    ir_node *made =
        ir_node_create(concat->graph, concat, "graphrt", "WovenConv", w->conv->desc.name, n, in, 1);
    if (!made)
        return NULL;
    ir_attrs_copy(made, w->conv);
    ir_attr_set_ints(made, "block", w->block, 2);
    ir_attr_set_int(made, "place", w->part);
    ir_node_absorb_name(made, concat);
    return made;
}

/* The Concat's result, or what gives it the dims of pixels. */
static ir_value *woven_result(const ir_node *concat, const ir_type *type)
{
    const ir_node *user = rewrite_only_user(concat->out[0]);
    return user && rewrite_is_reshape(user) && rewrite_same_shape(&user->out[0]->type, type) ? user->out[0]
                                                                                             : concat->out[0];
}

static void woven_convs_visit(pass_context *context, ir_node *concat)
{
    weave w;
    if (!grt_op_is(&concat->desc, "graphrt", "Concat") || !read_weave(concat, &w))
        return;
    ir_value *y = rewrite_offered(context, make_woven(concat, &w));
    if (!y)
        return;
    ir_value *old = woven_result(concat, &y->type);
    y = rewrite_reshaped(concat, y, old->type.rank, old->type.dims);
    if (y && rewrite_take_over(old, y)) /* what was there is dead now */
        context->changed++;
}

static grt_status woven_convs_visit_graph(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        woven_convs_visit(context, node);
    return GRT_OK;
}

grt_status pass_woven_convs(pass_context *context)
{
    return rewrite_each_graph(context, woven_convs_visit_graph);
}
