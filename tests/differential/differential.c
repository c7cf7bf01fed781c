/* Random nodes on a device beside the CPU, through the public API: random shapes, broadcasts, attributes and
 * dtypes; guards round every buffer that is ours; several runs, so that replayed ones are compared too.
 *
 * usage: differential [--device DEVICE] [--seed N] [--count N] [--ops OP,...]
 * Case i has seed N + i: what fails is repeated by --seed THAT --count 1. The last line is the totals; nodes
 * that the device has no kernel for are skipped. --ops: only these; the others' seeds count for nothing. */
#include "tests/differential/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- drawing ---- */

static uint64_t state;

static uint64_t draw_bits(void) /* splitmix64 */
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
static int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)(draw_bits() % (uint64_t)(high - low + 1));
}
static double draw_real(void)
{
    return (double)(draw_bits() >> 11) * 0x1p-53;
}
static int64_t draw_dim(void)
{
    static const int64_t dims[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 0};
    return dims[draw(0, draw(0, 9) ? 13 : 14)];
}

/* ---- buffers: a guard on both sides ---- */

enum { GUARD = 256, PATTERN = 0x5a };

static void *guarded(size_t bytes)
{
    unsigned char *all = malloc(bytes + 2 * GUARD);
    if (!all)
        exit(2);
    memset(all, PATTERN, bytes + 2 * GUARD);
    return all + GUARD;
}
static bool guards_hold(const void *data, size_t bytes)
{
    const unsigned char *all = (const unsigned char *)data - GUARD;
    for (size_t i = 0; i < GUARD; i++)
        if (all[i] != PATTERN || all[GUARD + bytes + i] != PATTERN)
            return false;
    return true;
}
static void release(void *data)
{
    if (data)
        free((unsigned char *)data - GUARD);
}

static uint16_t to_half(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, exponent = bits >> 23 & 0xffu, mantissa = bits >> 13 & 0x3ffu;
    return (uint16_t)(exponent < 113
                          ? sign
                          : sign | (exponent - 112) << 10 | mantissa); /* what is drawn is in range */
}
static double from_half(uint16_t h)
{
    const int exponent = h >> 10 & 31;
    const double m = h & 0x3ff, v = exponent == 31 ? (h & 0x3ff ? (double)NAN : (double)INFINITY)
                                    : exponent     ? ldexp(1024 + m, exponent - 25)
                                                   : ldexp(m, -24);
    return h & 0x8000u ? -v : v;
}

static double element(const grt_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case GRT_DTYPE_FLOAT:
        return (double)((const float *)t->data)[i];
    case GRT_DTYPE_DOUBLE:
        return ((const double *)t->data)[i];
    case GRT_DTYPE_FLOAT16:
        return from_half(((const uint16_t *)t->data)[i]);
    case GRT_DTYPE_INT32:
        return (double)((const int32_t *)t->data)[i];
    case GRT_DTYPE_INT64:
        return (double)((const int64_t *)t->data)[i];
    default:
        return (double)((const uint8_t *)t->data)[i];
    }
}

static void set_element(const grt_tensor *t, int64_t i, double v)
{
    switch (t->dtype) {
    case GRT_DTYPE_FLOAT:
        ((float *)t->data)[i] = (float)v;
        break;
    case GRT_DTYPE_DOUBLE:
        ((double *)t->data)[i] = v;
        break;
    case GRT_DTYPE_FLOAT16:
        ((uint16_t *)t->data)[i] = to_half((float)v);
        break;
    case GRT_DTYPE_INT32:
        ((int32_t *)t->data)[i] = (int32_t)v;
        break;
    case GRT_DTYPE_INT64:
        ((int64_t *)t->data)[i] = (int64_t)v;
        break;
    default:
        ((uint8_t *)t->data)[i] = (uint8_t)v;
    }
}

/* ---- making nodes ---- */

static bool is_float(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT || dtype == GRT_DTYPE_DOUBLE || dtype == GRT_DTYPE_FLOAT16;
}
static grt_dtype draw_float(void)
{
    return draw(0, 3) ? GRT_DTYPE_FLOAT : draw(0, 1) ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_DOUBLE;
}
static grt_dtype draw_number(void)
{
    return draw(0, 2) ? draw_float() : draw(0, 1) ? GRT_DTYPE_INT32 : GRT_DTYPE_INT64;
}

