/* SPDX-License-Identifier: Apache-2.0 */
/* Cast, CastLike and BitCast. Numbers are converted block by block; strings one by one. */
#define _GNU_SOURCE /* uselocale */
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static grt_status cpu_cast_create(const grt_kernel_node *node, void **out_state)
{
    cpu_convert_options *o = malloc(sizeof *o);
    if (!o)
        return grt_fail_memory(sizeof *o);
    const char *mode = grt_attr_string(node->desc, "round_mode", "up");
    o->saturate = grt_attr_int(node->desc, "saturate", 1) != 0;
    o->rounding = !strcmp(mode, "down")      ? GRT_ROUND_DOWN
                  : !strcmp(mode, "nearest") ? GRT_ROUND_NEAREST
                                             : GRT_ROUND_UP;
    *out_state = o;
    return GRT_OK;
}

static void convert_numbers(const grt_tensor *in, grt_tensor *out, int64_t n, cpu_convert_options options,
                            int32_t threads)
{
    int64_t blocks = (n + CONVERT_BLOCK - 1) / CONVERT_BLOCK;
    int32_t useful = n < CPU_GRAIN ? 1 : threads;
#pragma omp parallel for num_threads(useful) if (useful > 1) schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t begin = b * CONVERT_BLOCK, count = n - begin < CONVERT_BLOCK ? n - begin : CONVERT_BLOCK;
        cpu_convert(in->dtype, in->data, out->dtype, out->data, begin, count, options);
    }
}

enum { NUMBER_TEXT = 40 };

/* Shortest text that reads back as the same number. */
static int print_float(char *text, double x, bool single)
{
    if (isnan(x))
        return snprintf(text, NUMBER_TEXT, "NaN");
    if (isinf(x))
        return snprintf(text, NUMBER_TEXT, x < 0 ? "-INF" : "INF");
    int size = 0;
    for (int digits = 1; digits <= 17; digits++) {
        size = snprintf(text, NUMBER_TEXT, "%.*g", digits, x);
        if (single ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x)
            break;
    }
    return size;
}

static int print_number(char *text, grt_dtype from, const grt_tensor *in, int64_t i)
{
    float f;
    if (from == GRT_DTYPE_DOUBLE)
        return print_float(text, ((const double *)in->data)[i], false);
    if (cpu_plain_dtype(from) == GRT_DTYPE_FLOAT) {
        if (from == GRT_DTYPE_FLOAT) {
            f = ((const float *)in->data)[i];
        } else {
            float group[4];
            int64_t begin = i & ~(int64_t)3; /* a byte's first element */
            cpu_widen(from, in->data, begin, i - begin + 1, group);
            f = group[i - begin];
        }
        return print_float(text, (double)f, true);
    }
    if (from == GRT_DTYPE_UINT64)
        return snprintf(text, NUMBER_TEXT, "%" PRIu64, ((const uint64_t *)in->data)[i]);
    if (from == GRT_DTYPE_BOOL)
        return snprintf(text, NUMBER_TEXT, "%s", ((const uint8_t *)in->data)[i] ? "True" : "False");
    if (grt_dtype_in(from, GRT_SET_SUBBYTE)) {
        int8_t group[4];
        int64_t begin = i & ~(int64_t)3;
        cpu_widen(from, in->data, begin, i - begin + 1, group);
        return snprintf(text, NUMBER_TEXT, "%d", group[i - begin]);
    }
    return snprintf(text, NUMBER_TEXT, "%" PRId64, grt_tensor_int(in, i));
}

static grt_status numbers_to_text(const grt_run *r, int64_t n)
{
    char text[NUMBER_TEXT];
    size_t bytes = 0;
    for (int64_t i = 0; i < n; i++)
        bytes += (size_t)print_number(text, r->in[0]->dtype, r->in[0], i) + 1;
    char *at = r->hooks->alloc_bytes(r, bytes);
    grt_string *out = r->out[0]->data;
    if (!at && n)
        return grt_fail_memory(bytes);
    for (int64_t i = 0; i < n; i++) {
        int size = print_number(text, r->in[0]->dtype, r->in[0], i);
        memcpy(at, text, (size_t)size + 1);
        out[i] = (grt_string){at, (size_t)size};
        at += size + 1;
    }
    return GRT_OK;
}

/* The value of a decimal integer, exactly; false if the text is not an integer or too large. */
static bool parse_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    if (*text == '-' || *text == '+')
        *out = strtoll(text, &end, 10);
    else
        *out = (int64_t)strtoull(text, &end, 10);
    return end != text && !*end && errno == 0;
}

