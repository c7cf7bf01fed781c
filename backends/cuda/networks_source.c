/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/networks_source.h"

#include "backends/cuda/generated_source.h"
#include "src/base/pointwise.h"

#include <stdio.h>

/* Change it when the same key would give other code. */
enum { GENERATOR = 4 };

enum {
    FEW_ROWS = 8,
    MOST_ROWS = 8,          /* of a thread */
    MOST_STAGED_ROWS = 4,   /* the same, of a block that keeps its weights in shared memory */
    MOST_SUMS = 128,        /* of a thread, in registers */
    MOST_WARPS = 8,         /* of a block */
    MOST_SHARED = 48 << 10, /* bytes of a block */
    MOST_STAGED = 40 << 10, /* bytes of weights that each of two blocks keeps in shared memory */
    MOST_ALONE = 130 << 10, /* the same, of a block that has a multiprocessor to itself */
    MOST_KEPT = 112,        /* weights of a thread, in registers */
    KEPT_ROWS = 16,         /* most, of a thread that keeps its weights */
    KEPT_WARPS = 4,
    KEPT_BLOCKS = 2,      /* of a multiprocessor */
    SYSTEM_SHARED = 1024, /* bytes of shared memory that a block takes beside its own */
    PIECE = 16,           /* bytes that are copied at once */
    REGISTERS = 65536,    /* of a multiprocessor */
    OTHER_REGISTERS = 28  /* of a thread, beside the weights that it has read ahead */
};

static int32_t widest_result(const grt_networks *n, int32_t layers)
{
    int32_t most = 1;
    for (int32_t l = 1; l <= layers; l++)
        most = n->width[l] > most ? n->width[l] : most;
    return most;
}

static int32_t cuda_networks_source_element_of(const cuda_networks_form *form)
{
    return (int32_t)grt_dtype_size(form->dtype);
}

/* Elements from one network's inputs to the next one's in shared memory: an odd number of pieces, so that
 * lanes read from different banks. */
static int32_t pitch_of(const cuda_networks_form *form)
{
    const int32_t width = form->networks->width[0], bytes = width * cuda_networks_source_element_of(form);
    if (!form->whole)
        return width | 1;
    return bytes % PIECE || bytes / PIECE % 2 ? width : width + PIECE / cuda_networks_source_element_of(form);
}

/* Networks of a warp. */
static int32_t networks_of(const cuda_networks_form *form)
{
    return form->kept ? CUDA_NETWORKS_LANES / 2 : CUDA_NETWORKS_LANES;
}

/* Bytes of shared memory of one row of a warp. */
static int32_t shared_of(const cuda_networks_form *form)
{
    const grt_networks *n = form->networks;
    const int32_t inputs = pitch_of(form) * cuda_networks_source_element_of(form),
                  between = n->n_layers > 1 && !form->kept
                                ? widest_result(n, n->n_layers - 1) * (int32_t)sizeof(float)
                                : 0;
    return networks_of(form) * (inputs > between ? inputs : between);
}

/* Bytes of all weights and biases of a block's networks. */
static int32_t cuda_networks_source_weights_of(const cuda_networks_form *form)
{
    const grt_networks *n = form->networks;
    int32_t elements = 0;
    for (int32_t l = 0; l < n->n_layers; l++)
        elements += (n->width[l] + n->bias[l]) * n->width[l + 1];
    return elements * CUDA_NETWORKS_LANES * cuda_networks_source_element_of(form);
}

/* Half of the hidden features, with all that leads to and from them, is a lane's. A warp reads weights for
 * all of its rows at once, so that it pays only where all blocks run at a time. */
static bool keep_weights(cuda_networks_form *form, int64_t rows, int64_t count,
                         const cuda_networks_limits *limits)
{
    const grt_networks *n = form->networks;
    const int32_t half = n->width[1] / 2;
    if (!form->whole || n->n_layers != 2 || n->width[1] % 2 ||
        half * (n->width[0] + 1 + n->width[2]) + n->width[2] > MOST_KEPT)
        return false;
    form->kept = true;
    for (form->rows = 4; form->rows <= KEPT_ROWS; form->rows *= 2) {
        const int64_t across = (count - 1) / networks_of(form) + 1,
                      down = (rows - 1) / (KEPT_WARPS * form->rows) + 1;
        const size_t shared = (size_t)(KEPT_WARPS * form->rows * shared_of(form)) + SYSTEM_SHARED;
        if (across <= KEPT_BLOCKS * limits->multiprocessors / down &&
            KEPT_BLOCKS * shared <= limits->shared_of_multiprocessor)
            return true;
    }
    form->kept = false;
    form->rows = 1;
    return false;
}

