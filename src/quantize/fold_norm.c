/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/fold_norm.h"

#include <math.h>
#include <string.h>

enum { SCALE = 1, OFFSET, MEAN, VARIANCE };

typedef struct norm_fold {
    document *d;
    names uses;   /* value -> number of uses, as a pointer's bits */
    names makers; /* value -> place of its node + 1 */
} norm_fold;

static void count_use(void *user, const char *name)
{
    norm_fold *f = user;
    names_entry *e = *name ? names_add(&f->uses, f->d->arena, name) : NULL;
    if (e)
        e->thing = (char *)e->thing + 1;
}

static void index_values(norm_fold *f)
{
    const document *d = f->d;
    for (size_t i = 0; i < d->n_nodes; i++) {
        for (size_t k = 0; k < d->nodes[i]->n_input; k++)
            count_use(f, node_in(d->nodes[i], k));
        node_each_captured(d->nodes[i], count_use, f);
        names_entry *e = names_add(&f->makers, d->arena, node_out(d->nodes[i], 0));
        if (e)
            e->thing = (char *)NULL + i + 1;
    }
    for (size_t i = 0; i < d->n_outputs; i++)
        count_use(f, d->outputs[i]->name);
}

/* A float32 vector of n elements; n < 0: of any number. */
static const float *fold_norm_constant_vector(const document *d, const char *name, int64_t n)
{
    const document_weight *w = document_find(d, name);
    if (!w || w->tensor.dtype != GRT_DTYPE_FLOAT || w->tensor.rank != 1 || (n >= 0 && w->tensor.dims[0] != n))
        return NULL;
    return w->tensor.data;
}

/* The convolution whose only user is this node; its place in *out_at. */
static const Onnx__NodeProto *find_convolution(const norm_fold *f, const Onnx__NodeProto *norm,
                                               size_t *out_at)
{
    const names_entry *uses = names_find(&f->uses, node_in(norm, 0)),
                      *maker = names_find(&f->makers, node_in(norm, 0));
    if (!uses || !maker || (char *)uses->thing - (char *)NULL != 1)
        return NULL;
    *out_at = (size_t)((char *)maker->thing - (char *)NULL) - 1;
    const Onnx__NodeProto *node = f->d->nodes[*out_at];
    return node_is(node, "Conv") || (node_is(node, "ConvTranspose") && node_int(node, "group", 1) == 1)
               ? node
               : NULL;
}

static const char *add_floats(norm_fold *f, const char *base, const char *suffix, const grt_tensor *like,
                              float **out_data)
{
    grt_tensor t = *like;
    t.data = *out_data = grt_arena_alloc(f->d->arena, grt_tensor_bytes(like));
    const char *name = document_name(f->d, base, suffix);
    if (name && t.data)
        document_add_weight(f->d, name, &t);
    return t.data ? name : NULL;
}

/* Replaces the convolution; the normalisation's result is its result from then on. False: it cannot. */
static bool fold_one(norm_fold *f, const Onnx__NodeProto *norm)
{
    document *d = f->d;
    size_t at;
    const Onnx__NodeProto *conv = find_convolution(f, norm, &at);
    const document_weight *w = conv ? document_find(d, node_in(conv, 1)) : NULL;
    if (!w || w->tensor.dtype != GRT_DTYPE_FLOAT || w->tensor.rank < 3 ||
        node_int(norm, "training_mode", 0) || *node_out(norm, 1))
        return false;
    const int32_t axis = node_is(conv, "Conv") ? 0 : 1;
    const int64_t n = w->tensor.dims[axis], all = grt_tensor_elements(&w->tensor);
    const float *p[VARIANCE + 1] = {NULL}, *bias = NULL;
    for (size_t i = SCALE; i <= VARIANCE; i++)
        if (!(p[i] = fold_norm_constant_vector(d, node_in(norm, i), n)))
            return false;
    if (*node_in(conv, 2) && !(bias = fold_norm_constant_vector(d, node_in(conv, 2), n)))
        return false;
    float *weights, *offsets;
    const grt_tensor vector = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {n}};
    const char *weight_name = add_floats(f, w->name, "/folded", &w->tensor, &weights),
               *bias_name = add_floats(f, w->name, "/folded_bias", &vector, &offsets);
    Onnx__NodeProto *made = document_add_copy(d, conv); /* at the end: it moves to its place */
    if (!weight_name || !bias_name || grt_arena_failed(d->arena))
        return false;
    const double epsilon = (double)node_float(norm, "epsilon", 1e-5f);
    const int64_t inner = n ? all / n / (axis ? w->tensor.dims[0] : 1) : 0;
    for (int64_t i = 0; i < all; i++) {
        const int64_t c = i / inner % n;
        weights[i] = (float)((double)((const float *)w->tensor.data)[i] * (double)p[SCALE][c] /
                             sqrt((double)p[VARIANCE][c] + epsilon));
    }
    for (int64_t c = 0; c < n; c++)
        offsets[c] = (float)(((bias ? (double)bias[c] : 0) - (double)p[MEAN][c]) * (double)p[SCALE][c] /
                                 sqrt((double)p[VARIANCE][c] + epsilon) +
                             (double)p[OFFSET][c]);
    made->n_input = 1;
    node_add_in(d, made, weight_name);
    node_add_in(d, made, bias_name);
    made->output[0] = norm->output[0];
    d->n_nodes--;
    d->nodes[at] = made;
    return true;
}

grt_status document_fold_norms(document *d, size_t *out_folded)
{
    norm_fold f = {.d = d};
    size_t kept = 0;
    index_values(&f);
    *out_folded = 0;
    const size_t n = d->n_nodes;
    bool *gone = GRT_ARENA_ARRAY(d->arena, bool, n + 1);
    for (size_t i = 0; gone && i < n; i++)
        if (node_is(d->nodes[i], "BatchNormalization") && fold_one(&f, d->nodes[i])) {
            gone[i] = true;
            ++*out_folded;
        }
    for (size_t i = 0; gone && i < n; i++)
        if (!gone[i])
            d->nodes[kept++] = d->nodes[i];
    if (gone)
        d->n_nodes = kept;
    return document_check(d);
}
