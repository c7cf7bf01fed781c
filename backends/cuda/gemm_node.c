/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/gemm_node.h"

#include "backends/cuda/conv_fold.h"
#include "backends/cuda/conv_patches.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/gemm_forms.h"
#include "backends/shared/window.h"
#include "src/base/activation.h"

#include <string.h>

enum {
    VECTOR = 16 /* bytes */,
    MOST_LENGTH = 256 /* of gathered rows */,
    MOST_GATHERED = 1 << 26 /* numbers */
};
enum { CONV_BIAS = 2, CONV_RESIDUAL = 3, MOST_INPUTS = 4, USUAL_MULTIPROCESSORS = 132 };

bool cuda_gemm_on(const struct cudaDeviceProp *prop)
{
    return prop->major == 9 && prop->minor == 0;
}

bool cuda_gemm_has_type(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16 || dtype == GRT_DTYPE_FLOAT;
}

static bool is_strict(const grt_op_desc *desc, grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT && strcmp(grt_attr_string(desc, "math", ""), "tf32") != 0;
}

static bool reads_act(const grt_op_desc *desc, grt_act *act)
{
    *act = (grt_act){.kind = GRT_ACT_NONE};
    return !grt_op_is(desc, "graphrt", "MatMul") && !grt_op_is(desc, "graphrt", "Conv")
               ? true
               : grt_act_read(desc, act, NULL);
}

static bool is_constant(const grt_tensor *t)
{
    return !t || t->data;
}

/* Gemm's C may be a bias or a residual. */
static bool adds_as_we_do(const grt_reshape *r, const grt_matmul *m, bool *out_residual)
{
    const grt_tensor *added = grt_reshape_in(r, GRT_MATMUL_BIAS);
    *out_residual = grt_reshape_in(r, GRT_MATMUL_RESIDUAL) != NULL;
    if (!m->is_gemm || !added)
        return !m->bias_rows;
    *out_residual = m->c.rows == m->m && m->c.cols == m->n && m->m > 1;
    return grt_attr_float(r->desc, "beta", 1.0f) == 1.0f &&
           (*out_residual || (m->c.rows == 1 && m->c.cols == m->n));
}

/* Measured beside cuBLASLt. Few rows: by a few million weights. Rows that fill less than four fifths of
 * tiles: short products. Long products of 16 bits: where ours fill the device better, up to about 100 us; of
 * TF32: with a residual or GELU, with which the library's take up to 1.5 times as long. Strict float32, which
 * libraries compute without tensor cores: all. */
