/* SPDX-License-Identifier: Apache-2.0 */
/* Do operators of backends/cuda/ops/ whose kernels depend on each other's order compute the CPU's bits?
 * Their files are translated to C++ for the host (called.h) and run with threads, barriers and lanes as
 * cuda.h has them, in rising and falling order. Sizes are drawn, with those at the bounds of warps, blocks,
 * pieces and tiles. */
#include "backends/backend.h"
#include "src/base/element.h"
#include "src/target/target.h"
#include "tests/emulate/called.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_INPUTS = 4, MOST_OUTPUTS = 4, MOST_ATTRS = 4 };

typedef struct node {
    char name[128];
    grt_op_desc desc;
    grt_attr attrs[MOST_ATTRS];
    grt_value in[MOST_INPUTS];
    int32_t n_in, n_out;
    grt_dtype out[MOST_OUTPUTS];
    double tolerance; /* relative, of small numbers absolute; 0: the bits are compared */
} node;

static size_t passed, failed;
static size_t sorted_tiles, sorted_more; /* scatters that sorted */

static void result(const char *name, const char *why)
{
    passed += why == NULL;
    failed += why != NULL;
    if (why)
        printf("FAIL %s: %s\n", name, why);
}

/* ---- drawing ---- */

static uint64_t seed = 1;

static int64_t draw(int64_t low, int64_t high)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

static const grt_dtype numbers[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_DOUBLE, GRT_DTYPE_FLOAT16, GRT_DTYPE_BFLOAT16,
                                    GRT_DTYPE_INT8,  GRT_DTYPE_INT16,  GRT_DTYPE_INT32,   GRT_DTYPE_INT64,
                                    GRT_DTYPE_UINT8, GRT_DTYPE_UINT16, GRT_DTYPE_UINT32,  GRT_DTYPE_UINT64,
                                    GRT_DTYPE_BOOL};
enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

static const int64_t bounds[] = {1,   2,   31,  32,   33,   64,   65,   127,  128,  129,  255, 256,
                                 257, 300, 512, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 3000};
enum { N_BOUNDS = sizeof bounds / sizeof *bounds };

static bool is_float(grt_dtype dtype)
{
    return (1u << dtype & GRT_SET_FLOATS) != 0;
}

static grt_tensor *add_in(node *n, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    grt_value *value = &n->in[n->n_in++];
    if (grt_value_alloc(value, dtype, rank, dims) != GRT_OK) {
        printf("FAIL %s: %s\n", n->name, grt_last_error());
        exit(1);
    }
    return &value->t;
}

static void add_attr(node *n, grt_attr attr)
{
    n->attrs[n->desc.n_attrs++] = attr;
    n->desc.attrs = n->attrs;
}

static void add_int(node *n, const char *name, int64_t value)
{
    add_attr(n, (grt_attr){.name = name, .kind = GRT_ATTR_INT, .i = value});
}

static void add_string(node *n, const char *name, const char *value)
{
    add_attr(n, (grt_attr){.name = name, .kind = GRT_ATTR_STRING, .s = {value, strlen(value)}});
}

/* How numbers are drawn. WHOLE: sums are exact in any order. SIGNS: so are products. ANY: whatever floats can
 * be, NaN of several kinds and both zeros, few enough that many are equal. */
enum content { WHOLE, SIGNS, REAL, ANY };

static double draw_number(grt_dtype dtype, enum content content)
{
    static const double odd[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0, -0.0, 1, -1, 0.5};
    if (content == SIGNS)
        return is_float(dtype) && draw(0, 1) ? -1 : 1;
    if (content == WHOLE || !is_float(dtype))
        return draw(0, 15) ? 0 : (double)(is_float(dtype) ? draw(-1, 1) : draw(0, 100));
    if (content == ANY)
        return odd[draw(0, sizeof odd / sizeof *odd - 1)];
    return (double)draw(-1000, 1000) / 64;
}

static void fill(grt_tensor *t, enum content content)
{
    for (int64_t i = 0; i < grt_tensor_elements(t); i++)
        grt_element_store(t->dtype, t->data, i, draw_number(t->dtype, content));
}

