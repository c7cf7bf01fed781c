/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `whole_vectors`: a convolution whose channels are no whole vectors of 16 bytes, as of three colours,
 * 21 classes, 819 scores of boxes or a width of 90, gets channels and filters of zeros until they are.
 * Engines for tensor cores want whole vectors: without them, libraries take 2 to 10 times as long.
 *
 * Nodes are visited in order. What has channels of zeros or of other finite numbers behind its own is
 * remembered as the `whole` twin of the value that it stands for. Convolutions multiply these by zeros;
 * element-wise functions that are finite for them, pools and norms of channels work on them; for whatever
 * else uses the value they are cut off. */
#include "graph/ops/window.h"
#include "graph/passes/zeros.h"
#include "src/base/grow.h"

#include <stdlib.h>
#include <string.h>

enum { W = 1, BIAS = 2, RESIDUAL = 3, MOST_INPUTS = 8, LEAST_PIXELS = 256, VOLUME = 5, STEPS_AHEAD = 4 };

typedef struct whole_twin {
    ir_value *whole;
    ir_node *old; /* still defines the value that it stands for */
} whole_twin;

typedef struct whole_vectors {
    pass_context *context;
    ir_graph *graph;
    whole_twin *twins; /* value->mark is an index into this; [0] is for those that have none */
    int64_t n, capacity;
} whole_vectors;

static ir_value *whole_twin_of(const whole_vectors *s, const ir_value *value)
{
    return value && value->mark > 0 ? s->twins[value->mark].whole : NULL;
}

static grt_status whole_remember(whole_vectors *s, ir_node *old, ir_value *whole)
{
    s->n = s->n ? s->n : 1;
    if (!GRT_GROW(s->twins, s->n, s->capacity))
        return grt_fail_memory(2 * (size_t)s->capacity * sizeof *s->twins);
    s->twins[s->n] = (whole_twin){whole, old};
    old->out[0]->mark = s->n++;
    ir_node_drop_inputs(old, 0);
    s->context->changed++;
    return GRT_OK;
}

/* The last dim; 0 if it is not known. */
static int64_t whole_channels_of(const ir_value *value)
{
    int64_t n;
    return value && value->type.rank > 0 &&
                   grt_dim_is_const(value->graph->module->dims, value->type.dims[value->type.rank - 1], &n)
               ? n
               : 0;
}

/* Pixels of all images are many, or not known. */
static bool whole_vectors_has_pixels(const ir_value *y)
{
    int64_t n, all = 1;
    for (int32_t i = 0; i < y->type.rank - 1; i++) {
        if (!grt_dim_is_const(y->graph->module->dims, y->type.dims[i], &n) || n > LEAST_PIXELS)
            return true;
        all *= n;
        if (all > LEAST_PIXELS)
            return true;
    }
    return false;
}

/* The value with zeros behind its channels, by a copy. */
static ir_value *whole_padded(ir_node *node, ir_value *x, int64_t more)
{
    const int32_t rank = x->type.rank;
    int64_t pads[2 * GRT_MAX_RANK] = {0};
    pads[2 * rank - 1] = more;
    ir_value *in[] = {x, ir_constant_ints(node->graph, node->desc.name, pads, (size_t)rank * 2)};
    ir_node *pad = in[1] ? ir_node_create(node->graph, node, "", "Pad", node->desc.name, 2, in, 1) : NULL;
    return pad && op_infer_node(pad) == GRT_OK ? pad->out[0] : NULL;
}

/* A node of the same kind on other inputs, inferred and supported; NULL: there is none. */
static ir_node *whole_clone(whole_vectors *s, ir_node *node, ir_value *const *in, int64_t groups)
{
    ir_node *made = ir_node_create(node->graph, node, node->desc.domain, node->desc.op, node->desc.name,
                                   node->n_in, in, 1);
    if (!made)
        return NULL;
    ir_attrs_copy(made, node);
    if (groups > 1)
        ir_attr_set_int(made, "group", groups);
    if (op_infer_node(made) == GRT_OK && rewrite_supported(s->context, made, NULL))
        return made;
    ir_node_remove(made);
    return NULL;
}

/* ---- convolutions ---- */

typedef struct whole_conv {
    const grt_tensor *w;
    bool transposed, depthwise;
    int64_t channels, filters, taps;
    int64_t vector;
} whole_conv;

