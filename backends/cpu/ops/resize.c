/* Resize. Nearest picks elements of any type by tables; linear and cubic blend along one axis after the
 * other, shrinking axes first, in float32 or, for types that it does not hold, in float64. */
#include "backends/cpu/move.h"

#include "backends/cpu/element.h"
#include "src/base/checked.h"

#include <string.h>

typedef enum resize_mode { NEAREST, LINEAR, CUBIC } resize_mode;
typedef enum coordinates {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    CROP_AND_RESIZE,
    HALF_PIXEL_FOR_NEAREST,
} coordinates;
typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL } rounding;
typedef enum policy { STRETCH, NOT_LARGER, NOT_SMALLER } policy;

typedef struct resize_state {
    resize_mode mode;
    coordinates coordinates;
    rounding rounding;
    policy policy;
    bool antialias, exclude_outside;
    double cubic_a, outside;
    int32_t n_axes; /* -1: all */
    int64_t axes[GRT_MAX_RANK];
} resize_state;

static int choose(const grt_op_desc *desc, const char *attr, const char *const *names, int n)
{
    const char *value = grt_attr_string(desc, attr, names[0]);
    for (int k = 0; k < n; k++)
        if (!strcmp(value, names[k]))
            return k;
    return 0;
}

static grt_status create_resize(const grt_kernel_node *node, void **out_state)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const ways[] = {"half_pixel",          "half_pixel_symmetric", "pytorch_half_pixel",
                                       "align_corners",       "asymmetric",           "tf_crop_and_resize",
                                       "tf_half_pixel_for_nn"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    GRT_TRY(cpu_state(sizeof(resize_state), out_state));
    resize_state *s = *out_state;
    s->mode = (resize_mode)choose(node->desc, "mode", modes, 3);
    s->coordinates = (coordinates)choose(node->desc, "coordinate_transformation_mode", ways, 7);
    s->rounding = (rounding)choose(node->desc, "nearest_mode", roundings, 4);
    s->policy = (policy)choose(node->desc, "keep_aspect_ratio_policy", policies, 3);
    s->antialias = grt_attr_int(node->desc, "antialias", 0) != 0;
    s->exclude_outside = grt_attr_int(node->desc, "exclude_outside", 0) != 0;
    s->cubic_a = (double)grt_attr_float(node->desc, "cubic_coeff_a", -0.75f);
    s->outside = (double)grt_attr_float(node->desc, "extrapolation_value", 0);
    size_t n;
    const int64_t *axes = grt_attr_ints(node->desc, "axes", &n);
    s->n_axes = axes ? (int32_t)n : -1;
    for (size_t k = 0; k < n && k < GRT_MAX_RANK; k++)
        s->axes[k] = axes[k];
    return GRT_OK;
}

static bool supports_resize(const grt_kernel_node *node, grt_text *why)
{
    bool nearest = !strcmp(grt_attr_string(node->desc, "mode", "nearest"), "nearest");
    if (nearest || grt_dtype_in(node->in[0].dtype, GRT_SET_NUMBERS))
        return true;
    grt_text_add(why, "linear and cubic are for numbers, not %s", grt_dtype_name(node->in[0].dtype));
    return false;
}

/* ---- what happens to each axis ---- */

typedef struct axis_plan {
    int64_t in, out;
    double scale, roi_start, roi_end;
    bool active;
} axis_plan;

static const grt_tensor *given(const grt_run *run, int32_t i)
{
    return i < run->n_in && run->in[i] && grt_tensor_elements(run->in[i]) > 0 ? run->in[i] : NULL;
}