/* Text of bool. */
static bool parse_bool(const char *text, int64_t *out)
{
    *out = !strcmp(text, "True");
    return *out || !strcmp(text, "False");
}

static grt_status text_to_number(const grt_run *r, int64_t i, cpu_convert_options options, void *block,
                                 int64_t at)
{
    const grt_string *s = (const grt_string *)r->in[0]->data + i;
    grt_dtype plain = cpu_plain_dtype(r->out[0]->dtype);
    char text[128], *end = text;
    size_t begin = 0, size = s->size;
    (void)options;
    while (size && isspace((unsigned char)s->data[size - 1]))
        size--;
    while (begin < size && isspace((unsigned char)s->data[begin]))
        begin++;
    double value = 0;
    int64_t whole = 0;
    bool fits = size - begin < sizeof text, exact = false;
    if (fits) {
        memcpy(text, s->data + begin, size - begin);
        text[size - begin] = '\0';
        exact = parse_bool(text, &whole) || (grt_dtype_in(plain, GRT_SET_INTS) && parse_int(text, &whole));
        value = exact ? 0.0 : strtod(text, &end);
    }
    if (!fits || (!exact && (end == text || *end)))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "element %lld, \"%.*s\", is not a number",
                           (long long)i, (int)(s->size < 60 ? s->size : 60), s->data);
    void *to = (char *)block + (size_t)at * grt_dtype_size(plain);
    if (exact)
        cpu_convert_plain(GRT_DTYPE_INT64, &whole, plain, to, 1);
    else if (plain == GRT_DTYPE_FLOAT)
        *(float *)to = strtof(text, NULL);
    else
        cpu_convert_plain(GRT_DTYPE_DOUBLE, &value, plain, to, 1);
    return GRT_OK;
}

static grt_status text_to_numbers(const grt_run *r, int64_t n, cpu_convert_options options)
{
    double block[CONVERT_BLOCK];
    for (int64_t begin = 0; begin < n; begin += CONVERT_BLOCK) {
        int64_t count = n - begin < CONVERT_BLOCK ? n - begin : CONVERT_BLOCK;
        for (int64_t k = 0; k < count; k++)
            GRT_TRY(text_to_number(r, begin + k, options, block, k));
        cpu_narrow(r->out[0]->dtype, block, count, r->out[0]->data, begin, options);
    }
    return GRT_OK;
}

static locale_t plain_locale;

static void make_plain_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", NULL);
}

/* Numbers have a decimal point in ONNX, whatever the program's locale has. */
static grt_status run_text(const grt_run *r, int64_t n, cpu_convert_options options)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain_locale);
    const locale_t before = uselocale(plain_locale);
    grt_status status =
        r->out[0]->dtype == GRT_DTYPE_STRING ? numbers_to_text(r, n) : text_to_numbers(r, n, options);
    uselocale(before);
    return status;
}

static grt_status cpu_cast_run(const grt_run *r)
{
    const grt_tensor *in = r->in[0];
    grt_tensor *out = r->out[0];
    cpu_convert_options options = *(const cpu_convert_options *)r->state;
    int64_t n = grt_tensor_elements(in);
    if (in->dtype == out->dtype) {
        if (n > 0 && in->data != out->data)
            memcpy(out->data, in->data, grt_tensor_bytes(in));
        return GRT_OK;
    }
    if (out->dtype == GRT_DTYPE_STRING || in->dtype == GRT_DTYPE_STRING)
        return run_text(r, n, options);
    convert_numbers(in, out, n, options, r->threads);
    return GRT_OK;
}

static grt_status run_bits(const grt_run *r)
{
    if (grt_tensor_elements(r->in[0]) > 0 && r->in[0]->data != r->out[0]->data)
        memcpy(r->out[0]->data, r->in[0]->data, grt_tensor_bytes(r->in[0]));
    return GRT_OK;
}

#define CASTABLE (GRT_SET_ALL & ~GRT_SET_COMPLEX)
static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Cast",
     .types = {CASTABLE},
     .create = cpu_cast_create,
     .destroy = free,
     .run = cpu_cast_run},
    {.domain = "",
     .op = "CastLike",
     .types = {CASTABLE, GRT_SET_ALL},
     .create = cpu_cast_create,
     .destroy = free,
     .run = cpu_cast_run},
    {.domain = "",
     .op = "BitCast",
     .types = {GRT_SET_ALL & ~GRT_BIT(STRING)},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .run = run_bits},
};
CPU_KERNELS(cast, rows);
