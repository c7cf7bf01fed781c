/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: labels of the output come first, then those that are summed over. */
#include "backends/cuda/each.cuh"
#include "src/base/einsum.h"

namespace
{

enum { MAX_OPERANDS = 4 };

struct product {
    int32_t n_in, n_out, n_labels;
    int64_t n_results, n_terms;
    int64_t dims[GRT_EINSUM_LABELS];
    int32_t strides[MAX_OPERANDS][GRT_EINSUM_LABELS]; /* 0 where it lacks the label or stretches */
};

struct operands {
    cuda_any t[MAX_OPERANDS];
};

bool supports_einsum(const grt_kernel_node *node, grt_text *why)
{
    if (node->n_in <= MAX_OPERANDS)
        return true;
    if (why)
        grt_text_add(why, "%d operands; up to %d are supported", node->n_in, MAX_OPERANDS);
    return false;
}

grt_status plan_einsum(const grt_reshape *r, product *p)
{
    int64_t sizes[GRT_EINSUM_LABELS];
    int8_t labels[MAX_OPERANDS][GRT_MAX_RANK], out[GRT_MAX_RANK];
    int32_t wide, ellipsis = 0, place[GRT_EINSUM_LABELS];
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        sizes[k] = place[k] = -1;
    for (int32_t i = 0; i < r->n_in; i++) {
        const grt_tensor *in = r->in[i];
        GRT_TRY(grt_einsum_input(r->desc, i, r->n_in, in->rank, labels[i], &wide));
        ellipsis = wide > ellipsis ? wide : ellipsis;
        if (grt_tensor_elements(in) > INT32_MAX)
            return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "operand %d has more than 2^31 elements", i);
        for (int32_t k = 0; k < in->rank; k++) {
            int64_t *size = &sizes[labels[i][k]];
            if (*size >= 0 && *size != 1 && in->dims[k] != 1 && *size != in->dims[k])
                return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                                   "dim %d of input %d is %lld where the same letter had %lld", k, i,
                                   (long long)in->dims[k], (long long)*size);
            *size = *size < 0 || *size == 1 ? in->dims[k] : *size;
        }
    }
    GRT_TRY(grt_einsum_output(r->desc, ellipsis, out, &p->n_out));
    p->n_in = r->n_in;
    p->n_results = p->n_terms = 1;
    for (int32_t k = 0; k < p->n_out; k++)
        place[out[k]] = p->n_labels++;
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        if (sizes[k] >= 0 && place[k] < 0)
            place[k] = p->n_labels++;
    for (int32_t k = 0; k < GRT_EINSUM_LABELS; k++)
        if (place[k] >= 0) {
            p->dims[place[k]] = sizes[k] < 0 ? 1 : sizes[k];
            *(place[k] < p->n_out ? &p->n_results : &p->n_terms) *= p->dims[place[k]];
        }
    for (int32_t i = 0; i < r->n_in; i++) {
        int64_t strides[GRT_MAX_RANK];
        grt_dims_strides(r->in[i]->dims, r->in[i]->rank, strides);
        for (int32_t k = 0; k < r->in[i]->rank; k++)
            if (r->in[i]->dims[k] != 1)
                p->strides[i][place[labels[i][k]]] += (int32_t)strides[k];
    }
    return GRT_OK;
}

grt_status cuda_reshape_einsum(grt_reshape *r)
{
    product *p;
    GRT_TRY(cuda_state(&p));
    grt_status status = plan_einsum(r, p);
    if (status != GRT_OK) {
        free(p);
        return status;
    }
    r->shape = p;
    return GRT_OK;
}

grt_status cuda_run_einsum(const grt_run *r)
{
    const product p = *(const product *)r->shape;
    cuda_any in[MAX_OPERANDS] = {}, out = cuda_any_out(r, 0);
    operands all;
    for (int32_t i = 0; i < MAX_OPERANDS; i++)
        all.t[i] = i < r->n_in ? cuda_any_in(r, i) : in[i];
    const bool whole = grt_dtype_in(out.dtype, GRT_SET_INTS);
    return cuda_each(r, p.n_results, [=] __device__(int64_t i) {
        int64_t base[MAX_OPERANDS] = {}, rest = i, exact = 0;
        double sum = 0;
        for (int32_t k = p.n_out - 1; k >= 0; k--) {
            for (int32_t o = 0; o < p.n_in; o++)
                base[o] += rest % p.dims[k] * p.strides[o][k];
            rest /= p.dims[k];
        }
        for (int64_t term = 0; term < p.n_terms; term++) {
            int64_t at[MAX_OPERANDS], left = term, whole_product = 1;
            double value = 1;
            for (int32_t o = 0; o < p.n_in; o++)
                at[o] = base[o];
            for (int32_t k = p.n_labels - 1; k >= p.n_out; k--) {
                for (int32_t o = 0; o < p.n_in; o++)
                    at[o] += left % p.dims[k] * p.strides[o][k];
                left /= p.dims[k];
            }
            for (int32_t o = 0; o < p.n_in; o++)
                if (whole)
                    whole_product = (int64_t)((uint64_t)whole_product * (uint64_t)all.t[o].whole(at[o]));
                else
                    value *= all.t[o].get(at[o]);
            sum += value;
            exact = (int64_t)((uint64_t)exact + (uint64_t)whole_product);
        }
        if (whole && (out.dtype == GRT_DTYPE_INT64 || out.dtype == GRT_DTYPE_UINT64))
            ((int64_t *)out.data)[i] = exact;
        else
            out.put(i, whole ? (double)exact : sum);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Einsum",
     .types = {GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS, GRT_SET_NUMBERS},
     .supports = supports_einsum,
     .reshape = cuda_reshape_einsum,
     .release_shape = free,
     .run = cuda_run_einsum},
};

} // namespace
CUDA_KERNELS(einsum, rows);