/* ---- comparing ---- */

static void release(node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        grt_value_clear(&n->in[i]);
}

/* NULL, or what differs. Where a NaN is any will do. */
static const char *differs(const grt_tensor *want, const grt_tensor *got, double tolerance)
{
    static char why[160];
    const size_t size = grt_dtype_size(want->dtype);
    if (want->rank != got->rank ||
        memcmp(want->dims, got->dims, (size_t)want->rank * sizeof *want->dims) != 0)
        return "its dims are not the CPU's";
    for (int64_t i = 0; i < grt_tensor_elements(want); i++) {
        const void *w = (const char *)want->data + (size_t)i * size,
                   *g = (const char *)got->data + (size_t)i * size;
        const double e = grt_element_load(want->dtype, want->data, i),
                     f = grt_element_load(want->dtype, got->data, i);
        if (memcmp(w, g, size) == 0 || (isnan(e) && isnan(f)) ||
            (tolerance > 0 && fabs(e - f) <= tolerance * fmax(fabs(e), 1)))
            continue;
        snprintf(why, sizeof why, "element %lld of %lld is %.17g; the CPU gives %.17g", (long long)i,
                 (long long)grt_tensor_elements(want), f, e);
        return why;
    }
    return NULL;
}

typedef struct results {
    grt_value out[MOST_OUTPUTS];
    grt_status status;
    char error[256];
} results;

static void run_cpu(const node *n, const grt_tensor *const *in, results *out)
{
    const grt_target target = grt_target_of(&grt_backend_cpu);
    *out = (results){0};
    out->status = target.evaluate(&target, &n->desc, in, n->n_in, out->out, n->n_out, SIZE_MAX);
    snprintf(out->error, sizeof out->error, "%s", out->status == GRT_OK ? "" : grt_last_error());
}

static void run_emulated(const emulated_file *file, const node *n, const grt_tensor *const *in, results *out,
                         size_t *workspace)
{
    *out = (results){0};
    for (int32_t i = 0; i < n->n_out; i++)
        out->out[i].t.dtype = n->out[i];
    out->status = emulate_call(file, &n->desc, in, n->n_in, out->out, n->n_out, workspace);
    snprintf(out->error, sizeof out->error, "%s", out->status == GRT_OK ? "" : grt_last_error());
}

static const char *compare(const node *n, const results *want, const results *got)
{
    static char why[600];
    if (want->status != got->status) {
        snprintf(why, sizeof why, "the CPU says '%s', the kernel '%s'", want->error, got->error);
        return why;
    }
    for (int32_t i = 0; want->status == GRT_OK && i < n->n_out; i++) {
        const char *found = differs(&want->out[i].t, &got->out[i].t, n->tolerance);
        if (found)
            return found;
    }
    return NULL;
}

static void clear(results *r)
{
    for (int32_t i = 0; i < MOST_OUTPUTS; i++)
        grt_value_clear(&r->out[i]);
}

/* Both orders of threads; releases the node. Returns the workspace. */
static size_t check(const emulated_file *file, node *n)
{
    const grt_tensor *in[MOST_INPUTS];
    results want, got;
    size_t workspace = 0;
    n->desc.name = n->name;
    for (int32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i].t.dtype ? &n->in[i].t : NULL;
    run_cpu(n, in, &want);
    for (int falling = 0; falling < 2; falling++) {
        *file->falling = falling;
        run_emulated(file, n, in, &got, &workspace);
        result(n->name, compare(n, &want, &got));
        clear(&got);
    }
    clear(&want);
    release(n);
    return workspace;
}

/* ---- scatters ---- */

/* How often an element is named: by all, by many, by some, once. */
enum crowd { ALL, MANY, SOME, ONCE, N_CROWDS };

static int64_t draw_index(enum crowd crowd, int64_t k, int64_t size)
{
    const int64_t at = crowd == ALL    ? size / 2
                       : crowd == MANY ? draw(0, size < 3 ? size - 1 : 2)
                       : crowd == SOME ? draw(0, size - 1)
                                       : (k * 7 + 3) % size; /* 7 does not divide such sizes */
    return draw(0, 1) ? at : at - size;
}