static grt_tensor *add_input(node *n, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    grt_tensor *t = &n->in[n->n_in++];
    *t = (grt_tensor){.dtype = dtype, .rank = rank};
    for (int32_t k = 0; k < rank; k++)
        t->dims[k] = dims[k];
    t->data = guarded(grt_tensor_bytes(t));
    const int64_t elements = grt_tensor_elements(t);
    for (int64_t i = 0; i < elements; i++)
        set_element(t, i,
                    is_float(dtype)           ? draw_real() * 4 - 2
                    : dtype == GRT_DTYPE_BOOL ? (double)draw(0, 1)
                                              : (double)draw(-9, 9));
    return t;
}
/* A list of int64: known when the model is compiled, or an input. */
static void add_list(node *n, const int64_t *values, int64_t count)
{
    grt_tensor *t = add_input(n, GRT_DTYPE_INT64, 1, &count);
    if (count)
        memcpy(t->data, values, (size_t)count * sizeof *values);
    n->constant[n->n_in - 1] = draw(0, 1);
}
static void set_int(node *n, const char *name, int64_t value)
{
    n->attributes[n->n_attributes++] = (attribute){.name = name, .ints = {value}, .n = -1};
}
static void set_real(node *n, const char *name, double value)
{
    n->attributes[n->n_attributes++] = (attribute){.name = name, .real = (float)value, .n = -2};
}
static void set_ints(node *n, const char *name, const int64_t *values, int count)
{
    attribute *a = &n->attributes[n->n_attributes++];
    *a = (attribute){.name = name, .n = count};
    memcpy(a->ints, values, (size_t)count * sizeof *values);
}
static void set_text(node *n, const char *name, const char *value)
{
    n->attributes[n->n_attributes++] = (attribute){.name = name, .text = value};
}

static int32_t draw_dims(int64_t *dims, int32_t least, int32_t most)
{
    int32_t rank = (int32_t)draw(least, most);
    int64_t total = 1;
    for (int32_t k = 0; k < rank; k++) {
        dims[k] = draw_dim();
        if (total * dims[k] > 20000)
            dims[k] = 1;
        total *= dims[k];
    }
    return rank;
}
#define PICK(...)           \
    ((const char *const[]){ \
        __VA_ARGS__})[draw(0, (int64_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)) - 1)]

static void make_binary(node *n)
{
    int64_t dims[GRT_MAX_RANK], other[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 0, 10), less = (int32_t)draw(0, rank);
    n->op = PICK("Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Equal");
    n->out = !strcmp(n->op, "Less") || !strcmp(n->op, "Equal") ? GRT_DTYPE_BOOL : draw_number();
    grt_dtype dtype = n->out == GRT_DTYPE_BOOL ? draw_number() : n->out;
    for (int32_t k = 0; k < rank - less; k++)
        other[k] = draw(0, 2) ? dims[less + k] : 1;
    for (int32_t k = 0; k < rank; k++)
        if (k >= less && dims[k] != 1 && other[k - less] == dims[k] && draw(0, 3) == 0)
            dims[k] = 1;
    add_input(n, dtype, rank, dims);
    add_input(n, dtype, rank - less, other);
}

static void make_unary(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 0, 10);
    n->op =
        PICK("Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Erf", "Floor", "Softplus", "HardSwish", "Gelu");
    n->out = draw_float();
    add_input(n, n->out, rank, dims);
}

static void make_matmul(node *n)
{
    int64_t a[GRT_MAX_RANK], b[GRT_MAX_RANK], m = draw_dim(), k = draw(1, 70), c = draw_dim();
    int32_t lead = (int32_t)draw(0, 3);
    n->op = "MatMul";
    n->out = draw_float();
    for (int32_t i = 0; i < lead; i++) {
        a[i] = b[i] = draw(1, 4);
        *(draw(0, 1) ? &a[i] : &b[i]) = draw(0, 1) ? 1 : a[i];
    }
    a[lead] = m;
    a[lead + 1] = b[lead] = k;
    b[lead + 1] = c;
    add_input(n, n->out, lead + 2, a);
    add_input(n, n->out, lead + 2, b);
    n->constant[1] = draw(0, 1);
}

static void make_softmax(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 6);
    n->op = PICK("Softmax", "LogSoftmax", "Hardmax");
    n->out = draw_float();
    add_input(n, n->out, rank, dims);
    set_int(n, "axis", draw(-rank, rank - 1));
}

