/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Pointwise, PointwiseParts and PointwiseConcat on the device. The kernel that was generated for the
 * program (pointwise_source.h) runs once it is there (backends/code.h); else one interprets the program
 * (pointwise_interpret.cuh). */
#include "backends/cuda/code.h"
#include "backends/cuda/concat.h"
#include "backends/cuda/generated.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/pointwise_interpret.cuh"

namespace
{

struct shape {
    bool grouped, formed, fast; /* formed: form is set; fast: the fast kernel takes it */
    cuda_pointwise_form form;
    grt_code *code; /* NULL: there is none */
    interpreted_form plan;
    interpreted_walk walk, groups;
    size_t offsets[CUDA_POINTWISE_INPUTS]; /* of parts, in bytes */
    grt_tensor whole;                      /* the first operand, if it is joined of several inputs */
    uint32_t ends[PW_MOST_JOINED];
    cuda_concat join;
    bool joins_at_once; /* by one launch, if the pointers are aligned */
};

struct asked {
    const grt_op_desc *desc;
    const cuda_pointwise_form *form;
};

void cuda_pointwise_group_add_key(const void *user, grt_text *key)
{
    const asked *a = (const asked *)user;
    cuda_pointwise_key(a->desc, a->form, key);
}

void cuda_pointwise_group_add_source(const void *user, grt_text *source)
{
    const asked *a = (const asked *)user;
    cuda_pointwise_source(a->desc, a->form, source);
}

grt_status cuda_pointwise_group_find_generated(grt_reshape *r, shape *sh)
{
    const asked a = {r->desc, &sh->form};
    const cuda_generated wanted = {"Pointwise", cuda_pointwise_group_add_key, cuda_pointwise_group_add_source,
                                   &a,          CUDA_POINTWISE_KERNEL,        0};
    return cuda_generated_take(r, &wanted, &sh->code);
}

void cuda_pointwise_group_release_shape(void *object)
{
    shape *sh = (shape *)object;
    grt_code_give(sh->code);
    free(sh);
}

void plan_fast(const cuda_pointwise_form &form, interpreted_form *f)
{
    f->n = form.n;
    f->by_inner = cuda_divisor_of(form.inner);
    f->by_middle = cuda_divisor_of(form.middle);
    for (int32_t i = 0; i < form.n_in; i++) {
        const uint8_t place = form.place[i];
        const uint32_t pitch = form.pitch[i] * (place & CUDA_PLACE_INNER ? CUDA_POINTWISE_VECTOR : 1),
                       inner = place & CUDA_PLACE_INNER ? form.inner * CUDA_POINTWISE_VECTOR : 1,
                       middle = place & CUDA_PLACE_MIDDLE ? form.middle : 1,
                       row = form.cut[i] == 1 ? pitch : inner, plane = form.cut[i] > 1 ? pitch : row * middle;
        f->strides[i][0] = place & CUDA_PLACE_OUTER ? plane : 0;
        f->strides[i][1] = place & CUDA_PLACE_MIDDLE ? row : 0;
        f->strides[i][2] = place & CUDA_PLACE_INNER ? CUDA_POINTWISE_VECTOR : 0;
    }
}

void walk_views(const pw_part_view *views, const grt_tensor *out, int32_t n_in, interpreted_walk *walk)
{
    int64_t strides[CUDA_POINTWISE_INPUTS + 1][GRT_MAX_RANK] = {};
    grt_dims_strides(out->dims, out->rank, strides[0]);
    for (int32_t k = 0; k < n_in; k++)
        grt_pointwise_view_strides(&views[k], out->rank, strides[k + 1]);
    cuda_walk_begin(walk);
    for (int32_t i = 0; i < out->rank; i++) {
        int64_t axis[CUDA_POINTWISE_INPUTS + 1];
        for (int k = 0; k <= CUDA_POINTWISE_INPUTS; k++)
            axis[k] = strides[k][i];
        cuda_walk_axis(walk, out->dims[i], axis);
    }
    cuda_walk_end(walk);
}

/* What the operands are, and which of them are parts. */
grt_status find_views(const grt_reshape *r, shape *sh, pw_part_view *views)
{
    const cuda_pointwise_program *p = (const cuda_pointwise_program *)r->state;
    if (p->joined > 1)
        GRT_TRY(grt_pointwise_join(r->desc, r->in, p->joined, &sh->whole));
    for (int32_t i = 0; i < p->n_in; i++) {
        const grt_tensor *in = i ? r->in[p->joined + i - 1] : p->joined > 1 ? &sh->whole : r->in[0];
        GRT_TRY(grt_pointwise_view_part(r->desc, i, in, &views[i]));
        sh->offsets[i] = (size_t)views[i].offset * grt_dtype_size(in->dtype);
    }
    if (p->joined > 1) { /* its rows lie in several places */
        views[0].axis = sh->whole.rank - 1;
        views[0].pitch = sh->whole.dims[views[0].axis];
    }
    return GRT_OK;
}

/* For runs without generated code. */
void plan_join(grt_reshape *r, int32_t joined, shape *sh)
{
    static_assert((int)PW_MOST_JOINED <= (int)CUDA_CONCAT_MOST, "parts of one launch");
    const int32_t last = sh->whole.rank - 1;
    int64_t row_bytes[PW_MOST_JOINED];
    for (int32_t i = 0; i < joined; i++)
        row_bytes[i] = r->in[i]->dims[last] * (int64_t)grt_dtype_size(sh->whole.dtype);
    sh->joins_at_once =
        cuda_concat_plan(&sh->join, grt_dims_product(sh->whole.dims, 0, last), joined, row_bytes);
    r->workspace_bytes = grt_elements_bytes(sh->whole.dtype, grt_tensor_elements(&sh->whole));
}

grt_status cuda_pointwise_group_reshape(grt_reshape *r)
{
    const cuda_pointwise_program *p = (const cuda_pointwise_program *)r->state;
    shape *sh;
    pw_part_view views[CUDA_POINTWISE_INPUTS];
    GRT_TRY(cuda_state(&sh));
    grt_status status = find_views(r, sh, views);
    sh->formed = status == GRT_OK && cuda_pointwise_form_of(views, p->n_in, r->out[0], &sh->form) &&
                 cuda_pointwise_join(r->in, p->joined, &sh->form, sh->ends);
    if (sh->formed)
        status = cuda_pointwise_group_find_generated(r, sh);
    if (status != GRT_OK) {
        free(sh);
        return status;
    }
    sh->fast = sh->formed && !sh->form.uneven && sh->form.dims <= 3 && p->n_registers <= INTERPRET_KEPT;
    if (sh->fast)
        plan_fast(sh->form, &sh->plan);
    walk_views(views, r->out[0], p->n_in, &sh->walk);
    sh->grouped = sh->walk.total > 0 && cuda_walk_vector(&sh->walk, INTERPRET_VECTOR) == INTERPRET_VECTOR;
    if (sh->grouped)
        sh->groups = cuda_walk_grouped(&sh->walk, INTERPRET_VECTOR);
    if (p->joined > 1)
        plan_join(r, p->joined, sh);
    r->shape = sh;
    return GRT_OK;
}

bool begins_early(const grt_run *r)
{
    return ((const cuda_device *)r->device)->prop.major >= 9;
}

grt_status cuda_pointwise_group_launch_generated(const shape *sh, cudaKernel_t generated,
                                                 const interpreted_operands &o, const grt_run *r)
{
    cuda_pointwise_args args = {};
    memcpy(args.in, o.in, sizeof args.in);
    args.joined = (uint32_t)sh->form.joined;
    for (int32_t i = 0; sh->form.joined > 1 && i < sh->form.joined; i++) {
        args.part[i] = r->in[i]->data;
        args.ends[i] = sh->ends[i];
    }
    args.out = o.out;
    cuda_pointwise_sizes(&sh->form, &args);
    void *list[] = {&args};
    CUDA_TRY(overlap_launch_code(begins_early(r), generated,
                                 dim3((args.n + CUDA_POINTWISE_BLOCK - 1) / CUDA_POINTWISE_BLOCK),
                                 dim3(CUDA_POINTWISE_BLOCK), 0, cuda_stream(r), list));
    return GRT_OK;
}

/* Views may begin anywhere; whole vectors need their alignment. */
bool is_aligned(const grt_run *r, const shape *sh, const interpreted_operands &o)
{
    const int32_t joined = sh->form.joined > 1 ? sh->form.joined : 0;
    bool aligned = cuda_aligned(o.out, CUDA_POINTWISE_VECTOR * grt_dtype_size(sh->form.out_dtype));
    for (int32_t k = 0; k < joined; k++)
        aligned = aligned &&
                  cuda_aligned(r->in[k]->data, CUDA_POINTWISE_VECTOR * grt_dtype_size(sh->form.in_dtype[0]));
    for (int32_t k = joined > 0; k < sh->form.n_in; k++)
        aligned =
            aligned && (!cuda_pointwise_reads_vectors(&sh->form, k) ||
                        cuda_aligned(o.in[k], CUDA_POINTWISE_VECTOR * grt_dtype_size(sh->form.in_dtype[k])));
    return aligned;
}

template <int V>
grt_status cuda_pointwise_group_launch(const interpreted_walk &walk, const cuda_pointwise_program &p,
                                       const interpreted_operands &o, cudaStream_t stream)
{
    if (p.n_registers <= 4)
        interpret_kernel<V, 4>
            <<<cuda_grid(walk.total, INTERPRET_BLOCK), INTERPRET_BLOCK, 0, stream>>>(walk, p, o);
    else
        interpret_kernel<V, CUDA_POINTWISE_CODE>
            <<<cuda_grid(walk.total, INTERPRET_BLOCK), INTERPRET_BLOCK, 0, stream>>>(walk, p, o);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* Without generated code: the first operand as one tensor. */
grt_status join_first(const grt_run *r, const shape *sh, int32_t joined)
{
    const grt_tensor *whole = &sh->whole;
    void *parts[PW_MOST_JOINED];
    bool done = false;
    for (int32_t i = 0; i < joined; i++)
        parts[i] = (void *)r->in[i]->data;
    if (sh->joins_at_once)
        GRT_TRY(
            cuda_concat_run(&sh->join, r->workspace, parts, false, begins_early(r), cuda_stream(r), &done));
    const int32_t last = whole->rank - 1;
    const size_t size = grt_dtype_size(whole->dtype), pitch = (size_t)whole->dims[last] * size,
                 rows = (size_t)grt_dims_product(whole->dims, 0, last);
    char *to = (char *)r->workspace;
    for (int32_t i = 0; !done && i < joined; i++) {
        const size_t bytes = (size_t)r->in[i]->dims[last] * size;
        if (bytes)
            CUDA_TRY(cudaMemcpy2DAsync(to, pitch, r->in[i]->data, bytes, bytes, rows,
                                       cudaMemcpyDeviceToDevice, cuda_stream(r)));
        to += bytes;
    }
    return GRT_OK;
}

grt_status cuda_pointwise_group_run(const grt_run *r)
{
    const cuda_pointwise_program *p = (const cuda_pointwise_program *)r->state;
    const shape *sh = (const shape *)r->shape;
    if (sh->walk.total <= 0)
        return GRT_OK;
    interpreted_operands o = {};
    int32_t last = sh->walk.rank - 1;
    bool aligned =
        sh->grouped && cuda_aligned(r->out[0]->data, INTERPRET_VECTOR * grt_dtype_size(p->out_dtype));
    for (int32_t k = 0; k < p->n_in; k++) {
        const void *data = k ? r->in[p->joined + k - 1]->data : p->joined > 1 ? r->workspace : r->in[0]->data;
        o.in[k] = (const char *)data + sh->offsets[k];
        o.packed[k] = sh->walk.strides[k + 1][last] == 1;
        aligned &= !o.packed[k] || cuda_aligned(o.in[k], INTERPRET_VECTOR * grt_dtype_size(p->in_dtype[k]));
    }
    o.out = r->out[0]->data;
    const cudaKernel_t generated = cuda_code_kernel(sh->code);
    const bool formed = (generated || sh->fast) && is_aligned(r, sh, o);
    if (formed && generated)
        return cuda_pointwise_group_launch_generated(sh, generated, o, r);
    if (p->joined > 1)
        GRT_TRY(join_first(r, sh, p->joined));
    if (formed) {
        CUDA_TRY(overlap_launch(begins_early(r), interpret_form_kernel,
                                (sh->plan.n + CUDA_POINTWISE_BLOCK - 1) / CUDA_POINTWISE_BLOCK,
                                CUDA_POINTWISE_BLOCK, 0, cuda_stream(r), sh->plan, *p, o));
        return GRT_OK;
    }
    return aligned ? cuda_pointwise_group_launch<INTERPRET_VECTOR>(sh->groups, *p, o, cuda_stream(r))
                   : cuda_pointwise_group_launch<1>(sh->walk, *p, o, cuda_stream(r));
}

#define TYPES (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16) | GRT_BIT(BOOL))
#define GROUP(name, overwritten)                                                                           \
    {                                                                                                      \
        .domain = "graphrt", .op = name, .types = {TYPES, TYPES, TYPES, TYPES},                            \
        .flags = GRT_KERNEL_CHOOSES | (overwritten), .supports = cuda_pointwise_program_supports,          \
        .create = cuda_pointwise_program_create, .destroy = free, .reshape = cuda_pointwise_group_reshape, \
        .release_shape = cuda_pointwise_group_release_shape, .run = cuda_pointwise_group_run               \
    }
const grt_kernel_row rows[] = {
    /* Any input that dies here: an element is read by the thread that writes it, before. */
    GROUP("Pointwise", 0xff),
    /* Parts may have as many elements as the result in all: none is overwritten. */
    GROUP("PointwiseParts", 0),
    GROUP("PointwiseConcat", 0),
};

} // namespace
CUDA_KERNELS(pointwise_group, rows);