static void set_index(grt_tensor *t, int64_t i, int64_t value)
{
    if (t->dtype == GRT_DTYPE_INT32)
        ((int32_t *)t->data)[i] = (int32_t)value;
    else
        ((int64_t *)t->data)[i] = value;
}

/* Numbers whose result does not depend on where it is rounded, or, where an element has few updates, any. */
static enum content draw_content(const char *how, int64_t updates, enum crowd crowd)
{
    if (how[0] == 'm' && how[1] != 'u') /* max, min */
        return ANY;
    if (crowd == ONCE || updates <= 128)
        return REAL;
    return how[0] == 'a' ? WHOLE : SIGNS;
}

static const char *const reductions[] = {"add", "mul", "max", "min"};

static void begin_scatter(node *n, const char *op, grt_dtype dtype, const char *how)
{
    *n = (node){.desc = {.domain = "", .op = op}, .n_out = 1, .out = {dtype}};
    add_string(n, "reduction", how);
}

static void count_sorted(size_t workspace, int64_t n)
{
    sorted_tiles += workspace > 0 && n <= 4096;
    sorted_more += workspace > 0 && n > 4096;
}

/* `many` updates along an axis of `size`, for each of outer x inner lines. */
static void scatter_elements(const emulated_file *file, grt_dtype dtype, const char *how, enum crowd crowd,
                             int64_t many, int64_t outer, int64_t inner)
{
    node n;
    const int64_t size = crowd == ONCE ? many + (many % 7 == 0) : draw(1, 2 * many);
    const enum content content = draw_content(how, many, crowd);
    begin_scatter(&n, "ScatterElements", dtype, how);
    add_int(&n, "axis", 1);
    snprintf(n.name, sizeof n.name, "ScatterElements %s %s, %lld of %lld x %lld lines, crowd %d", how,
             grt_dtype_name(dtype), (long long)many, (long long)outer, (long long)inner, crowd);
    fill(add_in(&n, dtype, 3, (int64_t[]){outer, size, inner + 1}), content);
    grt_tensor *indices =
        add_in(&n, draw(0, 1) ? GRT_DTYPE_INT32 : GRT_DTYPE_INT64, 3, (int64_t[]){outer, many, inner});
    for (int64_t i = 0; i < outer * many * inner; i++)
        set_index(indices, i, draw_index(crowd, i / inner % many, size));
    fill(add_in(&n, dtype, 3, (int64_t[]){outer, many, inner}), content);
    count_sorted(check(file, &n), outer * many * inner);
}

/* `many` tuples of two indices that name runs of `run` numbers. */
static void scatter_tuples(const emulated_file *file, grt_dtype dtype, const char *how, enum crowd crowd,
                           int64_t many, int64_t run)
{
    node n;
    const int64_t rows = draw(1, 9), size = crowd == ONCE ? many + (many % 7 == 0) : draw(1, 40);
    const enum content content = draw_content(how, many, crowd);
    begin_scatter(&n, "ScatterND", dtype, how);
    snprintf(n.name, sizeof n.name, "ScatterND %s %s, %lld tuples, runs of %lld, crowd %d", how,
             grt_dtype_name(dtype), (long long)many, (long long)run, crowd);
    fill(add_in(&n, dtype, 3, (int64_t[]){rows, size, run}), content);
    grt_tensor *indices = add_in(&n, draw(0, 1) ? GRT_DTYPE_INT32 : GRT_DTYPE_INT64, 2, (int64_t[]){many, 2});
    for (int64_t k = 0; k < many; k++) {
        set_index(indices, 2 * k, crowd == ALL || crowd == ONCE ? 0 : draw(-rows, rows - 1));
        set_index(indices, 2 * k + 1, draw_index(crowd, k, size));
    }
    fill(add_in(&n, dtype, 2, (int64_t[]){many, run}), content);
    count_sorted(check(file, &n), many);
}

