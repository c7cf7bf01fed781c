/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/conv_branch.h"
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"

#include <math.h>
#include <string.h>

enum { X = 0, W = 1, BIAS = 2 };
enum { JOINED = 1 }; /* mark of weights that were made here, which one convolution reads */

/* ---- what a branch is ---- */

static bool branch_attr(const ir_node *node, const char *name, int32_t n, int64_t absent, int64_t *out)
{
    size_t found;
    const int64_t *given = grt_attr_ints(&node->desc, name, &found);
    if (given && found < (size_t)n)
        return false;
    for (int32_t i = 0; i < n; i++)
        out[i] = given ? given[i] : absent;
    return true;
}

/* Padding that follows from sizes is known without them where windows move by one. */
static bool branch_padding(const ir_node *node, conv_branch *b)
{
    const char *mode = grt_attr_string(&node->desc, "auto_pad", "NOTSET");
    if (!strcmp(mode, "NOTSET"))
        return branch_attr(node, "pads", b->spatial, 0, b->begin);
    const bool upper = !strcmp(mode, "SAME_UPPER"), valid = !strcmp(mode, "VALID");
    for (int32_t i = 0; i < b->spatial; i++) {
        const int64_t total = valid ? 0 : (b->kernel[i] - 1) * b->dilation[i];
        if (!valid && b->stride[i] != 1)
            return false;
        b->begin[i] = upper ? total / 2 : total - total / 2;
    }
    return true;
}

static bool branch_vector(const ir_value *value, const grt_tensor *w, const grt_tensor **out)
{
    *out = value ? value->type.data : NULL;
    return !value ||
           (*out && (*out)->rank == 1 && (*out)->dims[0] == w->dims[0] && (*out)->dtype == w->dtype);
}

bool conv_branch_read(const ir_value *value, conv_branch *out)
{
    ir_node *node = rewrite_producer(value, "Conv");
    const ir_value *weight = node ? ir_in(node, W) : NULL;
    const grt_tensor *w = weight ? weight->type.data : NULL;
    if (!w || !grt_dtype_in(w->dtype, GRT_SET_FLOATS) || w->rank < 3 || w->rank != value->type.rank ||
        grt_tensor_elements(w) < 1 || !ir_in(node, X))
        return false;
    *out = (conv_branch){.x = ir_in(node, X), .node = node, .w = w, .spatial = w->rank - 2};
    out->filters = w->dims[0];
    out->depth = w->dims[1];
    out->groups = grt_attr_int(&node->desc, "group", 1);
    memcpy(out->kernel, w->dims + 2, (size_t)out->spatial * sizeof *out->kernel);
    return out->groups >= 1 && out->filters % out->groups == 0 &&
           branch_vector(ir_in(node, BIAS), w, &out->bias) &&
           branch_attr(node, "strides", out->spatial, 1, out->stride) &&
           branch_attr(node, "dilations", out->spatial, 1, out->dilation) && branch_padding(node, out);
}

/* a = b(a(x)) */
static void branch_compose(channel_affine *a, const channel_affine *b)
{
    for (int64_t c = 0; c < a->n; c++) {
        a->scale[c] *= b->scale[c];
        a->shift[c] = a->shift[c] * b->scale[c] + b->shift[c];
    }
}

/* The input that the node scales by channel, and how; NULL: it does something else. */
static ir_value *branch_scaled_input(const ir_node *node, int64_t channels, grt_arena *scratch,
                                     channel_affine *out)
{
    ir_value *x =
        node && node->n_in >= 2 ? ir_in(node, ir_in(node, 0) && ir_in(node, 0)->type.data ? 1 : 0) : NULL;
    if (!x || !rewrite_same_shape(&x->type, &node->out[0]->type))
        return NULL;
    const channel_place place = {x, 1, 1, {channels}};
    return channel_affine_read_norm(node, out, scratch, channels) ||
                   channel_affine_read_arithmetic(node, &place, out, scratch, channels)
               ? x
               : NULL;
}

/* Scale and shift are two nodes at most. */
static bool branch_read_affine(ir_value *value, const ir_value *x, grt_arena *scratch, channel_affine *out)
{
    channel_affine outer, inner;
    const int64_t n = out->n;
    if (value == x)
        return true;
    ir_value *before = branch_scaled_input(value->producer, n, scratch, &outer);
    if (before && before != x) {
        const ir_value *first = branch_scaled_input(before->producer, n, scratch, &inner);
        if (first != x)
            return false;
        branch_compose(out, &inner);
    }
    if (before)
        branch_compose(out, &outer);
    return before != NULL;
}

