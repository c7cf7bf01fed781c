/* SPDX-License-Identifier: Apache-2.0 */
/* Independent small networks side by side, made by pass `networks`:
 *
 *   graphrt::Networks(x, w1, b1?, w2?, b2?, ...)
 *
 * x [rows, count, k0]: the inputs of all networks, row by row. Layer l of network n is
 *
 *   act(sum over i of x[i] * w[i, o, n] + b[o, n])
 *
 * with w [k(l-1), k(l), lane] and b [k(l), lane], lane >= count: weights of neighbouring networks are
 * neighbours, and what is behind the last network's is not looked at. The result is [rows, count, k of the
 * last layer]. Sums and what passes from layer to layer are float32. activations: a name of
 * src/base/activation.h or "" for each layer; alphas, betas: its parameters, all or none. */
#include "graph/ir/flops.h"
#include "graph/ir/op.h"

/* Of layer l. */
#define WEIGHTS(l) (1 + 2 * (l))
#define BIAS(l)    (2 + 2 * (l))

static int32_t layers_of(int32_t n_in)
{
    return n_in / 2;
}

static grt_status networks_check_dim(const infer *inf, int32_t input, int32_t k, grt_dim dim)
{
    int64_t found, expected;
    if (infer_const(inf, inf->in[input]->dims[k], &found) && infer_const(inf, dim, &expected) &&
        found != expected)
        return infer_fail(inf, "dim %d of input %d is %lld; expected %lld", (int)k, (int)input,
                          (long long)found, (long long)expected);
    return GRT_OK;
}

static grt_status networks_check_rank(const infer *inf, int32_t input, int32_t rank)
{
    if (!infer_has(inf, input))
        return infer_fail(inf, "input %d is missing", (int)input);
    if (inf->in[input]->rank != rank)
        return infer_fail(inf, "input %d must have rank %d, found %d", (int)input, (int)rank,
                          (int)inf->in[input]->rank);
    return infer_same_dtype(inf, 0, input);
}

/* *width: features in, then out. */
static grt_status check_layer(const infer *inf, int32_t l, grt_dim lane, grt_dim *width)
{
    GRT_TRY(networks_check_rank(inf, WEIGHTS(l), 3));
    GRT_TRY(networks_check_dim(inf, WEIGHTS(l), 0, *width));
    GRT_TRY(networks_check_dim(inf, WEIGHTS(l), 2, lane));
    *width = inf->in[WEIGHTS(l)]->dims[1];
    if (!infer_has(inf, BIAS(l)))
        return GRT_OK;
    GRT_TRY(networks_check_rank(inf, BIAS(l), 2));
    GRT_TRY(networks_check_dim(inf, BIAS(l), 0, *width));
    return networks_check_dim(inf, BIAS(l), 1, lane);
}

static grt_status check_lane(const infer *inf, grt_dim count, grt_dim *out_lane)
{
    int64_t networks, lane;
    GRT_TRY(networks_check_rank(inf, WEIGHTS(0), 3));
    *out_lane = inf->in[WEIGHTS(0)]->dims[2];
    if (infer_const(inf, count, &networks) && infer_const(inf, *out_lane, &lane) && lane < networks)
        return infer_fail(inf, "there are weights of %lld networks; expected %lld at least", (long long)lane,
                          (long long)networks);
    return GRT_OK;
}

static grt_status check_activations(const infer *inf, size_t layers)
{
    size_t n, n_alphas, n_betas;
    (void)grt_attr_strings(inf->desc, "activations", &n);
    (void)grt_attr_floats(inf->desc, "alphas", &n_alphas);
    (void)grt_attr_floats(inf->desc, "betas", &n_betas);
    if (n != layers || (n_alphas && n_alphas != layers) || (n_betas && n_betas != layers))
        return infer_fail(inf, "activations, alphas and betas have %zu, %zu and %zu elements for %zu layers",
                          n, n_alphas, n_betas, layers);
    return GRT_OK;
}

static grt_status infer_networks(infer *inf)
{
    GRT_TRY(networks_check_rank(inf, 0, 3));
    const int32_t layers = layers_of(inf->n_in);
    GRT_TRY(check_activations(inf, (size_t)layers));
    const grt_dim *x = inf->in[0]->dims;
    grt_dim width = x[2], lane;
    GRT_TRY(check_lane(inf, x[1], &lane));
    for (int32_t l = 0; l < layers; l++)
        GRT_TRY(check_layer(inf, l, lane, &width));
    grt_dim *dims = infer_dims(inf, 3);
    if (!dims)
        return GRT_OK;
    dims[0] = x[0];
    dims[1] = x[1];
    dims[2] = width;
    infer_set(inf, 0, inf->in[0]->dtype, 3, dims);
    return GRT_OK;
}

static const op_attr attrs[] = {{"activations", GRT_ATTR_STRINGS, true},
                                {"alphas", GRT_ATTR_FLOATS, false},
                                {"betas", GRT_ATTR_FLOATS, false},
                                {0}};

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "Networks",
     .since = 1,
     .min_in = 2,
     .max_in = OP_VARIADIC,
     .min_out = 1,
     .max_out = 1,
     .attrs = attrs,
     .flags = OP_GAPS,        /* biases */
     .precision = OP_FOLLOWS, /* what it reads decides its time: a Cast would read that once more */
     .flops = flops_networks,
     .infer = infer_networks},
};
OP_TABLE(networks, rows);