/* Smaller elements cannot be copied there asynchronously one by one. */
static bool can_stage(const cuda_networks_form *form, const cuda_networks_limits *limits)
{
    const int32_t bytes = cuda_networks_source_weights_of(form);
    return form->dtype == GRT_DTYPE_FLOAT &&
           (bytes <= MOST_STAGED ||
            (bytes <= MOST_ALONE && (size_t)bytes + MOST_SHARED <= limits->shared_of_block));
}

static void size_many(cuda_networks_form *form, int64_t rows, int64_t count,
                      const cuda_networks_limits *limits)
{
    const int32_t sums = widest_result(form->networks, form->networks->n_layers);
    if (keep_weights(form, rows, count, limits))
        return;
    form->staged = can_stage(form, limits);
    const int32_t most = form->staged ? MOST_STAGED_ROWS : MOST_ROWS;
    while (2 * form->rows <= most && 2 * form->rows * sums <= MOST_SUMS)
        form->rows *= 2;
}

void cuda_networks_form_of(const grt_networks *networks, grt_dtype dtype, int64_t rows, int64_t count,
                           const cuda_networks_limits *limits, cuda_networks_form *out_form)
{
    *out_form =
        (cuda_networks_form){.networks = networks, .dtype = dtype, .few = rows <= FEW_ROWS, .rows = 1};
    out_form->whole =
        count % PIECE * networks->width[0] * cuda_networks_source_element_of(out_form) % PIECE == 0;
    if (!out_form->few)
        size_many(out_form, rows, count, limits);
}

/* Of a block. The compiler gives a thread registers by it: wide layers of many rows want as many as there
 * are. */
static int32_t most_warps(const cuda_networks_form *form)
{
    int32_t warps = 1;
    if (form->few)
        return widest_result(form->networks, form->networks->n_layers);
    if (form->kept)
        return KEPT_WARPS;
    if (form->staged)
        return MOST_WARPS;
    while (2 * warps <= MOST_WARPS && 2 * warps * form->rows * shared_of(form) <= MOST_SHARED)
        warps *= 2;
    return warps;
}

/* Blocks that keep their weights are as large as two of them fit a multiprocessor: one computes while the
 * other waits for its inputs; with many weights, as one fits. Others are small, so that many run at a time.
 */
static size_t most_shared(const cuda_networks_form *form, const cuda_networks_limits *limits)
{
    const size_t half = limits->shared_of_multiprocessor / 2;
    if (form->staged && cuda_networks_source_weights_of(form) > MOST_STAGED)
        return limits->shared_of_block;
    if ((!form->staged && !form->kept) || half < MOST_SHARED + SYSTEM_SHARED)
        return MOST_SHARED;
    return half - SYSTEM_SHARED < limits->shared_of_block ? half - SYSTEM_SHARED : limits->shared_of_block;
}

void cuda_networks_grid_of(const cuda_networks_form *form, int64_t rows, const cuda_networks_limits *limits,
                           cuda_networks_grid *out_grid)
{
    *out_grid = (cuda_networks_grid){.warps = most_warps(form), .networks = networks_of(form), .rows = 1};
    if (form->few)
        return;
    const size_t most = most_shared(form, limits),
                 fixed = form->staged ? (size_t)cuda_networks_source_weights_of(form) : 0,
                 warp = (size_t)form->rows * (size_t)shared_of(form);
    while (out_grid->warps > 1 && (fixed + (size_t)out_grid->warps * warp > most ||
                                   (int64_t)out_grid->warps / 2 * form->rows >= rows))
        out_grid->warps /= 2;
    out_grid->shared = fixed + (size_t)out_grid->warps * warp;
    out_grid->rows = form->rows * out_grid->warps;
}

/* Elements of an input that are read at once. */
static int32_t cuda_networks_source_vector_of(const cuda_networks_form *form)
{
    int32_t elements = PIECE / cuda_networks_source_element_of(form);
    while (form->networks->width[0] % elements)
        elements /= 2;
    return form->few || !form->whole ? 1 : elements;
}

int32_t cuda_networks_alignment(const cuda_networks_form *form)
{
    return form->few || !form->whole ? cuda_networks_source_element_of(form) : PIECE;
}

