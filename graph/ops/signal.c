/* SPDX-License-Identifier: Apache-2.0 */
/* Signal processing: DFT, STFT, window functions, MelWeightMatrix. */
#include "graph/ir/ir.h"

static const op_attr dft_attrs[] = {{"inverse", GRT_ATTR_INT, false}, {"onesided", GRT_ATTR_INT, false}, {0}};
static const op_attr spectral_conv_attrs[] = {{"length", GRT_ATTR_INT, true}, {0}};
static const op_attr stft_attrs[] = {{"onesided", GRT_ATTR_INT, false}, {0}};
static const op_attr window_attrs[] = {
    {"output_datatype", GRT_ATTR_INT, false}, {"periodic", GRT_ATTR_INT, false}, {0}};
static const op_attr mel_attrs[] = {{"output_datatype", GRT_ATTR_INT, false}, {0}};

/* The one number in an integer input, as a dim; a fresh symbol where it is not known. */
static grt_dim scalar_dim(const infer *inf, int32_t i)
{
    const grt_dim *elems;
    int64_t n;
    return infer_elems(inf, i, &elems, &n) && n == 1 ? elems[0] : grt_dim_fresh(inf->dims);
}

static grt_status positive(const infer *inf, const char *what, grt_dim dim)
{
    int64_t value;
    if (infer_const(inf, dim, &value) && value < 1)
        return infer_fail(inf, "%s is %lld; it must be positive", what, (long long)value);
    return GRT_OK;
}

static grt_dim half_plus_one(const infer *inf, grt_dim n)
{
    return grt_dim_addc(inf->dims, grt_dim_floordiv(inf->dims, n, grt_dim_const(inf->dims, 2)), 1);
}

/* Real or complex: the last dim is 1 or 2. */
static grt_status check_components(const infer *inf, const ir_type *x)
{
    int64_t components;
    if (infer_const(inf, x->dims[x->rank - 1], &components) && components != 1 && components != 2)
        return infer_fail(inf, "the last dim is %lld; it must be 1 (real) or 2 (real and imaginary part)",
                          (long long)components);
    return GRT_OK;
}

static grt_status infer_dft(infer *inf)
{
    const ir_type *x = inf->in[0];
    bool inverse = grt_attr_int(inf->desc, "inverse", 0) != 0,
         onesided = grt_attr_int(inf->desc, "onesided", 0) != 0;
    const int64_t *axes = (const int64_t[]){-2};
    int64_t n_axes = 1;
    int32_t axis;
    if (x->rank < 0) {
        infer_set_unknown(inf, 0, x->dtype);
        return GRT_OK;
    }
    if (x->rank < 2)
        return infer_fail(
            inf, "the input has rank %d; it needs a signal axis and a last axis of 1 or 2 components",
            x->rank);
    GRT_TRY(check_components(inf, x));
    infer_set_fresh(inf, 0, x->dtype, x->rank);
    grt_dim *dims = (grt_dim *)inf->out[0].dims;
    if (!dims)
        return GRT_OK;
    dims[x->rank - 1] = grt_dim_const(inf->dims, inverse && onesided ? 1 : 2);
    if (infer_has(inf, 2) && (!infer_ints(inf, 2, &axes, &n_axes) || n_axes != 1))
        return GRT_OK; /* any axis: every signal dim is unknown */
    GRT_TRY(infer_axis(inf, "axis", axes[0], x->rank, &axis));
    if (axis == x->rank - 1)
        return infer_fail(inf, "axis %d is the last one, which holds the components of a number", axis);
    for (int32_t k = 0; k < x->rank - 1; k++)
        dims[k] = x->dims[k];
    grt_dim n = x->dims[axis];
    if (infer_has(inf, 1))
        n = scalar_dim(inf, 1);
    else if (inverse && onesided)
        n = grt_dim_mulc(inf->dims, grt_dim_addc(inf->dims, n, -1), 2);
    GRT_TRY(positive(inf, "dft_length", n));
    dims[axis] = onesided && !inverse ? half_plus_one(inf, n) : n;
    return GRT_OK;
}

/* graphrt::SpectralConv: lines of real numbers, [..., size, 1], are transformed to `length` numbers (the
 * missing ones are zeros), multiplied by the spectra of real filters, [..., length / 2 + 1, 2], and
 * transformed back: a cyclic convolution. Dims of the spectra in front of these are the last ones of the
 * lines, so that filters repeat. */
static grt_status infer_spectral_conv(infer *inf)
{
    const ir_type *x = inf->in[0], *w = inf->in[1];
    const int64_t n = grt_attr_int(inf->desc, "length", 0);
    int64_t found;
    if (x->rank < 2 || w->rank < 2 || w->rank > x->rank)
        return infer_fail(inf,
                          "the lines have rank %d and the spectra rank %d; expected at least 2, and no more "
                          "than the lines",
                          x->rank, w->rank);
    if (n < 2 || n > INT32_MAX)
        return infer_fail(inf, "attribute length is %lld; it must lie in [2, 2^31)", (long long)n);
    if (infer_const(inf, w->dims[w->rank - 2], &found) && found != n / 2 + 1)
        return infer_fail(inf, "the spectra have %lld numbers; expected %lld", (long long)found,
                          (long long)(n / 2 + 1));
    if ((infer_const(inf, w->dims[w->rank - 1], &found) && found != 2) ||
        (infer_const(inf, x->dims[x->rank - 1], &found) && found != 1))
        return infer_fail(inf, "the last dims must be 1 for the lines and 2 for the spectra");
    grt_dim *dims = infer_dims(inf, x->rank);
    for (int32_t k = 0; dims && k < x->rank; k++)
        dims[k] = k == x->rank - 2 ? grt_dim_const(inf->dims, n) : x->dims[k];
    infer_set(inf, 0, x->dtype, x->rank, dims);
    return GRT_OK;
}