/* An index out of range is an error that names it, wherever the update comes to lie. */
static void scatter_beyond(const emulated_file *file, const char *op, int64_t many, int64_t at)
{
    node n;
    const bool tuples = !strcmp(op, "ScatterND");
    begin_scatter(&n, op, GRT_DTYPE_FLOAT, "add");
    snprintf(n.name, sizeof n.name, "%s of %lld, one beyond its axis", op, (long long)many);
    fill(add_in(&n, GRT_DTYPE_FLOAT, 1, (int64_t[]){50}), WHOLE);
    grt_tensor *indices = add_in(&n, GRT_DTYPE_INT64, tuples ? 2 : 1, (int64_t[]){many, 1});
    for (int64_t i = 0; i < many; i++)
        set_index(indices, i, i == at ? (at % 2 ? 50 : -51) : draw(-50, 49));
    fill(add_in(&n, GRT_DTYPE_FLOAT, 1, (int64_t[]){many}), WHOLE);
    (void)check(file, &n);
}

/* No updates; no numbers in a run. */
static void scatter_nothing(const emulated_file *file)
{
    for (int tuples = 0; tuples < 2; tuples++) {
        node n;
        begin_scatter(&n, tuples ? "ScatterND" : "ScatterElements", GRT_DTYPE_FLOAT, "add");
        snprintf(n.name, sizeof n.name, "%s of no updates", n.desc.op);
        fill(add_in(&n, GRT_DTYPE_FLOAT, 1, (int64_t[]){50}), WHOLE);
        (void)add_in(&n, GRT_DTYPE_INT64, tuples ? 2 : 1, (int64_t[]){0, 1});
        (void)add_in(&n, GRT_DTYPE_FLOAT, 1, (int64_t[]){0});
        (void)check(file, &n);
    }
}

static void scatters(const emulated_file *file)
{
    static const int64_t large[] = {4095, 4096, 4097, 8193};
    for (int i = 0; i < 2 * N_NUMBERS; i++) {
        const grt_dtype dtype = numbers[i % N_NUMBERS];
        const char *how = reductions[i / 2 % 4];
        const int64_t many = bounds[draw(0, N_BOUNDS - 1)];
        scatter_elements(file, dtype, how, (enum crowd)draw(0, N_CROWDS - 1), many, draw(1, 3),
                         draw(1, many > 500 ? 1 : 3));
        scatter_tuples(file, dtype, how, (enum crowd)draw(0, N_CROWDS - 1), many, draw(1, 5));
    }
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        scatter_elements(file, numbers[draw(0, N_NUMBERS - 1)], reductions[draw(0, 3)],
                         (enum crowd)(i % N_CROWDS), large[i], 1, 1);
        scatter_tuples(file, numbers[draw(0, N_NUMBERS - 1)], reductions[draw(0, 3)],
                       (enum crowd)(i / 2 % N_CROWDS), large[i], i % 2 + 1);
        scatter_beyond(file, i % 2 ? "ScatterND" : "ScatterElements", large[i], large[i] - 1 - (int64_t)i);
    }
    scatter_beyond(file, "ScatterElements", 300, 299);
    scatter_beyond(file, "ScatterND", 20, 7);
    scatter_nothing(file);
    result("scatters", sorted_tiles && sorted_more ? NULL : "none of them sorted");
}

/* ---- Unique ---- */

static void unique(const emulated_file *file, grt_dtype dtype, int32_t rank, const int64_t *dims,
                   int64_t axis, bool sorted, enum content content)
{
    node n = {.desc = {.domain = "", .op = "Unique"},
              .n_out = 4,
              .out = {dtype, GRT_DTYPE_INT64, GRT_DTYPE_INT64, GRT_DTYPE_INT64}};
    snprintf(n.name, sizeof n.name, "Unique %s of %lld, axis %lld, %s", grt_dtype_name(dtype),
             (long long)dims[0], (long long)axis, sorted ? "sorted" : "by appearance");
    if (axis >= 0)
        add_int(&n, "axis", axis);
    add_int(&n, "sorted", sorted);
    fill(add_in(&n, dtype, rank, dims), content);
    (void)check(file, &n);
}