/* What it costs to look at so many elements; false: the budget does not allow it. */
static bool branch_pays(ir_module *module, double elements)
{
    if (!budget_allows(&module->budget, 0, elements))
        return false;
    budget_work(&module->budget, elements);
    return true;
}

bool conv_branch_owns_weights(const conv_branch *b)
{
    return ir_in(b->node, W)->n_uses == 1;
}

bool conv_branch_read_scaled(ir_value *value, const conv_branch *conv, grt_arena *scratch, conv_branch *out)
{
    const int64_t n = conv->filters;
    if (conv->groups * conv->depth != n || !rewrite_same_shape(&value->type, &conv->x->type) ||
        !branch_pays(value->graph->module, (double)n))
        return false;
    *out = (conv_branch){.x = conv->x, .spatial = conv->spatial, .filters = n, .groups = n, .depth = 1};
    for (int32_t i = 0; i < conv->spatial; i++)
        out->kernel[i] = out->stride[i] = out->dilation[i] = 1;
    out->is_plain = value == conv->x;
    return channel_affine_init(&out->scaled, scratch, n) &&
           branch_read_affine(value, conv->x, scratch, &out->scaled);
}

/* ---- whether one is part of the other ---- */

/* Where the guest's first tap lies among the host's taps along dim i; -1: its taps are not among them. */
static int64_t tap_offset(const conv_branch *host, const conv_branch *guest, int32_t i)
{
    const int64_t step = host->dilation[i], apart = host->begin[i] - guest->begin[i];
    if (host->stride[i] != guest->stride[i] || (guest->kernel[i] > 1 && guest->dilation[i] != step) ||
        apart % step || apart < 0 || apart / step > host->kernel[i] - guest->kernel[i])
        return -1;
    return apart / step;
}

static int64_t branch_taps(const conv_branch *b)
{
    int64_t taps = 1;
    for (int32_t i = 0; i < b->spatial; i++)
        taps *= b->kernel[i];
    return taps;
}

static double branch_elements(const conv_branch *b)
{
    return (double)b->filters * (double)b->depth * (double)branch_taps(b);
}

static double branch_weight(const conv_branch *b, int64_t i)
{
    return b->node ? grt_tensor_double(b->w, i) : b->scaled.scale[i];
}

/* The first input channel that a filter of the guest reads, counted among those that the host's does. */
static int64_t channel_offset(const conv_branch *host, const conv_branch *guest, int64_t filter)
{
    return filter / (guest->filters / guest->groups) * guest->depth -
           filter / (host->filters / host->groups) * host->depth;
}

/* True if the guest's filters read channels that the host's read: weights for others are zeros, as those of
 * groups that were made one. */
static bool reads_no_more(const conv_branch *host, const conv_branch *guest)
{
    const int64_t taps = branch_taps(guest);
    if (guest->groups % host->groups == 0)
        return true;
    if (!branch_pays(host->node->graph->module, branch_elements(guest)))
        return false;
    for (int64_t f = 0; f < guest->filters; f++) {
        const int64_t first = channel_offset(host, guest, f);
        for (int64_t d = 0; d < guest->depth; d++)
            for (int64_t k = 0; k < taps && (first + d < 0 || first + d >= host->depth); k++)
                if (branch_weight(guest, (f * guest->depth + d) * taps + k) != 0)
                    return false;
    }
    return true;
}

bool conv_branch_fits(const conv_branch *host, const conv_branch *guest)
{
    /* A residual is read along with the result, and keeps all its bits: filters of many channels may round
     * what they multiply. */
    if (host->x != guest->x || host->filters != guest->filters ||
        host->groups * host->depth != guest->groups * guest->depth || (guest->is_plain && host->depth > 1) ||
        (guest->w && guest->w->dtype != host->w->dtype))
        return false;
    for (int32_t i = 0; i < host->spatial; i++)
        if (tap_offset(host, guest, i) < 0)
            return false;
    return reads_no_more(host, guest);
}

/* ---- both as one ---- */

/* For each of the guest's n taps the host's. */
static int64_t *host_taps(const conv_branch *host, const conv_branch *guest, int64_t n, grt_arena *scratch)
{
    int64_t *of = GRT_ARENA_ARRAY(scratch, int64_t, n);
    for (int64_t t = 0; of && t < n; t++) {
        int64_t rest = t, stride = 1;
        for (int32_t i = host->spatial - 1; i >= 0; i--) {
            of[t] += (rest % guest->kernel[i] + tap_offset(host, guest, i)) * stride;
            rest /= guest->kernel[i];
            stride *= host->kernel[i];
        }
    }
    return of;
}