static void make_reduce(node *n)
{
    int64_t dims[GRT_MAX_RANK], axes[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 8), count = 0;
    for (int32_t k = 0; k < rank; k++) {
        dims[k] = dims[k] ? dims[k] : 1; /* what nothing reduces to is for the conformance cases */
        if (draw(0, 1))
            axes[count++] = draw(0, 1) ? k : k - rank;
    }
    n->op = PICK("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                 "ReduceSumSquare", "ReduceLogSumExp");
    n->out = draw_float();
    add_input(n, n->out, rank, dims);
    add_list(n, axes, count);
    set_int(n, "keepdims", draw(0, 1));
}

static void make_transpose(node *n)
{
    int64_t dims[GRT_MAX_RANK], perm[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 10);
    for (int32_t k = 0; k < rank; k++) {
        int32_t at = (int32_t)draw(0, k);
        perm[k] = perm[at];
        perm[at] = k;
    }
    n->op = "Transpose";
    n->out = draw_number();
    add_input(n, n->out, rank, dims);
    set_ints(n, "perm", perm, rank);
}

static void make_slice(node *n)
{
    int64_t dims[GRT_MAX_RANK], starts[GRT_MAX_RANK], ends[GRT_MAX_RANK], axes[GRT_MAX_RANK],
        steps[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 8), count = 0;
    for (int32_t k = 0; k < rank; k++) {
        if (!draw(0, 1))
            continue;
        starts[count] = draw(-dims[k] - 2, dims[k] + 2);
        ends[count] = draw(-dims[k] - 2, dims[k] + 2);
        axes[count] = draw(0, 1) ? k : k - rank;
        steps[count] = draw(0, 2) ? draw(1, 3) : draw(-3, -1);
        count++;
    }
    n->op = "Slice";
    n->out = draw_number();
    add_input(n, n->out, rank, dims);
    add_list(n, starts, count);
    add_list(n, ends, count);
    add_list(n, axes, count);
    add_list(n, steps, count);
}

static void make_pad(node *n)
{
    int64_t dims[GRT_MAX_RANK], pads[2 * GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 6);
    for (int32_t k = 0; k < rank; k++) {
        dims[k] = dims[k] < 2 ? 3 : dims[k];
        pads[k] = draw(-1, dims[k] - 1 < 3 ? dims[k] - 1 : 3);
        pads[rank + k] = draw(0, dims[k] - 1 < 3 ? dims[k] - 1 : 3);
        if (pads[k] < 0)
            pads[rank + k] = 0;
    }
    n->op = "Pad";
    n->out = draw_number();
    const char *mode = PICK("constant", "reflect", "edge", "wrap");
    for (int32_t k = 0; k < rank && strcmp(mode, "constant"); k++)
        pads[k] = pads[k] < 0 ? 0 : pads[k];
    add_input(n, n->out, rank, dims);
    add_list(n, pads, 2 * rank);
    set_text(n, "mode", mode);
}

static void make_gather(node *n)
{
    int64_t dims[GRT_MAX_RANK], indices[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 6), wide = draw_dims(indices, 0, 2);
    int64_t axis = draw(0, rank - 1);
    dims[axis] = dims[axis] ? dims[axis] : 3;
    for (int32_t k = 0; k < wide; k++)
        indices[k] = indices[k] > 5 ? 5 : indices[k];
    n->op = "Gather";
    n->out = draw_number();
    add_input(n, n->out, rank, dims);
    grt_tensor *t = add_input(n, draw(0, 1) ? GRT_DTYPE_INT32 : GRT_DTYPE_INT64, wide, indices);
    for (int64_t i = 0; i < grt_tensor_elements(t); i++)
        set_element(t, i, (double)draw(-dims[axis], dims[axis] - 1));
    set_int(n, "axis", axis);
}

static void make_concat(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 6), count = (int32_t)draw(1, 5);
    int64_t axis = draw(0, rank - 1);
    n->op = "Concat";
    n->out = draw_number();
    for (int32_t i = 0; i < count; i++) {
        dims[axis] = draw(0, 9);
        add_input(n, n->out, rank, dims);
    }
    set_int(n, "axis", axis);
}

static void make_where(node *n)
{
    int64_t dims[GRT_MAX_RANK], part[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 0, 8);
    n->op = "Where";
    n->out = draw_number();
    for (int i = 0; i < 3; i++) {
        for (int32_t k = 0; k < rank; k++)
            part[k] = i == 0 || draw(0, 2) ? dims[k] : 1;
        add_input(n, i == 0 ? GRT_DTYPE_BOOL : n->out, rank, part);
    }
}

static void make_cumsum(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 5);
    n->op = "CumSum";
    n->out = draw(0, 1) ? GRT_DTYPE_INT64 : GRT_DTYPE_FLOAT;
    add_input(n, n->out, rank, dims);
    grt_tensor *axis = add_input(n, GRT_DTYPE_INT64, 0, NULL);
    *(int64_t *)axis->data = draw(-rank, rank - 1);
    n->constant[1] = draw(0, 1);
    set_int(n, "exclusive", draw(0, 1));
    set_int(n, "reverse", draw(0, 1));
}

/* Convolutions and pools share their window. */
static int32_t draw_window(node *n, int64_t *kernel, int64_t *dims, bool dilates)
{
    int64_t strides[3], dilations[3], pads[6];
    int32_t spatial = (int32_t)draw(1, 3);
    for (int32_t k = 0; k < spatial; k++) {
        kernel[k] = draw(1, 4);
        strides[k] = draw(1, 3);
        dilations[k] = dilates ? draw(1, 2) : 1;
        pads[k] = draw(0, kernel[k] - 1);
        pads[spatial + k] = draw(0, kernel[k] - 1);
        dims[2 + k] = draw((kernel[k] - 1) * dilations[k] + 1, 12);
    }
    set_ints(n, "kernel_shape", kernel, spatial);
    set_ints(n, "strides", strides, spatial);
    set_ints(n, "pads", pads, spatial);
    memcpy(n->attributes[n->n_attributes - 1].ints, pads, (size_t)spatial * 2 * sizeof *pads);
    n->attributes[n->n_attributes - 1].n = 2 * spatial;
    if (dilates)
        set_ints(n, "dilations", dilations, spatial);
    return spatial;
}