static void uniques(const emulated_file *file)
{
    static const int64_t large[] = {4097, 5000};
    for (int i = 0; i < 2 * N_NUMBERS; i++)
        unique(file, numbers[i % N_NUMBERS], 1, &bounds[draw(0, N_BOUNDS - 1)], -1, draw(0, 1),
               (enum content)(i % 3 == 0   ? WHOLE
                              : i % 3 == 1 ? REAL
                                           : ANY));
    unique(file, GRT_DTYPE_FLOAT, 1, &large[0], -1, true, REAL);
    unique(file, GRT_DTYPE_INT64, 1, &large[1], -1, false, WHOLE);
    unique(file, GRT_DTYPE_FLOAT, 1, (int64_t[]){0}, -1, true, WHOLE);
    for (int i = 0; i < 6; i++) /* slices, some of one element */
        unique(file, numbers[draw(0, N_NUMBERS - 1)], 3,
               (int64_t[]){i % 3 ? 2 : 1, draw(1, 300), i % 3 ? 2 : 1}, 1, i % 2, WHOLE);
}

/* ---- NonZero, Compress ---- */

static void non_zero(const emulated_file *file, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    node n = {.desc = {.domain = "", .op = "NonZero"}, .n_out = 1, .out = {GRT_DTYPE_INT64}};
    grt_tensor *t = add_in(&n, dtype, rank, dims);
    snprintf(n.name, sizeof n.name, "NonZero %s of %lld in rank %d", grt_dtype_name(dtype),
             (long long)grt_tensor_elements(t), rank);
    fill(t, draw(0, 1) ? ANY : WHOLE);
    (void)check(file, &n);
}

static void compress(const emulated_file *file, grt_dtype dtype, int64_t size, int64_t listed)
{
    node n = {.desc = {.domain = "", .op = "Compress"}, .n_out = 1, .out = {dtype}};
    snprintf(n.name, sizeof n.name, "Compress %s, %lld of %lld", grt_dtype_name(dtype), (long long)listed,
             (long long)size);
    add_int(&n, "axis", 1);
    fill(add_in(&n, dtype, 3, (int64_t[]){2, size, 2}), REAL);
    fill(add_in(&n, GRT_DTYPE_BOOL, 1, &listed), WHOLE);
    (void)check(file, &n);
}

static void selections(const emulated_file *file)
{
    static const int64_t large[] = {4095, 4096, 4097, 8193};
    for (int i = 0; i < 2 * N_NUMBERS; i++) {
        const int64_t some = bounds[draw(0, N_BOUNDS - 1)];
        non_zero(file, numbers[i % N_NUMBERS], (int32_t)draw(1, 3),
                 (int64_t[]){some, draw(1, 3), draw(1, 2)});
        compress(file, numbers[i % N_NUMBERS], some, draw(1, some));
    }
    for (int i = 0; i < 4; i++) {
        non_zero(file, i % 2 ? GRT_DTYPE_BOOL : GRT_DTYPE_FLOAT, 2, (int64_t[]){large[i], 1 + i % 2});
        compress(file, GRT_DTYPE_FLOAT, large[i], large[i]);
    }
    non_zero(file, GRT_DTYPE_FLOAT, 0, NULL);
    non_zero(file, GRT_DTYPE_FLOAT, 2, (int64_t[]){0, 3});
}

/* ---- TopK ---- */

static void top_k(const emulated_file *file, grt_dtype dtype, int64_t n_line, int64_t k, int64_t outer,
                  int64_t inner)
{
    node n = {.desc = {.domain = "", .op = "TopK"}, .n_out = 2, .out = {dtype, GRT_DTYPE_INT64}};
    const bool largest = draw(0, 1);
    snprintf(n.name, sizeof n.name, "TopK %s, %s %lld of %lld, %lld x %lld lines", grt_dtype_name(dtype),
             largest ? "largest" : "least", (long long)k, (long long)n_line, (long long)outer,
             (long long)inner);
    add_int(&n, "axis", 1);
    add_int(&n, "largest", largest);
    fill(add_in(&n, dtype, 3, (int64_t[]){outer, n_line, inner}), draw(0, 2) ? REAL : ANY);
    *(int64_t *)add_in(&n, GRT_DTYPE_INT64, 1, (int64_t[]){1})->data = k;
    (void)check(file, &n);
}

