/* SPDX-License-Identifier: Apache-2.0 */
/* Spectra: long convolutions (Hyena, S4) are exported as a DFT of real numbers, a complex product with the
 * filters' spectra that is written out, and the inverse DFT. They become graphrt::SpectralConv, which keeps
 * each line in fast memory on its way. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"

/* A complex number's parts: component 0 or 1 of what lies in `whole`. */
typedef struct part {
    ir_value *whole;
    int64_t component;
} part;

/* A slice, or a half, of the last axis. */
static bool spectra_read_part(const ir_value *value, part *p)
{
    const ir_node *node = value->producer;
    const int32_t last = value->type.rank - 1;
    const grt_dims *dims = value->graph->module->dims;
    int64_t axis, size;
    if (!node || last < 1 || !grt_dim_equals(dims, value->type.dims[last], 1))
        return false;
    if (rewrite_is(node, "Split")) {
        axis = grt_attr_int(&node->desc, "axis", 0);
        p->component = value->out_index;
    } else if (!rewrite_is(node, "Slice") || node->n_in < 4 || !ir_const_int(ir_in(node, 3), &axis) ||
               !ir_const_int(ir_in(node, 1), &p->component)) {
        return false;
    }
    p->whole = ir_in(node, 0);
    return grt_axis(axis, last + 1) == last && grt_dim_is_const(dims, p->whole->type.dims[last], &size) &&
           size == 2 && p->component >= 0 && p->component < 2;
}

/* A product of a part of a transform and something else. */
typedef struct term {
    part x;
    ir_value *other;
} term;

static bool spectra_read_term(const ir_value *value, term *t)
{
    const ir_node *node = rewrite_producer(value, "Mul");
    for (int32_t i = 0; node && i < 2; i++) {
        t->other = ir_in(node, 1 - i);
        if (spectra_read_part(ir_in(node, i), &t->x) && rewrite_producer(t->x.whole, "DFT"))
            return true;
    }
    return false;
}

/* x * w, [re, im] being written out: w as its parts. */
typedef struct complex_product {
    ir_value *x, *w[2];
} complex_product;

static bool read_complex_product(const ir_value *re, const ir_value *im, complex_product *p)
{
    const ir_node *sub = rewrite_producer(re, "Sub"), *add = rewrite_producer(im, "Add");
    term t[4];
    if (!sub || !add || !spectra_read_term(ir_in(sub, 0), &t[0]) ||
        !spectra_read_term(ir_in(sub, 1), &t[1]) || !spectra_read_term(ir_in(add, 0), &t[2]) ||
        !spectra_read_term(ir_in(add, 1), &t[3]))
        return false;
    const term *first = t[2].x.component == 0 ? &t[2] : &t[3], *second = first == &t[2] ? &t[3] : &t[2];
    p->x = t[0].x.whole;
    for (int k = 0; k < 4; k++)
        if (t[k].x.whole != p->x)
            return false;
    p->w[0] = t[0].other;
    p->w[1] = t[1].other;
    return t[0].x.component == 0 && t[1].x.component == 1 && first->x.component == 0 &&
           first->other == p->w[1] && second->x.component == 1 && second->other == p->w[0];
}

/* The spectra that the parts are of: those of one value, or constants, which are joined. */
static ir_value *spectra_of(ir_node *node, ir_value *const *w)
{
    part re, im;
    if (w[0]->type.data && w[1]->type.data && rewrite_same_shape(&w[0]->type, &w[1]->type)) {
        const grt_tensor *const parts[] = {w[0]->type.data, w[1]->type.data};
        const grt_tensor *t = parts[0];
        return t->rank > 1 && t->dims[t->rank - 1] == 1 && t->dtype == parts[1]->dtype
                   ? rewrite_join(node->graph, parts, 2, t->rank - 1)
                   : NULL;
    }
    return spectra_read_part(w[0], &re) && spectra_read_part(w[1], &im) && re.whole == im.whole &&
                   re.component == 0 && im.component == 1
               ? re.whole
               : NULL;
}

/* A DFT along the last axis but one with half of the spectrum; its length, or 0. */
static int64_t half_dft_length(const ir_node *node, bool inverse)
{
    const ir_value *x = ir_in(node, 0);
    int64_t n, axis = -2;
    if ((grt_attr_int(&node->desc, "inverse", 0) != 0) != inverse ||
        grt_attr_int(&node->desc, "onesided", 0) == 0 || x->type.rank < 2 ||
        (ir_in(node, 2) && !ir_const_int(ir_in(node, 2), &axis)) ||
        grt_axis(axis, x->type.rank) != x->type.rank - 2)
        return 0;
    if (ir_in(node, 1))
        return ir_const_int(ir_in(node, 1), &n) && n > 1 ? n : 0;
    if (!grt_dim_is_const(x->graph->module->dims, x->type.dims[x->type.rank - 2], &n))
        return 0;
    return inverse ? 2 * (n - 1) : n;
}

/* The spectra's leading dims are the last ones of the lines. */
static bool spectra_repeat(const ir_value *x, const ir_value *w)
{
    const int32_t skip = x->type.rank - w->type.rank;
    for (int32_t i = 0; skip >= 0 && i < w->type.rank - 2; i++)
        if (w->type.dims[i] != x->type.dims[skip + i])
            return false;
    return skip >= 0;
}

/* The lines of a forward transform of n real numbers that `spectrum` is; NULL: it is none. */
static ir_value *spectra_lines(const ir_value *spectrum, const ir_value *w, int64_t n)
{
    const ir_node *dft = rewrite_producer(spectrum, "DFT");
    ir_value *x = dft && half_dft_length(dft, false) == n ? ir_in(dft, 0) : NULL;
    int64_t size;
    const grt_dims *dims = spectrum->graph->module->dims;
    return x && grt_dim_equals(dims, x->type.dims[x->type.rank - 1], 1) &&
                   grt_dim_is_const(dims, x->type.dims[x->type.rank - 2], &size) && size == n &&
                   spectra_repeat(x, w)
               ? x
               : NULL;
}

static bool spectra_replace(pass_context *context, ir_node *node)
{
    const int64_t n = rewrite_is(node, "DFT") && node->out[0] ? half_dft_length(node, true) : 0;
    const ir_node *join = n ? rewrite_producer(ir_in(node, 0), "Concat") : NULL;
    const int32_t rank = join ? join->out[0]->type.rank : -1;
    complex_product p;
    if (!join || join->n_in != 2 || grt_axis(grt_attr_int(&join->desc, "axis", 0), rank) != rank - 1 ||
        !read_complex_product(ir_in(join, 0), ir_in(join, 1), &p))
        return false;
    ir_value *w = spectra_of(node, p.w), *x = w ? spectra_lines(p.x, w, n) : NULL, *in[] = {x, w};
    ir_node *made =
        x ? ir_node_create(node->graph, node, "graphrt", "SpectralConv", node->desc.name, 2, in, 1) : NULL;
    if (!made)
        return false;
    ir_attr_set_int(made, "length", n);
    if (op_infer_node(made) == GRT_OK && rewrite_same_shape(&made->out[0]->type, &node->out[0]->type) &&
        rewrite_supported(context, made, NULL) && rewrite_take_over_node(node, made->out[0]))
        return true;
    return false; /* what was made is not used, and dead */
}

static void spectra_visit(pass_context *context, ir_node *node)
{
    context->changed += spectra_replace(context, node);
}

grt_status pass_spectra(pass_context *context)
{
    return rewrite_each_node(context, spectra_visit);
}