static void make_conv(node *n)
{
    int64_t kernel[3], x[5], w[5], group = draw(0, 1) ? 1 : draw(1, 4);
    n->op = "Conv";
    n->out = draw(0, 3) ? GRT_DTYPE_FLOAT : GRT_DTYPE_FLOAT16;
    int32_t spatial = draw_window(n, kernel, x, true);
    set_int(n, "group", group);
    x[0] = draw(1, 3);
    w[1] = draw(1, 9);
    x[1] = w[1] * group;
    w[0] = draw(1, 9) * group;
    memcpy(w + 2, kernel, (size_t)spatial * sizeof *kernel);
    add_input(n, n->out, spatial + 2, x);
    add_input(n, n->out, spatial + 2, w);
    n->constant[1] = draw(0, 3) != 0;
    if (draw(0, 1)) {
        add_input(n, n->out, 1, w);
        n->constant[2] = n->constant[1];
    }
}

static void make_pool(node *n)
{
    int64_t kernel[3], x[5];
    n->op = PICK("MaxPool", "AveragePool", "LpPool");
    n->out = draw_float();
    int32_t spatial = draw_window(n, kernel, x, strcmp(n->op, "LpPool") != 0);
    x[0] = draw(1, 3);
    x[1] = draw(1, 9);
    add_input(n, n->out, spatial + 2, x);
}

static void make_norm(node *n)
{
    int64_t dims[GRT_MAX_RANK], axis;
    int32_t rank = draw_dims(dims, 1, 5);
    n->op = "LayerNormalization";
    n->out = draw_float();
    axis = draw(0, rank - 1);
    for (int32_t k = 0; k < rank; k++)
        dims[k] = dims[k] ? dims[k] : 1;
    dims[rank - 1] = draw(2, 300); /* one number has no variance */
    add_input(n, n->out, rank, dims);
    add_input(n, n->out, rank - (int32_t)axis, dims + axis);
    set_int(n, "axis", axis);
}

static void make_resize(node *n)
{
    int64_t dims[4], sizes[4];
    n->op = "Resize";
    n->out = draw(0, 1) ? GRT_DTYPE_FLOAT : GRT_DTYPE_FLOAT16;
    for (int k = 0; k < 4; k++) {
        dims[k] = draw(k < 2 ? 1 : 2, k < 2 ? 3 : 9);
        sizes[k] = k < 2 ? dims[k] : draw(1, 14);
    }
    add_input(n, n->out, 4, dims);
    n->omitted[n->n_in++] = true;
    n->omitted[n->n_in++] = true;
    add_list(n, sizes, 4);
    set_text(n, "mode", PICK("linear", "cubic"));
    set_text(n, "coordinate_transformation_mode",
             PICK("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"));
    set_int(n, "antialias", draw(0, 1));
}

static void make_rotary(node *n)
{
    int64_t dims[4] = {draw(1, 3), draw(1, 5), draw(1, 9), 2 * draw(1, 16)},
            cache[3] = {dims[0], dims[2], dims[3] / 2};
    n->op = "RotaryEmbedding";
    n->out = draw_float();
    add_input(n, n->out, 4, dims);
    add_input(n, n->out, 3, cache);
    add_input(n, n->out, 3, cache);
    set_int(n, "interleaved", draw(0, 1));
}

/* Sizes that the fast kernels take and others; few queries with many keys, which are split. */
static void make_attention(node *n)
{
    static const int64_t sizes[] = {32, 64, 96, 128, 128, 8, 20},
                         queries[] = {1, 1, 2, 5, 16, 17, 33, 70, 130},
                         lengths[] = {1, 7, 64, 65, 130, 600, 1300};
    const int64_t batch = draw(1, 2), kv_heads = draw(1, 3), heads = kv_heads * draw(1, 4),
                  size = sizes[draw(0, 6)], q_len = queries[draw(0, 8)], kv_len = lengths[draw(0, 6)],
                  past = draw(0, 2) ? 0 : lengths[draw(0, 6)];
    const bool packed = draw(0, 1), masked = draw(0, 2) == 0;
    n->op = "Attention";
    n->out = draw_float();
    for (int i = 0; i < 3; i++) {
        const int64_t h = i ? kv_heads : heads, length = i ? kv_len : q_len;
        add_input(n, n->out, packed ? 3 : 4,
                  packed ? (int64_t[]){batch, length, h * size} : (int64_t[]){batch, h, length, size});
    }
    if (masked)
        add_input(n, draw(0, 1) ? n->out : GRT_DTYPE_BOOL, 2,
                  (int64_t[]){draw(0, 3) ? q_len : 1, past + kv_len});
    else if (past)
        n->omitted[n->n_in++] = true;
    for (int i = 0; past && i < 2; i++)
        add_input(n, n->out, 4, (int64_t[]){batch, kv_heads, past, size});
    set_int(n, "is_causal", draw(0, 1));
    if (packed) {
        set_int(n, "q_num_heads", heads);
        set_int(n, "kv_num_heads", kv_heads);
    }
    if (n->out == GRT_DTYPE_FLOAT && draw(0, 1))
        n->precision = "tf32";
}