void cuda_networks_key(const cuda_networks_form *form, grt_text *key)
{
    const grt_networks *n = form->networks;
    grt_text_add(key, "generator=%d;type=%s;rows=%s %d%s;layers=%d", GENERATOR, grt_dtype_name(form->dtype),
                 form->few     ? "few"
                 : form->whole ? "many"
                               : "many, odd",
                 form->rows,
                 form->staged ? " staged"
                 : form->kept ? " kept"
                              : "",
                 n->width[0]);
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
    grt_text_add(s,
                 "struct arguments { const void *x, *weights[%d], *bias[%d]; void *y; unsigned count, rows, "
                 "lane; };\n",
                 GRT_NETWORKS_LAYERS, GRT_NETWORKS_LAYERS);
    grt_text_add(s, "typedef %s E;\n", form->dtype == GRT_DTYPE_FLOAT ? "float" : "u16");
    grt_text_add(s,
                 "struct alignas(%d) vector { E v[%d]; };\n"
                 "__device__ __forceinline__ float at(const void *data, unsigned i)\n"
                 "{\n    return of_%s(((const E *)data)[i]);\n}\n",
                 cuda_networks_source_vector_of(form) * cuda_networks_source_element_of(form),
                 cuda_networks_source_vector_of(form), name);
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

/* Weight or bias i of layer l, of a lane's network. */
static void cuda_networks_source_add_weight(const cuda_networks_form *form, int32_t l, bool bias,
                                            const char *i, grt_text *s)
{
    const grt_networks *n = form->networks;
    int32_t before = bias ? n->width[l] * n->width[l + 1] : 0;
    for (int32_t k = 0; k < l; k++)
        before += (n->width[k] + n->bias[k]) * n->width[k + 1];
    if (form->staged)
        grt_text_add(s, "at(staged, (%d + %s) * %d + threadIdx.x)", before, i, CUDA_NETWORKS_LANES);
    else
        grt_text_add(s, "at(a.%s[%d], (%s) * a.lane + n)", bias ? "bias" : "weights", l, i);
}

static void add_staging_of(const char *data, int32_t l, int32_t elements, int32_t *at, grt_text *s)
{
    grt_text_add(s,
                 "#pragma unroll 4\n    for (unsigned i = threadIdx.y; i < %d; i += blockDim.y) {\n"
                 "        const E *from = (const E *)a.%s[%d] + i * a.lane + n;\n"
                 "        E *to = staged + (%d + i) * %d + threadIdx.x;\n",
                 elements, data, l, *at, CUDA_NETWORKS_LANES);
    grt_text_add(s, "        asm volatile(\"cp.async.ca.shared.global [%%0], [%%1], 4;\" :: "
                    "\"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from) : \"memory\");\n    }\n");
    *at += elements;
}

/* A block's weights to shared memory, by all of its warps. */
static void add_staging(const cuda_networks_form *form, grt_text *s)
{
    const grt_networks *n = form->networks;
    int32_t at = 0;
    for (int32_t l = 0; l < n->n_layers; l++) {
        add_staging_of("weights", l, n->width[l] * n->width[l + 1], &at, s);
        if (n->bias[l])
            add_staging_of("bias", l, n->width[l + 1], &at, s);
    }
    grt_text_add(s, "    asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n");
}

/* A warp's rows to shared memory; those behind the last are computed, too, but not written. */
static void add_copy(const cuda_networks_form *form, grt_text *s)
{
    const int32_t width = form->networks->width[0], element = cuda_networks_source_element_of(form),
                  pitch = pitch_of(form), step = form->whole ? PIECE / element : 1,
                  networks = networks_of(form);
    grt_text_add(s,
                 "    const unsigned end = min(%du, a.count - first) * %d;\n#pragma unroll\n    for (int r = "
                 "0; r < R; r++) {\n"
                 "        const E *from = (const E *)a.x + ((unsigned long long)min(row + r, a.rows - 1) * "
                 "a.count + first) * %d;\n"
                 "#pragma unroll\n        for (unsigned c = 0; c < %d; c += %d) {\n"
                 "            const unsigned i = c + threadIdx.x * %d;\n            if (i >= end)\n          "
                 "      break;\n",
                 networks, width, width, networks * width, CUDA_NETWORKS_LANES * step, step);
    if (pitch == width)
        grt_text_add(s, "            E *to = x + r * %d + i;\n", networks * pitch);
    else
        grt_text_add(s, "            E *to = x + r * %d + i / %d * %d + i %% %d;\n", networks * pitch, width,
                     pitch, width);
    if (form->whole)
        grt_text_add(
            s, "            asm volatile(\"cp.async.cg.shared.global [%%0], [%%1], 16;\" :: \"r\"((unsigned)"
               "__cvta_generic_to_shared(to)), \"l\"(from + i) : \"memory\");\n        }\n    }\n");
    else
        grt_text_add(s, "            *to = from[i];\n        }\n    }\n");
}

/* All warps wait for the block's weights, each for its own inputs, which were asked for later. */
static void add_arrival(const cuda_networks_form *form, grt_text *s)
{
    if (form->staged)
        grt_text_add(
            s, "    asm volatile(\"cp.async.commit_group;\\n cp.async.wait_group 1;\" ::: \"memory\");\n"
               "    __syncthreads();\n");
    grt_text_add(s, "    if (row >= a.rows)\n        return;\n"
                    "    asm volatile(\"cp.async.wait_all;\" ::: \"memory\");\n    __syncwarp();\n");
}

/* Each layer's results begin with its bias. */
static void cuda_networks_source_add_sums(const cuda_networks_form *form, int32_t l, grt_text *s)
{
    const grt_networks *n = form->networks;
    grt_text_add(s, "    T h[R][%d];\n#pragma unroll\n    for (int o = 0; o < %d; o++) {\n", n->width[l + 1],
                 n->width[l + 1]);
    if (n->bias[l]) {
        grt_text_add(s, "        const T b = ");
        cuda_networks_source_add_weight(form, l, true, "o", s);
        grt_text_add(s, ";\n");
    }
    grt_text_add(s, "#pragma unroll\n        for (int r = 0; r < R; r++)\n            h[r][o] = %s;\n    }\n",
                 n->bias[l] ? "b" : "0");
}

/* f[r] is input i of row r. */
static void add_product(const cuda_networks_form *form, int32_t l, const char *i, grt_text *s)
{
    const int32_t width = form->networks->width[l + 1];
    char index[64];
    snprintf(index, sizeof index, "(%s) * %d + o", i, width);
    grt_text_add(s,
                 "#pragma unroll\n        for (int o = 0; o < %d; o++) {\n            const T w = ", width);
    cuda_networks_source_add_weight(form, l, false, index, s);
    grt_text_add(s, ";\n#pragma unroll\n            for (int r = 0; r < R; r++)\n"
                    "                h[r][o] += f[r] * w;\n        }\n");
}

static void add_first_products(const cuda_networks_form *form, grt_text *s)
{
    const int32_t vector = cuda_networks_source_vector_of(form), pitch = pitch_of(form);
    grt_text_add(s, "#pragma unroll 1\n    for (int i = 0; i < %d; i += %d) {\n        vector v[R];\n",
                 form->networks->width[0], vector);
    grt_text_add(s,
                 "#pragma unroll\n        for (int r = 0; r < R; r++)\n"
                 "            v[r] = *(const vector *)(x + (r * %d + threadIdx.x) * %d + i);\n",
                 CUDA_NETWORKS_LANES, pitch);
    grt_text_add(s,
                 "#pragma unroll\n        for (int k = 0; k < %d; k++) {\n        T f[R];\n#pragma unroll\n"
                 "        for (int r = 0; r < R; r++)\n            f[r] = of_%s(v[r].v[k]);\n",
                 vector, grt_dtype_name(form->dtype));
    add_product(form, 0, "i + k", s);
    grt_text_add(s, "        }\n    }\n");
}

static void add_later_products(const cuda_networks_form *form, int32_t l, grt_text *s)
{
    const int32_t width = form->networks->width[l];
    grt_text_add(
        s,
        "#pragma unroll 2\n    for (int i = 0; i < %d; i++) {\n        T f[R];\n#pragma unroll\n"
        "        for (int r = 0; r < R; r++)\n            f[r] = between[(r * %d + i) * %d + threadIdx.x];\n",
        width, width, CUDA_NETWORKS_LANES);
    add_product(form, l, "i", s);
    grt_text_add(s, "    }\n");
}

/* The first layer's inputs lie otherwise than what later ones read: no lane may still need them. */
static void add_results(const cuda_networks_form *form, int32_t l, grt_text *s)
{
    const grt_networks *n = form->networks;
    const int32_t width = n->width[l + 1];
    if (l + 1 == n->n_layers)
        grt_text_add(
            s,
            "    if (first + threadIdx.x < a.count)\n#pragma unroll\n        for (int r = 0; r < R; r++)\n"
            "            if (row + r < a.rows)\n#pragma unroll\n                for (int o = 0; o < %d; "
            "o++)\n"
            "                    ((E *)a.y)[((unsigned long long)(row + r) * a.count + n) * %d + o] = "
            "to_%s(act%d(h[r][o]));\n",
            width, width, grt_dtype_name(form->dtype), l);
    else
        grt_text_add(s,
                     "%s#pragma unroll\n    for (int r = 0; r < R; r++)\n#pragma unroll\n        for (int o "
                     "= 0; o < %d; o++)\n"
                     "            between[(r * %d + o) * %d + threadIdx.x] = act%d(h[r][o]);\n",
                     l == 0 ? "    __syncwarp();\n" : "", width, width, CUDA_NETWORKS_LANES, l);
}

static void add_many(const cuda_networks_form *form, grt_text *s)
{
    const int32_t shared = form->rows * shared_of(form);
    grt_text_add(
        s,
        "enum { R = %d };\n"
        "extern \"C\" __global__ void __launch_bounds__(%d) " CUDA_NETWORKS_KERNEL
        "(const __grid_constant__ arguments a)\n{\n    extern __shared__ __align__(16) u8 shared[];\n"
        "    const unsigned first = blockIdx.x * %d, n = min(first + threadIdx.x, a.count - 1);\n"
        "    const unsigned row = (blockIdx.y * blockDim.y + threadIdx.y) * R;\n"
        "    E *staged = (E *)shared, *x = (E *)(shared + %d + threadIdx.y * %d);\n"
        "    T *between = (T *)x;\n    (void)staged, (void)between;\n",
        form->rows, CUDA_NETWORKS_LANES * MOST_WARPS, CUDA_NETWORKS_LANES,
        form->staged ? cuda_networks_source_weights_of(form) : 0, shared);
    cuda_generated_let_next_begin(s);
    if (form->staged)
        add_staging(form, s);
    cuda_generated_wait(s);
    add_copy(form, s);
    add_arrival(form, s);
    for (int32_t l = 0; l < form->networks->n_layers; l++) {
        grt_text_add(s, "    {\n");
        cuda_networks_source_add_sums(form, l, s);
        if (l == 0)
            add_first_products(form, s);
        else
            add_later_products(form, l, s);
        add_results(form, l, s);
        grt_text_add(s, "    }\n");
    }
    grt_text_add(s, "}\n");
}

/* ---- weights in registers ---- */

static void add_kept_weights(const cuda_networks_form *form, grt_text *s)
{
    const grt_networks *n = form->networks;
    const int32_t in = n->width[0], hidden = n->width[1], out = n->width[2];
    grt_text_add(
        s,
        "    T w0[%d][H], b0[H], w1[H][%d], b1[%d];\n#pragma unroll\n    for (int i = 0; i < %d; i++)\n"
        "#pragma unroll\n        for (int o = 0; o < H; o++)\n"
        "            w0[i][o] = at(a.weights[0], (i * %d + half * H + o) * a.lane + n);\n",
        in, out, out, in, hidden);
    grt_text_add(s,
                 "#pragma unroll\n    for (int o = 0; o < H; o++) {\n        b0[o] = %s;\n"
                 "#pragma unroll\n        for (int k = 0; k < %d; k++)\n"
                 "            w1[o][k] = at(a.weights[1], ((half * H + o) * %d + k) * a.lane + n);\n    }\n"
                 "#pragma unroll\n    for (int k = 0; k < %d; k++)\n        b1[k] = %s;\n",
                 n->bias[0] ? "at(a.bias[0], (half * H + o) * a.lane + n)" : "0", out, out, out,
                 n->bias[1] ? "half ? 0 : at(a.bias[1], k * a.lane + n)" : "0");
}

/* Two rows at a time; lanes of a network add up what their halves give. Warps behind the last row compute,
 * too: where they end early the compiler keeps weights' addresses, for which there are no registers. */
static void add_kept_layers(const cuda_networks_form *form, grt_text *s)
{
    const grt_networks *n = form->networks;
    const int32_t vector = cuda_networks_source_vector_of(form), out = n->width[2];
    const char *type = grt_dtype_name(form->dtype);
    grt_text_add(s, "#pragma unroll 1\n    for (int r = 0; r < R; r += 2) {\n        T h[2][H];\n"
                    "#pragma unroll\n        for (int o = 0; o < H; o++)\n            h[0][o] = h[1][o] = "
                    "b0[o];\n");
    grt_text_add(s,
                 "#pragma unroll\n        for (int i = 0; i < %d; i += %d)\n#pragma unroll\n"
                 "            for (int q = 0; q < 2; q++) {\n                const vector v = *(const vector "
                 "*)(x + ((r + q) * %d + threadIdx.x / 2) * %d + i);\n#pragma unroll\n"
                 "                for (int k = 0; k < %d; k++)\n#pragma unroll\n"
                 "                    for (int o = 0; o < H; o++)\n"
                 "                        h[q][o] += of_%s(v.v[k]) * w0[i + k][o];\n            }\n",
                 n->width[0], vector, networks_of(form), pitch_of(form), vector, type);
    grt_text_add(
        s,
        "#pragma unroll\n        for (int q = 0; q < 2; q++)\n#pragma unroll\n"
        "            for (int k = 0; k < %d; k++) {\n                T sum = b1[k];\n#pragma unroll\n"
        "                for (int o = 0; o < H; o++)\n"
        "                    sum += act0(h[q][o]) * w1[o][k];\n"
        "                sum += __shfl_xor_sync(0xffffffffu, sum, 1);\n",
        out);
    grt_text_add(
        s,
        "                if (!half && first + threadIdx.x / 2 < a.count && row + r + q < a.rows)\n"
        "                    ((E *)a.y)[((unsigned long long)(row + r + q) * a.count + n) * %d + k] = "
        "to_%s(act1(sum));\n            }\n    }\n",
        out, type);
}

static void add_kept(const cuda_networks_form *form, grt_text *s)
{
    grt_text_add(
        s,
        "enum { R = %d, H = %d };\n"
        "extern \"C\" __global__ void __launch_bounds__(%d, %d) " CUDA_NETWORKS_KERNEL
        "(const __grid_constant__ arguments a)\n{\n    extern __shared__ __align__(16) u8 shared[];\n"
        "    const unsigned first = blockIdx.x * %d, n = min(first + threadIdx.x / 2, a.count - 1), "
        "half = threadIdx.x %% 2;\n"
        "    const unsigned row = (blockIdx.y * blockDim.y + threadIdx.y) * R;\n"
        "    E *x = (E *)(shared + threadIdx.y * %d);\n",
        form->rows, form->networks->width[1] / 2, CUDA_NETWORKS_LANES * KEPT_WARPS, KEPT_BLOCKS,
        networks_of(form), form->rows * shared_of(form));
    cuda_generated_let_next_begin(s);
    add_kept_weights(form, s);
    cuda_generated_wait(s);
    add_copy(form, s);
    grt_text_add(s, "    asm volatile(\"cp.async.wait_all;\" ::: \"memory\");\n    __syncwarp();\n");
    add_kept_layers(form, s);
    grt_text_add(s, "}\n");
}

/* ---- few rows ---- */

/* How many layers' weights a thread reads before it has the input. */
static int32_t layers_ahead(const cuda_networks_form *form)
{
    const grt_networks *n = form->networks;
    int32_t room = REGISTERS / (CUDA_NETWORKS_LANES * most_warps(form)), l = 0;
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
    grt_text_add(s, "            w%d[i] = at(a.weights[%d], (i * %d + o) * a.lane + n);\n", l, l,
                 n->width[l + 1]);
    if (n->bias[l])
        grt_text_add(s, "        b%d = at(a.bias[%d], o * a.lane + n);\n", l, l);
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
    const int32_t ahead = layers_ahead(form), threads = CUDA_NETWORKS_LANES * most_warps(form),
                  in = n->width[0];
    grt_text_add(
        s,
        "extern \"C\" __global__ void __launch_bounds__(%d) " CUDA_NETWORKS_KERNEL
        "(const __grid_constant__ arguments a)\n{\n    __shared__ T h[2][%d][%d];\n"
        "    const unsigned first = blockIdx.x * %d, n = min(first + threadIdx.x, a.count - 1), o = "
        "threadIdx.y;\n"
        "    const E *x = (const E *)a.x + ((unsigned long long)blockIdx.y * a.count + first) * %d;\n",
        threads, n->most, CUDA_NETWORKS_LANES + 1, CUDA_NETWORKS_LANES, in);
    cuda_generated_let_next_begin(s);
    for (int32_t l = 0; l < ahead; l++)
        add_weights(form, l, s);
    cuda_generated_wait(s);
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
    else if (form->kept)
        add_kept(form, source);
    else
        add_many(form, source);
}