static bool store_finite(const grt_tensor *t, int64_t i, double value)
{
    return channel_affine_store(t, i, value) && isfinite(grt_tensor_double(t, i));
}

/* Adds the guest's weights to `t`, which has the host's; with `is_trial`, t stays, and the result is whether
 * all sums would be finite. Nothing else of t is looked at, so that many guests of one host cost what they
 * are made of. */
static bool add_guest(const grt_tensor *t, const conv_branch *host, const conv_branch *guest,
                      double guest_sign, const int64_t *tap, bool is_trial)
{
    const int64_t taps = branch_taps(host), of_guest = branch_taps(guest);
    uint64_t bits;
    const grt_tensor one = {.dtype = t->dtype, .data = &bits};
    bool finite = true;
    for (int64_t f = 0, i = 0; finite && f < guest->filters; f++) {
        const int64_t first = channel_offset(host, guest, f);
        for (int64_t d = 0; d < guest->depth; d++)
            for (int64_t k = 0; k < of_guest; k++, i++) {
                if (first + d < 0 || first + d >= host->depth)
                    continue; /* a zero: see reads_no_more */
                const int64_t at = (f * host->depth + first + d) * taps + tap[k];
                const double sum = grt_tensor_double(t, at) + guest_sign * branch_weight(guest, i);
                finite &= is_trial ? store_finite(&one, 0, sum) : channel_affine_store(t, at, sum);
            }
    }
    return finite;
}

/* The host's weights with its sign, in memory of their own: as they are if an earlier join has made them. */
static const grt_tensor *host_weights(const conv_branch *host, double sign)
{
    ir_module *module = host->node->graph->module;
    const int64_t n = grt_tensor_elements(host->w);
    if (sign > 0 && ir_in(host->node, W)->mark == JOINED)
        return host->w;
    const grt_tensor *t = branch_pays(module, 3.0 * (double)n) /* read, multiply, look at */
                              ? ir_constant_create(module, host->w->dtype, host->w->rank, host->w->dims)
                              : NULL;
    bool finite = t != NULL;
    for (int64_t i = 0; finite && i < n; i++)
        finite = store_finite(t, i, sign * grt_tensor_double(host->w, i));
    return finite ? t : NULL;
}

/* NULL: as conv_branch_join says, and the host's weights are as they were. */
static ir_value *joined_weights(const conv_branch *host, const conv_branch *guest, double host_sign,
                                double guest_sign, grt_arena *scratch)
{
    const int64_t *tap = host_taps(host, guest, branch_taps(guest), scratch);
    const bool pays = tap && branch_pays(host->node->graph->module, 2 * branch_elements(guest));
    const grt_tensor *t = pays ? host_weights(host, host_sign) : NULL;
    if (!t || !add_guest(t, host, guest, guest_sign, tap, true))
        return NULL;
    ir_value *made = t == host->w ? ir_in(host->node, W) : ir_constant(host->node->graph, NULL, t);
    if (made) {
        add_guest(t, host, guest, guest_sign, tap, false);
        made->mark = JOINED;
    }
    return made;
}

static double branch_shift(const conv_branch *b, int64_t f)
{
    return !b->node ? b->scaled.shift[f] : b->bias ? grt_tensor_double(b->bias, f) : 0;
}

static ir_value *joined_bias(const conv_branch *host, const conv_branch *guest, double host_sign,
                             double guest_sign)
{
    const grt_tensor *t = ir_constant_create(host->node->graph->module, host->w->dtype, 1, &host->filters);
    bool finite = t != NULL;
    for (int64_t f = 0; finite && f < host->filters; f++)
        finite = store_finite(t, f, host_sign * branch_shift(host, f) + guest_sign * branch_shift(guest, f));
    return finite ? ir_constant(host->node->graph, NULL, t) : NULL;
}

bool conv_branch_join(const conv_branch *host, const conv_branch *guest, double host_sign, double guest_sign,
                      grt_arena *scratch)
{
    ir_node *node = host->node;
    const bool shifts = host->bias || guest->bias || (!guest->node && !guest->is_plain);
    ir_value *bias = shifts ? joined_bias(host, guest, host_sign, guest_sign) : NULL;
    ir_value *weights = bias || !shifts /* last, as they may change where they are */
                            ? joined_weights(host, guest, host_sign, guest_sign, scratch)
                            : NULL;
    if (!weights)
        return false;
    if (weights != ir_in(node, W))
        ir_node_set_input(node, W, weights);
    if (bias && node->n_in > BIAS)
        ir_node_set_input(node, BIAS, bias);
    else if (bias)
        ir_node_add_input(node, bias);
    return true;
}
