/* SPDX-License-Identifier: Apache-2.0 */
/* See networks_source.h. */
#include "backends/cuda/networks_source.h"

#include "backends/cuda/generated.h"
#include "src/base/pointwise.h"

#include <stdio.h>

/* Change it when the same key would give other code. */
enum { GENERATOR = 1 };

enum {
    FEW_ROWS = 8,
    MOST_ROWS = 8,       /* of a thread */
    MOST_HELD = 160,     /* numbers in registers */
    REGISTERS = 65536,   /* of a multiprocessor */
    OTHER_REGISTERS = 28 /* of a thread, beside the weights that it has read ahead */
};

/* Numbers that one row needs at once: what a layer reads and what it adds up. The first layer's inputs are
 * read a few at a time. */
static int32_t held_by_row(const grt_networks *n)
{
    int32_t most = 0;
    for (int32_t l = 0; l < n->n_layers; l++) {
        const int32_t held = (l ? n->width[l] : 4) + n->width[l + 1];
        most = held > most ? held : most;
    }
    return most;
}

static int32_t widest_result(const grt_networks *n)
{
    int32_t most = 1;
    for (int32_t l = 1; l <= n->n_layers; l++)
        most = n->width[l] > most ? n->width[l] : most;
    return most;
}

void cuda_networks_form_of(const grt_networks *networks, grt_dtype dtype, int64_t rows,
                           cuda_networks_form *out_form)
{
    *out_form = (cuda_networks_form){.networks = networks,
                                     .dtype = dtype,
                                     .few = rows <= FEW_ROWS,
                                     .rows = 1,
                                     .warps = CUDA_NETWORKS_WARPS};
    if (out_form->few) {
        out_form->warps = widest_result(networks);
        return;
    }
    for (int32_t held = held_by_row(networks);
         out_form->rows < MOST_ROWS && 2 * out_form->rows * held <= MOST_HELD;)
        out_form->rows *= 2;
}

int32_t cuda_networks_rows(const cuda_networks_form *form)
{
    return form->few ? 1 : form->rows * form->warps;
}

/* Elements of an input that are read at once. */
static int32_t vector_of(const cuda_networks_form *form)
{
    const int32_t size = (int32_t)grt_dtype_size(form->dtype), width = form->networks->width[0];
    int32_t elements = 16 / size;
    while (width % elements)
        elements /= 2;
    return form->few ? 1 : elements;
}

int32_t cuda_networks_alignment(const cuda_networks_form *form)
{
    return vector_of(form) * (int32_t)grt_dtype_size(form->dtype);
}

void cuda_networks_key(const cuda_networks_form *form, grt_text *key)
{
    const grt_networks *n = form->networks;
    grt_text_add(key, "generator=%d;type=%s;rows=%s;layers=%d", GENERATOR, grt_dtype_name(form->dtype),
                 form->few ? "few" : "many", n->width[0]);
    for (int32_t l = 0; l < n->n_layers; l++) {
        const int32_t function = grt_act_function(n->act[l].kind);
        grt_text_add(key, ",%d%s %s", n->width[l + 1], n->bias[l] ? " bias" : "",
                     function < 0 ? "none" : grt_pointwise_info(function)->name);
        grt_text_add(key, " %08x %08x", cuda_bits_of(n->act[l].a), cuda_bits_of(n->act[l].b));
    }
    grt_text_add(key, ";");
}

/* ---- source ---- */

static void add_beginning(const cuda_networks_form *form, grt_text *s)
{
    const grt_networks *n = form->networks;
    const char *name = grt_dtype_name(form->dtype);
    grt_text_add(s, "%s", cuda_generated_beginning);
    grt_text_add(
        s, "struct arguments { const void *x, *weights[%d], *bias[%d]; void *y; unsigned count, rows; };\n",
        GRT_NETWORKS_LAYERS, GRT_NETWORKS_LAYERS);
    grt_text_add(s, "typedef %s E;\n", form->dtype == GRT_DTYPE_FLOAT ? "float" : "u16");
    grt_text_add(s,
                 "struct alignas(%d) vector { E v[%d]; };\n"
                 "__device__ __forceinline__ float at(const void *data, unsigned i)\n"
                 "{\n    return of_%s(((const E *)data)[i]);\n}\n",
                 cuda_networks_alignment(form), vector_of(form), name);
    for (int32_t l = 0; l < n->n_layers; l++) {
        const int32_t function = grt_act_function(n->act[l].kind);
        grt_text_add(
            s,
            "__device__ __forceinline__ T act%d(T a)\n{\n    const T p0 = __int_as_float(0x%08x), p1 = "
            "__int_as_float(0x%08x), b = p0, c = p1;\n    return (T)(%s);\n}\n",
            l, cuda_bits_of(n->act[l].a), cuda_bits_of(n->act[l].b),
            function < 0 ? "a" : grt_pointwise_expression(function));
    }
}