/* True for a convolution with channels last and constant parameters, of one group or a filter a channel. */
static bool whole_read_conv(const ir_node *node, whole_conv *c)
{
    const bool transposed = grt_op_is(&node->desc, "graphrt", "ConvTranspose");
    const grt_tensor *w = (transposed || grt_op_is(&node->desc, "graphrt", "Conv")) && ir_in(node, W)
                              ? ir_in(node, W)->type.data
                              : NULL;
    const int64_t groups = grt_attr_int(&node->desc, "group", 1);
    if (!w || w->rank < 3 || !grt_channels_last(&node->desc) || node->n_in > MOST_INPUTS ||
        (node->n_in > BIAS && ir_in(node, BIAS) && !ir_in(node, BIAS)->type.data))
        return false;
    c->w = w;
    c->transposed = transposed;
    c->depthwise = !transposed && groups > 1 && groups == w->dims[0] && w->dims[1] == 1;
    c->channels = w->dims[c->depthwise || transposed ? 0 : 1];
    c->filters = w->dims[transposed ? 1 : 0];
    c->taps = grt_dims_product(w->dims, 2, w->rank);
    c->vector = zeros_vector(node, w);
    return groups == 1 || c->depthwise;
}

/* Element-wise functions that are finite where their inputs are zeros, or what such functions make of them.
 */
static bool whole_is_finite(const ir_node *node)
{
    return rewrite_has(node, OP_POINTWISE) && rewrite_has(node, OP_FINITE) && node->n_out == 1 &&
           node->n_in <= MOST_INPUTS;
}

/* Of ops with channels last, those of one input are pools: a channel of the result depends on that of the
 * input.
 */
static bool whole_is_pool(const ir_node *node)
{
    return !strcmp(node->desc.domain, "graphrt") && grt_channels_last(&node->desc) && node->n_in == 1 &&
           node->n_out == 1;
}

/* A channel is normalised by itself; one of equal numbers is as large as its shift, which is zero. */
static bool whole_is_instance_norm(const ir_node *node)
{
    return grt_op_is(&node->desc, "graphrt", "InstanceNormalization") && grt_channels_last(&node->desc) &&
           node->n_in <= MOST_INPUTS && node->n_out == 1;
}

/* What has a channel of its result for each of its input, whatever lies in other channels. */
static bool whole_lies_between(const ir_node *node)
{
    return whole_is_finite(node) || whole_is_pool(node) || whole_is_instance_norm(node);
}

static bool whole_meets(const whole_vectors *s, const ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (whole_twin_of(s, ir_in(node, i)))
            return true;
    return false;
}

/* True if the value's channels are summed by windows a few steps ahead, or join others with a twin. */
static bool whole_is_wanted(const whole_vectors *s, const ir_value *value, int32_t steps)
{
    whole_conv c;
    for (const ir_use *use = value->uses; use && steps; use = use->next) {
        const ir_node *user = use->node;
        if (!user || !user->n_out || !user->out[0])
            continue;
        if (whole_read_conv(user, &c) && c.vector && use->index == 0 && c.taps > 1 &&
            (!c.depthwise || c.w->rank == VOLUME))
            return true;
        if ((whole_is_finite(user) && whole_meets(s, user)) ||
            (whole_lies_between(user) && whole_is_wanted(s, user->out[0], steps - 1)))
            return true;
    }
    return false;
}

/* How many zeros a pixel of the result lacks. Products of pixels have a kernel of their own, and single
 * filters gain nothing; nor do few in 16 bits. */
static int64_t whole_missing_filters(const whole_vectors *s, const ir_node *node, const whole_conv *c,
                                     bool has_whole_input)
{
    if (!c->vector || c->filters < 2 || c->filters % c->vector == 0 ||
        (c->vector == 8 && c->filters < c->vector && !c->transposed))
        return 0;
    const bool wanted = whole_is_wanted(s, node->out[0], STEPS_AHEAD),
               gains = c->taps > 1 && has_whole_input && whole_vectors_has_pixels(node->out[0]);
    return wanted || gains ? c->vector - c->filters % c->vector : 0;
}

/* How many zeros a pixel of the input lacks, where a copy of it pays. Windows of few numbers become rows as
 * they are, and few channels have kernels of their own; not so those of volumes. */
static int64_t whole_missing_channels(const ir_node *node, const whole_conv *c)
{
    enum { ROW = 256, FEW = 16, STEM = 4 };
    if (!c->vector || c->transposed || c->depthwise || c->taps == 1 || c->channels % c->vector == 0 ||
        !whole_vectors_has_pixels(node->out[0]))
        return 0;
    const bool has_kernel = c->w->rank < VOLUME ? c->channels < FEW || c->channels * c->taps <= ROW
                                                : c->vector == 8 && c->channels <= STEM;
    return has_kernel ? 0 : c->vector - c->channels % c->vector;
}

/* Inputs with `more` channels, and filters for `filters` more; false if there are none. */
static bool whole_conv_inputs(const whole_vectors *s, ir_node *node, const whole_conv *c, int64_t more,
                              int64_t filters, ir_value **in)
{
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = ir_in(node, i);
    if (more)
        in[0] = whole_twin_of(s, in[0]) ? whole_twin_of(s, in[0]) : whole_padded(node, in[0], more);
    if (more && !c->depthwise)
        in[W] = zeros_behind(in[W], c->transposed ? 0 : 1, more);
    if (filters && in[W])
        in[W] = zeros_behind(in[W], c->transposed ? 1 : 0, filters);
    if (filters && node->n_in > BIAS && in[BIAS] && !(in[BIAS] = zeros_behind(in[BIAS], 0, filters)))
        return false;
    if (filters && node->n_in > RESIDUAL && in[RESIDUAL])
        in[RESIDUAL] = whole_twin_of(s, in[RESIDUAL]);
    return in[0] && in[W];
}