static grt_status plan_axes(const grt_run *run, axis_plan *plans)
{
    const resize_state *s = run->state;
    const grt_tensor *in = run->in[0], *out = run->out[0], *roi = given(run, 1), *scales = given(run, 2),
                     *sizes = given(run, 3);
    int32_t n = s->n_axes < 0 ? in->rank : s->n_axes;
    const grt_tensor *list = scales ? scales : sizes;
    double common = s->policy == NOT_LARGER ? INFINITY : 0;
    if (n && (!list || grt_tensor_elements(list) != n))
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "scales or sizes must be a list of %d entries", n);
    if (s->coordinates == CROP_AND_RESIZE && (!roi || grt_tensor_elements(roi) != 2 * n))
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "tf_crop_and_resize needs a roi of %d entries", 2 * n);
    for (int32_t k = 0; k < in->rank; k++)
        plans[k] = (axis_plan){in->dims[k], out->dims[k], 1, 0, 1, false};
    for (int32_t k = 0; k < n; k++) {
        axis_plan *p = &plans[grt_axis(s->n_axes < 0 ? k : s->axes[k], in->rank)];
        p->scale = scales ? cpu_element_get(scales, k) : (double)cpu_index(sizes, k) / (double)p->in;
        if (roi && s->coordinates == CROP_AND_RESIZE) {
            p->roi_start = cpu_element_get(roi, k);
            p->roi_end = cpu_element_get(roi, n + k);
        }
        common = s->policy == NOT_LARGER ? fmin(common, p->scale) : fmax(common, p->scale);
        p->active = true;
    }
    for (int32_t k = 0; k < in->rank; k++) {
        axis_plan *p = &plans[k];
        if (p->active && sizes && !scales && s->policy != STRETCH)
            p->scale = common;
        if (p->out > 0 && (p->in == 0 || !(p->scale > 0x1p-40)))
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "axis %d of size %lld cannot be scaled by %g", k, (long long)p->in, p->scale);
        p->active = p->active && !(p->scale == 1 && p->in == p->out && p->roi_start == 0 && p->roi_end == 1);
    }
    return GRT_OK;
}

/* Where output index `i` lies on the input axis. False: outside of what is cropped from. */
static bool source_of(const resize_state *s, const axis_plan *p, int64_t i, double *out_x)
{
    double x = (double)i, in = (double)p->in, width = p->scale * in;
    switch (s->coordinates) {
    case HALF_PIXEL:
        *out_x = (x + 0.5) / p->scale - 0.5;
        return true;
    case HALF_PIXEL_SYMMETRIC:
        *out_x = in / 2 * (1 - (double)p->out / width) + (x + 0.5) / p->scale - 0.5;
        return true;
    case PYTORCH_HALF_PIXEL:
        *out_x = width == 1 ? -0.5 : (x + 0.5) / p->scale - 0.5;
        return true;
    case ALIGN_CORNERS:
        *out_x = width == 1 ? 0 : x * (in - 1) / (width - 1);
        return true;
    case ASYMMETRIC:
        *out_x = x / p->scale;
        return true;
    case HALF_PIXEL_FOR_NEAREST:
        *out_x = (x + 0.5) / p->scale;
        return true;
    case CROP_AND_RESIZE:
        *out_x = (width == 1 ? (p->roi_end - p->roi_start) * (in - 1) / 2
                             : x * (p->roi_end - p->roi_start) * (in - 1) / (width - 1)) +
                 p->roi_start * (in - 1);
        return *out_x >= 0 && *out_x <= in - 1;
    }
    return false;
}

static int64_t clamp_index(double x, int64_t n)
{
    return !(x > 0) ? 0 : x >= (double)n ? n - 1 : (int64_t)x;
}

/* ---- nearest ---- */