/* Each layer's results begin with its bias. */
static void add_sums(const cuda_networks_form *form, int32_t l, grt_text *s)
{
    const grt_networks *n = form->networks;
    grt_text_add(s, "    T h%d[R][%d];\n#pragma unroll\n    for (int o = 0; o < %d; o++) {\n", l + 1,
                 n->width[l + 1], n->width[l + 1]);
    if (n->bias[l])
        grt_text_add(s, "        const T b = at(a.bias[%d], o * a.count + n);\n", l);
    grt_text_add(s,
                 "#pragma unroll\n        for (int r = 0; r < R; r++)\n            h%d[r][o] = %s;\n    }\n",
                 l + 1, n->bias[l] ? "b" : "0");
}

static void add_product(const cuda_networks_form *form, int32_t l, const char *i, const char *x, grt_text *s)
{
    const int32_t width = form->networks->width[l + 1];
    grt_text_add(
        s,
        "#pragma unroll\n        for (int o = 0; o < %d; o++) {\n"
        "            const T w = at(a.weights[%d], ((%s) * %d + o) * a.count + n);\n"
        "#pragma unroll\n            for (int r = 0; r < R; r++)\n                h%d[r][o] += %s * w;\n"
        "        }\n",
        width, l, i, width, l + 1, x);
}

static void add_activation(const cuda_networks_form *form, int32_t l, grt_text *s)
{
    grt_text_add(s,
                 "#pragma unroll\n    for (int o = 0; o < %d; o++)\n#pragma unroll\n        for (int r = 0; "
                 "r < R; r++)\n"
                 "            h%d[r][o] = act%d(h%d[r][o]);\n",
                 form->networks->width[l + 1], l + 1, l, l + 1);
}

static void add_first_layer(const cuda_networks_form *form, grt_text *s)
{
    const int32_t vector = vector_of(form), width = form->networks->width[0];
    add_sums(form, 0, s);
    grt_text_add(s, "#pragma unroll %d\n    for (int i = 0; i < %d; i += %d) {\n        vector x[R];\n",
                 vector < 4 ? 4 : 1, width, vector);
    grt_text_add(s, "#pragma unroll\n        for (int r = 0; r < R; r++)\n"
                    "            x[r] = *(const vector *)(from[r] + i);\n");
    grt_text_add(s, "#pragma unroll\n        for (int k = 0; k < %d; k++) {\n", vector);
    grt_text_add(s,
                 "            T f[R];\n#pragma unroll\n            for (int r = 0; r < R; r++)\n"
                 "                f[r] = of_%s(x[r].v[k]);\n",
                 grt_dtype_name(form->dtype));
    add_product(form, 0, "i + k", "f[r]", s);
    grt_text_add(s, "        }\n    }\n");
    add_activation(form, 0, s);
}

static void add_later_layer(const cuda_networks_form *form, int32_t l, grt_text *s)
{
    char x[32];
    add_sums(form, l, s);
    grt_text_add(s, "#pragma unroll\n    for (int i = 0; i < %d; i++) {\n", form->networks->width[l]);
    snprintf(x, sizeof x, "h%d[r][i]", l);
    add_product(form, l, "i", x, s);
    grt_text_add(s, "    }\n");
    add_activation(form, l, s);
}

static void add_many(const cuda_networks_form *form, grt_text *s)
{
    const grt_networks *n = form->networks;
    const int32_t last = n->n_layers, out = n->width[last];
    grt_text_add(
        s,
        "enum { R = %d };\n"
        "extern \"C\" __global__ void __launch_bounds__(%d) " CUDA_NETWORKS_KERNEL
        "(const __grid_constant__ arguments a)\n{\n"
        "    const unsigned n = blockIdx.x * %d + threadIdx.x, row = (blockIdx.y * %d + threadIdx.y) * R;\n"
        "    if (n >= a.count || row >= a.rows)\n        return;\n    const E *from[R];\n",
        form->rows, CUDA_NETWORKS_LANES * form->warps, CUDA_NETWORKS_LANES, form->warps);
    grt_text_add(s,
                 "#pragma unroll\n    for (int r = 0; r < R; r++) /* rows behind the last are computed, not "
                 "written */\n"
                 "        from[r] = (const E *)a.x + ((unsigned long long)min(row + r, a.rows - 1) * a.count "
                 "+ n) * %d;\n",
                 n->width[0]);
    add_first_layer(form, s);
    for (int32_t l = 1; l < last; l++)
        add_later_layer(form, l, s);
    grt_text_add(
        s,
        "#pragma unroll\n    for (int r = 0; r < R; r++)\n        if (row + r < a.rows)\n#pragma unroll\n"
        "            for (int o = 0; o < %d; o++)\n"
        "                ((E *)a.y)[((unsigned long long)(row + r) * a.count + n) * %d + o] = "
        "to_%s(h%d[r][o]);\n}\n",
        out, out, grt_dtype_name(form->dtype), last);
}