static void tops(const emulated_file *file)
{
    static const grt_dtype wide[] = {GRT_DTYPE_DOUBLE, GRT_DTYPE_INT64, GRT_DTYPE_UINT64};
    static const int64_t lines[] = {2047, 2048, 2049, 4096, 4097, 6000};
    for (int i = 0; i < 9; i++)
        top_k(file, wide[i % 3], lines[i % 6], i % 4 ? draw(1, 12) : 128, draw(1, 2), draw(1, 2));
    top_k(file, GRT_DTYPE_DOUBLE, 40000, 128, 1, 1); /* three rounds */
    for (int i = 0; i < 6; i++)                      /* a block a line */
        top_k(file, wide[i % 3], draw(1, 200), 1, draw(1, 4), draw(1, 2));
}

/* ---- RoiAlign ---- */

static void roi_align(const emulated_file *file, grt_dtype dtype, const char *mode, int64_t ratio,
                      int64_t boxes)
{
    node n = {.desc = {.domain = "", .op = "RoiAlign"}, .n_out = 1, .out = {dtype}};
    const int64_t images = draw(1, 2);
    n.tolerance = 0x1p-19; /* the CPU weighs float32 in float32, the kernel in double; numbers up to 16 */
    snprintf(n.name, sizeof n.name, "RoiAlign %s of %s, %lld boxes, ratio %lld", mode, grt_dtype_name(dtype),
             (long long)boxes, (long long)ratio);
    add_string(&n, "mode", mode);
    add_int(&n, "sampling_ratio", ratio);
    add_int(&n, "output_width", 3);
    fill(add_in(&n, dtype, 4, (int64_t[]){images, 3, draw(1, 9), draw(1, 9)}), REAL);
    fill(add_in(&n, dtype, 2, (int64_t[]){boxes, 4}), REAL);
    grt_tensor *of = add_in(&n, GRT_DTYPE_INT64, 1, &boxes);
    for (int64_t i = 0; i < boxes; i++)
        set_index(of, i, draw(0, images - 1));
    (void)check(file, &n);
}

/* A box over an image of one column: as many samples as it has pixels, or as `ratio` wants; or too many. */
static void roi_of_samples(const emulated_file *file, int64_t pixels, int64_t width, int64_t ratio)
{
    node n = {.desc = {.domain = "", .op = "RoiAlign"}, .n_out = 1, .out = {GRT_DTYPE_DOUBLE}};
    n.tolerance = 0x1p-40; /* sums in another order of operations */
    snprintf(n.name, sizeof n.name, "RoiAlign of a box of %lld x %lld pixels, ratio %lld", (long long)pixels,
             (long long)width, (long long)ratio);
    add_int(&n, "sampling_ratio", ratio);
    fill(add_in(&n, GRT_DTYPE_DOUBLE, 4, (int64_t[]){1, 1, pixels, 1}), REAL);
    double *box = add_in(&n, GRT_DTYPE_DOUBLE, 2, (int64_t[]){1, 4})->data;
    box[0] = box[1] = 0;
    box[2] = (double)width;
    box[3] = (double)pixels;
    set_index(add_in(&n, GRT_DTYPE_INT64, 1, (int64_t[]){1}), 0, 0);
    (void)check(file, &n);
}

static void rois(const emulated_file *file)
{
    roi_of_samples(file, 1300, 1, 0);
    roi_of_samples(file, 2000, 2000, 0);
    roi_of_samples(file, 4, 1, 1025);
    roi_of_samples(file, 4, 1, (int64_t)1 << 32);
    roi_of_samples(file, 4, 1, INT64_MIN);
    for (int i = 0; i < 16; i++)
        roi_align(file, numbers[i % 4], i % 3 ? "avg" : "max", draw(0, 3), draw(1, 40));
    roi_align(file, GRT_DTYPE_FLOAT, "avg", 2, 0);
}