static void make_recurrent(node *n)
{
    int64_t steps = draw(1, 6), batch = draw(1, 5), size = draw(1, 20), hidden = draw(1, 20);
    n->op = PICK("LSTM", "GRU", "RNN");
    n->out = GRT_DTYPE_FLOAT;
    const char *direction = PICK("forward", "reverse", "bidirectional");
    int64_t gates = n->op[0] == 'L' ? 4 : n->op[0] == 'G' ? 3 : 1, d = direction[0] == 'b' ? 2 : 1;
    add_input(n, n->out, 3, (int64_t[]){steps, batch, size});
    add_input(n, n->out, 3, (int64_t[]){d, gates * hidden, size});
    add_input(n, n->out, 3, (int64_t[]){d, gates * hidden, hidden});
    if (draw(0, 1))
        add_input(n, n->out, 2, (int64_t[]){d, 2 * gates * hidden});
    set_int(n, "hidden_size", hidden);
    set_text(n, "direction", direction);
    if (n->op[0] == 'G')
        set_int(n, "linear_before_reset", draw(0, 1));
}

static void make_cast(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 0, 8);
    n->op = "Cast";
    n->out = draw_number();
    add_input(n, draw_number(), rank, dims);
    set_int(n, "to", n->out);
}

/* A single number: known when the model is compiled, or an input. */
static void add_number(node *n, grt_dtype dtype, double value)
{
    set_element(add_input(n, dtype, 0, NULL), 0, value);
    n->constant[n->n_in - 1] = draw(0, 1);
}

static void make_top_k(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 4), axis = (int32_t)draw(0, rank - 1);
    n->op = "TopK";
    n->out = draw_number();
    if (draw(0, 3) == 0) { /* long lines are sorted */
        rank = 2;
        axis = (int32_t)draw(0, 1);
        dims[axis] = draw(5000, 20000);
        dims[1 - axis] = draw(1, 3);
    }
    add_input(n, n->out, rank, dims);
    const int64_t k = draw(0, dims[axis]);
    add_list(n, &k, 1);
    set_int(n, "axis", axis);
    set_int(n, "largest", draw(0, 1));
    n->n_more = 1;
    n->which = (int)draw(0, 1);
    n->out = n->which ? GRT_DTYPE_INT64 : n->out;
}

static void make_nms(node *n)
{
    const int64_t batch = draw(1, 2), classes = draw(1, 4), boxes = draw(0, 5) ? draw(1, 300) : 0;
    n->op = "NonMaxSuppression";
    n->out = GRT_DTYPE_INT64;
    add_input(n, GRT_DTYPE_FLOAT, 3, (int64_t[]){batch, boxes, 4});
    add_input(n, GRT_DTYPE_FLOAT, 3, (int64_t[]){batch, classes, boxes});
    add_number(n, GRT_DTYPE_INT64, (double)draw(0, 40));
    add_number(n, GRT_DTYPE_FLOAT, draw_real());
    if (draw(0, 1))
        add_number(n, GRT_DTYPE_FLOAT, draw_real() * 2 - 1);
    set_int(n, "center_point_box", draw(0, 1));
}

static void make_unique(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 4);
    n->op = "Unique";
    n->out = draw_number();
    for (int32_t k = 0; k < rank; k++)
        dims[k] = dims[k] ? dims[k] : 1;
    add_input(n, n->out, rank, dims);
    set_int(n, "sorted", draw(0, 1));
    n->n_more = 3;
    n->which = (int)draw(0, 3);
    n->out = n->which ? GRT_DTYPE_INT64 : n->out;
    if (draw(0, 1))
        set_int(n, "axis", draw(-rank, rank - 1));
}

static void make_non_zero(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 5);
    n->op = "NonZero";
    n->out = GRT_DTYPE_INT64;
    add_input(n, draw(0, 1) ? GRT_DTYPE_BOOL : GRT_DTYPE_INT32, rank, dims);
}

static void make_compress(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 4), axis = (int32_t)draw(0, rank - 1);
    n->op = "Compress";
    n->out = draw_number();
    add_input(n, n->out, rank, dims);
    add_input(n, GRT_DTYPE_BOOL, 1, &dims[axis]);
    set_int(n, "axis", axis);
}