static grt_status whole_visit_conv(whole_vectors *s, ir_node *node, const whole_conv *c)
{
    ir_value *in[MOST_INPUTS] = {NULL}, *x = whole_twin_of(s, ir_in(node, 0)),
             *residual = node->n_in > RESIDUAL ? ir_in(node, RESIDUAL) : NULL;
    const int64_t more = x ? whole_channels_of(x) - c->channels : whole_missing_channels(node, c);
    const bool has_whole_input = c->vector && (c->channels + more) % c->vector == 0;
    int64_t filters = c->depthwise ? more : whole_missing_filters(s, node, c, has_whole_input);
    if (residual && filters && whole_channels_of(whole_twin_of(s, residual)) != c->filters + filters)
        filters = 0;
    if ((!more && !filters) || (c->depthwise && !filters) || more < 0 ||
        !whole_conv_inputs(s, node, c, more, filters, in))
        return GRT_OK;
    ir_node *made = whole_clone(s, node, in, c->depthwise ? c->filters + filters : 1);
    if (!made)
        return GRT_OK;
    if (filters)
        return whole_remember(s, node, made->out[0]);
    if (rewrite_take_over_node(node, made->out[0]))
        s->context->changed++;
    return GRT_OK;
}

/* ---- what lies between ---- */

/* The input of an element-wise node whose result has `channels` and `more`; NULL: it cannot be. */
static ir_value *whole_input(const whole_vectors *s, ir_value *value, int64_t channels, int64_t more)
{
    ir_value *whole = whole_twin_of(s, value);
    if (whole)
        return whole_channels_of(whole) == channels + more ? whole : NULL;
    const int64_t own = whole_channels_of(value);
    if (value->type.rank == 0 || own == 1)
        return value;
    return value->type.data && own == channels ? zeros_behind(value, value->type.rank - 1, more) : NULL;
}

static grt_status whole_visit_between(whole_vectors *s, ir_node *node)
{
    const int64_t channels = whole_channels_of(node->out[0]);
    ir_value *in[MOST_INPUTS] = {NULL};
    int64_t more = 0;
    for (int32_t i = 0; i < node->n_in; i++)
        if (whole_twin_of(s, ir_in(node, i)))
            more = whole_channels_of(whole_twin_of(s, ir_in(node, i))) - channels;
    if (more <= 0 || channels <= 0)
        return GRT_OK;
    for (int32_t i = 0; i < node->n_in; i++)
        if (ir_in(node, i) && !(in[i] = whole_input(s, ir_in(node, i), channels, more)))
            return GRT_OK;
    ir_node *made = whole_clone(s, node, in, 1);
    return made ? whole_remember(s, node, made->out[0]) : GRT_OK;
}

/* ---- the pass ---- */

/* Values that are used as they were are cut out of their twins; the nodes that stood for them go. */
static grt_status whole_finish(whole_vectors *s)
{
    for (int64_t i = 1; i < s->n; i++) {
        ir_node *old = s->twins[i].old;
        ir_value *value = old->out[0];
        if (value->n_uses) {
            const ir_node *cut = zeros_cut_off(s->twins[i].whole->producer, whole_channels_of(value));
            if (!cut || !rewrite_take_over(value, cut->out[0]))
                return grt_fail_op(&old->desc, GRT_STATUS_INTERNAL,
                                   "whole_vectors: the channels of '%s' cannot be cut out", value->name);
        }
        ir_node_remove(old);
    }
    return GRT_OK;
}

static grt_status whole_vectors_visit(pass_context *context, ir_graph *graph)
{
    whole_vectors s = {.context = context, .graph = graph};
    grt_status status = GRT_OK;
    whole_conv c;
    ir_clear_marks(graph);
    IR_FOR_EACH_NODE (node, graph) {
        if (status != GRT_OK || node->n_out != 1 || !node->out[0])
            continue;
        if (whole_read_conv(node, &c))
            status = whole_visit_conv(&s, node, &c);
        else if (whole_lies_between(node))
            status = whole_visit_between(&s, node);
    }
    if (status == GRT_OK)
        status = whole_finish(&s);
    free(s.twins);
    return status;
}

/* Fast float16 stands for tensor cores. */
grt_status pass_whole_vectors(pass_context *context)
{
    return context->target->traits->half_floats ? rewrite_each_graph(context, whole_vectors_visit) : GRT_OK;
}