/* ---- HeadMix ---- */

/* Heads in front of a softmax, in it and behind it; 0: there is no matrix. */
typedef struct mixing {
    int64_t heads, middle, out;
    bool softmax, bias;
} mixing;

static void add_matrix(node *n, grt_dtype dtype, int64_t to, int64_t from)
{
    if (to)
        fill(add_in(n, dtype, 2, (int64_t[]){to, from}), SIGNS);
    else
        n->n_in++; /* omitted */
}

static void head_mix(const emulated_file *file, grt_dtype dtype, const mixing *m, int64_t queries,
                     int64_t keys)
{
    node n = {.desc = {.domain = "graphrt", .op = "HeadMix"}, .n_out = 1, .out = {dtype}};
    const int64_t middle = m->middle ? m->middle : m->heads, out = m->out ? m->out : middle;
    n.tolerance = dtype == GRT_DTYPE_DOUBLE     ? 0x1p-40
                  : dtype == GRT_DTYPE_BFLOAT16 ? 0x1p-7
                  : dtype == GRT_DTYPE_FLOAT16  ? 0x1p-10
                                                : 0x1p-16; /* exponentials of sums in another order */
    snprintf(n.name, sizeof n.name, "HeadMix %s, %lld to %lld to %lld heads of %lld x %lld, softmax %d",
             grt_dtype_name(dtype), (long long)m->heads, (long long)m->middle, (long long)m->out,
             (long long)queries, (long long)keys, m->softmax);
    add_int(&n, "softmax", m->softmax);
    fill(add_in(&n, dtype, 4, (int64_t[]){draw(1, 2), m->heads, queries, keys}), REAL);
    add_matrix(&n, dtype, m->middle, m->heads);
    add_matrix(&n, dtype, m->out, middle);
    if (m->bias)
        fill(add_in(&n, dtype, 1, &out), REAL);
    (void)check(file, &n);
}

static void head_mixes(const emulated_file *file)
{
    for (int i = 0; i < 48; i++) {
        const int64_t most = i % 4 == 3 ? 32 : i % 4 == 2 ? 16 : i % 4 == 1 ? 8 : 4;
        mixing m = {.heads = draw(1, most), .softmax = i % 3 != 0, .bias = draw(0, 1)};
        m.middle = !m.softmax || draw(0, 2) ? draw(1, most) : 0;
        m.out = m.softmax && draw(0, 2) ? draw(1, most) : 0;
        head_mix(file, numbers[i / 3 % 4], &m, draw(1, 4), i % 5 ? draw(1, 300) : 2 * draw(1, 150));
    }
    const mixing long_rows = {4, 4, 4, true, true};
    head_mix(file, GRT_DTYPE_FLOAT, &long_rows, 2, 12000); /* longer than shared memory */
    head_mix(file, GRT_DTYPE_FLOAT, &long_rows, 0, 5);
    head_mix(file, GRT_DTYPE_FLOAT, &long_rows, 5, 0);
}

/* ---- main ---- */

static const struct {
    const char *file;
    void (*cases)(const emulated_file *file);
} files[] = {
    {"scatter", scatters}, {"unique", uniques}, {"select", selections},
    {"top_k", tops},       {"roi_align", rois}, {"head_mix", head_mixes},
};

int main(int argc, char **argv)
{
    char folder[] = "/tmp/graphrt-emulate-XXXXXX", command[128];
    if (!mkdtemp(folder)) {
        printf("FAIL: no folder\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        emulated_file file;
        if (argc > 1 && strcmp(argv[1], files[i].file) != 0)
            continue;
        if (emulate_open(folder, files[i].file, &file))
            files[i].cases(&file);
        else
            result(files[i].file, "it was not compiled (set CXX to a C++ compiler, srcdir to the sources)");
        emulate_close(&file);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", getenv("GRAPHRT_KEEP") ? "" : folder);
    if (system(command))
        printf("%s was not removed\n", folder);
    printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