/* ---- few rows ---- */

/* How many layers' weights a thread reads before it has the input. */
static int32_t layers_ahead(const cuda_networks_form *form)
{
    const grt_networks *n = form->networks;
    int32_t room = REGISTERS / (CUDA_NETWORKS_LANES * form->warps), l = 0;
    room = (room < 255 ? room : 255) - OTHER_REGISTERS;
    while (l < n->n_layers && room > n->width[l]) {
        room -= n->width[l] + 1;
        l++;
    }
    return l;
}

/* The weights of one feature: this warp's. */
static void add_weights(const cuda_networks_form *form, int32_t l, grt_text *s)
{
    const grt_networks *n = form->networks;
    grt_text_add(
        s,
        "    T w%d[%d], b%d = 0;\n    if (o < %d) {\n#pragma unroll\n        for (int i = 0; i < %d; i++)\n",
        l, n->width[l], l, n->width[l + 1], n->width[l]);
    grt_text_add(s, "            w%d[i] = at(a.weights[%d], (i * %d + o) * a.count + n);\n", l, l,
                 n->width[l + 1]);
    if (n->bias[l])
        grt_text_add(s, "        b%d = at(a.bias[%d], o * a.count + n);\n", l, l);
    grt_text_add(s, "    }\n");
}

static void add_few_layer(const cuda_networks_form *form, int32_t l, grt_text *s)
{
    const grt_networks *n = form->networks;
    const int32_t out = n->width[l + 1];
    grt_text_add(s,
                 "    __syncthreads();\n    if (o < %d) {\n        T sum = b%d;\n#pragma unroll\n"
                 "        for (int i = 0; i < %d; i++)\n            sum += w%d[i] * h[%d][i][threadIdx.x];\n"
                 "        sum = act%d(sum);\n",
                 out, l, n->width[l], l, l % 2, l);
    if (l + 1 < n->n_layers)
        grt_text_add(s, "        h[%d][o][threadIdx.x] = sum;\n    }\n", 1 - l % 2);
    else
        grt_text_add(s,
                     "        if (first + threadIdx.x < a.count)\n"
                     "            ((E *)a.y)[((unsigned long long)blockIdx.y * a.count + n) * %d + o] = "
                     "to_%s(sum);\n    }\n",
                     out, grt_dtype_name(form->dtype));
}

static void add_few(const cuda_networks_form *form, grt_text *s)
{
    const grt_networks *n = form->networks;
    const int32_t ahead = layers_ahead(form), threads = CUDA_NETWORKS_LANES * form->warps, in = n->width[0];
    grt_text_add(
        s,
        "extern \"C\" __global__ void __launch_bounds__(%d) " CUDA_NETWORKS_KERNEL
        "(const __grid_constant__ arguments a)\n{\n    __shared__ T h[2][%d][%d];\n"
        "    const unsigned first = blockIdx.x * %d, n = min(first + threadIdx.x, a.count - 1), o = "
        "threadIdx.y;\n"
        "    const E *x = (const E *)a.x + ((unsigned long long)blockIdx.y * a.count + first) * %d;\n",
        threads, n->most, CUDA_NETWORKS_LANES + 1, CUDA_NETWORKS_LANES, in);
    for (int32_t l = 0; l < ahead; l++)
        add_weights(form, l, s);
    grt_text_add(s,
                 "    const unsigned end = min(%du, a.count - first) * %d;\n"
                 "    for (unsigned i = threadIdx.y * %d + threadIdx.x; i < end; i += %d)\n"
                 "        h[0][i %% %d][i / %d] = of_%s(x[i]);\n",
                 CUDA_NETWORKS_LANES, in, CUDA_NETWORKS_LANES, threads, in, in, grt_dtype_name(form->dtype));
    for (int32_t l = 0; l < n->n_layers; l++) {
        if (l >= ahead)
            add_weights(form, l, s);
        add_few_layer(form, l, s);
    }
    grt_text_add(s, "}\n");
}

void cuda_networks_source(const cuda_networks_form *form, grt_text *source)
{
    add_beginning(form, source);
    if (form->few)
        add_few(form, source);
    else
        add_many(form, source);
}