#define DEFINE_PICK(bits)                                                                          \
    static void pick_##bits(void *dst, const void *src, const void *outside, const int64_t *table, \
                            int64_t n)                                                             \
    {                                                                                              \
        const cpu_bits##bits *from = src, *other = outside;                                        \
        for (int64_t k = 0; k < n; k++)                                                            \
            ((cpu_bits##bits *)dst)[k] = table[k] < 0 ? *other : from[table[k]];                   \
    }
DEFINE_PICK(8)
DEFINE_PICK(16)
DEFINE_PICK(32)
DEFINE_PICK(64)
DEFINE_PICK(128)

/* Rows of words doubled, as networks that upsample ask for. */
static void double_words(void *dst, const void *src, int64_t n)
{
    const cpu_bits32 *restrict from = src;
    cpu_bits32 *restrict to = dst;
#pragma omp simd
    for (int64_t k = 0; k < n / 2; k++) {
        to[2 * k] = from[k];
        to[2 * k + 1] = from[k];
    }
}

static bool doubles(const int64_t *table, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (table[k] != k / 2)
            return false;
    return n % 2 == 0;
}

static double round_as(rounding how, double x)
{
    return how == PREFER_FLOOR  ? ceil(x - 0.5)
           : how == PREFER_CEIL ? floor(x + 0.5)
           : how == FLOOR       ? floor(x)
                                : ceil(x);
}

/* Offset of output row `row` in the input; -1 if it lies outside. */
static int64_t row_offset(const grt_tensor *out, int64_t *const *tables, int64_t row)
{
    int64_t offset = 0;
    for (int32_t k = out->rank - 2; k >= 0; k--) {
        int64_t at = tables[k][row % out->dims[k]];
        if (at < 0)
            return -1;
        offset += at;
        row /= out->dims[k];
    }
    return offset;
}

static void run_nearest(const grt_run *run, const axis_plan *plans)
{
    const resize_state *s = run->state;
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int64_t strides[GRT_MAX_RANK], *tables[GRT_MAX_RANK], *next = run->workspace,
                                                          total = grt_tensor_elements(out);
    size_t bytes = grt_dtype_size(in->dtype);
    uint64_t outside[2] = {0};
    if (grt_dtype_in(in->dtype, GRT_SET_NUMBERS))
        cpu_element_store(in->dtype, outside, 0, s->outside);
    grt_dims_strides(in->dims, in->rank, strides);
    for (int32_t k = 0; k < in->rank; k++) {
        tables[k] = next;
        for (int64_t i = 0; i < plans[k].out; i++) {
            double x = (double)i;
            bool inside = !plans[k].active || source_of(s, &plans[k], i, &x);
            *next++ = inside ? clamp_index(round_as(s->rounding, x), plans[k].in) * strides[k] : -1;
        }
    }
    int64_t n = out->dims[out->rank - 1], rows = total / n, parts = total < CPU_GRAIN ? 1 : 4 * run->threads;
    parts = parts > rows ? rows : parts;
    bool twice = bytes == 4 && doubles(tables[out->rank - 1], n);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (parts > 1)
    for (int64_t part = 0; part < parts; part++) {
        int64_t before = -2;
        for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; row++) {
            int64_t offset = row_offset(out, tables, row);
            char *dst = cpu_at(out->data, row * n, bytes);
            if (offset == before) /* enlarged: the row above again */
                memcpy(dst, dst - (size_t)n * bytes, (size_t)n * bytes);
            else if (offset < 0)
                cpu_fill(dst, outside, bytes, n, 1);
            else if (twice)
                double_words(dst, cpu_at_const(in->data, offset, bytes), n);
            else
                CPU_BY_SIZE(bytes, pick_, dst, cpu_at_const(in->data, offset, bytes), outside,
                            tables[out->rank - 1], n);
            before = offset;
        }
    }
}

/* ---- linear and cubic ---- */

static double linear_kernel(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double cubic_kernel(double x, double a)
{
    x = fabs(x);
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* What makes one output position of an axis: `n` neighbours from `first` on, or nothing if it lies outside.
 */
typedef struct blend {
    int64_t first;
    int32_t n; /* 0: outside */
    double *weights;
} blend;

/* Neighbours on each side that matter, when the input is `in` long and shrinks by `scale`. */
static double reach_of(const resize_state *s, double scale)
{
    return (s->mode == LINEAR ? 1 : 2) / (s->antialias && scale < 1 ? scale : 1);
}

/* Most neighbours of one position: those beyond the border count for the border's element. */
static int64_t most_taps(const resize_state *s, int64_t in, int64_t out)
{
    if (!s->antialias)
        return in < 5 ? in : 5;
    if (s->coordinates == CROP_AND_RESIZE || s->policy != STRETCH)
        return in;
    double reach = reach_of(s, (double)out / (double)in), taps = 2 * reach + 2;
    return taps < (double)in ? (int64_t)taps : in;
}

static void weigh(const resize_state *s, const axis_plan *p, int64_t i, blend *b)
{
    double x, shrink = s->antialias && p->scale < 1 ? p->scale : 1, reach = reach_of(s, p->scale), sum = 0;
    b->first = b->n = 0;
    if (!source_of(s, p, i, &x))
        return;
    /* far outside, where only the border counts, it does not matter how far */
    x = x < -2 * reach - 1 ? -2 * reach - 1 : x > (double)p->in + 2 * reach ? (double)p->in + 2 * reach : x;
    int64_t low = (int64_t)ceil(x - reach), high = (int64_t)floor(x + reach);
    b->first = clamp_index((double)low, p->in);
    b->n = (int32_t)(clamp_index((double)high, p->in) - b->first + 1);
    memset(b->weights, 0, (size_t)b->n * sizeof *b->weights);
    for (int64_t k = low; k <= high; k++) {
        double d = ((double)k - x) * shrink,
               w = s->mode == LINEAR ? linear_kernel(d) : cubic_kernel(d, s->cubic_a);
        if (s->exclude_outside && (k < 0 || k >= p->in))
            continue;
        b->weights[clamp_index((double)k, p->in) - b->first] += w;
        sum += w;
    }
    if ((s->antialias || s->exclude_outside) && sum != 0)
        for (int32_t k = 0; k < b->n; k++)
            b->weights[k] /= sum;
}

/* dst[inner] = sum of weighted rows of src. */
#define DEFINE_BLEND(T)                                                                              \
    static void blend_##T(const blend *b, void *dst, const void *src, int64_t inner, double outside) \
    {                                                                                                \
        T *restrict to = dst;                                                                        \
        const T *restrict from = (const T *)src + b->first * inner;                                  \
        int32_t done = b->n < 2 ? b->n : 2;                                                          \
        const T w0 = done > 0 ? (T)b->weights[0] : 0, w1 = done > 1 ? (T)b->weights[1] : 0;          \
        if (done == 0)                                                                               \
            for (int64_t i = 0; i < inner; i++)                                                      \
                to[i] = (T)outside;                                                                  \
        else if (done == 1)                                                                          \
            _Pragma("omp simd") for (int64_t i = 0; i < inner; i++) to[i] = w0 * from[i];            \
        else                                                                                         \
            _Pragma("omp simd") for (int64_t i = 0; i < inner; i++) to[i] =                          \
                w0 * from[i] + w1 * from[inner + i];                                                 \
        for (int32_t k = done; k < b->n; k++) {                                                      \
            const T w = (T)b->weights[k], *restrict row = from + k * inner;                          \
            _Pragma("omp simd") for (int64_t i = 0; i < inner; i++) to[i] += w * row[i];             \
        }                                                                                            \
    }                                                                                                \
    /* The last axis: a row of n outputs from one row of the input. */                               \
    static void blend_row_##T(const blend *b, int64_t n, void *dst, const void *src, double outside) \
    {                                                                                                \
        T *restrict to = dst;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                            \
            const T *restrict from = (const T *)src + b[i].first;                                    \
            const double *restrict w = b[i].weights;                                                 \
            T sum = b[i].n ? (T)w[0] * from[0] : (T)outside;                                         \
            for (int32_t k = 1; k < b[i].n; k++)                                                     \
                sum += (T)w[k] * from[k];                                                            \
            to[i] = sum;                                                                             \
        }                                                                                            \
    }
DEFINE_BLEND(float)
DEFINE_BLEND(double)

static bool in_float(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT || dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16;
}

/* Axes in the order in which they are resized: what shrinks most first. */
static void order_axes(const grt_tensor *in, const grt_tensor *out, int32_t *order)
{
    for (int32_t k = 0; k < in->rank; k++) {
        int32_t i = k;
        for (; i > 0 && (double)out->dims[k] * (double)in->dims[order[i - 1]] <
                            (double)out->dims[order[i - 1]] * (double)in->dims[k];
             i--)
            order[i] = order[i - 1];
        order[i] = k;
    }
}

typedef struct layout {
    int32_t order[GRT_MAX_RANK];
    size_t table_bytes;  /* blends and weights of the longest axis */
    size_t buffer_bytes; /* of each of two buffers for the tensor between two axes */
} layout;

static grt_status plan_layout(const grt_op_desc *desc, const resize_state *s, const grt_tensor *in,
                              const grt_tensor *out, layout *l)
{
    int64_t dims[GRT_MAX_RANK], most = grt_tensor_elements(in);
    order_axes(in, out, l->order);
    memcpy(dims, in->dims, sizeof dims);
    l->table_bytes = 0;
    for (int32_t i = 0; i < in->rank; i++) {
        int32_t k = l->order[i];
        dims[k] = out->dims[k];
        int64_t n = grt_dims_product(dims, 0, in->rank);
        if (n < 0)
            return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT, "the resized tensor is too large");
        most = n > most ? n : most;
        int64_t taps = out->dims[k] ? most_taps(s, in->dims[k], out->dims[k]) : 0;
        size_t bytes = (size_t)out->dims[k] * (sizeof(blend) + (size_t)taps * sizeof(double));
        l->table_bytes = bytes > l->table_bytes ? bytes : l->table_bytes;
    }
    l->table_bytes = grt_align_up(l->table_bytes, 64);
    l->buffer_bytes = grt_align_up((size_t)most * (in_float(in->dtype) ? sizeof(float) : sizeof(double)), 64);
    return GRT_OK;
}

static grt_status reshape_resize(grt_reshape *reshape)
{
    const resize_state *s = reshape->state;
    const grt_tensor *in = reshape->in[0], *out = reshape->out[0];
    if (s->mode == NEAREST) {
        size_t entries = 0;
        for (int32_t k = 0; k < out->rank; k++)
            entries += (size_t)out->dims[k];
        reshape->workspace_bytes = entries * sizeof(int64_t);
        return GRT_OK;
    }
    layout l;
    GRT_TRY(plan_layout(reshape->desc, s, in, out, &l));
    reshape->workspace_bytes = l.table_bytes + 2 * l.buffer_bytes;
    return GRT_OK;
}

/* Resize one axis: from dims to dims with dims[axis] = p->out. */
static void blend_axis(const grt_run *run, const axis_plan *p, const int64_t *dims, int32_t axis, bool narrow,
                       void *dst, const void *src)
{
    const resize_state *s = run->state;
    int64_t outer = grt_dims_product(dims, 0, axis),
            inner = grt_dims_product(dims, axis + 1, run->in[0]->rank);
    int64_t taps = most_taps(s, p->in, p->out), rows = outer * p->out;
    size_t size = narrow ? sizeof(float) : sizeof(double);
    blend *blends = run->workspace;
    double *weights = (double *)(blends + p->out);
    for (int64_t i = 0; i < p->out; i++) {
        blends[i].weights = weights + i * taps;
        weigh(s, p, i, &blends[i]);
    }
    if (inner == 1) {
#pragma omp parallel for num_threads(run->threads) schedule(static) if (rows > CPU_GRAIN)
        for (int64_t row = 0; row < outer; row++) {
            void *to = cpu_at(dst, row * p->out, size);
            const void *from = cpu_at_const(src, row * p->in, size);
            (narrow ? blend_row_float : blend_row_double)(blends, p->out, to, from, s->outside);
        }
        return;
    }
#pragma omp parallel for num_threads(run->threads) schedule(static) if (rows * inner > CPU_GRAIN)
    for (int64_t row = 0; row < rows; row++) {
        const blend *b = &blends[row % p->out];
        void *to = cpu_at(dst, row * inner, size);
        const void *from = cpu_at_const(src, row / p->out * p->in * inner, size);
        if (narrow)
            blend_float(b, to, from, inner, s->outside);
        else
            blend_double(b, to, from, inner, s->outside);
    }
}

/* Between the tensor's type and the one that is computed in. */
static void widen(void *dst, const grt_tensor *src, bool narrow, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (narrow)
            ((float *)dst)[i] = (float)cpu_element_get(src, i);
        else
            ((double *)dst)[i] = cpu_element_get(src, i);
}

static void store(grt_tensor *dst, const void *src, bool narrow, int64_t n)
{
    bool whole = grt_dtype_in(dst->dtype, GRT_SET_INTS);
    for (int64_t i = 0; i < n; i++) {
        double v = narrow ? (double)((const float *)src)[i] : ((const double *)src)[i];
        cpu_element_put(dst, i, whole ? rint(v) : v);
    }
}

static grt_status run_resize(const grt_run *run)
{
    const resize_state *s = run->state;
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    axis_plan plans[GRT_MAX_RANK];
    layout l;
    if (grt_tensor_elements(out) == 0)
        return GRT_OK;
    GRT_TRY(plan_axes(run, plans));
    if (in->rank == 0) {
        memcpy(out->data, in->data, grt_dtype_size(in->dtype));
        return GRT_OK;
    }
    if (s->mode == NEAREST) {
        run_nearest(run, plans);
        return GRT_OK;
    }
    GRT_TRY(plan_layout(run->desc, s, in, out, &l));
    bool narrow = in_float(in->dtype), direct = in->dtype == GRT_DTYPE_FLOAT || in->dtype == GRT_DTYPE_DOUBLE;
    char *buffers[2] = {(char *)run->workspace + l.table_bytes,
                        (char *)run->workspace + l.table_bytes + l.buffer_bytes};
    const void *now = in->data;
    int32_t left = 0, which = 0;
    if (!direct) {
        widen(buffers[0], in, narrow, grt_tensor_elements(in));
        now = buffers[0];
        which = 1;
    }
    for (int32_t k = 0; k < in->rank; k++)
        left += plans[k].active;
    int64_t dims[GRT_MAX_RANK];
    memcpy(dims, in->dims, sizeof dims);
    for (int32_t i = 0; i < in->rank; i++) {
        int32_t k = l.order[i];
        if (!plans[k].active)
            continue;
        void *to = --left == 0 && direct ? out->data : buffers[which];
        blend_axis(run, &plans[k], dims, k, narrow, to, now);
        dims[k] = plans[k].out;
        now = to;
        which ^= 1;
    }
    if (!direct)
        store(out, now, narrow, grt_tensor_elements(out));
    else if (now == in->data)
        cpu_copy(out->data, in->data, grt_tensor_bytes(in), run->threads);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Resize",
     .domain = "",
     .types = {CPU_MOVABLE, GRT_SET_FLOATS, GRT_SET_FLOATS, CPU_INDEX},
     .supports = supports_resize,
     .create = create_resize,
     .destroy = free,
     .reshape = reshape_resize,
     .run = run_resize},
};
CPU_KERNELS(resize, rows);
