/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution whose channels are the pixels of blocks, as pass `phases` makes it of a transposed one, and
 * the Transpose that weaves them, or the Concat that does so beside further channels (pass `moved_parts`),
 * become one step:
 *
 *   Reshape(Transpose(Reshape(graphrt::Conv(x, w))))  ->  graphrt::WovenConv(x, w)
 *   graphrt::Concat(Reshape(graphrt::Conv(x, w)), y)  ->  graphrt::WovenConv(x, w, y)
 *
 * so that kernels store what they sum where it belongs. */
#include "graph/ir/view.h"
#include "graph/passes/index_map.h"
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

/* concat: NULL if nothing lies beside the result. */
static ir_node *make_woven(ir_node *before, ir_node *concat, const weave *w)
{
    ir_value *in[MOST_INPUTS];
    int32_t n = PARTS;
    if (concat && concat->n_in + PARTS > MOST_INPUTS)
        return NULL;
    for (int32_t i = 0; i < PARTS; i++)
        in[i] = ir_in(w->conv, i);
    for (int32_t i = 0; concat && i < concat->n_in; i++) {
        if (i == w->part)
            continue;
        in[n] = woven_part_pixels(concat, w, ir_in(concat, i));
        if (!in[n++])
            return NULL;
    }
    ir_node *made =
        ir_node_create(before->graph, before, "graphrt", "WovenConv", w->conv->desc.name, n, in, 1);
    if (!made)
        return NULL;
    ir_attrs_copy(made, w->conv);
    ir_attr_set_ints(made, "block", w->block, 2);
    ir_attr_set_int(made, "place", w->part);
    if (concat)
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

static void weave_concat(pass_context *context, ir_node *concat)
{
    weave w;
    if (!grt_op_is(&concat->desc, "graphrt", "Concat") || !read_weave(concat, &w))
        return;
    ir_value *y = rewrite_offered(context, make_woven(concat, concat, &w));
    if (!y)
        return;
    ir_value *old = woven_result(concat, &y->type);
    y = rewrite_reshaped(concat, y, old->type.rank, old->type.dims);
    if (y && rewrite_take_over(old, y)) /* what was there is dead now */
        context->changed++;
}

/* Where the elements of a result lie in the convolution's, if it is woven. */
static bool woven_map(grt_dims *dims, const ir_type *conv, const int64_t *block, const ir_type *y,
                      index_map *out)
{
    static const int64_t perm[] = {0, 1, 3, 2, 4, 5};
    const grt_dim phases[] = {conv->dims[0],
                              conv->dims[1],
                              conv->dims[2],
                              grt_dim_const(dims, block[0]),
                              grt_dim_const(dims, block[1]),
                              y->dims[RANK - 1]};
    return index_map_of_dims(dims, RANK, conv->dims, out) && index_map_reshape(dims, out, RANK + 2, phases) &&
           index_map_transpose(out, perm) && index_map_reshape(dims, out, RANK, y->dims);
}

static bool is_same_map(const index_map *a, const index_map *b)
{
    bool same = a->n == b->n && a->offset == b->offset;
    for (int32_t i = 0; same && i < a->n; i++)
        same = a->parts[i].size == b->parts[i].size && a->parts[i].stride == b->parts[i].stride &&
               a->parts[i].axis == b->parts[i].axis;
    return same;
}

/* True if the value is a convolution's result, moved for it alone. */
static bool read_moved_conv(ir_value *value, index_map *map, weave *out)
{
    const ir_node *transpose = rewrite_producer(behind_views(value), "Transpose");
    out->conv = transpose && transpose->out[0]->n_uses == 1 && !rewrite_is_output(transpose->out[0])
                    ? woven_producer(ir_in(transpose, 0))
                    : NULL;
    out->part = 0;
    return out->conv && index_map_of(value, map, NULL) && map->source == out->conv->out[0];
}

static bool read_lone_weave(ir_value *value, weave *out)
{
    grt_dims *dims = value->graph->module->dims;
    const ir_type *y = &value->type;
    index_map map, woven;
    if (y->rank != RANK || !read_moved_conv(value, &map, out))
        return false;
    const ir_type *conv = &out->conv->out[0]->type;
    for (int32_t k = 0; k < 2; k++) {
        grt_dim block;
        if (!index_map_divide(dims, y->dims[1 + k], conv->dims[1 + k], &block) ||
            !grt_dim_is_const(dims, block, &out->block[k]))
            return false;
    }
    return woven_map(dims, conv, out->block, y, &woven) && is_same_map(&map, &woven);
}

static void weave_transpose(pass_context *context, ir_node *view)
{
    weave w;
    if (!rewrite_is_reshape(view) || !read_lone_weave(view->out[0], &w))
        return;
    ir_value *y = rewrite_offered(context, make_woven(view, NULL, &w));
    if (y && rewrite_same_shape(&y->type, &view->out[0]->type) && rewrite_take_over(view->out[0], y))
        context->changed++;
}

static void woven_convs_visit(pass_context *context, ir_node *node)
{
    weave_concat(context, node);
    weave_transpose(context, node);
}

grt_status pass_woven_convs(pass_context *context)
{
    return context->target->traits->splits_phases ? rewrite_each_node(context, woven_convs_visit) : GRT_OK;
}