static bool gemm_is_worth(const cuda_gemm *p)
{
    enum { TILE_ROWS = 64, MOST_TIME = 100 };
    const int64_t tile_rows = (p->rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    const bool is_full = 4 * tile_rows <= 5 * p->rows;
    if (p->rows <= TILE_ROWS)
        return (double)p->channels * (double)p->columns <= 4e6;
    if (p->strict)
        return true;
    if (p->dtype == GRT_DTYPE_FLOAT)
        return !p->is_long || (is_full && (p->has_residual || !gemm_is_bounds(p->act.kind)));
    return !p->is_long || (is_full && p->time <= MOST_TIME && cuda_gemm_fills_better(p));
}

bool cuda_gemm_of_matmul(const grt_reshape *r, const grt_matmul *m, int multiprocessors, cuda_gemm *out)
{
    const float scale = grt_attr_float(r->desc, m->is_gemm ? "alpha" : "scale", 1.0f);
    bool residual;
    *out = (cuda_gemm){.dtype = r->in[0]->dtype,
                       .strict = is_strict(r->desc, r->in[0]->dtype),
                       .across = !m->trans_b,
                       .rows = m->m,
                       .channels = m->k,
                       .columns = m->n,
                       .multiprocessors = multiprocessors};
    if (!cuda_gemm_has_type(out->dtype) || scale != 1.0f || m->calls != 1 || m->batch != 1 || m->trans_a ||
        !reads_act(r->desc, &out->act) || !adds_as_we_do(r, m, &residual))
        return false;
    out->has_residual = residual;
    out->is_constant = is_constant(r->in[1]) && is_constant(grt_reshape_in(r, GRT_MATMUL_BIAS));
    return cuda_gemm_plan(out) && gemm_is_worth(out);
}

/* One, two or three spatial dims. False: numbers that 32 bits may not hold. */
static bool windows_of(const grt_reshape *r, cuda_conv_windows *out)
{
    const grt_tensor *x = r->in[0], *w = r->in[1], *y = r->out[0];
    const int32_t spatial = x->rank - 2, skip = CUDA_CONV_DIMS - spatial;
    cpu_window window;
    cuda_conv_windows c;
    cpu_window_read(r->desc, spatial, x->dims + 1, y->dims + 1, w->dims + 2, false, &window);
    for (int32_t i = 0; i < CUDA_CONV_DIMS; i++) {
        const int32_t d = i - skip;
        c.in[i] = d < 0 ? 1 : window.in[d];
        c.out[i] = d < 0 ? 1 : window.out[d];
        c.kernel[i] = d < 0 ? 1 : window.kernel[d];
        c.stride[i] = d < 0 ? 1 : window.stride[d];
        c.dilation[i] = d < 0 ? 1 : window.dilation[d];
        c.begin[i] = d < 0 ? 0 : window.begin[d];
    }
    *out = c;
    return cpu_window_is_small(&window);
}

/* False: windows of volumes that are none of planes and do not tile them. */
static bool read_windows(const grt_reshape *r, cuda_gemm_conv *c)
{
    enum { MOST = 1 << 30 };
    cuda_gemm *p = &c->product;
    cuda_conv_windows w;
    int64_t images = r->in[0]->dims[0];
    if (!windows_of(r, &w))
        return false;
    c->cuts =
        cuda_conv_tiles(CUDA_CONV_DIMS, p->channels, w.in, w.out, w.kernel, w.stride, w.dilation, w.begin);
    if (c->cuts)
        return true;
    cuda_conv_fold(&w, &images);
    if (!cuda_conv_is_plane(&w) || images > MOST || w.in[1] > MOST || w.in[2] > MOST)
        return false;
    p->images = (int32_t)images;
    for (int32_t i = 0; i < 2; i++) {
        const int32_t d = i + 1;
        p->in[i] = (int32_t)w.in[d];
        p->out[i] = (int32_t)w.out[d];
        p->kernel[i] = (int32_t)w.kernel[d];
        p->stride[i] = (int32_t)w.stride[d];
        p->dilation[i] = (int32_t)w.dilation[d];
        p->begin[i] = (int32_t)w.begin[d];
        p->is_windows = p->is_windows || !cuda_conv_stays(&w, d);
    }
    return true;
}

static int64_t vector_of(grt_dtype dtype)
{
    return VECTOR / (int64_t)grt_dtype_size(dtype);
}

int64_t cuda_gemm_row_length(const grt_tensor *w)
{
    const int64_t length = grt_dims_product(w->dims, 1, w->rank), vector = vector_of(w->dtype);
    return w->dims[1] % vector && length <= MOST_LENGTH ? (length + vector - 1) / vector * vector : 0;
}

/* Windows become rows; false: too many bytes. */
static bool gather_windows(const grt_tensor *w, cuda_gemm_conv *c)
{
    cuda_gemm *p = &c->product;
    const int64_t length = cuda_gemm_row_length(w);
    c->gathers = true;
    c->rows = (cuda_window_rows){.dtype = p->dtype,
                                 .images = p->images,
                                 .channels = (int32_t)p->channels,
                                 .length = (int32_t)length,
                                 .overlaps = true};
    for (int i = 0; i < 2; i++) {
        c->rows.in[i] = p->in[i];
        c->rows.out[i] = p->out[i];
        c->rows.kernel[i] = p->kernel[i];
        c->rows.stride[i] = p->stride[i];
        c->rows.dilation[i] = p->dilation[i];
        c->rows.begin[i] = p->begin[i];
    }
    p->is_windows = false;
    p->channels = length;
    return length > 0 && p->rows <= MOST_GATHERED / length;
}

static bool are_small(const grt_tensor *t)
{
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dims[i] < 1 || t->dims[i] > 1 << 24)
            return false;
    return true;
}