/* Before opset 20 the axis is an attribute. */
static grt_status upgrade_dft(ir_node *node, int32_t opset)
{
    if (opset >= 20)
        return GRT_OK;
    int64_t axis = grt_attr_int(&node->desc, "axis", 1);
    while (node->n_in < 3) {
        int32_t n = node->n_in;
        ir_node_add_input(node, NULL);
        if (node->n_in == n)
            return grt_fail_memory(0);
    }
    ir_node_set_input(node, 2, ir_constant_int(node->graph, "axis", axis));
    ir_attr_remove(node, "axis");
    return GRT_OK;
}

/* signal [batch, length, 1 or 2], frame_step, window, frame_length -> [batch, frames, bins, 2] */
static grt_status infer_stft(infer *inf)
{
    const ir_type *x = inf->in[0];
    bool onesided = grt_attr_int(inf->desc, "onesided", 1) != 0;
    if (x->rank >= 0 && x->rank != 2 && x->rank != 3)
        return infer_fail(inf, "the signal has rank %d; it must be batch x length x components", x->rank);
    if (x->rank == 3)
        GRT_TRY(check_components(inf, x));
    grt_dim *dims = infer_dims(inf, 4);
    if (!dims)
        return GRT_OK;
    bool known = x->rank >= 0;
    grt_dim length = known ? x->dims[1] : grt_dim_fresh(inf->dims), step = scalar_dim(inf, 1), frame = length;
    if (infer_has(inf, 3))
        frame = scalar_dim(inf, 3);
    else if (infer_has(inf, 2))
        frame = inf->in[2]->rank == 1 ? inf->in[2]->dims[0] : grt_dim_fresh(inf->dims);
    GRT_TRY(positive(inf, "frame_step", step));
    GRT_TRY(positive(inf, "the frame length", frame));
    int64_t have, want;
    if (infer_const(inf, length, &have) && infer_const(inf, frame, &want) && want > have)
        return infer_fail(inf, "the frame length is %lld; the signal has %lld elements", (long long)want,
                          (long long)have);
    dims[0] = known ? x->dims[0] : grt_dim_fresh(inf->dims);
    dims[1] =
        grt_dim_addc(inf->dims, grt_dim_floordiv(inf->dims, grt_dim_sub(inf->dims, length, frame), step), 1);
    dims[2] = onesided ? half_plus_one(inf, frame) : frame;
    dims[3] = grt_dim_const(inf->dims, 2);
    infer_set(inf, 0, x->dtype, 4, dims);
    return GRT_OK;
}

static grt_status infer_window(infer *inf)
{
    grt_dim *dims = infer_dims(inf, 1);
    if (dims) {
        int64_t size;
        dims[0] = scalar_dim(inf, 0);
        if (infer_const(inf, dims[0], &size) && size < 0)
            return infer_fail(inf, "the size is %lld; it must not be negative", (long long)size);
    }
    grt_dtype dtype;
    GRT_TRY(infer_dtype_attr(inf, "output_datatype", GRT_SET_NUMBERS, GRT_DTYPE_FLOAT, &dtype));
    infer_set(inf, 0, dtype, 1, dims);
    return GRT_OK;
}

static grt_status infer_mel(infer *inf)
{
    grt_dim *dims = infer_dims(inf, 2);
    if (dims) {
        dims[0] = half_plus_one(inf, scalar_dim(inf, 1));
        dims[1] = scalar_dim(inf, 0);
        GRT_TRY(positive(inf, "half of dft_length", dims[0]));
        GRT_TRY(positive(inf, "num_mel_bins", dims[1]));
    }
    grt_dtype dtype;
    GRT_TRY(infer_dtype_attr(inf, "output_datatype", GRT_SET_NUMBERS, GRT_DTYPE_FLOAT, &dtype));
    infer_set(inf, 0, dtype, 2, dims);
    return GRT_OK;
}

#define WINDOW(op)                                                                                   \
    {                                                                                                \
        .domain = "", .name = op, .since = 17, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, \
        .attrs = window_attrs, .precision = OP_WIDE, .infer = infer_window                           \
    }
static const op_row rows[] = {
    {.domain = "",
     .name = "DFT",
     .since = 20,
     .min_in = 1,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = dft_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_SORT,
     .infer = infer_dft,
     .upgrade = upgrade_dft},
    {.domain = "",
     .name = "STFT",
     .since = 17,
     .min_in = 2,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = stft_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_SORT,
     .infer = infer_stft},
    {.domain = "graphrt",
     .name = "SpectralConv",
     .since = 1,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = spectral_conv_attrs,
     .precision = OP_FOLLOWS_FIRST,
     .cost = OP_COST_SORT,
     .infer = infer_spectral_conv},
    WINDOW("BlackmanWindow"),
    WINDOW("HammingWindow"),
    WINDOW("HannWindow"),
    {.domain = "",
     .name = "MelWeightMatrix",
     .since = 17,
     .min_in = 5,
     .max_in = 5,
     .min_out = 1,
     .max_out = 1,
     .attrs = mel_attrs,
     .precision = OP_WIDE,
     .infer = infer_mel},
};
OP_TABLE(signal, rows);