static void make_det(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 0, 3);
    n->op = "Det";
    n->out = draw(0, 1) ? GRT_DTYPE_FLOAT : GRT_DTYPE_DOUBLE;
    dims[rank] = dims[rank + 1] = draw(1, 7);
    add_input(n, n->out, rank + 2, dims);
}

static void make_stft(node *n)
{
    const int64_t length = draw(1, 90), frame = draw(1, length);
    const bool complex = draw(0, 2) == 0;
    n->op = "STFT";
    n->out = draw_float();
    add_input(n, n->out, 3, (int64_t[]){draw(1, 3), length, complex ? 2 : 1});
    add_number(n, GRT_DTYPE_INT64, (double)draw(1, frame));
    add_input(n, n->out, 1, &frame);
    set_int(n, "onesided", !complex && draw(0, 1));
}

static void make_window(node *n)
{
    n->op = PICK("HannWindow", "HammingWindow", "BlackmanWindow");
    n->out = GRT_DTYPE_FLOAT;
    add_number(n, GRT_DTYPE_INT64, (double)draw(0, 70));
    set_int(n, "periodic", draw(0, 1));
}

static void make_mel(node *n)
{
    n->op = "MelWeightMatrix";
    n->out = GRT_DTYPE_FLOAT;
    add_number(n, GRT_DTYPE_INT64, (double)draw(1, 20));
    add_number(n, GRT_DTYPE_INT64, (double)draw(2, 200));
    add_number(n, GRT_DTYPE_INT64, (double)draw(4000, 16000));
    add_number(n, GRT_DTYPE_FLOAT, draw_real() * 100);
    add_number(n, GRT_DTYPE_FLOAT, 200 + draw_real() * 5000);
}

static void make_tensor_scatter(node *n)
{
    const int64_t batch = draw(1, 3), heads = draw(1, 3), length = draw(1, 20), size = draw(1, 9),
                  count = draw(1, length);
    const bool circular = draw(0, 1);
    n->op = "TensorScatter";
    n->out = draw_number();
    add_input(n, n->out, 4, (int64_t[]){batch, heads, length, size});
    add_input(n, n->out, 4, (int64_t[]){batch, heads, count, size});
    if (draw(0, 3)) {
        grt_tensor *at = add_input(n, GRT_DTYPE_INT64, 1, &batch);
        for (int64_t i = 0; i < batch; i++)
            set_element(at, i, (double)draw(0, circular ? 3 * length : length - count));
    }
    set_text(n, "mode", circular ? "circular" : "linear");
}

static grt_dtype draw_whole(void)
{
    return draw(0, 1) ? GRT_DTYPE_INT32 : GRT_DTYPE_INT64;
}

static void make_whole_matmul(node *n)
{
    make_matmul(n);
    const grt_dtype dtype = draw_whole();
    n->out = dtype;
    for (int i = 0; i < 2; i++) {
        const grt_tensor t = n->in[i];
        release(t.data);
        n->n_in = i;
        add_input(n, dtype, t.rank, t.dims);
    }
}

static void make_gemm(node *n)
{
    const int64_t m = draw_dim(), k = draw(1, 40), c = draw_dim(), rows = draw(0, 1), cols = draw(0, 1);
    const bool whole = draw(0, 1), trans_a = draw(0, 1), trans_b = draw(0, 1);
    n->op = "Gemm";
    n->out = whole ? draw_whole() : draw_float();
    add_input(n, n->out, 2, trans_a ? (int64_t[]){k, m} : (int64_t[]){m, k});
    add_input(n, n->out, 2, trans_b ? (int64_t[]){c, k} : (int64_t[]){k, c});
    n->constant[1] = draw(0, 1);
    if (draw(0, 1))
        add_input(n, n->out, 2, (int64_t[]){rows ? m : 1, cols ? c : 1});
    set_int(n, "transA", trans_a);
    set_int(n, "transB", trans_b);
    if (draw(0, 1)) {
        set_real(n, "alpha", whole ? (double)draw(-2, 2) : draw_real());
        set_real(n, "beta", whole ? (double)draw(-2, 2) : draw_real());
    }
}

/* Seeded, so that the same run draws the same numbers everywhere. */
static void make_random(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 1, 4);
    n->op = PICK("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli");
    n->out = draw_float();
    if (strstr(n->op, "Like") || n->op[0] == 'B')
        add_input(n, n->out, rank, dims);
    else
        set_ints(n, "shape", dims, rank);
    if (n->op[0] == 'B') /* probabilities */
        for (int64_t i = 0; i < grt_tensor_elements(&n->in[0]); i++)
            set_element(&n->in[0], i, draw_real());
    set_int(n, "dtype", n->out);
    set_real(n, "seed", draw_real());
    if (strstr(n->op, "Normal")) {
        set_real(n, "mean", draw_real());
        set_real(n, "scale", draw_real());
    }
}