bool cuda_gemm_of_conv(const grt_reshape *r, int multiprocessors, cuda_gemm_conv *out)
{
    const grt_tensor *x = r->in[0], *w = r->in[1], *y = r->out[0];
    cuda_gemm *p = &out->product;
    *out = (cuda_gemm_conv){.product = {.dtype = x->dtype,
                                        .strict = is_strict(r->desc, x->dtype),
                                        .multiprocessors = multiprocessors,
                                        .is_constant = true}};
    if (strcmp(r->desc->op, "Conv") != 0 || !cuda_gemm_has_type(x->dtype) || !grt_channels_last(r->desc) ||
        !w->data || grt_attr_int(r->desc, "group", 1) != 1 || x->rank < 3 || x->rank > 2 + CUDA_CONV_DIMS ||
        w->rank != x->rank || y->rank != x->rank || !are_small(x) || !are_small(w) || !are_small(y) ||
        !reads_act(r->desc, &p->act) || !is_constant(grt_reshape_in(r, CONV_BIAS)))
        return false;
    p->columns = w->dims[0];
    p->has_residual = grt_reshape_in(r, CONV_RESIDUAL) != NULL;
    p->rows = grt_dims_product(y->dims, 0, y->rank - 1);
    p->channels = x->dims[x->rank - 1];
    if (!read_windows(r, out))
        return false;
    if (out->cuts) {
        p->channels *= grt_dims_product(w->dims, 2, w->rank);
    } else if (p->channels % vector_of(p->dtype) && !gather_windows(w, out)) {
        return false;
    }
    /* Long ones with few channels are a matter of memory, which other kernels serve as well, and so are rows
     * of float32 that are written and read again. */
    return cuda_gemm_plan(p) &&
           (!p->is_long || p->strict ||
            ((cuda_gemm_is_whole(p) || cuda_gemm_is_better_kept(p)) && !cuda_gemm_is_better_left(p) &&
             !(out->gathers && p->dtype == GRT_DTYPE_FLOAT)));
}

/* Known dims, of so few elements that no product of two such numbers overflows: plans may be forged. */
static bool are_known(const grt_tensor *t)
{
    const int64_t n = t->rank < 0 ? -1 : grt_dims_product(t->dims, 0, t->rank);
    return n >= 1 && n <= 1 << 30;
}

static bool is_same_everywhere(const grt_kernel_node *node)
{
    if (node->n_in < 2 || node->n_in > MOST_INPUTS || node->n_out != 1 || !are_known(node->out))
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        if ((i < 2 || grt_node_has(node, i)) &&
            (!are_known(&node->in[i]) || node->in[i].dtype != node->in[0].dtype))
            return false;
    return cuda_gemm_has_type(node->in[0].dtype);
}

bool cuda_gemm_takes(const grt_kernel_node *node)
{
    const grt_tensor *in[MOST_INPUTS] = {NULL}, *out[1] = {node->out};
    cuda_gemm_conv conv;
    cuda_gemm p;
    grt_matmul m;
    if (!is_same_everywhere(node))
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = grt_node_has(node, i) ? &node->in[i] : NULL;
    grt_reshape r = {.desc = node->desc, .in = in, .out = out, .n_in = node->n_in, .n_out = 1};
    if (!strcmp(node->desc->op, "Conv"))
        return cuda_gemm_of_conv(&r, USUAL_MULTIPROCESSORS, &conv);
    return (grt_op_is(node->desc, "graphrt", "MatMul") || grt_op_is(node->desc, "", "MatMul") ||
            grt_op_is(node->desc, "", "Gemm")) &&
           grt_matmul_fit(&r, &m) == GRT_OK && m.n_c > 0 && m.k > 0 &&
           cuda_gemm_of_matmul(&r, &m, USUAL_MULTIPROCESSORS, &p);
}