static void make_multinomial(node *n)
{
    const int64_t dims[] = {draw(1, 4), draw(1, 300)};
    n->op = "Multinomial";
    n->out = GRT_DTYPE_INT32;
    add_input(n, draw_float(), 2, dims);
    set_int(n, "sample_size", draw(1, 50));
    set_int(n, "dtype", n->out);
    set_real(n, "seed", draw_real());
}

static void (*const makers[])(node *) = {
    make_binary, make_unary,  make_matmul,      make_softmax,  make_reduce,         make_transpose,
    make_slice,  make_pad,    make_gather,      make_concat,   make_where,          make_cumsum,
    make_conv,   make_pool,   make_norm,        make_resize,   make_rotary,         make_recurrent,
    make_cast,   make_top_k,  make_nms,         make_unique,   make_non_zero,       make_compress,
    make_det,    make_stft,   make_window,      make_mel,      make_tensor_scatter, make_whole_matmul,
    make_gemm,   make_random, make_multinomial, make_attention};

/* ---- comparing ---- */

enum { RUNS = 3 }; /* step by step, captured, replayed; as many on both, as random numbers count them */

typedef struct result {
    grt_status status;
    char error[300];
    grt_tensor out; /* guarded */
} result;

static grt_status remember(result *r, grt_status status)
{
    if (status != GRT_OK)
        snprintf(r->error, sizeof r->error, "%s", grt_last_error());
    return r->status = status;
}

/* The model, or a plan of it where it wants a precision. */
static grt_status open_model(const node *n, const char *device, grt_runtime *runtime, const void *bytes,
                             size_t size, grt_model **out)
{
    if (!n->precision || !strcmp(device, "cpu"))
        return grt_model_open_memory(runtime, bytes, size, out);
    char target[32], directory[] = "/tmp/differential-XXXXXX", onnx[64], plan[64];
    snprintf(target, sizeof target, "%.*s", (int)strcspn(device, ":"), device);
    grt_compile_options options = {
        .struct_size = sizeof options, .level = -1, .target = target, .precision = n->precision};
    if (!mkdtemp(directory))
        exit(2);
    snprintf(onnx, sizeof onnx, "%s/model.onnx", directory);
    snprintf(plan, sizeof plan, "%s/model.grt", directory);
    FILE *file = fopen(onnx, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
        exit(2);
    grt_status status = grt_compile(onnx, &options, plan);
    if (status == GRT_OK)
        status = grt_model_open(runtime, plan, out);
    remove(onnx);
    remove(plan);
    remove(directory);
    return status;
}

/* The node's result into memory of our own, of the size that the first run finds; `runs` runs. */
static void run_node(const node *n, const char *device, int runs, grt_runtime *runtime, const void *bytes,
                     size_t size, result *r)
{
    grt_model *model = NULL;
    grt_session *session = NULL;
    grt_context *context = NULL;
    grt_session_options options = {.struct_size = sizeof options, .threads = 1};
    if (remember(r, open_model(n, device, runtime, bytes, size, &model)) == GRT_OK &&
        remember(r, grt_session_create(model, device, &options, &session)) == GRT_OK)
        remember(r, grt_context_create(session, &context));
    for (int i = 0, at = 0; r->status == GRT_OK && i < n->n_in; i++)
        if (!n->constant[i] && !n->omitted[i])
            remember(r, grt_context_set_input(context, (size_t)at++, &n->in[i]));
    if (r->status == GRT_OK && remember(r, grt_context_run(context)) == GRT_OK &&
        remember(r, grt_context_get_output(context, 0, &r->out)) == GRT_OK) {
        r->out.memory = GRT_MEMORY_HOST;
        r->out.data = guarded(grt_tensor_bytes(&r->out));
        remember(r, grt_context_set_output(context, 0, &r->out));
        for (int i = 0; i < runs && r->status == GRT_OK; i++)
            remember(r, grt_context_run(context));
    }
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}

/* How far two results may be apart: the types' precision over sums of a few hundred terms. */
static bool close_enough(grt_dtype dtype, const char *precision, double a, double b)
{
    if ((isnan(a) && isnan(b)) || a == b)
        return true;
    if (!is_float(dtype))
        return false;
    const double unit = dtype == GRT_DTYPE_FLOAT16 || precision ? 4e-3 : 2e-5;
    return fabs(a - b) <= unit * (1 + fabs(a));
}

static bool same(const result *want, const result *found, const char *precision, char *why, size_t size)
{
    const grt_tensor *a = &want->out, *b = &found->out;
    bool fits = a->dtype == b->dtype && a->rank == b->rank;
    for (int32_t k = 0; fits && k < a->rank; k++)
        fits = a->dims[k] == b->dims[k];
    if (!fits) {
        snprintf(why, size, "dtype or dims differ");
        return false;
    }
    for (int64_t i = 0; i < grt_tensor_elements(a); i++)
        if (!close_enough(a->dtype, precision, element(a, i), element(b, i))) {
            snprintf(why, size, "element %lld is %.9g, on the CPU %.9g", (long long)i, element(b, i),
                     element(a, i));
            return false;
        }
    return true;
}

static void describe(const node *n, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "%s", n->op);
    for (int i = 0; i < n->n_in && at < size; i++) {
        at += (size_t)snprintf(text + at, size - at, " %s%s[", n->constant[i] ? "const " : "",
                               n->omitted[i] ? "-" : grt_dtype_name(n->in[i].dtype));
        for (int32_t k = 0; k < n->in[i].rank && at < size; k++)
            at += (size_t)snprintf(text + at, size - at, "%s%lld", k ? "," : "", (long long)n->in[i].dims[k]);
        if (at < size)
            at += (size_t)snprintf(text + at, size - at, "]");
    }
    for (int i = 0; i < n->n_attributes && at < size; i++)
        if (n->attributes[i].n < 0)
            at += (size_t)snprintf(text + at, size - at, " %s=%lld", n->attributes[i].name,
                                   (long long)n->attributes[i].ints[0]);
    if (n->precision && at < size)
        snprintf(text + at, size - at, " %s", n->precision);
}

typedef struct totals {
    size_t passed, failed, skipped;
} totals;

/* Is the op one of those that were named? */
static bool wanted(const char *ops, const char *op)
{
    const size_t n = strlen(op);
    for (const char *at = ops; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && !strncmp(at, op, n))
            return true;
    return !ops;
}

static void try_seed(uint64_t seed, const char *device, const char *ops, grt_runtime *runtime, totals *all)
{
    node n = {0};
    result cpu = {0}, other = {0};
    char text[600], why[400] = "";
    size_t size = 0;
    state = seed;
    makers[draw(0, (int64_t)(sizeof makers / sizeof *makers) - 1)](&n);
    if (!wanted(ops, n.op)) {
        for (int i = 0; i < n.n_in; i++)
            release(n.in[i].data);
        return;
    }
    void *bytes = model_bytes(&n, &size);
    if (!bytes)
        exit(2);
    describe(&n, text, sizeof text);
    run_node(&n, "cpu", RUNS, runtime, bytes, size, &cpu);
    run_node(&n, device, RUNS, runtime, bytes, size, &other);
    bool held = true;
    for (int i = 0; i < n.n_in; i++)
        held = held && (n.omitted[i] || guards_hold(n.in[i].data, grt_tensor_bytes(&n.in[i])));
    if (other.out.data)
        held = held && guards_hold(other.out.data, grt_tensor_bytes(&other.out));
    if (other.status == GRT_STATUS_UNSUPPORTED || (cpu.status != GRT_OK && cpu.status == other.status)) {
        all->skipped++;
    } else if (cpu.status != GRT_OK || other.status != GRT_OK) {
        printf("FAIL seed %llu: %s: cpu says '%s', %s says '%s'\n", (unsigned long long)seed, text, cpu.error,
               device, other.error);
        all->failed++;
    } else if (!held || !same(&cpu, &other, n.precision, why, sizeof why)) {
        printf("FAIL seed %llu: %s: %s\n", (unsigned long long)seed, text,
               held ? why : "wrote beyond a buffer");
        all->failed++;
    } else {
        all->passed++;
    }
    for (int i = 0; i < n.n_in; i++)
        release(n.in[i].data);
    release(cpu.out.data == NULL || cpu.status != GRT_OK ? NULL : cpu.out.data);
    release(other.out.data == NULL || other.status != GRT_OK ? NULL : other.out.data);
    free(bytes);
}

int main(int argc, char **argv)
{
    const char *device = "mirror", *ops = NULL;
    uint64_t seed = 1, count = 400;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--device"))
            device = argv[i + 1];
        else if (!strcmp(argv[i], "--seed"))
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--count"))
            count = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--ops"))
            ops = argv[i + 1];
        else
            argc = 0;
    }
    if (argc % 2 == 0) {
        fprintf(stderr, "usage: differential [--device DEVICE] [--seed N] [--count N] [--ops OP,...]\n");
        return 2;
    }
    grt_runtime *runtime;
    totals all = {0};
    if (grt_runtime_create(&runtime) != GRT_OK) {
        fprintf(stderr, "differential: %s\n", grt_last_error());
        return 2;
    }
    for (uint64_t i = 0; i < count; i++)
        try_seed(seed + i, device, ops, runtime, &all);
    grt_runtime_release(runtime);
    printf("%zu passed, %zu failed, %zu skipped\n", all.passed, all.failed, all.skipped);
    return all.failed || !all.passed;
}
